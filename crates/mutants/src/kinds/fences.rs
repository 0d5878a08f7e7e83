//! Fences between proxies: gone, or too late.

use super::order::{acts, is_release};
use crate::case::{Case, Spot, any_op, each_op, tiles};
use crate::edit::Edit;
use std::collections::HashSet;
use warpline_check::Facts;
use warpline_ir::{FenceKind, Op, Proxy, Stmt, StmtKind, TileId};

/// Is it a fence between proxies?
fn is_fence(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Op(Op::Fence(f)) => {
            f.kind.is_proxy_shared() || f.kind == FenceKind::ProxyAsyncGlobal
        }
        _ => false,
    }
}

/// Fences that stand between a thread and an engine. Where what was touched
/// before is touched by threads alone, a fence does nothing.
fn fences<'a, 'k>(c: &'a Case<'k>) -> impl Iterator<Item = &'a Spot<'k>> {
    let mut engines: HashSet<TileId> = HashSet::new();
    for (_, op) in c.ops() {
        let mut facts = Facts::of(op);
        facts
            .touches
            .retain(|t| matches!(t.proxy, Proxy::Bulk | Proxy::Wgmma));
        engines.extend(tiles(&facts));
    }
    let needed = move |spot: &Spot<'_>| {
        let mut touched = HashSet::new();
        for stmt in &spot.block[..spot.index] {
            each_op(stmt, &mut |op| {
                let mut facts = Facts::of(op);
                facts.touches.retain(|t| t.proxy == Proxy::Generic);
                touched.extend(tiles(&facts));
            });
        }
        touched.is_empty() || !touched.is_disjoint(&engines)
    };
    let all = c.spots.iter().filter(|spot| is_fence(spot.stmt));
    all.filter(move |spot| needed(spot))
}

/// A fence left out.
pub(super) fn dropped(c: &Case<'_>) -> Vec<Edit> {
    let dropped = |spot: &Spot<'_>| Some(c.left_out(spot, spot.op()?));
    fences(c).filter_map(dropped).collect()
}

/// A fence that comes behind the arrival it stood before.
pub(super) fn late(c: &Case<'_>) -> Vec<Edit> {
    let late = |spot: &Spot<'_>| {
        let behind = &spot.block[spot.index + 1..];
        let i = behind.iter().position(is_release)?;
        if behind[..i].iter().any(|s| any_op(s, acts)) {
            return None;
        }
        let with = [&behind[..=i], std::slice::from_ref(spot.stmt)].concat();
        let range = spot.index..spot.index + with.len();
        let text = format!("{} before its fence", c.arrival(&behind[i])?);
        Some(c.edit(spot, text, vec![spot.splice(range, with)]))
    };
    fences(c).filter_map(late).collect()
}

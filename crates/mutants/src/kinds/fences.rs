//! Proxy fences that are missing or too late.

use super::order::{is_release, waits_or_accesses_shared};
use crate::edit::Edit;
use crate::sites::{KernelSites, Site, any_op, each_op, tiles};
use std::collections::HashSet;
use warpline_check::Facts;
use warpline_ir::{FenceKind, Op, Proxy, Stmt, StmtKind, TileId};

/// Returns whether the statement is a proxy fence.
fn is_fence(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Op(Op::Fence(f)) => {
            f.kind.is_proxy_shared() || f.kind == FenceKind::ProxyAsyncGlobal
        }
        _ => false,
    }
}

/// Returns the proxy fences that order generic accesses with the async proxy. A fence is left
/// alone if no tile accessed before it is ever accessed through the async proxy.
fn fences<'a, 'k>(sites: &'a KernelSites<'k>) -> impl Iterator<Item = &'a Site<'k>> {
    let mut async_tiles: HashSet<TileId> = HashSet::new();
    for (_, op) in sites.ops() {
        let mut facts = Facts::of(op);
        facts
            .touches
            .retain(|t| matches!(t.proxy, Proxy::Bulk | Proxy::Wgmma));
        async_tiles.extend(tiles(&facts));
    }
    let needed = move |site: &Site<'_>| {
        let mut touched = HashSet::new();
        for stmt in &site.block[..site.index] {
            each_op(stmt, &mut |op| {
                let mut facts = Facts::of(op);
                facts.touches.retain(|t| t.proxy == Proxy::Generic);
                touched.extend(tiles(&facts));
            });
        }
        touched.is_empty() || !touched.is_disjoint(&async_tiles)
    };
    let all = sites.statements.iter().filter(|site| is_fence(site.stmt));
    all.filter(move |site| needed(site))
}

/// Drops a proxy fence.
pub(super) fn drop_proxy_fence(sites: &KernelSites<'_>) -> Vec<Edit> {
    let dropped = |site: &Site<'_>| Some(sites.drop_op(site, site.op()?));
    fences(sites).filter_map(dropped).collect()
}

/// Moves a proxy fence after the next arrival.
pub(super) fn delay_proxy_fence(sites: &KernelSites<'_>) -> Vec<Edit> {
    let late = |site: &Site<'_>| {
        let after = &site.block[site.index + 1..];
        let i = after.iter().position(is_release)?;
        if after[..i]
            .iter()
            .any(|s| any_op(s, waits_or_accesses_shared))
        {
            return None;
        }
        let with = [&after[..=i], std::slice::from_ref(site.stmt)].concat();
        let range = site.index..site.index + with.len();
        let text = format!("{} before its fence", sites.arrival(&after[i])?);
        Some(sites.edit(site, text, vec![site.splice(range, with)]))
    };
    fences(sites).filter_map(late).collect()
}

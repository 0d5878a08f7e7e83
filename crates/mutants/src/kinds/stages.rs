//! Wrong stages: cursors that wrap too early or too late, ops that use the next stage.

use crate::edit::{Draft, Edit};
use crate::sites::{KernelSites, Site, mbarriers};
use std::collections::HashSet;
use warpline_check::Facts;
use warpline_ir::ops::arith::Rem;
use warpline_ir::ops::compare::{Cmp, Select, Setp};
use warpline_ir::ops::wgmma::MatrixA;
use warpline_ir::{Kernel, MemoryAddress, Op, Operand, RegId, StmtKind, TileId};

/// The maximum number of stages; a comparison with a larger constant is not a cursor.
const MAX_STAGES: u64 = 256;

/// Wraps a cursor one stage too early or too late.
pub(super) fn change_wrap(sites: &KernelSites<'_>) -> Vec<Edit> {
    let named = sites
        .ops()
        .flat_map(|(_, op)| mbarriers(&Facts::of(op)).collect::<Vec<_>>());
    let indices: HashSet<RegId> = named.filter_map(|b| b.index.as_reg()).collect();
    let mut edits = Vec::new();
    for (site, op) in sites.ops() {
        let Some(stages) = stages(site, op, &indices) else {
            continue;
        };
        for changed in [stages - 1, stages + 1] {
            let mut draft = sites.draft(site);
            let b = Operand::Imm(changed);
            match op {
                Op::Setp(compare) => draft.op(Setp {
                    b,
                    ..compare.clone()
                }),
                Op::Rem(rem) => draft.op(Rem { b, ..rem.clone() }),
                _ => continue,
            }
            let text = format!("a cursor of {changed} stages, not {stages}");
            edits.push(sites.replace_with_draft(site, text, draft));
        }
    }
    edits
}

/// Returns the number of stages if the op tests whether a cursor wraps.
fn stages(site: &Site<'_>, op: &Op, indices: &HashSet<RegId>) -> Option<u64> {
    match *op {
        Op::Setp(Setp {
            cmp: Cmp::Eq,
            dst,
            a,
            b: Operand::Imm(stages @ 2..=MAX_STAGES),
            ..
        }) => {
            let wraps_to_zero = |s: &warpline_ir::Stmt| match s.kind {
                StmtKind::Op(Op::Select(Select {
                    cond, a: zero, b, ..
                })) => cond == dst.into() && zero == Operand::Imm(0) && b == a,
                _ => false,
            };
            let following = &site.block[site.index..];
            following.iter().any(wraps_to_zero).then_some(stages)
        }
        Op::Rem(Rem {
            dst,
            b: Operand::Imm(stages @ 2..=MAX_STAGES),
            ..
        }) => indices.contains(&dst).then_some(stages),
        _ => None,
    }
}

/// Uses the next stage of an mbarrier array or of a tile.
pub(super) fn use_next_stage(sites: &KernelSites<'_>) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (site, op) in sites.ops().filter(|(_, op)| !has_no_effect(op)) {
        for (kind, shift) in [("barrier", barrier as Shift), ("tile", tile)] {
            let (mut draft, mut shifted) = (sites.draft(site), op.clone());
            if shift(sites.kernel, &mut shifted, &mut draft) {
                draft.op(shifted);
                let text = format!("{} uses the next {kind}", sites.name(op));
                edits.push(sites.replace_with_draft(site, text, draft));
            }
        }
    }
    edits
}

/// Returns whether an op neither synchronizes nor accesses memory.
fn has_no_effect(op: &Op) -> bool {
    let facts = Facts::of(op);
    facts.syncs.is_empty() && facts.touches.is_empty()
}

/// Moves an op to the next stage; returns whether there is more than one stage.
type Shift = fn(&Kernel, &mut Op, &mut Draft) -> bool;

fn barrier(kernel: &Kernel, op: &mut Op, draft: &mut Draft) -> bool {
    let bar = match op {
        Op::MbarrierWait(o) => &mut o.bar,
        Op::MbarrierArrive(o) => &mut o.bar,
        Op::CopyArrive(o) => &mut o.bar,
        Op::TensorLoad(o) => &mut o.bar,
        Op::BulkLoad(o) => &mut o.bar,
        Op::StoreAsync(o) => &mut o.bar,
        _ => return false,
    };
    advance(draft, &mut bar.index, kernel.barrier(bar.bar).len)
}

fn tile(kernel: &Kernel, op: &mut Op, draft: &mut Draft) -> bool {
    let (tile, stage): (TileId, &mut Operand) = match op {
        Op::TensorLoad(o) => (o.dst.tile, &mut o.dst.stage),
        Op::TensorStore(o) => (o.src.tile, &mut o.src.stage),
        Op::BulkLoad(o) => (o.dst.tile, &mut o.dst.stage),
        Op::BulkStore(o) => (o.src.tile, &mut o.src.stage),
        Op::StoreAsync(o) => (o.dst.tile, &mut o.dst.stage),
        Op::CopyAsync(o) => (o.dst.tile, &mut o.dst.stage),
        Op::LoadMatrix(o) => (o.at.tile, &mut o.at.stage),
        Op::StoreMatrix(o) => (o.at.tile, &mut o.at.stage),
        Op::Load(o) => match &mut o.at {
            MemoryAddress::Shared(p) => (p.tile, &mut p.stage),
            MemoryAddress::Global { .. } => return false,
        },
        Op::Store(o) => match &mut o.at {
            MemoryAddress::Shared(p) => (p.tile, &mut p.stage),
            MemoryAddress::Global { .. } => return false,
        },
        Op::Wgmma(o) => match &mut o.a {
            MatrixA::Shared(v, _) => (v.tile, &mut v.stage),
            MatrixA::Regs(_) => (o.b.tile, &mut o.b.stage),
        },
        _ => return false,
    };
    advance(draft, stage, kernel.tile(tile).stages)
}

/// Advances an index if there is more than one stage.
fn advance(draft: &mut Draft, index: &mut Operand, len: u32) -> bool {
    if len > 1 {
        *index = draft.next_stage(*index, len);
    }
    len > 1
}

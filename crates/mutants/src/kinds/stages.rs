//! Stages: where a cursor goes round, and which one an op takes.

use crate::case::{Case, Spot, bars};
use crate::edit::{Draft, Edit};
use std::collections::HashSet;
use warpline_check::Facts;
use warpline_ir::ops::arith::Rem;
use warpline_ir::ops::compare::{Cmp, Select, Setp};
use warpline_ir::ops::wgmma::MatrixA;
use warpline_ir::{MemoryAddress, Kernel, Op, Operand, RegId, StmtKind, TileId};

/// The most stages of a cursor: larger numbers are something else.
const MOST: u64 = 256;

/// A cursor that goes round one stage early or late.
pub(super) fn wrap(c: &Case<'_>) -> Vec<Edit> {
    let named = c
        .ops()
        .flat_map(|(_, op)| bars(&Facts::of(op)).collect::<Vec<_>>());
    let indices: HashSet<RegId> = named.filter_map(|b| b.index.as_reg()).collect();
    let mut edits = Vec::new();
    for (spot, op) in c.ops() {
        let Some(stages) = stages(spot, op, &indices) else {
            continue;
        };
        for changed in [stages - 1, stages + 1] {
            let mut draft = c.draft(spot);
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
            edits.push(c.drafted(spot, text, draft));
        }
    }
    edits
}

/// The stages after which a cursor goes round, where an op asks for that.
fn stages(spot: &Spot<'_>, op: &Op, indices: &HashSet<RegId>) -> Option<u64> {
    match *op {
        Op::Setp(Setp {
            cmp: Cmp::Eq,
            dst,
            a,
            b: Operand::Imm(stages @ 2..=MOST),
            ..
        }) => {
            let back = |s: &warpline_ir::Stmt| match s.kind {
                StmtKind::Op(Op::Select(Select {
                    cond, a: zero, b, ..
                })) => cond == dst.into() && zero == Operand::Imm(0) && b == a,
                _ => false,
            };
            let behind = &spot.block[spot.index..];
            behind.iter().any(back).then_some(stages)
        }
        Op::Rem(Rem {
            dst,
            b: Operand::Imm(stages @ 2..=MOST),
            ..
        }) => indices.contains(&dst).then_some(stages),
        _ => None,
    }
}

/// The next stage of a barrier array or tile.
pub(super) fn index(c: &Case<'_>) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (spot, op) in c.ops().filter(|(_, op)| !is_plain(op)) {
        for (what, shift) in [("barrier", barrier as Shift), ("tile", tile)] {
            let (mut draft, mut shifted) = (c.draft(spot), op.clone());
            if shift(c.kernel, &mut shifted, &mut draft) {
                draft.op(shifted);
                let text = format!("{} takes the next {what}", c.name(op));
                edits.push(c.drafted(spot, text, draft));
            }
        }
    }
    edits
}

/// Does an op neither name a barrier nor touch memory?
fn is_plain(op: &Op) -> bool {
    let facts = Facts::of(op);
    facts.syncs.is_empty() && facts.touches.is_empty()
}

/// Gives an op another stage; says whether it has one that can be another.
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
    next(draft, &mut bar.index, kernel.barrier(bar.bar).len)
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
    next(draft, stage, kernel.tile(tile).stages)
}

/// The next of several, if there are several.
fn next(draft: &mut Draft, at: &mut Operand, len: u32) -> bool {
    if len > 1 {
        *at = draft.next(*at, len);
    }
    len > 1
}

//! Bytes that a phase expects, and copies that bring them.

use crate::case::Case;
use crate::edit::Edit;
use warpline_check::Facts;
use warpline_ir::ops::mbarrier::{MbarrierArrive, MbarrierExpectTx};
use warpline_ir::{Completion, Op, Operand};

/// The least that a copy moves, and so the least error.
const PIECE: u32 = 16;

/// One piece more or fewer than the copies bring.
pub(super) fn expected(c: &Case<'_>) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (spot, op) in c.ops() {
        let tx = match op {
            Op::MbarrierArrive(MbarrierArrive { tx: Some(tx), .. })
            | Op::MbarrierExpectTx(MbarrierExpectTx { tx, .. }) => *tx,
            _ => continue,
        };
        // Single words come to a barrier as well.
        let piece = tx.as_imm().map_or(PIECE, |n| PIECE.min(n as u32));
        for (sign, by) in [("more", piece), ("fewer", piece.wrapping_neg())] {
            let mut draft = c.draft(spot);
            let tx: Operand = draft.add(tx, by);
            match op {
                Op::MbarrierArrive(arrive) => draft.op(MbarrierArrive {
                    tx: Some(tx),
                    ..arrive.clone()
                }),
                Op::MbarrierExpectTx(expect) => draft.op(MbarrierExpectTx {
                    tx,
                    ..expect.clone()
                }),
                _ => continue,
            }
            let text = format!("{} expects {piece} bytes {sign}", c.name(op));
            edits.push(c.drafted(spot, text, draft));
        }
    }
    edits
}

/// A copy whose bytes a phase waits for, left out.
pub(super) fn copies(c: &Case<'_>) -> Vec<Edit> {
    c.without(|op| {
        let touches = Facts::of(op).touches;
        let counted = |t: &warpline_ir::MemoryAccess| matches!(t.completion, Completion::Bytes(_));
        touches.iter().any(counted)
    })
}

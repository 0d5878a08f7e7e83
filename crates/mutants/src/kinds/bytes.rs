//! Transaction bytes of a phase, and the copies that deliver them.

use crate::edit::Edit;
use crate::sites::KernelSites;
use warpline_check::Facts;
use warpline_ir::ops::mbarrier::{MbarrierArrive, MbarrierExpectTx};
use warpline_ir::{Completion, Op, Operand};

/// The smallest copy in bytes, and so the smallest error.
const MIN_COPY: u32 = 16;

/// Expects more or fewer bytes than the copies deliver.
pub(super) fn change_expected_bytes(sites: &KernelSites<'_>) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (site, op) in sites.ops() {
        let tx = match op {
            Op::MbarrierArrive(MbarrierArrive { tx: Some(tx), .. })
            | Op::MbarrierExpectTx(MbarrierExpectTx { tx, .. }) => *tx,
            _ => continue,
        };
        // `st.async` delivers single words.
        let piece = tx.as_imm().map_or(MIN_COPY, |n| MIN_COPY.min(n as u32));
        for (sign, by) in [("more", piece), ("fewer", piece.wrapping_neg())] {
            let mut draft = sites.draft(site);
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
            let text = format!("{} expects {piece} bytes {sign}", sites.name(op));
            edits.push(sites.replace_with_draft(site, text, draft));
        }
    }
    edits
}

/// Drops a copy that delivers transaction bytes.
pub(super) fn drop_copy(sites: &KernelSites<'_>) -> Vec<Edit> {
    sites.drop_ops(|op| {
        let touches = Facts::of(op).touches;
        let counted = |t: &warpline_ir::MemoryAccess| matches!(t.completion, Completion::Bytes(_));
        touches.iter().any(counted)
    })
}

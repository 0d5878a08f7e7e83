//! The synchronization skeleton of a kernel, for runs with many iterations.

use crate::facts::Facts;
use crate::protocol::SyncDependencies;
use warpline_ir::{Block, Completion, Kernel, MemoryAccess, Op, StmtKind};

/// Returns the kernel reduced to its barriers, the copies that barriers count, and the ops that
/// decide control flow.
pub(super) fn skeleton(kernel: &Kernel) -> Kernel {
    let dependencies = SyncDependencies::of(kernel);
    let keeps = |t: &MemoryAccess| {
        matches!(t.completion, Completion::Bytes(_)) || dependencies.is_written_by(t)
    };
    let keep = |op: &Op| {
        let facts = Facts::of(op);
        !facts.syncs.is_empty()
            || facts.touches.iter().any(keeps)
            || facts.defs.iter().any(|r| dependencies.regs[r.index()])
    };
    let mut kernel = kernel.clone();
    cut(&mut kernel.prologue, &keep);
    kernel
        .roles
        .iter_mut()
        .for_each(|r| cut(&mut r.body, &keep));
    cut(&mut kernel.epilogue, &keep);
    kernel
}

fn cut(block: &mut Block, keep: &dyn Fn(&Op) -> bool) {
    block.0.retain_mut(|s| match &mut s.kind {
        StmtKind::Op(op) => keep(op),
        StmtKind::If { then, other, .. } => {
            cut(then, keep);
            cut(other, keep);
            !then.0.is_empty() || !other.0.is_empty()
        }
        StmtKind::For { body, .. } | StmtKind::Elect { body } => {
            cut(body, keep);
            !body.0.is_empty()
        }
        StmtKind::While { head, body, .. } => {
            cut(head, keep);
            cut(body, keep);
            true
        }
    });
}

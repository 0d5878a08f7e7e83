//! Test support: expected passes and faults, and edits of a kernel.

use warpline_cpu::{Options, RunError, Stats};
use warpline_ir::{Block, FaultKind, Kernel, Op, StmtKind};
use warpline_testkit::launch::Setup;

/// The seeds of the random timing.
pub(crate) const SEEDS: u64 = 12;

/// Iterates over all timings; `random` with several seeds.
pub(crate) fn timings() -> impl Iterator<Item = Options> {
    warpline_testkit::timings::timings(SEEDS)
}

/// Iterates over the timings that check races.
pub(crate) fn strict() -> impl Iterator<Item = Options> {
    warpline_testkit::timings::strict(SEEDS)
}

/// Runs a kernel without arguments on one cluster; expects a fault.
#[track_caller]
pub(crate) fn expect_fault(kernel: &Kernel, options: &Options, kind: FaultKind) -> Box<RunError> {
    let ctas = kernel.cluster_size();
    match Setup::new().run(kernel, ctas, options) {
        Ok(_) => panic!("{} ran through with {options:?}", kernel.name),
        Err(e) => {
            assert_eq!(e.kind, kind, "{options:?}: {e}");
            e
        }
    }
}

/// Runs a kernel without arguments on one cluster; expects a pass.
#[track_caller]
pub(crate) fn expect_pass(kernel: &Kernel, options: &Options) -> Stats {
    let ctas = kernel.cluster_size();
    Setup::new()
        .run(kernel, ctas, options)
        .unwrap_or_else(|e| panic!("{} with {options:?}: {e}", kernel.name))
}

/// Returns the line of an error's op.
pub(crate) fn line(e: &RunError) -> u32 {
    e.at.as_ref().and_then(|s| s.frame).map_or(0, |f| f.line)
}

/// Returns the line of an error's other access.
pub(crate) fn other_line(e: &RunError) -> u32 {
    e.other.as_ref().and_then(|s| s.frame).map_or(0, |f| f.line)
}

/// Maps every op of a role's body, at any depth; `None` removes it.
pub(crate) fn edit(k: &mut Kernel, role: usize, change: &dyn Fn(Op) -> Option<Op>) {
    fn block(b: &mut Block, change: &dyn Fn(Op) -> Option<Op>) {
        b.0.retain_mut(|s| match &mut s.kind {
            StmtKind::Op(op) => match change(op.clone()) {
                Some(new) => {
                    *op = new;
                    true
                }
                None => false,
            },
            StmtKind::If { then, other, .. } => {
                block(then, change);
                block(other, change);
                true
            }
            StmtKind::For { body, .. } | StmtKind::Elect { body } => {
                block(body, change);
                true
            }
            StmtKind::While { head, body, .. } => {
                block(head, change);
                block(body, change);
                true
            }
        });
    }
    block(&mut k.roles[role].body, change);
}

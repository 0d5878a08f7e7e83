//! Mutants with one synchronization op removed must fail.

use crate::executor::harness::{edit, strict};
use crate::executor::programs::{add_setup, gemm_case, specialized_add, sums};
use std::cell::Cell;
use warpline_ir::{Effects, Kernel, MemoryAccess, Op, Operand, RegId, SyncOp, Type};
use warpline_testkit::launch::Setup;

/// Whether an op synchronizes.
fn synchronizes(op: &Op) -> bool {
    #[derive(Default)]
    struct SyncDetector(bool);
    impl Effects for SyncDetector {
        fn def(&mut self, _: RegId) {}
        fn arg(&mut self, _: Operand, _: Type) {}
        fn access(&mut self, _: &MemoryAccess) {}
        fn sync(&mut self, _: &SyncOp) {
            self.0 = true;
        }
        fn whole_warp(&mut self) {}
    }
    let mut detector = SyncDetector::default();
    op.effects(&mut detector);
    detector.0
}

/// Removes the `n`th synchronization op of a role; returns the mutant and the op's name.
fn without_sync_op(kernel: &Kernel, role: usize, n: usize) -> Option<(Kernel, String)> {
    let mut k = kernel.clone();
    let (remaining, name) = (Cell::new(n), Cell::new(String::new()));
    edit(&mut k, role, &|op| {
        if synchronizes(&op) {
            if remaining.get() == 0 && name.take().is_empty() {
                name.set(op.name());
                remaining.set(usize::MAX);
                return None;
            }
            remaining.set(remaining.get().wrapping_sub(1));
        }
        Some(op)
    });
    let name = name.take();
    (!name.is_empty()).then_some((k, name))
}

/// Returns the synchronization ops whose removal causes neither a fault nor a wrong result.
fn equivalent_mutants(
    kernel: &Kernel,
    ctas: u32,
    setup: impl Fn() -> Setup,
    want: &[f32],
    out: usize,
) -> Vec<String> {
    let mut undetected = Vec::new();
    for role in 0..kernel.roles.len() {
        for i in 0.. {
            let Some((mutant, name)) = without_sync_op(kernel, role, i) else {
                break;
            };
            let detected = strict().any(|options| {
                let setup = setup();
                setup.run(&mutant, ctas, &options).is_err() || setup.values::<f32>(out) != want
            });
            if !detected {
                undetected.push(format!("{} in {}", name, kernel.roles[role].name));
            }
        }
    }
    undetected
}

#[test]
fn every_removed_sync_op_of_a_pipeline_is_detected() {
    let (kernel, n) = (specialized_add(2, 128), 128 * 7);
    // Three mutants are equivalent. The compute role fences and syncs twice in a row, once for the
    // slot that it read and once for the slot that it wrote; one fence and one sync cover both. The
    // store role has waited for all reads, and the writes complete before the kernel ends.
    let equivalent = [
        "fence.proxy.async.shared::cta in compute",
        "warp_sync in compute",
        "bulk_wait in store",
    ];
    assert_eq!(
        equivalent_mutants(&kernel, 1, || add_setup(n), &sums(n), 2),
        equivalent
    );
}

#[test]
fn every_removed_sync_op_of_a_gemm_is_detected() {
    let (kernel, setup, want) = gemm_case();
    // Only wgmmas read the slot, and the whole warp waits for them, so the elected arrival needs no
    // warp sync. No thread waits for the release of the last slot.
    let equivalent = [
        "warp_sync in compute",
        "warp_sync in compute",
        "mbarrier_arrive.cta in compute",
    ];
    assert_eq!(equivalent_mutants(&kernel, 2, setup, &want, 0), equivalent);
}

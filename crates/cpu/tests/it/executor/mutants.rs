//! A line with one act of synchronisation left out: is it noticed?

use crate::executor::harness::{edit, strict};
use crate::executor::programs::{add_setup, product, specialized_add, sums};
use std::cell::Cell;
use warpline_ir::{Effects, Kernel, Op, Operand, RegId, Sync, Touch, Type};
use warpline_testkit::launch::Setup;

/// Is an op an act of synchronisation?
fn synchronises(op: &Op) -> bool {
    #[derive(Default)]
    struct Seen(bool);
    impl Effects for Seen {
        fn def(&mut self, _: RegId) {}
        fn arg(&mut self, _: Operand, _: Type) {}
        fn touch(&mut self, _: &Touch) {}
        fn sync(&mut self, _: &Sync) {
            self.0 = true;
        }
        fn whole_warp(&mut self) {}
    }
    let mut seen = Seen::default();
    op.effects(&mut seen);
    seen.0
}

/// The kernel without the `n`th act of a role, and the name of that act.
fn without(kernel: &Kernel, role: usize, n: usize) -> Option<(Kernel, String)> {
    let mut k = kernel.clone();
    let (left, name) = (Cell::new(n), Cell::new(String::new()));
    edit(&mut k, role, &|op| {
        if synchronises(&op) {
            if left.get() == 0 && name.take().is_empty() {
                name.set(op.name());
                left.set(usize::MAX);
                return None;
            }
            left.set(left.get().wrapping_sub(1));
        }
        Some(op)
    });
    let name = name.take();
    (!name.is_empty()).then_some((k, name))
}

/// The acts that can be left out without a fault or a wrong result.
fn survivors(
    kernel: &Kernel,
    ctas: u32,
    setup: impl Fn() -> Setup,
    want: &[f32],
    out: usize,
) -> Vec<String> {
    let mut survivors = Vec::new();
    for role in 0..kernel.roles.len() {
        for i in 0.. {
            let Some((mutant, name)) = without(kernel, role, i) else {
                break;
            };
            let noticed = strict().any(|options| {
                let setup = setup();
                setup.run(&mutant, ctas, &options).is_err() || setup.values::<f32>(out) != want
            });
            if !noticed {
                survivors.push(format!("{} in {}", name, kernel.roles[role].name));
            }
        }
    }
    survivors
}

#[test]
fn every_act_left_out_of_a_line_is_noticed() {
    let (kernel, n) = (specialized_add(2, 128), 128 * 7);
    // Three change nothing. The compute role fences and syncs twice in a row,
    // for the slot it read and for the slot it wrote: the first covers both.
    // The storer has waited for all reads; the writes end with the kernel.
    let equivalent = [
        "fence.proxy.async.shared::cta in compute",
        "warp_sync in compute",
        "bulk_wait in store",
    ];
    assert_eq!(
        survivors(&kernel, 1, || add_setup(n), &sums(n), 2),
        equivalent
    );
}

#[test]
fn every_act_left_out_of_a_product_is_noticed() {
    let (kernel, setup, want) = product();
    // A slot that only wgmmas read is free after their wait, which the whole
    // warp runs: no sync of lanes is needed before an elected arrival. And
    // nobody waits for the last slot to be free.
    let equivalent = [
        "warp_sync in compute",
        "warp_sync in compute",
        "mbarrier_arrive.cta in compute",
    ];
    assert_eq!(survivors(&kernel, 2, setup, &want, 0), equivalent);
}

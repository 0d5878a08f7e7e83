use warpline_ir::ops::control::{NamedArrive, NamedReduce, NamedSync};
use warpline_ir::{BarrierReduction, NamedId, Type};
use warpline_testkit::raw::RawKernel;

#[test]
fn two_sides_of_a_named_barrier_pass() {
    let mut k = RawKernel::new(&[("a", 4), ("b", 4)]);
    let bar = k.named(5, "ready", 1);
    let arrive = k.op(10, NamedArrive { bar, threads: 256 });
    let sync = k.op(11, NamedSync { bar, threads: 256 });
    k.run(0, arrive);
    k.run(1, sync);
    k.passes();
}

#[test]
fn barrier_zero_is_refused() {
    let mut k = RawKernel::one();
    k.named(5, "ready", 0);
    let text = k.refuted("R10.id", 5);
    assert!(
        text.contains("`ready` has the number 0; sm_90a has the numbers 1 to 15"),
        "{text}"
    );
}

#[test]
fn barrier_sixteen_is_refused() {
    let mut k = RawKernel::one();
    k.named(5, "ready", 16);
    k.refuted("R10.id", 5);
}

#[test]
fn two_barriers_of_one_number_are_refused() {
    let mut k = RawKernel::one();
    k.named(5, "ready", 3);
    k.named(6, "done", 3);
    let text = k.refuted("R10.unique", 6);
    assert!(
        text.contains("`ready` and `done` both have the number 3"),
        "{text}"
    );
}

#[test]
fn part_of_a_warp_is_refused() {
    let mut k = RawKernel::one();
    let bar = k.named(5, "ready", 1);
    k.push(10, NamedSync { bar, threads: 100 });
    k.refuted("R10.threads", 10);
}

#[test]
fn more_threads_than_the_cta_are_refused() {
    let mut k = RawKernel::one();
    let bar = k.named(5, "ready", 1);
    k.push(10, NamedSync { bar, threads: 160 });
    let text = k.refuted("R10.threads", 10);
    assert!(
        text.contains("`ready` counts 160 threads, and the CTA has 128"),
        "{text}"
    );
}

#[test]
fn sides_that_differ_are_refused() {
    let mut k = RawKernel::new(&[("a", 4), ("b", 4)]);
    let bar = k.named(5, "ready", 1);
    let arrive = k.op(10, NamedArrive { bar, threads: 256 });
    let sync = k.op(11, NamedSync { bar, threads: 128 });
    k.run(0, arrive);
    k.run(1, sync);
    let text = k.refuted("R10.same", 11);
    assert!(
        text.contains("`ready` counts 128 threads in one place and 256 in another"),
        "{text}"
    );
}

#[test]
fn a_tally_is_a_side_as_well() {
    let side = |threads: u32, synced: u32| {
        let mut k = RawKernel::one();
        let bar = k.named(5, "ready", 1);
        let (dst, pred) = (k.reg(Type::U32), k.lane_pred().into());
        let tally = BarrierReduction::Count;
        let counts = NamedReduce {
            bar,
            threads,
            reduction: tally,
            pred,
            dst,
        };
        k.push(10, counts);
        let threads = synced;
        k.push(11, NamedSync { bar, threads });
        k
    };
    side(128, 128).passes();
    side(64, 128).refuted("R10.same", 11);
    let mut k = side(128, 128);
    let (bar, dst) = (NamedId(0), k.reg(Type::U32));
    let (threads, tally, pred) = (128, BarrierReduction::Count, k.value(Type::U32).into());
    k.push(
        12,
        NamedReduce {
            bar,
            threads,
            reduction: tally,
            pred,
            dst,
        },
    );
    k.refuted("S.type", 12);
}

use warpline_ir::ops::control::{NamedArrive, NamedReduce, NamedSync};
use warpline_ir::{BarrierReduction, NamedId, Type};
use warpline_testkit::raw::RawKernel;

#[test]
fn an_arrive_and_a_sync_with_the_same_count_pass() {
    let mut k = RawKernel::new(&[("a", 4), ("b", 4)]);
    let bar = k.named(5, "ready", 1);
    let arrive = k.op(10, NamedArrive { bar, threads: 256 });
    let sync = k.op(11, NamedSync { bar, threads: 256 });
    k.run(0, arrive);
    k.run(1, sync);
    k.passes();
}

#[test]
fn barrier_number_0_is_refuted() {
    let mut k = RawKernel::one();
    k.named(5, "ready", 0);
    let text = k.refuted("R10.id", 5);
    assert!(
        text.contains("`ready` has the number 0; sm_90a has the numbers 1 to 15"),
        "{text}"
    );
}

#[test]
fn barrier_number_16_is_refuted() {
    let mut k = RawKernel::one();
    k.named(5, "ready", 16);
    k.refuted("R10.id", 5);
}

#[test]
fn two_barriers_with_the_same_number_are_refuted() {
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
fn a_thread_count_of_partial_warps_is_refuted() {
    let mut k = RawKernel::one();
    let bar = k.named(5, "ready", 1);
    k.push(10, NamedSync { bar, threads: 100 });
    k.refuted("R10.threads", 10);
}

#[test]
fn a_thread_count_above_the_cta_size_is_refuted() {
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
fn different_thread_counts_are_refuted() {
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
fn a_barrier_reduction_counts_as_a_use() {
    let reduce_and_sync = |threads: u32, synced: u32| {
        let mut k = RawKernel::one();
        let bar = k.named(5, "ready", 1);
        let (dst, pred) = (k.reg(Type::U32), k.lane_pred().into());
        let reduction = BarrierReduction::Count;
        let counts = NamedReduce {
            bar,
            threads,
            reduction,
            pred,
            dst,
        };
        k.push(10, counts);
        let threads = synced;
        k.push(11, NamedSync { bar, threads });
        k
    };
    reduce_and_sync(128, 128).passes();
    reduce_and_sync(64, 128).refuted("R10.same", 11);
    let mut k = reduce_and_sync(128, 128);
    let (bar, dst) = (NamedId(0), k.reg(Type::U32));
    let (threads, reduction, pred) = (128, BarrierReduction::Count, k.value(Type::U32).into());
    k.push(
        12,
        NamedReduce {
            bar,
            threads,
            reduction,
            pred,
            dst,
        },
    );
    k.refuted("S.type", 12);
}

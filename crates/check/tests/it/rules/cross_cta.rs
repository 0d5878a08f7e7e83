use crate::rules::kernel;
use warpline_ir::builder::*;
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::{Kernel, MemoryOrder, Scope};
use warpline_testkit::verdict::violations;

const ACQUIRE: MemoryOrder = MemoryOrder::acquire(Scope::Gpu);
const RELEASE: MemoryOrder = MemoryOrder::release(Scope::Gpu);
const RELAXED: MemoryOrder = MemoryOrder::relaxed(Scope::Gpu);

/// One CTA passes a number to another: it calls `set_flag` after the write; the other calls `wait`
/// before the read.
fn hand_over(set_flag: impl FnOnce(Global<u32>), wait: impl FnOnce(Global<u32>)) -> Kernel {
    let mut k = kernel(|k| {
        let (flag, data) = (k.pointer::<u32>("flag"), k.pointer::<u32>("data"));
        k.role("all").body(|| {
            elect_lane(|| {
                if_else(
                    cta_id().eq(0u32),
                    || {
                        data.store(0u32, 7u32);
                        set_flag(flag);
                    },
                    || {
                        wait(flag);
                        data.store(1u32, data.load(0u32));
                    },
                );
            });
        });
    });
    k.co_resident = true;
    k
}

fn set_flag_by(order: MemoryOrder) -> impl FnOnce(Global<u32>) {
    move |flag| flag.atomic_ref(0u32).reduce(AtomicOp::Add, 1u32, order)
}

fn wait_by(order: MemoryOrder) -> impl FnOnce(Global<u32>) {
    move |flag| {
        let word = flag.atomic_ref(0u32);
        while_(|| word.load(order).lt(1u32), || nanosleep(20));
    }
}

#[test]
fn a_release_and_an_acquire_pass() {
    let k = hand_over(set_flag_by(RELEASE), wait_by(ACQUIRE));
    assert_eq!(violations(&k), []);
}

#[test]
fn polling_requires_a_co_resident_kernel() {
    let mut line = 0;
    let mut k = hand_over(set_flag_by(RELEASE), |flag| {
        let word = flag.atomic_ref(0u32);
        line = line!() + 1;
        while_(|| word.load(ACQUIRE).lt(1u32), || nanosleep(20));
    });
    k.co_resident = false;
    assert_eq!(violations(&k), [("R18.resident", line, None)]);
}

#[test]
fn a_load_in_the_loop_body_is_a_poll() {
    let mut line = 0;
    let mut k = hand_over(set_flag_by(RELEASE), |flag| {
        let seen = Var::new(0u32);
        while_(
            || seen.get().lt(1u32),
            || {
                line = line!() + 1;
                seen.set(flag.atomic_ref(0u32).load(ACQUIRE));
            },
        );
    });
    assert_eq!(violations(&k), []);
    k.co_resident = false;
    assert_eq!(violations(&k), [("R18.resident", line, None)]);
}

#[test]
fn loops_over_data_and_locks_are_no_polls() {
    let k = kernel(|k| {
        let (list, lock) = (k.pointer::<u32>("list"), k.pointer::<u32>("lock"));
        k.role("all").body(|| {
            elect_lane(|| {
                let at = Var::new(0u32);
                while_(|| list.load(at.get()).ne(0u32), || at.set(at.get() + 1));
                // The CTA that holds the lock is resident, so the loop ends.
                let word = lock.atomic_ref(0u32);
                while_(
                    || word.compare_swap(0u32, 1u32, ACQUIRE).ne(0u32),
                    || nanosleep(20),
                );
                word.atomic(AtomicOp::Exch, 0u32, RELEASE);
            });
        });
    });
    assert_eq!(violations(&k), []);
}

#[test]
fn a_weak_load_does_not_acquire() {
    let mut line = 0;
    let k = hand_over(set_flag_by(RELEASE), |flag| {
        line = line!() + 1;
        while_(|| flag.load(0u32).lt(1u32), || nanosleep(20));
    });
    assert_eq!(violations(&k), [("R18.acquire", line, None)]);
}

#[test]
fn an_acquire_needs_gpu_scope() {
    let mut line = 0;
    let k = hand_over(set_flag_by(RELEASE), |flag| {
        let word = flag.atomic_ref(0u32);
        let order = MemoryOrder::acquire(Scope::Cluster);
        line = line!() + 1;
        while_(|| word.load(order).lt(1u32), || nanosleep(20));
    });
    assert_eq!(violations(&k), [("R18.acquire", line, None)]);
}

#[test]
fn a_relaxed_poll_needs_an_acquire_fence_after_it() {
    let mut lines = (0, 0);
    let kernel = |fence_scope: Option<Scope>, lines: &mut (u32, u32)| {
        hand_over(set_flag_by(RELEASE), |flag| {
            let word = flag.atomic_ref(0u32);
            lines.0 = line!() + 1;
            while_(|| word.load(RELAXED).lt(1u32), || nanosleep(20));
            if let Some(scope) = fence_scope {
                fence_acquire(scope);
            }
            lines.1 = line!() + 1;
            flag.store(1u32, flag.load(2u32));
        })
    };
    assert_eq!(violations(&kernel(Some(Scope::Gpu), &mut lines)), []);
    for scope in [None, Some(Scope::Cta)] {
        let k = kernel(scope, &mut lines);
        assert_eq!(violations(&k), [("R18.acquire", lines.0, Some(lines.1))]);
    }
}

#[test]
fn a_relaxed_flag_write_needs_a_release_fence_before_it() {
    let mut line = 0;
    let kernel = |scope: Option<Scope>, line: &mut u32| {
        hand_over(
            |flag| {
                if let Some(scope) = scope {
                    fence_release(scope);
                }
                *line = line!() + 1;
                flag.atomic_ref(0u32).reduce(AtomicOp::Add, 1u32, RELAXED);
            },
            wait_by(ACQUIRE),
        )
    };
    assert_eq!(violations(&kernel(Some(Scope::Gpu), &mut line)), []);
    for scope in [None, Some(Scope::Cluster)] {
        let k = kernel(scope, &mut line);
        assert_eq!(violations(&k), [("R18.release", line, None)]);
    }
}

#[test]
fn a_release_needs_gpu_scope() {
    let mut line = 0;
    let k = hand_over(
        |flag| {
            let order = MemoryOrder::release(Scope::Cta);
            line = line!() + 1;
            flag.atomic_ref(0u32).store(1u32, order);
        },
        wait_by(ACQUIRE),
    );
    assert_eq!(violations(&k), [("R18.release", line, None)]);
}

#[test]
fn a_weak_store_may_reset_a_flag_but_not_set_it() {
    let mut line = 0;
    let k = hand_over(
        |flag| {
            line = line!() + 1;
            flag.store(0u32, 1u32);
        },
        wait_by(ACQUIRE),
    );
    assert_eq!(violations(&k), [("R18.release", line, None)]);
    let k = hand_over(set_flag_by(RELEASE), |flag| {
        wait_by(ACQUIRE)(flag);
        flag.store(0u32, 0u32);
    });
    assert_eq!(violations(&k), []);
    // Another word of the same buffer is no flag.
    let k = hand_over(
        |flag| {
            flag.store(1u32, 5u32);
            set_flag_by(RELEASE)(flag);
        },
        wait_by(ACQUIRE),
    );
    assert_eq!(violations(&k), []);
}

#[test]
fn flags_and_queues_of_the_builder_pass() {
    let k = kernel(|k| {
        let (flags, data) = (k.flags("flags"), k.pointer::<u32>("data"));
        let queue = k.work_queue("queue", 2);
        k.role("fetch")
            .body(|| elect(|| queue.fetch_each(9u32, |_| {})));
        k.role("work").body(|| {
            queue.each(9u32, |i| {
                data.store(lane_id(), i);
                flags.signal(i);
                flags.wait(i, 1u32);
                flags.reset(i);
            });
        });
    });
    assert_eq!(violations(&k), []);
}

/// Each CTA writes its part and calls `claim`, which returns the number of earlier CTAs. The last CTA
/// calls `before_read` and adds the parts. Returns the kernel, and the lines of the write and the read.
fn last_cta_adds(
    claim: impl FnOnce(Global<u32>) -> Reg<u32>,
    before_read: impl FnOnce(),
) -> (Kernel, [u32; 2]) {
    let mut lines = [0; 2];
    let k = kernel(|k| {
        let (count, parts) = (k.pointer::<u32>("count"), k.pointer::<u32>("parts"));
        k.role("all").body(|| {
            elect_lane(|| {
                lines[0] = line!() + 1;
                parts.store(cta_id(), 7u32);
                let earlier_ctas = claim(count);
                if_(earlier_ctas.eq(grid_ctas() - 1), || {
                    before_read();
                    lines[1] = line!() + 1;
                    let sum = parts.load(0u32) + parts.load(1u32);
                    parts.store(0u32, sum);
                    count.store(0u32, 0u32);
                });
            });
        });
    });
    (k, lines)
}

fn claim_by(order: MemoryOrder) -> impl FnOnce(Global<u32>) -> Reg<u32> {
    move |count| count.atomic_ref(0u32).atomic(AtomicOp::Add, 1u32, order)
}

#[test]
fn a_claim_needs_a_release_and_an_acquire() {
    let right = last_cta_adds(claim_by(MemoryOrder::acq_rel(Scope::Gpu)), || {}).0;
    assert_eq!(violations(&right), []);
    let fenced = |count: Global<u32>| {
        fence(Scope::Gpu);
        claim_by(RELAXED)(count)
    };
    let right = last_cta_adds(fenced, || fence(Scope::Gpu)).0;
    assert_eq!(violations(&right), []);
    for order in [RELAXED, ACQUIRE, MemoryOrder::acq_rel(Scope::Cluster)] {
        let mut line = 0;
        let (wrong, [wrote, _]) = last_cta_adds(
            |count| {
                line = line!() + 1;
                count.atomic_ref(0u32).atomic(AtomicOp::Add, 1u32, order)
            },
            || {},
        );
        assert_eq!(violations(&wrong), [("R18.release", line, Some(wrote))]);
    }
    let mut line = 0;
    let (wrong, [_, read]) = last_cta_adds(
        |count| {
            line = line!() + 1;
            count.atomic_ref(0u32).atomic(AtomicOp::Add, 1u32, RELEASE)
        },
        || {},
    );
    assert_eq!(violations(&wrong), [("R18.acquire", line, Some(read))]);
}

/// Each CTA takes the number of its next item from an atomic counter, passes it to its lanes through a
/// tile, and writes only that item.
#[test]
fn a_ticket_may_be_relaxed() {
    let k = kernel(|k| {
        let (next, out) = (k.pointer::<u32>("next"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 1, 1).unswizzled().declare();
        k.role("all").body(|| {
            out.store(cta_id(), 0u32);
            let item = Var::new(cta_id());
            while_(
                || item.get().lt(100u32),
                || {
                    elect_lane(|| t.whole().store(0u32, 0u32, next.fetch_add(0u32, 1u32)));
                    warp_sync();
                    item.set(t.whole().load(0u32, 0u32));
                    out.store(item.get(), 1u32);
                    warp_sync();
                },
            );
        });
    });
    assert_eq!(violations(&k), []);
}

#[test]
fn a_counter_of_all_ctas_needs_gpu_scope() {
    let counter = |own: bool, scope: Scope| {
        let mut line = 0;
        let k = kernel(|k| {
            let (count, out) = (k.pointer::<u32>("count"), k.pointer::<u32>("out"));
            k.role("all").body(|| {
                let order = MemoryOrder::relaxed(scope);
                let place = if own { cta_id() } else { lane_id() };
                line = line!() + 1;
                let ticket = count.atomic_ref(place).atomic(AtomicOp::Add, 1u32, order);
                out.store(cta_id() * 32 + lane_id(), ticket);
            });
        });
        (k, line)
    };
    assert_eq!(violations(&counter(false, Scope::Gpu).0), []);
    assert_eq!(violations(&counter(true, Scope::Cta).0), []);
    for scope in [Scope::Cta, Scope::Cluster] {
        let (k, line) = counter(false, scope);
        assert_eq!(violations(&k), [("R18.scope", line, None)]);
    }
}

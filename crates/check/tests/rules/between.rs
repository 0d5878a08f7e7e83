use crate::built::{breaches, kernel};
use warpline_ir::build::*;
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::{Kernel, MemoryOrder, Scope};

const ACQUIRE: MemoryOrder = MemoryOrder::acquire(Scope::Gpu);
const RELEASE: MemoryOrder = MemoryOrder::release(Scope::Gpu);
const RELAXED: MemoryOrder = MemoryOrder::relaxed(Scope::Gpu);

/// A CTA that hands a number to another: `raise` after it is written, `wait` before it is read.
fn hand_over(raise: impl FnOnce(Global<u32>), wait: impl FnOnce(Global<u32>)) -> Kernel {
    let mut k = kernel(|k| {
        let (flag, data) = (k.pointer::<u32>("flag"), k.pointer::<u32>("data"));
        k.role("all").body(|| {
            elect_lane(|| {
                if_else(
                    cta_id().eq(0u32),
                    || {
                        data.store(0u32, 7u32);
                        raise(flag);
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

fn raise_by(order: MemoryOrder) -> impl FnOnce(Global<u32>) {
    move |flag| flag.word(0u32).reduce(AtomicOp::Add, 1u32, order)
}

fn wait_by(order: MemoryOrder) -> impl FnOnce(Global<u32>) {
    move |flag| {
        let word = flag.word(0u32);
        while_(|| word.load(order).lt(1u32), || nanosleep(20));
    }
}

#[test]
fn a_release_and_an_acquire_pass() {
    let k = hand_over(raise_by(RELEASE), wait_by(ACQUIRE));
    assert_eq!(breaches(&k), []);
}

#[test]
fn ctas_that_wait_for_each_other_say_so() {
    let mut line = 0;
    let mut k = hand_over(raise_by(RELEASE), |flag| {
        let word = flag.word(0u32);
        line = line!() + 1;
        while_(|| word.load(ACQUIRE).lt(1u32), || nanosleep(20));
    });
    k.co_resident = false;
    assert_eq!(breaches(&k), [("R18.resident", line, None)]);
}

#[test]
fn a_load_in_the_rounds_is_a_poll_too() {
    let mut line = 0;
    let mut k = hand_over(raise_by(RELEASE), |flag| {
        let seen = Var::new(0u32);
        while_(
            || seen.get().lt(1u32),
            || {
                line = line!() + 1;
                seen.set(flag.word(0u32).load(ACQUIRE));
            },
        );
    });
    assert_eq!(breaches(&k), []);
    k.co_resident = false;
    assert_eq!(breaches(&k), [("R18.resident", line, None)]);
}

#[test]
fn a_loop_over_data_and_a_lock_wait_for_nobody() {
    let k = kernel(|k| {
        let (list, lock) = (k.pointer::<u32>("list"), k.pointer::<u32>("lock"));
        k.role("all").body(|| {
            elect_lane(|| {
                let at = Var::new(0u32);
                while_(|| list.load(at.get()).ne(0u32), || at.set(at.get() + 1));
                // Who holds it is on the machine.
                let word = lock.word(0u32);
                while_(
                    || word.compare_swap(0u32, 1u32, ACQUIRE).ne(0u32),
                    || nanosleep(20),
                );
                word.atomic(AtomicOp::Exch, 0u32, RELEASE);
            });
        });
    });
    assert_eq!(breaches(&k), []);
}

#[test]
fn a_plain_load_is_no_wait() {
    let mut line = 0;
    let k = hand_over(raise_by(RELEASE), |flag| {
        line = line!() + 1;
        while_(|| flag.load(0u32).lt(1u32), || nanosleep(20));
    });
    assert_eq!(breaches(&k), [("R18.acquire", line, None)]);
}

#[test]
fn an_acquire_reaches_the_device() {
    let mut line = 0;
    let k = hand_over(raise_by(RELEASE), |flag| {
        let word = flag.word(0u32);
        let order = MemoryOrder::acquire(Scope::Cluster);
        line = line!() + 1;
        while_(|| word.load(order).lt(1u32), || nanosleep(20));
    });
    assert_eq!(breaches(&k), [("R18.acquire", line, None)]);
}

#[test]
fn a_relaxed_wait_is_followed_by_a_fence() {
    let mut lines = (0, 0);
    let kernel = |fence_scope: Option<Scope>, lines: &mut (u32, u32)| {
        hand_over(raise_by(RELEASE), |flag| {
            let word = flag.word(0u32);
            lines.0 = line!() + 1;
            while_(|| word.load(RELAXED).lt(1u32), || nanosleep(20));
            if let Some(scope) = fence_scope {
                fence_acquire(scope);
            }
            lines.1 = line!() + 1;
            flag.store(1u32, flag.load(2u32));
        })
    };
    assert_eq!(breaches(&kernel(Some(Scope::Gpu), &mut lines)), []);
    for scope in [None, Some(Scope::Cta)] {
        let k = kernel(scope, &mut lines);
        assert_eq!(breaches(&k), [("R18.acquire", lines.0, Some(lines.1))]);
    }
}

#[test]
fn a_relaxed_signal_stands_behind_a_fence() {
    let mut line = 0;
    let kernel = |scope: Option<Scope>, line: &mut u32| {
        hand_over(
            |flag| {
                if let Some(scope) = scope {
                    fence_release(scope);
                }
                *line = line!() + 1;
                flag.word(0u32).reduce(AtomicOp::Add, 1u32, RELAXED);
            },
            wait_by(ACQUIRE),
        )
    };
    assert_eq!(breaches(&kernel(Some(Scope::Gpu), &mut line)), []);
    for scope in [None, Some(Scope::Cluster)] {
        let k = kernel(scope, &mut line);
        assert_eq!(breaches(&k), [("R18.release", line, None)]);
    }
}

#[test]
fn a_release_reaches_the_device() {
    let mut line = 0;
    let k = hand_over(
        |flag| {
            let order = MemoryOrder::release(Scope::Cta);
            line = line!() + 1;
            flag.word(0u32).store(1u32, order);
        },
        wait_by(ACQUIRE),
    );
    assert_eq!(breaches(&k), [("R18.release", line, None)]);
}

#[test]
fn a_plain_store_lowers_a_word_and_never_raises_it() {
    let mut line = 0;
    let k = hand_over(
        |flag| {
            line = line!() + 1;
            flag.store(0u32, 1u32);
        },
        wait_by(ACQUIRE),
    );
    assert_eq!(breaches(&k), [("R18.release", line, None)]);
    let k = hand_over(raise_by(RELEASE), |flag| {
        wait_by(ACQUIRE)(flag);
        flag.store(0u32, 0u32);
    });
    assert_eq!(breaches(&k), []);
    // Another word of the same buffer is no flag.
    let k = hand_over(
        |flag| {
            flag.store(1u32, 5u32);
            raise_by(RELEASE)(flag);
        },
        wait_by(ACQUIRE),
    );
    assert_eq!(breaches(&k), []);
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
    assert_eq!(breaches(&k), []);
}

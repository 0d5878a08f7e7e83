//! Flags between CTAs that nobody can raise.

use crate::rules::kernel;
use warpline_ir::builder::*;
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::{Kernel, MemoryOrder, Scope};
use warpline_testkit::verdict::{NONE, breaches, codes};

const ACQUIRE: MemoryOrder = MemoryOrder::acquire(Scope::Gpu);
const RELEASE: MemoryOrder = MemoryOrder::release(Scope::Gpu);

/// The CTA before this one, around the grid.
fn neighbor() -> Reg<u32> {
    (cta_id() + grid_ctas() - 1) % grid_ctas()
}

/// One role of some warps whose CTAs hand something on by flags.
fn chain(warps: u32, body: impl FnOnce(Flags)) -> Kernel {
    kernel(|k| {
        let flags = k.flags("flags");
        k.role("all").warps(warps).body(|| body(flags));
    })
}

#[test]
fn every_cta_that_waits_before_it_raises_its_flag_waits_for_ever() {
    let (mut wait, mut raise) = (0, 0);
    let k = chain(1, |flags| {
        wait = line!() + 1;
        flags.wait(neighbor(), 1u32);
        raise = line!() + 1;
        flags.signal(cta_id());
    });
    assert_eq!(breaches(&k), [("R18.cycle", wait, Some(raise))]);
    let first = chain(1, |flags| {
        if_(cta_id().gt(0u32), || flags.wait(cta_id() - 1, 1u32));
        flags.signal(cta_id());
    });
    assert_eq!(breaches(&first), []);
    let raised_before = chain(1, |flags| {
        flags.signal(cta_id());
        flags.wait(neighbor(), 1u32);
    });
    assert_eq!(breaches(&raised_before), []);
}

#[test]
fn a_cycle_is_found_however_it_is_written() {
    let raw = |first_skips: bool| {
        let mut k = kernel(|k| {
            let flag = k.pointer::<u32>("flag");
            k.role("all").body(|| {
                elect_lane(|| {
                    let seen = Var::new(0u32);
                    let go = select(cta_id().eq(0u32), 1u32, 0u32);
                    if first_skips {
                        seen.set(go);
                    }
                    while_(
                        || seen.get().eq(0u32),
                        || seen.set(flag.atomic_ref(neighbor()).load(ACQUIRE)),
                    );
                    flag.atomic_ref(cta_id()).store(1u32, RELEASE);
                });
            });
        });
        k.co_resident = true;
        k
    };
    assert_eq!(codes(&raw(false)), ["R18.cycle"]);
    assert_eq!(codes(&raw(true)), NONE);
    // A variable that a branch sets ends the loop.
    let branched = |raise_first: bool| {
        let mut k = kernel(|k| {
            let flag = k.pointer::<u32>("flag");
            k.role("all").body(|| {
                elect_lane(|| {
                    let raise = || {
                        let word = flag.atomic_ref(cta_id());
                        word.reduce(AtomicOp::Add, 1u32, RELEASE);
                    };
                    if raise_first {
                        raise();
                    }
                    let waits = Var::new(true);
                    while_(
                        || waits.get(),
                        || {
                            let raised = flag.atomic_ref(neighbor()).load(ACQUIRE).ne(0u32);
                            if_(raised, || waits.set(false));
                        },
                    );
                    if !raise_first {
                        raise();
                    }
                });
            });
        });
        k.co_resident = true;
        k
    };
    assert_eq!(codes(&branched(false)), ["R18.cycle"]);
    assert_eq!(codes(&branched(true)), NONE);
}

#[test]
fn both_sides_of_a_branch_may_wait() {
    let k = |last_waits: bool| {
        chain(1, |flags| {
            if_else(
                cta_id().gt(0u32),
                || flags.wait(cta_id() - 1, 1u32),
                || {
                    if last_waits {
                        flags.wait(grid_ctas() - 1, 1u32);
                    }
                },
            );
            flags.signal(cta_id());
        })
    };
    assert_eq!(codes(&k(true)), ["R18.cycle", "R18.cycle"]);
    assert_eq!(codes(&k(false)), NONE);
}

#[test]
fn one_thread_waits_and_another_raises_behind_a_barrier() {
    let k = |meets: bool| {
        chain(4, |flags| {
            elect(|| flags.wait(neighbor(), 1u32));
            if meets {
                cta_sync();
            }
            if_(warp_in_role().eq(3u32), || {
                elect_lane(|| flags.signal(cta_id()))
            });
        })
    };
    assert_eq!(codes(&k(true)), ["R18.cycle"]);
    assert_eq!(codes(&k(false)), NONE);
    let same_thread = chain(4, |flags| {
        elect(|| flags.wait(neighbor(), 1u32));
        elect(|| flags.signal(cta_id()));
    });
    assert_eq!(codes(&same_thread), ["R18.cycle"]);
    let lanes = |first: bool| {
        chain(1, |flags| {
            let waits = match first {
                true => lane_id().eq(0u32) & cta_id().gt(0u32),
                false => lane_id().eq(0u32),
            };
            if_(waits, || flags.wait(neighbor(), 1u32));
            flags.signal(cta_id());
        })
    };
    assert_eq!(codes(&lanes(false)), ["R18.cycle"]);
    assert_eq!(codes(&lanes(true)), NONE);
}

/// One role waits for the neighbor and fills a ring, another empties it and raises the flag.
#[test]
fn a_cycle_may_pass_through_a_ring_and_through_barriers() {
    let ring = |first: bool| {
        kernel(|k| {
            let (flags, x) = (k.flags("flags"), k.pointer::<u32>("x"));
            let ring = k
                .ring("ring", 2, |s| s.vector::<u32>(32))
                .generic_proxy_only();
            k.role("load").body(|| {
                steps(4u32).each(|i| {
                    match first {
                        true => if_(cta_id().gt(0u32), || flags.wait(neighbor(), 1u32)),
                        false => flags.wait(neighbor(), 1u32),
                    }
                    let slot = ring.acquire();
                    slot.store(0u32, lane_id(), x.load(i * 32u32 + lane_id()));
                    slot.commit();
                });
            });
            k.role("math").body(|| {
                steps(4u32).each(|_| {
                    let slot = ring.wait();
                    slot.load(0u32, lane_id());
                    slot.release();
                    flags.signal(cta_id());
                });
            });
        })
    };
    assert_eq!(codes(&ring(false)), ["R18.cycle"]);
    assert_eq!(codes(&ring(true)), NONE);
    let named = |order: bool| {
        kernel(|k| {
            let (flags, meet) = (k.flags("flags"), k.named_barrier("meet"));
            k.role("wait").body(|| {
                if order {
                    meet.sync(64);
                }
                flags.wait(neighbor(), 1u32);
                if !order {
                    meet.sync(64);
                }
            });
            k.role("raise").body(|| {
                meet.sync(64);
                flags.signal(cta_id());
            });
        })
    };
    assert_eq!(codes(&named(false)), ["R18.cycle"]);
    assert_eq!(codes(&named(true)), NONE);
}

#[test]
fn two_arrays_of_flags_make_a_cycle_too() {
    let k = |turned: bool| {
        kernel(|k| {
            let (a, b) = (k.flags("a"), k.flags("b"));
            k.role("all").body(|| {
                if_else(
                    cta_id().eq(0u32),
                    || {
                        if turned {
                            b.signal(0u32);
                        }
                        a.wait(0u32, 1u32);
                        if !turned {
                            b.signal(0u32);
                        }
                    },
                    || {
                        b.wait(0u32, 1u32);
                        a.signal(0u32);
                    },
                );
            });
        })
    };
    assert_eq!(codes(&k(false)), ["R18.cycle", "R18.cycle"]);
    assert_eq!(codes(&k(true)), NONE);
}

#[test]
fn a_flag_that_nobody_raises_is_waited_for_for_ever() {
    let (mut wait, mut declared) = (0, 0);
    let k = kernel(|k| {
        declared = line!() + 1;
        let flags = k.flags("flags");
        let out = k.pointer::<u32>("out");
        k.role("all").body(|| {
            wait = line!() + 1;
            flags.wait(0u32, 1u32);
            out.store(lane_id(), 1u32);
        });
    });
    assert_eq!(breaches(&k), [("R18.raised", wait, Some(declared))]);
    let raised = chain(1, |flags| {
        if_(cta_id().eq(0u32), || flags.signal(0u32));
        flags.wait(0u32, 1u32);
    });
    assert_eq!(breaches(&raised), []);
}

/// A loop over one word, by `wait`; `raise` writes before it.
fn word(raise: impl FnOnce(Global<u32>), wait: impl FnOnce(Global<u32>)) -> Kernel {
    let mut k = kernel(|k| {
        let flag = k.pointer::<u32>("flag");
        k.role("all").body(|| {
            elect_lane(|| {
                raise(flag);
                wait(flag);
            });
        });
    });
    k.co_resident = true;
    k
}

#[test]
fn the_word_and_the_value_must_be_the_right_ones() {
    let wait = |at: u32, value: u32| {
        move |flag: Global<u32>| {
            let word = flag.atomic_ref(at);
            while_(|| word.load(ACQUIRE).ne(value), || nanosleep(20));
        }
    };
    let set =
        |at: u32, value: u32| move |flag: Global<u32>| flag.atomic_ref(at).store(value, RELEASE);
    assert_eq!(codes(&word(set(0, 1), wait(0, 1))), NONE);
    // Another word, another value, and a reset.
    assert_eq!(codes(&word(set(1, 1), wait(0, 1))), ["R18.raised"]);
    assert_eq!(codes(&word(set(0, 1), wait(0, 2))), ["R18.raised"]);
    assert_eq!(codes(&word(set(0, 0), wait(0, 1))), ["R18.raised"]);
    // A word that is zero at launch ends this one at once.
    assert_eq!(codes(&word(|_| {}, wait(0, 0))), NONE);
}

#[test]
fn an_atomic_may_be_the_load_of_the_loop() {
    let ask = |flag: Global<u32>| {
        let (word, order) = (flag.atomic_ref(0u32), MemoryOrder::acq_rel(Scope::Gpu));
        while_(
            || word.atomic(AtomicOp::Or, 0u32, order).eq(0u32),
            || nanosleep(20),
        );
    };
    assert_eq!(codes(&word(|_| {}, ask)), ["R18.raised"]);
    let raise = |flag: Global<u32>| {
        if_(cta_id().eq(0u32), || {
            let order = MemoryOrder::acq_rel(Scope::Gpu);
            flag.atomic_ref(0u32).atomic(AtomicOp::Add, 1u32, order);
        });
    };
    assert_eq!(codes(&word(raise, ask)), NONE);
}

#[test]
fn a_wait_that_asks_for_no_more_than_the_round_lets_the_first_round_pass() {
    let k = chain(1, |flags| {
        steps(8u32).each(|i| {
            flags.wait(neighbor(), i);
            flags.signal(cta_id());
        });
    });
    assert_eq!(breaches(&k), []);
    let k = chain(1, |flags| {
        steps(8u32).each(|i| {
            flags.wait(neighbor(), i + 1);
            flags.signal(cta_id());
        });
    });
    assert_eq!(codes(&k), ["R18.cycle"]);
}

#[test]
fn a_round_that_skips_the_wait_goes_first() {
    let k = |skips: bool| {
        chain(1, |flags| {
            let is_first = Var::new(skips);
            steps(8u32).each(|_| {
                if_(!is_first.get(), || flags.wait(neighbor(), 1u32));
                flags.signal(cta_id());
                is_first.set(false);
            });
        })
    };
    assert_eq!(codes(&k(true)), NONE);
    assert_eq!(codes(&k(false)), ["R18.cycle"]);
}

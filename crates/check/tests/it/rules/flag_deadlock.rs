//! Flags between CTAs that no thread can set.

use crate::rules::kernel;
use warpline_ir::builder::*;
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::{Kernel, MemoryOrder, Scope};
use warpline_testkit::verdict::{NONE, codes, violations};

const ACQUIRE: MemoryOrder = MemoryOrder::acquire(Scope::Gpu);
const RELEASE: MemoryOrder = MemoryOrder::release(Scope::Gpu);

/// The CTA before this one, around the grid.
fn neighbor() -> Reg<u32> {
    (cta_id() + grid_ctas() - 1) % grid_ctas()
}

/// A kernel with one role and an array of flags between its CTAs.
fn chain(warps: u32, body: impl FnOnce(Flags)) -> Kernel {
    kernel(|k| {
        let flags = k.flags("flags");
        k.role("all").warps(warps).body(|| body(flags));
    })
}

#[test]
fn a_wait_before_the_flag_is_set_in_every_cta_is_refuted() {
    let (mut wait, mut set_flag) = (0, 0);
    let k = chain(1, |flags| {
        wait = line!() + 1;
        flags.wait(neighbor(), 1u32);
        set_flag = line!() + 1;
        flags.signal(cta_id());
    });
    assert_eq!(violations(&k), [("R18.cycle", wait, Some(set_flag))]);
    let first = chain(1, |flags| {
        if_(cta_id().gt(0u32), || flags.wait(cta_id() - 1, 1u32));
        flags.signal(cta_id());
    });
    assert_eq!(violations(&first), []);
    let set_before = chain(1, |flags| {
        flags.signal(cta_id());
        flags.wait(neighbor(), 1u32);
    });
    assert_eq!(violations(&set_before), []);
}

#[test]
fn a_cycle_through_raw_atomics_and_variables_is_refuted() {
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
    let branched = |set_first: bool| {
        let mut k = kernel(|k| {
            let flag = k.pointer::<u32>("flag");
            k.role("all").body(|| {
                elect_lane(|| {
                    let set_flag = || {
                        let word = flag.atomic_ref(cta_id());
                        word.reduce(AtomicOp::Add, 1u32, RELEASE);
                    };
                    if set_first {
                        set_flag();
                    }
                    let waits = Var::new(true);
                    while_(
                        || waits.get(),
                        || {
                            let set = flag.atomic_ref(neighbor()).load(ACQUIRE).ne(0u32);
                            if_(set, || waits.set(false));
                        },
                    );
                    if !set_first {
                        set_flag();
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
fn a_wait_in_both_arms_of_a_branch_is_refuted() {
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
fn a_barrier_carries_a_wait_to_other_threads() {
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

/// One role waits for the neighbor and fills a ring; another role reads the ring and sets the flag.
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
fn a_cycle_through_two_flag_arrays_is_refuted() {
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
fn a_flag_that_is_never_set_is_refuted() {
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
    assert_eq!(violations(&k), [("R18.raised", wait, Some(declared))]);
    let set = chain(1, |flags| {
        if_(cta_id().eq(0u32), || flags.signal(0u32));
        flags.wait(0u32, 1u32);
    });
    assert_eq!(violations(&set), []);
}

/// A thread runs `set_flag` and then `wait` on one buffer.
fn word(set_flag: impl FnOnce(Global<u32>), wait: impl FnOnce(Global<u32>)) -> Kernel {
    let mut k = kernel(|k| {
        let flag = k.pointer::<u32>("flag");
        k.role("all").body(|| {
            elect_lane(|| {
                set_flag(flag);
                wait(flag);
            });
        });
    });
    k.co_resident = true;
    k
}

#[test]
fn the_flag_write_must_match_the_word_and_the_value() {
    let wait = |at: u32, value: u32| {
        move |flag: Global<u32>| {
            let word = flag.atomic_ref(at);
            while_(|| word.load(ACQUIRE).ne(value), || nanosleep(20));
        }
    };
    let set =
        |at: u32, value: u32| move |flag: Global<u32>| flag.atomic_ref(at).store(value, RELEASE);
    assert_eq!(codes(&word(set(0, 1), wait(0, 1))), NONE);
    // The write sets another word, another value, or zero.
    assert_eq!(codes(&word(set(1, 1), wait(0, 1))), ["R18.raised"]);
    assert_eq!(codes(&word(set(0, 1), wait(0, 2))), ["R18.raised"]);
    assert_eq!(codes(&word(set(0, 0), wait(0, 1))), ["R18.raised"]);
    // A wait for zero passes at once, because the word is zero at launch.
    assert_eq!(codes(&word(|_| {}, wait(0, 0))), NONE);
}

#[test]
fn a_polling_atomic_is_a_poll() {
    let ask = |flag: Global<u32>| {
        let (word, order) = (flag.atomic_ref(0u32), MemoryOrder::acq_rel(Scope::Gpu));
        while_(
            || word.atomic(AtomicOp::Or, 0u32, order).eq(0u32),
            || nanosleep(20),
        );
    };
    assert_eq!(codes(&word(|_| {}, ask)), ["R18.raised"]);
    let set_flag = |flag: Global<u32>| {
        if_(cta_id().eq(0u32), || {
            let order = MemoryOrder::acq_rel(Scope::Gpu);
            flag.atomic_ref(0u32).atomic(AtomicOp::Add, 1u32, order);
        });
    };
    assert_eq!(codes(&word(set_flag, ask)), NONE);
}

#[test]
fn a_wait_for_zero_passes_in_the_first_iteration() {
    let k = chain(1, |flags| {
        steps(8u32).each(|i| {
            flags.wait(neighbor(), i);
            flags.signal(cta_id());
        });
    });
    assert_eq!(violations(&k), []);
    let k = chain(1, |flags| {
        steps(8u32).each(|i| {
            flags.wait(neighbor(), i + 1);
            flags.signal(cta_id());
        });
    });
    assert_eq!(codes(&k), ["R18.cycle"]);
}

#[test]
fn an_iteration_that_skips_the_wait_breaks_the_cycle() {
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

//! Global memory: one writer for each byte, and what passes between CTAs.

use crate::executor::harness::{line, other_line, strict, timings};
use warpline_cpu::{Options, RunError};
use warpline_ir::build::*;
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::ops::bulk::Reduction;
use warpline_ir::ops::memory::{LoadCache, LoadPath, StoreCache};
use warpline_ir::{FaultKind, Kernel, MemoryOrder, Scope};
use warpline_testkit::launch::Setup;

fn build(body: impl FnOnce(Builder)) -> Kernel {
    warpline_testkit::kernel::build("global", body)
}

/// Runs a kernel of two buffers, `a` of zeros and `b`, on some CTAs.
fn run(k: &Kernel, ctas: u32, options: &Options) -> Result<Vec<u32>, Box<RunError>> {
    let s = Setup::new()
        .input("a", &[0u32; 256])
        .input("b", &[0u32; 256]);
    s.run(k, ctas, options)?;
    Ok(s.values(1))
}

#[track_caller]
fn passes(k: &Kernel, ctas: u32) {
    for options in timings() {
        run(k, ctas, &options).unwrap_or_else(|e| panic!("{options:?}: {e}"));
    }
}

/// Expects a race under every timing that looks for one; gives the first.
#[track_caller]
fn races(k: &Kernel, ctas: u32, rule: &str) -> Box<RunError> {
    let mut all = strict().map(|options| {
        let Err(e) = run(k, ctas, &options) else {
            panic!("passed with {options:?}")
        };
        assert_eq!(e.kind, FaultKind::Race, "{options:?}: {e}");
        assert!(e.text.contains(rule), "{options:?}: {e}");
        e
    });
    let first = all.next().unwrap();
    all.for_each(drop);
    first
}

/// Each CTA writes 32 words, `apart` from those of the CTA before.
fn writers(apart: u32, at: &mut u32) -> Kernel {
    build(|k| {
        let (_, b) = (k.pointer::<u32>("a"), k.pointer::<u32>("b"));
        k.role("all").body(|| {
            *at = line!() + 1;
            b.store(cta_id() * apart + lane_id(), cta_id());
        });
    })
}

#[test]
fn a_byte_has_one_writer() {
    let mut at = 0;
    passes(&writers(32, &mut at), 4);
    for apart in [0, 31] {
        let k = writers(apart, &mut at);
        let e = races(&k, 4, "R18.writer");
        assert_eq!((line(&e), other_line(&e)), (at, at));
        let byte = 4 * apart;
        assert_eq!(
            e.text,
            format!(
                "writes byte {byte} of buffer b, written before by another CTA; nothing orders the two (R18.writer)"
            )
        );
        let ctas = [&e.at, &e.other].map(|s| s.as_ref().unwrap().cta[0]);
        assert_eq!(ctas, [1, 0]);
    }
}

#[test]
fn the_fault_does_not_depend_on_the_threads_of_the_host() {
    let k = writers(0, &mut 0);
    let told = |threads| {
        let options = Options {
            threads,
            ..strict().next().unwrap()
        };
        run(&k, 64, &options).unwrap_err().to_string()
    };
    assert_eq!(told(1), told(7));
}

#[test]
fn words_of_half_a_register_have_one_writer_each() {
    let halves = |shift: u32| {
        build(|k| {
            let (_, b) = (k.pointer::<u32>("a"), k.pointer::<u16>("b"));
            k.role("all").body(|| {
                // Every second half is of the other CTA.
                b.store(lane_id() * 2 + (cta_id() >> shift), 1u16);
            });
        })
    };
    passes(&halves(0), 2);
    races(&halves(1), 2, "R18.writer");
}

#[test]
fn what_one_cta_reads_another_does_not_write() {
    let k = |to: u32| {
        build(|k| {
            let (a, b) = (k.pointer::<u32>("a"), k.pointer::<u32>("b"));
            k.role("all").body(|| {
                let x = a.load(lane_id());
                if_else(
                    cta_id().eq(2u32),
                    || a.store(lane_id() + to, x + 1),
                    || b.store(cta_id() * 32 + lane_id(), x),
                );
            });
        })
    };
    passes(&k(32), 4);
    races(&k(0), 4, "R18.writer");
}

#[test]
fn lanes_and_warps_of_a_cta_meet_first() {
    let k = |meet: fn()| {
        build(|k| {
            let (_, b) = (k.pointer::<u32>("a"), k.pointer::<u32>("b"));
            k.role("all").warps(2).body(|| {
                b.store(thread_id(), 1u32);
                // A thread reads what it wrote itself.
                b.store(thread_id(), b.load(thread_id()) + 1);
                meet();
                let other = b.load(thread_id() ^ 33);
                meet();
                b.store(thread_id(), other);
            });
        })
    };
    passes(&k(cta_sync), 1);
    races(&k(|| {}), 1, "R18.writer");
    races(&k(warp_sync), 1, "R18.writer");
}

/// CTA 0 writes 32 words and raises a flag; the others wait for it and read them.
fn handed_over(raise: impl FnOnce(Global<u32>), wait: impl FnOnce(Global<u32>)) -> Kernel {
    let mut k = build(|k| {
        let (a, b) = (k.pointer::<u32>("a"), k.pointer::<u32>("b"));
        k.role("all").body(|| {
            if_else(
                cta_id().eq(0u32),
                || {
                    b.store(lane_id(), lane_id());
                    warp_sync();
                    elect_lane(|| raise(a));
                },
                || {
                    wait(a);
                    b.store(cta_id() * 32 + lane_id(), b.load(lane_id()));
                },
            );
        });
    });
    k.co_resident = true;
    k
}

fn raise_by(order: MemoryOrder) -> impl FnOnce(Global<u32>) {
    move |flag| flag.word(0u32).reduce(AtomicOp::Add, 1u32, order)
}

fn wait_by(order: MemoryOrder) -> impl FnOnce(Global<u32>) {
    move |flag| while_(|| flag.word(0u32).load(order).eq(0u32), || nanosleep(20))
}

const RELEASE: MemoryOrder = MemoryOrder::release(Scope::Gpu);
const ACQUIRE: MemoryOrder = MemoryOrder::acquire(Scope::Gpu);
const RELAXED: MemoryOrder = MemoryOrder::relaxed(Scope::Gpu);

#[test]
fn a_release_and_an_acquire_of_the_device_hand_data_over() {
    passes(&handed_over(raise_by(RELEASE), wait_by(ACQUIRE)), 3);
    let fenced = handed_over(
        |flag| {
            fence(Scope::Gpu);
            raise_by(RELAXED)(flag);
        },
        |flag| {
            wait_by(RELAXED)(flag);
            fence(Scope::Gpu);
        },
    );
    passes(&fenced, 3);
    let volatile = handed_over(
        |flag| {
            fence(Scope::Gpu);
            flag.store_cached(
                0u32,
                [1u32],
                StoreCache {
                    volatile: true,
                    ..StoreCache::DEFAULT
                },
            );
        },
        |flag| {
            let cache = LoadCache {
                path: LoadPath::Volatile,
                ..LoadCache::DEFAULT
            };
            let raised = || flag.load_cached::<u32, 1>(0u32, cache)[0];
            while_(|| raised().eq(0u32), || nanosleep(20));
            fence(Scope::Gpu);
        },
    );
    passes(&volatile, 3);
}

#[test]
fn a_missing_half_hands_nothing_over() {
    races(
        &handed_over(raise_by(RELAXED), wait_by(ACQUIRE)),
        3,
        "R18.writer",
    );
    races(
        &handed_over(raise_by(RELEASE), wait_by(RELAXED)),
        3,
        "R18.writer",
    );
    let late = handed_over(
        |flag| {
            raise_by(RELAXED)(flag);
            fence(Scope::Gpu);
        },
        wait_by(ACQUIRE),
    );
    races(&late, 3, "R18.writer");
    for scope in [Scope::Cta, Scope::Cluster] {
        let near = handed_over(
            |flag| {
                fence(scope);
                raise_by(RELAXED)(flag);
            },
            wait_by(ACQUIRE),
        );
        races(&near, 3, "R18.writer");
    }
}

#[test]
fn a_flag_of_too_narrow_a_scope_is_told() {
    let narrow = MemoryOrder::release(Scope::Cta);
    races(
        &handed_over(raise_by(narrow), wait_by(ACQUIRE)),
        2,
        "R18.scope",
    );
    let narrow = MemoryOrder::acquire(Scope::Cluster);
    races(
        &handed_over(raise_by(RELEASE), wait_by(narrow)),
        2,
        "R18.scope",
    );
}

#[test]
fn atomics_meet_at_the_scope_that_reaches_both() {
    let counter = |scope: Scope| {
        build(|k| {
            let (a, b) = (k.pointer::<u32>("a"), k.pointer::<u32>("b"));
            k.cluster(2, 1, 1);
            k.role("all").body(|| {
                let order = MemoryOrder::relaxed(scope);
                let ticket = a.word(0u32).atomic(AtomicOp::Add, 1u32, order);
                b.store(ticket, ticket);
            });
        })
    };
    passes(&counter(Scope::Gpu), 8);
    passes(&counter(Scope::Cluster), 2);
    races(&counter(Scope::Cluster), 4, "R18.scope");
    races(&counter(Scope::Cta), 2, "R18.scope");
}

/// The last CTA adds up what all have written.
fn last_adds(order: MemoryOrder) -> Kernel {
    build(|k| {
        let (a, b) = (k.pointer::<u32>("a"), k.pointer::<u32>("b"));
        k.role("all").body(|| {
            elect_lane(|| {
                b.store(cta_id() + 1, cta_id());
                let before = a.word(0u32).atomic(AtomicOp::Add, 1u32, order);
                if_(before.eq(grid_ctas() - 1), || {
                    let sum = Var::new(0u32);
                    range(0u32, grid_ctas()).each(|i| sum.set(sum.get() + b.load(i + 1)));
                    b.store(0u32, sum.get());
                    a.store(0u32, 0u32);
                });
            });
        });
    })
}

#[test]
fn the_last_cta_knows_of_all_before_it() {
    let right = last_adds(MemoryOrder::acq_rel(Scope::Gpu));
    for options in timings() {
        let sums = run(&right, 5, &options).unwrap_or_else(|e| panic!("{options:?}: {e}"));
        assert_eq!(sums[0], 10);
    }
    for order in [RELAXED, RELEASE, ACQUIRE] {
        races(&last_adds(order), 5, "R18.writer");
    }
    races(&last_adds(MemoryOrder::acq_rel(Scope::Cta)), 5, "R18.scope");
}

/// A bulk store, and a read of what it writes behind a wait.
fn stored_in_bulk(wait: fn()) -> Kernel {
    build(|k| {
        let (_, b) = (k.pointer::<u32>("a"), k.pointer::<u32>("b"));
        let t = k.tile::<u32>("t", 1, 32).plain().declare();
        k.role("all").body(|| {
            t.whole().store(0u32, lane_id(), lane_id());
            fence_async();
            warp_sync();
            elect(|| {
                bulk_store(t.whole(), b.address(0), 128);
                bulk_commit();
                wait();
                b.store(32u32, b.load(3u32));
                bulk_wait(0);
            });
        });
    })
}

#[test]
fn a_bulk_store_is_over_behind_its_wait() {
    passes(&stored_in_bulk(|| bulk_wait(0)), 1);
    // A wait for the reads says nothing of the writes.
    races(&stored_in_bulk(|| {}), 1, "R18.writer");
    races(&stored_in_bulk(|| bulk_wait_read(0)), 1, "R18.writer");
}

#[test]
fn bulk_reductions_of_many_ctas_add_up_and_bulk_stores_do_not() {
    let k = |reduce: bool| {
        build(|k| {
            let (_, b) = (k.pointer::<u32>("a"), k.pointer::<u32>("b"));
            let t = k.tile::<u32>("t", 1, 32).plain().declare();
            k.role("all").body(|| {
                t.whole().store(0u32, lane_id(), 1u32);
                fence_async();
                warp_sync();
                elect(|| {
                    if reduce {
                        bulk_reduce(Reduction::Add, t.whole(), b.address(0), 128);
                    } else {
                        bulk_store(t.whole(), b.address(0), 128);
                    }
                    bulk_commit();
                    bulk_wait(0);
                });
            });
        })
    };
    passes(&k(true), 4);
    races(&k(false), 4, "R18.writer");
}

/// Waits until a flag is raised.
fn wait_for(flag: Global<u32>, i: u32) {
    while_(|| flag.word(i).load(ACQUIRE).eq(0u32), || nanosleep(20));
}

#[test]
fn a_flag_hands_over_what_was_released_through_it_and_not_through_another() {
    // Two warps of the first CTA, beside other CTAs: word 0 is raised before the data is written.
    let kernel = |flag: u32| {
        let mut k = build(|k| {
            let (a, b) = (k.pointer::<u32>("a"), k.pointer::<u32>("b"));
            let first = || cta_id().eq(0u32);
            k.role("sends").body(|| {
                elect(|| {
                    if_(first(), || {
                        a.word(0u32).store(1u32, RELEASE);
                        b.store(0u32, 7u32);
                        a.word(1u32).store(1u32, RELEASE);
                    });
                });
            });
            k.role("reads").body(|| {
                elect(|| {
                    if_(first(), || {
                        wait_for(a, flag);
                        b.store(1u32, b.load(0u32));
                    });
                });
            });
        });
        k.co_resident = true;
        k
    };
    passes(&kernel(1), 3);
    races(&kernel(0), 3, "R18.writer");
}

#[test]
fn what_goes_out_to_another_cluster_comes_back() {
    // The second CTA waits for the first warp of the first one, and lets its second warp go.
    let kernel = |waits: bool| {
        let mut k = build(|k| {
            let (a, b) = (k.pointer::<u32>("a"), k.pointer::<u32>("b"));
            k.role("sends").body(|| {
                elect(|| {
                    if_else(
                        cta_id().eq(0u32),
                        || {
                            b.store(0u32, 7u32);
                            a.word(0u32).store(1u32, RELEASE);
                        },
                        || {
                            if waits {
                                wait_for(a, 0);
                            }
                            a.word(1u32).store(1u32, RELEASE);
                        },
                    );
                });
            });
            k.role("reads").body(|| {
                elect(|| {
                    if_(cta_id().eq(0u32), || {
                        wait_for(a, 1);
                        b.store(1u32, b.load(0u32));
                    });
                });
            });
        });
        k.co_resident = true;
        k
    };
    passes(&kernel(true), 2);
    races(&kernel(false), 2, "R18.writer");
}

//! Races in global memory, and synchronization between CTAs.

use crate::executor::harness::{line, other_line, strict, timings};
use warpline_cpu::{Options, RunError};
use warpline_ir::builder::*;
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::ops::bulk::Reduction;
use warpline_ir::ops::memory::{LoadCache, LoadPath, StoreCache};
use warpline_ir::{FaultKind, Kernel, MemoryOrder, Scope};
use warpline_testkit::launch::Setup;

fn build(body: impl FnOnce(Builder)) -> Kernel {
    warpline_testkit::kernel::build("global", body)
}

/// Runs a kernel with two buffers, `a` zeroed and `b`, on some CTAs.
fn run(k: &Kernel, ctas: u32, options: &Options) -> Result<Vec<u32>, Box<RunError>> {
    let s = Setup::new()
        .input("a", &[0u32; 256])
        .input("b", &[0u32; 256]);
    s.run(k, ctas, options)?;
    Ok(s.values(1))
}

#[track_caller]
fn expect_pass(k: &Kernel, ctas: u32) {
    for options in timings() {
        run(k, ctas, &options).unwrap_or_else(|e| panic!("{options:?}: {e}"));
    }
}

/// Expects a race under every strict timing; returns the first error.
#[track_caller]
fn expect_race(k: &Kernel, ctas: u32, rule: &str) -> Box<RunError> {
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

/// Each CTA writes 32 words, `stride` words after the start of the previous CTA.
fn writers(stride: u32, at: &mut u32) -> Kernel {
    build(|k| {
        let (_, b) = (k.pointer::<u32>("a"), k.pointer::<u32>("b"));
        k.role("all").body(|| {
            *at = line!() + 1;
            b.store(cta_id() * stride + lane_id(), cta_id());
        });
    })
}

#[test]
fn unordered_writes_of_a_byte_are_a_race() {
    let mut at = 0;
    expect_pass(&writers(32, &mut at), 4);
    for stride in [0, 31] {
        let k = writers(stride, &mut at);
        let e = expect_race(&k, 4, "R18.writer");
        assert_eq!((line(&e), other_line(&e)), (at, at));
        let byte = 4 * stride;
        assert_eq!(
            e.text,
            format!(
                "writes byte {byte} of buffer b, which another CTA wrote; nothing orders the two accesses [R18.writer]"
            )
        );
        let ctas = [&e.at, &e.other].map(|s| s.as_ref().unwrap().cta[0]);
        assert_eq!(ctas, [1, 0]);
    }
}

#[test]
fn the_report_is_the_same_for_any_number_of_host_threads() {
    let k = writers(0, &mut 0);
    let report = |threads| {
        let options = Options {
            threads,
            ..strict().next().unwrap()
        };
        run(&k, 64, &options).unwrap_err().to_string()
    };
    assert_eq!(report(1), report(7));
}

#[test]
fn sixteen_bit_writes_race_per_element() {
    let halves = |shift: u32| {
        build(|k| {
            let (_, b) = (k.pointer::<u32>("a"), k.pointer::<u16>("b"));
            k.role("all").body(|| {
                // With shift 0, the two CTAs write alternate elements.
                b.store(lane_id() * 2 + (cta_id() >> shift), 1u16);
            });
        })
    };
    expect_pass(&halves(0), 2);
    expect_race(&halves(1), 2, "R18.writer");
}

#[test]
fn a_write_races_with_a_read_of_another_cta() {
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
    expect_pass(&k(32), 4);
    expect_race(&k(0), 4, "R18.writer");
}

#[test]
fn warps_that_share_words_need_a_cta_barrier() {
    let k = |sync: fn()| {
        build(|k| {
            let (_, b) = (k.pointer::<u32>("a"), k.pointer::<u32>("b"));
            k.role("all").warps(2).body(|| {
                b.store(thread_id(), 1u32);
                // A thread is ordered after its own writes.
                b.store(thread_id(), b.load(thread_id()) + 1);
                sync();
                let other = b.load(thread_id() ^ 33);
                sync();
                b.store(thread_id(), other);
            });
        })
    };
    expect_pass(&k(cta_sync), 1);
    expect_race(&k(|| {}), 1, "R18.writer");
    expect_race(&k(warp_sync), 1, "R18.writer");
}

/// CTA 0 writes 32 words and sets a flag; the others wait for it and read them.
fn published_by_flag(raise: impl FnOnce(Global<u32>), wait: impl FnOnce(Global<u32>)) -> Kernel {
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
    move |flag| flag.atomic_ref(0u32).reduce(AtomicOp::Add, 1u32, order)
}

fn wait_by(order: MemoryOrder) -> impl FnOnce(Global<u32>) {
    move |flag| {
        while_(
            || flag.atomic_ref(0u32).load(order).eq(0u32),
            || nanosleep(20),
        )
    }
}

const RELEASE: MemoryOrder = MemoryOrder::release(Scope::Gpu);
const ACQUIRE: MemoryOrder = MemoryOrder::acquire(Scope::Gpu);
const RELAXED: MemoryOrder = MemoryOrder::relaxed(Scope::Gpu);

#[test]
fn release_and_acquire_at_gpu_scope_publish_data() {
    expect_pass(&published_by_flag(raise_by(RELEASE), wait_by(ACQUIRE)), 3);
    let fenced = published_by_flag(
        |flag| {
            fence(Scope::Gpu);
            raise_by(RELAXED)(flag);
        },
        |flag| {
            wait_by(RELAXED)(flag);
            fence(Scope::Gpu);
        },
    );
    expect_pass(&fenced, 3);
    let volatile = published_by_flag(
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
    expect_pass(&volatile, 3);
}

#[test]
fn a_missing_release_or_acquire_is_a_race() {
    expect_race(
        &published_by_flag(raise_by(RELAXED), wait_by(ACQUIRE)),
        3,
        "R18.writer",
    );
    expect_race(
        &published_by_flag(raise_by(RELEASE), wait_by(RELAXED)),
        3,
        "R18.writer",
    );
    let late = published_by_flag(
        |flag| {
            raise_by(RELAXED)(flag);
            fence(Scope::Gpu);
        },
        wait_by(ACQUIRE),
    );
    expect_race(&late, 3, "R18.writer");
    for scope in [Scope::Cta, Scope::Cluster] {
        let narrow_fence = published_by_flag(
            |flag| {
                fence(scope);
                raise_by(RELAXED)(flag);
            },
            wait_by(ACQUIRE),
        );
        expect_race(&narrow_fence, 3, "R18.writer");
    }
}

#[test]
fn a_flag_with_a_narrow_scope_is_a_race() {
    let narrow = MemoryOrder::release(Scope::Cta);
    expect_race(
        &published_by_flag(raise_by(narrow), wait_by(ACQUIRE)),
        2,
        "R18.scope",
    );
    let narrow = MemoryOrder::acquire(Scope::Cluster);
    expect_race(
        &published_by_flag(raise_by(RELEASE), wait_by(narrow)),
        2,
        "R18.scope",
    );
}

#[test]
fn atomics_need_a_scope_that_includes_both() {
    let counter = |scope: Scope| {
        build(|k| {
            let (a, b) = (k.pointer::<u32>("a"), k.pointer::<u32>("b"));
            k.cluster(2, 1, 1);
            k.role("all").body(|| {
                let order = MemoryOrder::relaxed(scope);
                let ticket = a.atomic_ref(0u32).atomic(AtomicOp::Add, 1u32, order);
                b.store(ticket, ticket);
            });
        })
    };
    expect_pass(&counter(Scope::Gpu), 8);
    expect_pass(&counter(Scope::Cluster), 2);
    expect_race(&counter(Scope::Cluster), 4, "R18.scope");
    expect_race(&counter(Scope::Cta), 2, "R18.scope");
}

/// The last CTA sums the words of all CTAs.
fn last_cta_sums(order: MemoryOrder) -> Kernel {
    build(|k| {
        let (a, b) = (k.pointer::<u32>("a"), k.pointer::<u32>("b"));
        k.role("all").body(|| {
            elect_lane(|| {
                b.store(cta_id() + 1, cta_id());
                let before = a.atomic_ref(0u32).atomic(AtomicOp::Add, 1u32, order);
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
fn the_last_cta_is_ordered_after_all_others() {
    let right = last_cta_sums(MemoryOrder::acq_rel(Scope::Gpu));
    for options in timings() {
        let sums = run(&right, 5, &options).unwrap_or_else(|e| panic!("{options:?}: {e}"));
        assert_eq!(sums[0], 10);
    }
    for order in [RELAXED, RELEASE, ACQUIRE] {
        expect_race(&last_cta_sums(order), 5, "R18.writer");
    }
    expect_race(
        &last_cta_sums(MemoryOrder::acq_rel(Scope::Cta)),
        5,
        "R18.scope",
    );
}

/// A bulk store, a wait, and a read of the destination.
fn bulk_store_then_read(wait: fn()) -> Kernel {
    build(|k| {
        let (_, b) = (k.pointer::<u32>("a"), k.pointer::<u32>("b"));
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
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
fn a_bulk_store_is_visible_after_its_wait() {
    expect_pass(&bulk_store_then_read(|| bulk_wait(0)), 1);
    // A read wait does not cover the writes.
    expect_race(&bulk_store_then_read(|| {}), 1, "R18.writer");
    expect_race(&bulk_store_then_read(|| bulk_wait_read(0)), 1, "R18.writer");
}

#[test]
fn bulk_reductions_of_ctas_do_not_race_but_bulk_stores_do() {
    let k = |reduce: bool| {
        build(|k| {
            let (_, b) = (k.pointer::<u32>("a"), k.pointer::<u32>("b"));
            let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
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
    expect_pass(&k(true), 4);
    expect_race(&k(false), 4, "R18.writer");
}

/// Waits until flag `i` is set.
fn wait_for(flag: Global<u32>, i: u32) {
    while_(
        || flag.atomic_ref(i).load(ACQUIRE).eq(0u32),
        || nanosleep(20),
    );
}

#[test]
fn an_acquire_pairs_only_with_the_release_of_its_word() {
    // A warp of CTA 0 raises word 0, writes the data, and raises word 1; another warp waits for one
    // of the words.
    let kernel = |flag: u32| {
        let mut k = build(|k| {
            let (a, b) = (k.pointer::<u32>("a"), k.pointer::<u32>("b"));
            let first = || cta_id().eq(0u32);
            k.role("sends").body(|| {
                elect(|| {
                    if_(first(), || {
                        a.atomic_ref(0u32).store(1u32, RELEASE);
                        b.store(0u32, 7u32);
                        a.atomic_ref(1u32).store(1u32, RELEASE);
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
    expect_pass(&kernel(1), 3);
    expect_race(&kernel(0), 3, "R18.writer");
}

#[test]
fn happens_before_passes_through_another_cluster() {
    // CTA 1 waits for the first warp of CTA 0, and then signals its second warp.
    let kernel = |waits: bool| {
        let mut k = build(|k| {
            let (a, b) = (k.pointer::<u32>("a"), k.pointer::<u32>("b"));
            k.role("sends").body(|| {
                elect(|| {
                    if_else(
                        cta_id().eq(0u32),
                        || {
                            b.store(0u32, 7u32);
                            a.atomic_ref(0u32).store(1u32, RELEASE);
                        },
                        || {
                            if waits {
                                wait_for(a, 0);
                            }
                            a.atomic_ref(1u32).store(1u32, RELEASE);
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
    expect_pass(&kernel(true), 2);
    expect_race(&kernel(false), 2, "R18.writer");
}

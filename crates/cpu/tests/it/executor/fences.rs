//! One-directional fences: a release or acquire half orders nothing without the other.

use crate::executor::harness::{strict, timings};
use warpline_cpu::{Options, RunError};
use warpline_ir::builder::*;
use warpline_ir::{FaultKind, Kernel, MemoryOrder, Scope};
use warpline_testkit::launch::Setup;

fn build(body: impl FnOnce(Builder)) -> Kernel {
    warpline_testkit::kernel::build("fences", body)
}

/// The fence halves that a kernel runs, and faults in their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Halves {
    Both,
    Release,
    Acquire,
    Neither,
    AcquireTooEarly,
    ReleaseTooLate,
}

const WRONG: [Halves; 5] = [
    Halves::Release,
    Halves::Acquire,
    Halves::Neither,
    Halves::AcquireTooEarly,
    Halves::ReleaseTooLate,
];

impl Halves {
    fn releases(self) -> bool {
        matches!(
            self,
            Halves::Both | Halves::Release | Halves::AcquireTooEarly
        )
    }
    fn acquires(self) -> bool {
        matches!(
            self,
            Halves::Both | Halves::Acquire | Halves::ReleaseTooLate
        )
    }
}

/// One role writes a tile, another stores it with a bulk copy.
fn written_then_bulk_stored(h: Halves) -> Kernel {
    build(|k| {
        let x = k.pointer::<u32>("x");
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
        let full = k.barrier("full", 1).arrivals(1);
        k.role("writes").body(|| {
            t.whole().store(0u32, lane_id(), lane_id() + 5);
            if h.releases() {
                fence_async_release();
            }
            warp_sync();
            elect(|| full.at(0).arrive());
            if h == Halves::ReleaseTooLate {
                fence_async_release();
            }
        });
        k.role("stores").body(|| {
            elect(|| {
                if h == Halves::AcquireTooEarly {
                    fence_async_acquire();
                }
                full.at(0).wait(0);
                if h.acquires() {
                    fence_async_acquire();
                }
                bulk_store(t.whole(), x.address(0), 128);
                bulk_commit();
                bulk_wait(0);
            });
        });
    })
}

fn run(k: &Kernel, options: &Options) -> Result<Vec<u32>, Box<RunError>> {
    let s = Setup::new().output("x", 128);
    s.run(k, 1, options)?;
    Ok(s.values(0))
}

#[test]
fn a_proxy_fence_may_be_split_into_release_and_acquire() {
    let right = written_then_bulk_stored(Halves::Both);
    for options in timings() {
        let got = run(&right, &options).unwrap_or_else(|e| panic!("{options:?}: {e}"));
        assert_eq!(got, (5..37).collect::<Vec<_>>());
    }
    for h in WRONG {
        let wrong = written_then_bulk_stored(h);
        for options in strict() {
            let e = run(&wrong, &options).unwrap_err();
            assert_eq!(e.kind, FaultKind::MissingProxyFence, "{h:?}: {e}");
        }
    }
}

/// One warp writes a tile and bulk-stores it, with a fence before and after its warp sync.
fn written_and_stored_by_one_warp([before, after]: [fn(); 2]) -> Kernel {
    build(|k| {
        let x = k.pointer::<u32>("x");
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
        k.role("all").body(|| {
            t.whole().store(0u32, lane_id(), lane_id());
            before();
            warp_sync();
            after();
            elect(|| {
                bulk_store(t.whole(), x.address(0), 128);
                bulk_commit();
                bulk_wait(0);
            });
        });
    })
}

#[test]
fn an_acquire_fence_must_follow_the_release_fence() {
    let (right, wrong) = (
        written_and_stored_by_one_warp([fence_async_release, fence_async_acquire]),
        written_and_stored_by_one_warp([fence_async_acquire, fence_async_release]),
    );
    for options in strict() {
        run(&right, &options).unwrap_or_else(|e| panic!("{e}"));
        let e = run(&wrong, &options).unwrap_err();
        assert_eq!(e.kind, FaultKind::MissingProxyFence, "{e}");
    }
}

#[test]
fn a_release_fence_covers_only_the_own_cta() {
    let kernel = |to_peer: bool| {
        build(|k| {
            k.cluster(2, 1, 1);
            let x = k.pointer::<u32>("x");
            let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
            k.role("all").body(|| {
                match to_peer {
                    true => t
                        .whole()
                        .peer(1u32 - cluster_rank())
                        .store(0u32, lane_id(), 1u32),
                    false => t.whole().store(0u32, lane_id(), 1u32),
                }
                fence_async_release();
                cluster_sync();
                fence_async_acquire();
                elect(|| {
                    bulk_store(t.whole(), x.address(cluster_rank() * 32u32), 128);
                    bulk_commit();
                    bulk_wait(0);
                });
            });
        })
    };
    for options in strict() {
        let run = |k: &Kernel| Setup::new().output("x", 256).run(k, 2, &options);
        run(&kernel(false)).unwrap_or_else(|e| panic!("{e}"));
        let e = run(&kernel(true)).unwrap_err();
        assert_eq!(e.kind, FaultKind::MissingProxyFence, "{e}");
    }
}

#[test]
fn a_proxy_fence_after_the_arrival_is_too_late() {
    // The issue is not ordered after the fence in any schedule.
    let kernel = |late: bool| {
        build(|k| {
            let x = k.pointer::<u32>("x");
            let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
            let full = k.barrier("full", 1).arrivals(32);
            k.role("writes").body(|| {
                t.whole().store(0u32, lane_id(), lane_id());
                if !late {
                    fence_async();
                }
                full.at(0).arrive();
                if late {
                    fence_async();
                }
            });
            k.role("stores").body(|| {
                elect(|| {
                    full.at(0).wait(0);
                    bulk_store(t.whole(), x.address(0), 128);
                    bulk_commit();
                    bulk_wait(0);
                });
            });
        })
    };
    for options in timings() {
        run(&kernel(false), &options).unwrap_or_else(|e| panic!("{e}"));
    }
    for options in strict() {
        let e = run(&kernel(true), &options).unwrap_err();
        assert_eq!(e.kind, FaultKind::MissingProxyFence, "{e}");
    }
}

#[test]
fn a_proxy_fence_of_the_own_cta_does_not_cover_a_peer() {
    // Each CTA writes to the tile of its peer, or to its own, and stores its own tile by a bulk
    // copy.
    let kernel = |fence: fn(), to_peer: bool| {
        build(|k| {
            k.cluster(2, 1, 1);
            let x = k.pointer::<u32>("x");
            let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
            k.role("all").body(|| {
                let to = match to_peer {
                    true => t.whole().peer(1u32 - cluster_rank()),
                    false => t.whole(),
                };
                to.store(0u32, lane_id(), 1u32);
                fence();
                cluster_sync();
                elect(|| {
                    bulk_store(t.whole(), x.address(cluster_rank() * 32u32), 128);
                    bulk_commit();
                    bulk_wait(0);
                });
            });
        })
    };
    let run = |k: &Kernel, options: &Options| Setup::new().output("x", 256).run(k, 2, options);
    let right: [(fn(), bool); 4] = [
        (fence_async, false),
        (fence_async_cluster, false),
        (fence_async_cluster, true),
        (fence_async_all, true),
    ];
    for options in timings() {
        for (fence, to_peer) in right {
            run(&kernel(fence, to_peer), &options).unwrap_or_else(|e| panic!("{e}"));
        }
    }
    for options in strict() {
        let e = run(&kernel(fence_async, true), &options).unwrap_err();
        assert_eq!(e.kind, FaultKind::MissingProxyFence, "{e}");
    }
}

/// The fence halves around a flag, and the memory of the flag.
#[derive(Clone, Copy)]
struct FlagFences {
    release: fn(),
    acquire: fn(),
    /// Whether the flag is in shared memory.
    shared: bool,
}

/// One warp writes a tile and sets a relaxed flag; another observes it and reads the tile.
fn flagged(fences: FlagFences, h: Halves) -> Kernel {
    build(|k| {
        let (out, flag) = (k.pointer::<u32>("x"), k.pointer::<u32>("flag"));
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
        let f = k.tile::<u32>("f", 1, 4).unswizzled().declare();
        let word = move || match fences.shared {
            true => f.whole().atomic_ref(0u32, 0u32),
            false => flag.atomic_ref(0u32),
        };
        let relaxed = MemoryOrder::relaxed(Scope::Cluster);
        k.role("sends").body(|| {
            elect(|| word().store(0u32, relaxed));
            cta_sync();
            t.whole().store(0u32, lane_id(), lane_id() + 1);
            warp_sync();
            elect(|| {
                if h.releases() {
                    (fences.release)();
                }
                word().store(1u32, relaxed);
                if h == Halves::ReleaseTooLate {
                    (fences.release)();
                }
            });
        });
        k.role("sees").body(|| {
            cta_sync();
            if h == Halves::AcquireTooEarly {
                (fences.acquire)();
            }
            while_(|| word().load(relaxed).eq(0u32), || nanosleep(20));
            if h.acquires() {
                (fences.acquire)();
            }
            out.store(lane_id(), t.whole().load(0u32, lane_id()));
        });
    })
}

fn run_flagged(k: &Kernel, options: &Options) -> Result<Vec<u32>, Box<RunError>> {
    let s = Setup::new().output("x", 128).input("flag", &[0u32]);
    s.run(k, 1, options)?;
    Ok(s.values(0))
}

const ALL_MEMORY: FlagFences = FlagFences {
    release: || fence_release(Scope::Gpu),
    acquire: || fence_acquire(Scope::Gpu),
    shared: true,
};

const SHARED_ONLY: FlagFences = FlagFences {
    release: fence_release_shared,
    acquire: fence_acquire_shared,
    shared: true,
};

#[test]
fn a_fence_may_be_split_into_release_and_acquire() {
    let global = FlagFences {
        shared: false,
        ..ALL_MEMORY
    };
    for fences in [ALL_MEMORY, global, SHARED_ONLY] {
        let right = flagged(fences, Halves::Both);
        for options in timings() {
            let got = run_flagged(&right, &options).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(got, (1..33).collect::<Vec<_>>());
        }
        for h in WRONG {
            let wrong = flagged(fences, h);
            for options in strict() {
                let e = run_flagged(&wrong, &options).unwrap_err();
                assert_eq!(e.kind, FaultKind::Race, "{h:?}: {e}");
            }
        }
    }
}

#[test]
fn a_shared_memory_fence_does_not_order_a_flag_in_global_memory() {
    let global = FlagFences {
        shared: false,
        ..SHARED_ONLY
    };
    let k = flagged(global, Halves::Both);
    for options in strict() {
        let e = run_flagged(&k, &options).unwrap_err();
        assert_eq!(e.kind, FaultKind::Race, "{e}");
    }
}

#[test]
fn tensor_map_fences_order_only_tensor_maps() {
    let fences = FlagFences {
        release: || fence_tensor_map_release(Scope::Gpu),
        acquire: || fence_tensor_map_acquire(Scope::Gpu, 0u64),
        shared: true,
    };
    let k = flagged(fences, Halves::Both);
    for options in strict() {
        let e = run_flagged(&k, &options).unwrap_err();
        assert_eq!(e.kind, FaultKind::Race, "{e}");
    }
}

//! R18: synchronization through global memory.

use crate::bug::{Bug, Built, ExpectedRun, Version};
use crate::case::CorpusCase;
use crate::mark::{Source, this_file};
use crate::ring::{BYTES, WORDS};
use crate::template::LaunchTemplate;
use warpline_ir::builder::*;
use warpline_ir::{FaultKind, Kernel, MemoryOrder, Scope, Target};

const SOURCE: Source = this_file!("global.rs");

pub(crate) const BUGS: &[Bug] = &[
    Bug {
        name: "deepep-632",
        reference: "deepseek-ai/DeepEP#632",
        title: "TMA reads global memory that threads have written, without a proxy fence",
        rule: "R18.proxy",
        executor: ExpectedRun::Clean("the executor does not check proxy fences of global memory"),
        build: copy_without_proxy_fence,
    },
    Bug {
        name: "flags-in-a-cycle",
        reference: "chained scans (decoupled look-back) without a first tile",
        title: "every CTA waits for its neighbor's flag before it sets its own",
        rule: "R18.cycle",
        executor: ExpectedRun::Faults(&[FaultKind::Deadlock, FaultKind::Limit]),
        build: flag_cycle,
    },
    Bug {
        name: "store-published-early",
        reference: "PTX ISA, cp.async.bulk.wait_group: .read waits for the reads of the source only",
        title: "a flag publishes a bulk store that has read its source and may not be complete",
        rule: "R18.complete",
        executor: ExpectedRun::Faults(&[FaultKind::Race]),
        build: flag_before_store_completes,
    },
    Bug {
        name: "locks-in-opposite-order",
        reference: "two spin locks, taken as A, B and as B, A",
        title: "two roles take two locks in opposite orders",
        rule: "R18.locks",
        executor: ExpectedRun::Faults(&[FaultKind::Deadlock, FaultKind::Limit]),
        build: locks_in_opposite_order,
    },
];

/// After the barrier the writes are visible to other threads, but not yet to the async proxy.
fn copy_without_proxy_fence(version: Version) -> Built {
    let kernel = Kernel::build("copy_without_proxy_fence", &Target::default(), |k| {
        let x = k.pointer::<f32>("x");
        let slot = k
            .tile::<f32>("slot", 1, WORDS)
            .unswizzled()
            .declare()
            .whole();
        let full = k.barrier("full", 1).arrivals(1).at(0u32);
        k.role("all").body(|| {
            x.store(lane_id(), 1.0);
            if version.is_repaired() {
                fence_async_global();
            }
            cta_sync();
            elect(|| {
                bulk_load(slot, x.address(0u32), BYTES, full); // BUG: may load old bytes
                full.arrive_expect(BYTES);
            });
            full.wait(0u32);
            slot.load(0u32, lane_id());
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1).buffer(BYTES),
    })
}

/// The first CTA of a chain must not wait; here it waits for the last one.
fn flag_cycle(version: Version) -> Built {
    let kernel = Kernel::build("flag_cycle", &Target::default(), |k| {
        let flags = k.flags("flags");
        k.role("all").body(|| {
            let predecessor = (cta_id() + grid_ctas() - 1) % grid_ctas();
            match version {
                Version::Broken => flags.wait(predecessor, 1u32), // BUG: no CTA starts the chain
                Version::Repaired => if_(cta_id().gt(0u32), || flags.wait(predecessor, 1u32)),
            }
            flags.signal(cta_id());
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(4).buffer(BYTES),
    })
}

/// The waiting CTA reads bytes that the store has not written yet.
fn flag_before_store_completes(version: Version) -> Built {
    let kernel = Kernel::build("flag_before_store_completes", &Target::default(), |k| {
        let (flags, row) = (k.flags("flags"), k.pointer::<f32>("row"));
        let out = k.pointer::<f32>("out");
        let slot = k
            .tile::<f32>("slot", 1, WORDS)
            .unswizzled()
            .declare()
            .whole();
        k.role("all").body(|| {
            if_else(
                cta_id().eq(0u32),
                || {
                    slot.store(0u32, lane_id(), 1.0);
                    fence_async();
                    warp_sync();
                    elect(|| {
                        bulk_store(slot, row.address(0u32), BYTES);
                        bulk_commit();
                        match version {
                            Version::Broken => bulk_wait_read(0),
                            Version::Repaired => bulk_wait(0),
                        }
                        flags.signal(0u32); // BUG: the row may not be complete
                    });
                },
                || {
                    flags.wait(0u32, 1u32);
                    out.store(lane_id(), row.load(lane_id()));
                },
            );
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(2)
            .buffer(BYTES)
            .buffer(BYTES)
            .buffer(BYTES),
    })
}

/// Each role holds one lock and waits for the lock of the other.
fn locks_in_opposite_order(version: Version) -> Built {
    let kernel = Kernel::build("locks_in_opposite_order", &Target::default(), |k| {
        let (a, b) = (k.pointer::<u32>("a"), k.pointer::<u32>("b"));
        let guarded = k.pointer::<u32>("guarded");
        let lock = |word: Global<u32>| {
            let (word, order) = (word.atomic_ref(0u32), MemoryOrder::acquire(Scope::Gpu));
            while_(
                || word.compare_swap(0u32, 1u32, order).ne(0u32), // BUG: the other lock is held
                || nanosleep(1000),
            );
        };
        let unlock = |word: Global<u32>| {
            word.atomic_ref(0u32)
                .store(0u32, MemoryOrder::release(Scope::Gpu));
        };
        for (name, first, second) in [
            ("first", a, b),
            ("second", version.pick(b, a), version.pick(a, b)),
        ] {
            k.role(name).body(|| {
                elect(|| {
                    lock(first);
                    nanosleep(1000);
                    lock(second);
                    guarded.store(0u32, guarded.load(0u32) + cta_id());
                    unlock(second);
                    unlock(first);
                });
            });
        }
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1)
            .buffer(BYTES)
            .buffer(BYTES)
            .buffer(BYTES),
    })
}

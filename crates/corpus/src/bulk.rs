//! R6: the thread that issued a bulk store waits for it.

use crate::bug::{Bug, Built, ExpectedRun, Version};
use crate::case::CorpusCase;
use crate::mark::{Source, this_file};
use crate::ring::{BYTES, WORDS};
use crate::template::LaunchTemplate;
use warpline_ir::builder::*;
use warpline_ir::{FaultKind, Kernel, Target};

const SOURCE: Source = this_file!("bulk.rs");

pub(crate) const BUGS: &[Bug] = &[
    Bug {
        name: "fast-cu-kernel-12",
        reference: "pranjalssh/fast.cu, kernel 12",
        title: "all threads wait for bulk groups, but only one thread has issued them",
        rule: "R6.bulk",
        executor: ExpectedRun::Faults(&[FaultKind::Race]),
        build: all_threads_wait,
    },
    Bug {
        name: "transformer-engine-3417",
        reference: "NVIDIA/TransformerEngine#3417",
        title: "one thread waits for its store, but no barrier makes the others wait for that thread",
        rule: "R6.bulk",
        executor: ExpectedRun::Faults(&[FaultKind::Race]),
        build: no_barrier_after_wait,
    },
];

/// A bulk group belongs to the thread that commits it. The wait of every other thread returns at
/// once, and the thread overwrites a buffer that is still being stored.
fn all_threads_wait(version: Version) -> Built {
    let kernel = Kernel::build("all_threads_wait", &Target::default(), |k| {
        let (n, y) = (k.param::<u32>("n"), k.pointer::<f32>("y"));
        let c = k.tile::<f32>("c", 4, WORDS).unswizzled().declare().whole();
        k.role("math").warpgroups(1).body(|| {
            steps(n).each(|i| {
                match version {
                    Version::Broken => bulk_wait_read(0),
                    Version::Repaired => {
                        elect(|| bulk_wait_read(0));
                        cta_sync();
                    }
                }
                c.store(warp_id(), lane_id(), 1.0); // BUG: the store may still read it
                fence_async();
                cta_sync();
                elect(|| {
                    bulk_store(c, y.address(i * (4 * WORDS)), 4 * BYTES);
                    bulk_commit();
                });
            });
            elect(|| bulk_wait_read(0));
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1).number(3).buffer(3 * 4 * BYTES),
    })
}

/// The issuing thread waits, but no barrier follows.
fn no_barrier_after_wait(version: Version) -> Built {
    let kernel = Kernel::build("no_barrier_after_wait", &Target::default(), |k| {
        let (n, y) = (k.param::<u32>("n"), k.pointer::<f32>("y"));
        let out = k
            .tile::<f32>("out", 4, WORDS)
            .unswizzled()
            .declare()
            .whole();
        k.role("all").warps(4).body(|| {
            steps(n).each(|i| {
                out.store(warp_id(), lane_id(), 1.0); // BUG: the store may still read it
                fence_async();
                cta_sync();
                elect(|| {
                    bulk_store(out, y.address(i * (4 * WORDS)), 4 * BYTES);
                    bulk_commit();
                    bulk_wait_read(0);
                });
                if version.is_repaired() {
                    cta_sync();
                }
            });
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1).number(3).buffer(3 * 4 * BYTES),
    })
}

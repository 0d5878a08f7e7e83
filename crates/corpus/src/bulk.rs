//! R6: who waits for a bulk store is the thread that issued it.

use crate::bug::{Bug, Built, Executor, Form};
use crate::case::Case;
use crate::kit::{BYTES, WORDS};
use crate::mark::{Source, this_file};
use crate::trial::Trial;
use warpline_ir::build::*;
use warpline_ir::{FaultKind, Kernel, Target};

const SOURCE: Source = this_file!("bulk.rs");

pub(crate) const BUGS: &[Bug] = &[
    Bug {
        name: "fast-cu-kernel-12",
        reference: "pranjalssh/fast.cu, kernel 12",
        title: "all threads wait for bulk groups that one of them has issued",
        rule: "R6.bulk",
        executor: Executor::Faults(&[FaultKind::Race]),
        build: everybody_waits,
    },
    Bug {
        name: "transformer-engine-3417",
        reference: "NVIDIA/TransformerEngine#3417",
        title: "the leader waits for its store, and nobody waits for the leader",
        rule: "R6.bulk",
        executor: Executor::Faults(&[FaultKind::Race]),
        build: nobody_is_told,
    },
];

/// Groups belong to the thread that commits them: for every other thread there
/// is nothing to wait for, and it writes into a buffer that is being stored.
fn everybody_waits(form: Form) -> Built {
    let kernel = Kernel::build("everybody_waits", &Target::default(), |k| {
        let (n, y) = (k.param::<u32>("n"), k.pointer::<f32>("y"));
        let c = k.tile::<f32>("c", 4, WORDS).plain().declare().whole();
        k.role("math").warpgroups(1).body(|| {
            steps(n).each(|i| {
                match form {
                    Form::Broken => bulk_wait_read(0),
                    Form::Repaired => {
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
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).number(3).buffer(3 * 4 * BYTES),
    })
}

/// The wait is where it must be, but no barrier comes after it.
fn nobody_is_told(form: Form) -> Built {
    let kernel = Kernel::build("nobody_is_told", &Target::default(), |k| {
        let (n, y) = (k.param::<u32>("n"), k.pointer::<f32>("y"));
        let out = k.tile::<f32>("out", 4, WORDS).plain().declare().whole();
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
                if form.is_repaired() {
                    cta_sync();
                }
            });
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).number(3).buffer(3 * 4 * BYTES),
    })
}

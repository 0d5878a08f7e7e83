//! R1: the arrivals of a phase are as many as the barrier was told.

use crate::bug::{Bug, Built, Executor, Form};
use crate::case::Case;
use crate::kit::{BYTES, Ring};
use crate::mark::{Source, this_file};
use crate::trial::Trial;
use warpline_ir::build::*;
use warpline_ir::{FaultKind, Kernel, Target};

const SOURCE: Source = this_file!("arrivals.rs");

pub(crate) const BUGS: &[Bug] = &[
    Bug {
        name: "cutlass-2418",
        reference: "NVIDIA/cutlass#2418",
        title: "thread 0 of the CTA signals for the consumers, but belongs to the producer",
        rule: "R1.arrivals",
        executor: Executor::Faults(&[FaultKind::Deadlock]),
        build: signalling_thread,
    },
    Bug {
        name: "thunderkittens-115",
        reference: "HazyResearch/ThunderKittens#115",
        title: "a fourth consumer joins a kernel whose barriers count three",
        rule: "R1.arrivals",
        executor: Executor::Faults(&[FaultKind::Race, FaultKind::Deadlock, FaultKind::Barrier]),
        build: fourth_consumer,
    },
];

/// A pipeline class for kernels without roles: whoever releases a slot, thread
/// 0 of the CTA arrives. In a kernel with roles it is the producer's, and no
/// slot is ever given back.
fn signalling_thread(form: Form) -> Built {
    let kernel = Kernel::build("signalling_thread", &Target::default(), |k| {
        let (n, x) = (k.param::<u32>("n"), k.pointer::<f32>("x"));
        let ring = Ring::new(k, "ring", 2, 1);
        k.role("load").body(|| {
            elect(|| {
                let at = ring.fills();
                steps(n).each(|i| {
                    ring.empty.at(at.stage()).wait(at.parity()); // BUG: nobody gives slots back
                    ring.bring(at.stage(), x, i);
                    at.advance();
                });
            });
        });
        k.role("math").body(|| {
            let at = ring.reads();
            steps(n).each(|_| {
                let empty = ring.empty.at(at.stage());
                ring.full.at(at.stage()).wait(at.parity());
                ring.look(at.stage());
                fence_async();
                warp_sync();
                let signals = form.pick(thread_id(), lane_id()).eq(0u32);
                if_(signals, || empty.arrive());
                at.advance();
            });
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).number(5).buffer(5 * BYTES),
    })
}

/// The report says that the kernel hangs with four consumers in place of
/// three, and no more; that the barriers still count three is what rule R1
/// would find in it.
fn fourth_consumer(form: Form) -> Built {
    let kernel = Kernel::build("fourth_consumer", &Target::default(), |k| {
        let (n, x) = (k.param::<u32>("n"), k.pointer::<f32>("x"));
        let ring = Ring::new(k, "ring", 2, form.pick(3, 4));
        k.role("load").body(|| {
            let at = ring.fills();
            elect(|| steps(n).each(|i| ring.fill(at, x, i)));
        });
        for consumer in ["math0", "math1", "math2", "math3"] {
            k.role(consumer).body(|| {
                let at = ring.reads();
                steps(n).each(|_| {
                    ring.full.at(at.stage()).wait(at.parity());
                    ring.look(at.stage());
                    fence_async();
                    warp_sync();
                    elect_lane(|| ring.empty.at(at.stage()).arrive()); // BUG: one too many
                    at.advance();
                });
            });
        }
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).number(5).buffer(5 * BYTES),
    })
}

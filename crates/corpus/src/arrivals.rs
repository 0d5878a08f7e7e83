//! R1: a phase receives as many arrivals as its mbarrier counts.

use crate::bug::{Bug, Built, ExpectedRun, Version};
use crate::case::CorpusCase;
use crate::mark::{Source, this_file};
use crate::ring::{BYTES, Ring};
use crate::template::LaunchTemplate;
use warpline_ir::builder::*;
use warpline_ir::{FaultKind, Kernel, Target};

const SOURCE: Source = this_file!("arrivals.rs");

pub(crate) const BUGS: &[Bug] = &[
    Bug {
        name: "cutlass-2418",
        reference: "NVIDIA/cutlass#2418",
        title: "thread 0 of the CTA arrives for the consumers, but belongs to the producer",
        rule: "R1.arrivals",
        executor: ExpectedRun::Faults(&[FaultKind::Deadlock]),
        build: arrival_of_producer_thread,
    },
    Bug {
        name: "thunderkittens-115",
        reference: "HazyResearch/ThunderKittens#115",
        title: "a fourth consumer is added, but the mbarriers count three arrivals",
        rule: "R1.arrivals",
        executor: ExpectedRun::Faults(&[FaultKind::Race, FaultKind::Deadlock, FaultKind::Barrier]),
        build: fourth_consumer,
    },
];

/// A pipeline class for kernels without roles lets thread 0 of the CTA arrive for every release. In a
/// kernel with roles that thread belongs to the producer, and no slot is ever released.
fn arrival_of_producer_thread(version: Version) -> Built {
    let kernel = Kernel::build("arrival_of_producer_thread", &Target::default(), |k| {
        let (n, x) = (k.param::<u32>("n"), k.pointer::<f32>("x"));
        let ring = Ring::new(k, "ring", 2, 1);
        k.role("load").body(|| {
            elect(|| {
                let cursor = ring.producer_cursor();
                steps(n).each(|i| {
                    ring.empty.at(cursor.stage()).wait(cursor.parity()); // BUG: no thread releases slots
                    ring.load_slot(cursor.stage(), x, i);
                    cursor.advance();
                });
            });
        });
        k.role("math").body(|| {
            let cursor = ring.consumer_cursor();
            steps(n).each(|_| {
                let empty = ring.empty.at(cursor.stage());
                ring.full.at(cursor.stage()).wait(cursor.parity());
                ring.read_slot(cursor.stage());
                fence_async();
                warp_sync();
                let signals = version.pick(thread_id(), lane_id()).eq(0u32);
                if_(signals, || empty.arrive());
                cursor.advance();
            });
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1).number(5).buffer(5 * BYTES),
    })
}

/// The report only says that the kernel hangs with four consumers instead of three. The mbarriers
/// that still count three are a reconstruction after rule R1.
fn fourth_consumer(version: Version) -> Built {
    let kernel = Kernel::build("fourth_consumer", &Target::default(), |k| {
        let (n, x) = (k.param::<u32>("n"), k.pointer::<f32>("x"));
        let ring = Ring::new(k, "ring", 2, version.pick(3, 4));
        k.role("load").body(|| {
            let cursor = ring.producer_cursor();
            elect(|| steps(n).each(|i| ring.fill(cursor, x, i)));
        });
        for consumer in ["math0", "math1", "math2", "math3"] {
            k.role(consumer).body(|| {
                let cursor = ring.consumer_cursor();
                steps(n).each(|_| {
                    ring.full.at(cursor.stage()).wait(cursor.parity());
                    ring.read_slot(cursor.stage());
                    fence_async();
                    warp_sync();
                    elect_lane(|| ring.empty.at(cursor.stage()).arrive()); // BUG: one too many
                    cursor.advance();
                });
            });
        }
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1).number(5).buffer(5 * BYTES),
    })
}

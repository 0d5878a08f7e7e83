//! R2: a phase expects exactly the bytes that its copies deliver.

use crate::bug::{Bug, Built, ExpectedRun, Version};
use crate::case::CorpusCase;
use crate::mark::{Source, this_file};
use crate::ring::{BYTES, Ring, WORDS};
use crate::template::LaunchTemplate;
use warpline_ir::builder::*;
use warpline_ir::{FaultKind, Kernel, Operand, Target};

const SOURCE: Source = this_file!("bytes.rs");

pub(crate) const BUGS: &[Bug] = &[
    Bug {
        name: "mirage-705",
        reference: "mirage-project/mirage#705",
        title: "a copy delivers the whole box, but the mbarrier expects the bytes of a smaller batch",
        rule: "R2.bytes",
        executor: ExpectedRun::Faults(&[FaultKind::Deadlock, FaultKind::Race]),
        build: box_exceeds_expected_bytes,
    },
    Bug {
        name: "deepgemm-415",
        reference: "deepseek-ai/DeepGEMM#415",
        title: "the two CTAs of a cluster disagree on whether B is multicast",
        rule: "R2.bytes",
        executor: ExpectedRun::Faults(&[FaultKind::Deadlock]),
        build: one_sided_multicast,
    },
];

/// The kernel expects the bytes of a tile that is clipped to the batch, but the tensor map of one kind of
/// task has the whole box. The extra bytes keep the phase from completing.
fn box_exceeds_expected_bytes(version: Version) -> Built {
    let kernel = Kernel::build("box_exceeds_expected_bytes", &Target::default(), |k| {
        let (n, x) = (k.param::<u32>("n"), k.pointer::<f32>("x"));
        let ring = Ring::new(k, "ring", 2, 1);
        k.role("load").body(|| {
            let cursor = ring.producer_cursor();
            elect(|| {
                steps(n).each(|i| {
                    let (slot, full) = (
                        ring.slots.stage(cursor.stage()),
                        ring.full.at(cursor.stage()),
                    );
                    ring.empty.at(cursor.stage()).wait(cursor.parity());
                    bulk_load(slot, x.address(i * WORDS), BYTES, full);
                    full.arrive_expect(version.pick(BYTES / 2, BYTES)); // BUG: half of the bytes that arrive
                    cursor.advance();
                });
            });
        });
        k.role("math").body(|| {
            let cursor = ring.consumer_cursor();
            steps(n).each(|_| ring.read(cursor));
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1).number(5).buffer(5 * BYTES),
    })
}

/// A cluster of two CTAs spans two groups of tiles. Rank 0 assumes that multicast is off and loads B
/// only for itself. Rank 1 assumes that it is on and waits for the bytes.
fn one_sided_multicast(version: Version) -> Built {
    let kernel = Kernel::build("one_sided_multicast", &Target::default(), |k| {
        k.cluster(2, 1, 1);
        let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
        let [a, b] = ["a", "b"].map(|name| k.tile::<f32>(name, 1, WORDS).unswizzled().declare());
        let full = k.barrier("full", 1).arrivals(1).at(0u32);
        k.role("load").body(|| {
            elect(|| {
                let cta_mask = version.pick(None, Some(Operand::imm(0b11u16)));
                bulk_load(a.whole(), x.address(cluster_rank() * WORDS), BYTES, full);
                if_(cluster_rank().eq(0u32), || {
                    bulk_load_with(b.whole(), y.address(0u32), BYTES, full, cta_mask, None);
                });
                full.arrive_expect(2 * BYTES); // BUG: rank 1 receives only A
            });
        });
        k.role("math").body(|| {
            full.wait(0u32);
            a.whole().load(0u32, lane_id());
            b.whole().load(0u32, lane_id());
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(2).buffer(2 * BYTES).buffer(BYTES),
    })
}

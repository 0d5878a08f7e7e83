//! R12: aliased tiles are not in use at the same time.

use crate::bug::{Bug, Built, ExpectedRun, Version};
use crate::case::CorpusCase;
use crate::mark::{Source, this_file};
use crate::ring::{BYTES, Ring, WORDS};
use crate::template::LaunchTemplate;
use warpline_ir::builder::*;
use warpline_ir::{FaultKind, Kernel, Target};

const SOURCE: Source = this_file!("aliases.rs");

pub(crate) const BUGS: &[Bug] = &[Bug {
    name: "flash-attention-2754",
    reference: "Dao-AILab/flash-attention#2754",
    title: "the output is staged in the bytes of Q after Q has been released",
    rule: "R12.alias",
    executor: ExpectedRun::Faults(&[FaultKind::Race, FaultKind::MissingProxyFence]),
    build: output_aliases_query,
}];

/// The output is an alias of Q. In a persistent loop the producer loads the next Q into these bytes as
/// soon as the current Q is released. With one tile per CTA no load follows.
fn output_aliases_query(version: Version) -> Built {
    let kernel = Kernel::build("output_aliases_query", &Target::default(), |k| {
        let tiles = k.param::<u32>("tiles");
        let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
        let ring = Ring::new(k, "q", 1, 1);
        let o = k.tile::<f32>("o", 1, WORDS).unswizzled().alias(ring.slots);
        let o = o.declare().whole();
        k.role("load").body(|| {
            let cursor = ring.producer_cursor();
            elect(|| steps(tiles).each(|i| ring.fill(cursor, x, i)));
        });
        k.role("math").body(|| {
            let cursor = ring.consumer_cursor();
            let q = ring.slots.stage(0u32);
            steps(tiles).each(|i| {
                let release_slot = || ring.empty.at(0u32).arrive();
                ring.full.at(0u32).wait(cursor.parity());
                let value = q.load(0u32, lane_id());
                fence_async();
                warp_sync();
                if !version.is_repaired() {
                    elect(release_slot);
                }
                o.store(0u32, lane_id(), value); // BUG: the next Q may be there
                fence_async();
                warp_sync();
                elect(|| {
                    bulk_store(o, y.address(i * WORDS), BYTES);
                    bulk_commit();
                    bulk_wait_read(0);
                    if version.is_repaired() {
                        release_slot();
                    }
                });
                warp_sync();
                cursor.advance();
            });
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1)
            .number(3)
            .buffer(3 * BYTES)
            .buffer(3 * BYTES),
    })
}

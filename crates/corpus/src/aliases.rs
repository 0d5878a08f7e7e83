//! R12: tiles that share bytes are in use one after the other.

use crate::bug::{Bug, Built, Executor, Form};
use crate::case::Case;
use crate::kit::{BYTES, Ring, WORDS};
use crate::mark::{Source, this_file};
use crate::trial::Trial;
use warpline_ir::build::*;
use warpline_ir::{FaultKind, Kernel, Target};

const SOURCE: Source = this_file!("aliases.rs");

pub(crate) const BUGS: &[Bug] = &[Bug {
    name: "flash-attention-2754",
    reference: "Dao-AILab/flash-attention#2754",
    title: "the output is staged in the bytes of Q, which has been given back",
    rule: "R12.alias",
    executor: Executor::Faults(&[FaultKind::Race, FaultKind::MissingProxyFence]),
    build: output_over_query,
}];

/// With one tile per CTA nothing follows. In a persistent loop the next Q
/// comes as soon as this one is given back, and meets the output there.
fn output_over_query(form: Form) -> Built {
    let kernel = Kernel::build("output_over_query", &Target::default(), |k| {
        let tiles = k.param::<u32>("tiles");
        let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
        let ring = Ring::new(k, "q", 1, 1);
        let o = k.tile::<f32>("o", 1, WORDS).plain().alias(ring.slots);
        let o = o.declare().whole();
        k.role("load").body(|| {
            let at = ring.fills();
            elect(|| steps(tiles).each(|i| ring.fill(at, x, i)));
        });
        k.role("math").body(|| {
            let at = ring.reads();
            let q = ring.slots.stage(0u32);
            steps(tiles).each(|i| {
                let give_back = || ring.empty.at(0u32).arrive();
                ring.full.at(0u32).wait(at.parity());
                let value = q.load(0u32, lane_id());
                fence_async();
                warp_sync();
                if !form.is_repaired() {
                    elect(give_back);
                }
                o.store(0u32, lane_id(), value); // BUG: the next Q may be there
                fence_async();
                warp_sync();
                elect(|| {
                    bulk_store(o, y.address(i * WORDS), BYTES);
                    bulk_commit();
                    bulk_wait_read(0);
                    if form.is_repaired() {
                        give_back();
                    }
                });
                warp_sync();
                at.advance();
            });
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).number(3).buffer(3 * BYTES).buffer(3 * BYTES),
    })
}

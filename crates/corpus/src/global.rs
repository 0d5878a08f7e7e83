//! R18: global memory between threads and engines.

use crate::bug::{Bug, Built, Executor, Form};
use crate::case::Case;
use crate::kit::{BYTES, WORDS};
use crate::mark::{Source, this_file};
use crate::trial::Trial;
use warpline_ir::Kernel;
use warpline_ir::build::*;

const SOURCE: Source = this_file!("global.rs");

pub(crate) const BUGS: &[Bug] = &[Bug {
    name: "deepep-632",
    reference: "deepseek-ai/DeepEP#632",
    title: "TMA reads global memory that threads have written, without a proxy fence",
    rule: "R18.proxy",
    executor: Executor::Blind("proxy fences of global memory are not looked for"),
    build: stale_copy,
}];

/// What the threads wrote and met over is there for other threads, not yet for
/// the engine that copies it.
fn stale_copy(form: Form) -> Built {
    let kernel = Kernel::build("stale_copy", |k| {
        let x = k.pointer::<f32>("x");
        let slot = k.tile::<f32>("slot", 1, WORDS).plain().declare().whole();
        let full = k.barrier("full", 1).count(1).at(0u32);
        k.role("all").body(|| {
            x.store(lane_id(), 1.0);
            if form.is_repaired() {
                fence_async_global();
            }
            cta_sync();
            elect(|| {
                bulk_load(slot, x.address(0u32), BYTES, full); // BUG: may bring what was there
                full.arrive_expect(BYTES);
            });
            full.wait(0u32);
            slot.load(0u32, lane_id());
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).buffer(BYTES),
    })
}

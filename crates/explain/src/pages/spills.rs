//! If the live values of a thread do not fit into its registers, ptxas stores some of them to local
//! memory and loads them again (spills). Local memory is cached global memory, so spills inside a
//! loop cost bandwidth and latency. The SM has 65,536 registers: a CTA of 1024 threads has 64 for
//! each thread. The lint reads the number of spilled bytes from ptxas and is skipped without it.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
    k.role("all").warps(32).body(|| {
        // 64 registers for each thread
        let at = |i: u32| cta_id() * (96 * 1024) + thread_id() + i * 1024;
        let values: Vec<_> = (0..96).map(|i| x.load(at(i))).collect(); // 96 live values
        cta_sync();
        for (i, value) in (0..96).zip(values) {
            y.store(at(i), value);
        }
    });
}

pub(super) fn repaired(k: Builder) {
    let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
    k.role("all").warps(32).body(|| {
        let at = |i: u32| cta_id() * (96 * 1024) + thread_id() + i * 1024;
        for i in 0..96 {
            y.store(at(i), x.load(at(i))); // one live value
        }
    });
}

//! `y = 2 x`: every thread doubles elements.

use super::Config;
use warpline_ir::builder::*;

pub(super) fn double(k: Builder, config: &Config) {
    let n = k.param::<u32>("n").at_most(1 << 30);
    let [x, y] = ["x", "y"].map(|name| k.pointer::<f32>(name).elements(n));
    let threads = config.warps * 32;
    k.role("all").warps(config.warps).body(|| {
        let first = cta_id() * threads + thread_in_role();
        range(first, n)
            .step_by(grid_ctas() * threads)
            .each(|i| y.store(i, x.load(i) * 2.0f32));
    });
}

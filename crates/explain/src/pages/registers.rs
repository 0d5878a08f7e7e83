//! A role has a register budget: its share of the register file, or the value of `setmaxnreg`. Near
//! the budget, one more live value or another version of ptxas leads to spills, which move
//! registers to local memory and back. The lint takes the register count from ptxas, or estimates
//! it. A CTA of 1024 threads has 64 registers for each thread.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (n, x, y) = (
        k.param::<u32>("n"),
        k.pointer::<f32>("x"),
        k.pointer::<f32>("y"),
    );
    k.role("all").warps(32).body(|| {
        // 54 of 64 registers hold a sum in all iterations.
        let sums: [_; 54] = std::array::from_fn(|i| (i as f32).reg());
        let sums = steps(n).fold(sums, |i, sums| {
            let value = x.load(i);
            sums.map(|sum| sum * value + value)
        });
        let total = sums.into_iter().reduce(|a, b| a * b);
        y.store(cta_id() * 1024 + thread_id(), total.unwrap_or(0.0f32.reg()));
    });
}

pub(super) fn repaired(k: Builder) {
    let (n, x, y) = (
        k.param::<u32>("n"),
        k.pointer::<f32>("x"),
        k.pointer::<f32>("y"),
    );
    k.role("all").warps(32).body(|| {
        let sums: [_; 16] = std::array::from_fn(|i| (i as f32).reg());
        let sums = steps(n).fold(sums, |i, sums| {
            let value = x.load(i);
            sums.map(|sum| sum * value + value)
        });
        let total = sums.into_iter().reduce(|a, b| a * b);
        y.store(cta_id() * 1024 + thread_id(), total.unwrap_or(0.0f32.reg()));
    });
}

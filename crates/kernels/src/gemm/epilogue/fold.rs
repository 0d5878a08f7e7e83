//! The kernels that add up partial results of a reduction.

use crate::gemm::problem::MOST;
use warpline_family::error::FamilyError;
use warpline_family::plan::{Address, Buffer, Step};
use warpline_family::program::Program;
use warpline_ir::build::*;
use warpline_ir::{BuildErrors, Kernel, Target};

/// Threads of a CTA.
const THREADS: u32 = 128;

/// The step that adds up `count` rows of `len` numbers, column by column.
pub(super) fn columns(
    [count, len]: [u32; 2],
    from: Address,
    out: Buffer,
    target: &Target,
) -> Result<Step, FamilyError> {
    let kernel = Program::once("gemm fold columns".into(), target, columns_kernel)?;
    let step = Step::new(kernel, [len.div_ceil(THREADS), 1, 1])
        .scalar("count", count)
        .scalar("len", len)
        .pointer("from", from)
        .pointer("out", out);
    Ok(step)
}

/// A thread for each column.
fn columns_kernel(target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("gemm_fold_columns", target, |k| {
        let count = k.param::<u32>("count");
        let len = k.param::<u32>("len").at_least(1).at_most(MOST);
        let from = k.pointer::<f32>("from").elements(extent(count) * len);
        let out = k.pointer::<f32>("out").elements(len);
        k.role("all").warps(THREADS / 32).body(|| {
            let col = cta_id() * THREADS + thread_id();
            if_(col.lt(len), || {
                let sum = steps(count).fold(0.0f32.reg(), |i, sum| {
                    sum + from.load(i.mul_wide(len) + col.cast::<u64>())
                });
                out.store(col, sum);
            });
        });
    })
}

/// The step that finds the greatest of `count` numbers of 32 bits.
pub(super) fn all(
    count: u32,
    from: Address,
    out: Buffer,
    target: &Target,
) -> Result<Step, FamilyError> {
    let kernel = Program::once("gemm fold all".into(), target, all_kernel)?;
    let step = Step::new(kernel, [1, 1, 1])
        .scalar("count", count)
        .pointer("from", from)
        .pointer("out", out);
    Ok(step)
}

/// One warp.
fn all_kernel(target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("gemm_fold_all", target, |k| {
        let count = k.param::<u32>("count");
        let from = k.pointer::<u32>("from").elements(count);
        let out = k.pointer::<u32>("out").elements(1u32);
        k.role("all").body(|| {
            let most = range(lane_id(), count)
                .by(32u32)
                .fold(0u32.reg(), |i, most| most.max(from.load(i)));
            let most = redux_max(most);
            elect(|| out.store(0u32, most));
        });
    })
}

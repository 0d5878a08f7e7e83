//! The kernels that combine the partial results of a reduction.

use crate::gemm::problem::MAX_EXTENT;
use warpline_family::error::FamilyError;
use warpline_family::plan::{Address, Buffer, LaunchStep};
use warpline_family::program::Program;
use warpline_ir::builder::*;
use warpline_ir::{BuildErrors, Kernel, Target};

/// Threads of a CTA.
const THREADS: u32 = 128;

/// Returns the launch that sums `count` rows of `len` numbers, column by column.
pub(super) fn sum_columns(
    [count, len]: [u32; 2],
    from: Address,
    out: Buffer,
    target: &Target,
) -> Result<LaunchStep, FamilyError> {
    let kernel = Program::cached("gemm fold columns".into(), target, sum_columns_kernel)?;
    let step = LaunchStep::new(kernel, [len.div_ceil(THREADS), 1, 1])
        .scalar("count", count)
        .scalar("len", len)
        .pointer("from", from)
        .pointer("out", out);
    Ok(step)
}

/// Builds the column-sum kernel: one thread per column.
fn sum_columns_kernel(target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("gemm_fold_columns", target, |k| {
        let count = k.param::<u32>("count");
        let len = k.param::<u32>("len").at_least(1).at_most(MAX_EXTENT);
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

/// Returns the launch that computes the maximum of `count` unsigned 32-bit numbers.
pub(super) fn max(
    count: u32,
    from: Address,
    out: Buffer,
    target: &Target,
) -> Result<LaunchStep, FamilyError> {
    let kernel = Program::cached("gemm fold all".into(), target, max_kernel)?;
    let step = LaunchStep::new(kernel, [1, 1, 1])
        .scalar("count", count)
        .pointer("from", from)
        .pointer("out", out);
    Ok(step)
}

/// Builds the maximum kernel: one warp.
fn max_kernel(target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("gemm_fold_all", target, |k| {
        let count = k.param::<u32>("count");
        let from = k.pointer::<u32>("from").elements(count);
        let out = k.pointer::<u32>("out").elements(1u32);
        k.role("all").body(|| {
            let max = range(lane_id(), count)
                .step_by(32u32)
                .fold(0u32.reg(), |i, max| max.max(from.load(i)));
            let max = redux_max(max);
            elect(|| out.store(0u32, max));
        });
    })
}

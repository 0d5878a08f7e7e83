//! TMA reductions into a tensor.

use super::unswizzled_map;
use crate::ops::{kernel, values};
use crate::trial::OpTrial;
use half::{bf16, f16};
use warpline_ir::builder::*;
use warpline_ir::ops::bulk::Reduction;
use warpline_ir::{Element, Scalar};

/// The elements of a row.
const ROW: u32 = 64;

pub(crate) fn trials() -> Vec<OpTrial> {
    let all = reductions::<u32>()
        .chain(reductions::<i32>())
        .chain(reductions::<u64>());
    let all = all.chain(reductions::<i64>()).chain(reductions::<f32>());
    all.chain(reductions::<f16>())
        .chain(reductions::<bf16>())
        .collect()
}

/// Returns one trial for each TMA reduction of a type.
fn reductions<T: Element>() -> impl Iterator<Item = OpTrial> {
    let is_legal = |op: &Reduction| op.legal_in_tensor(T::DTYPE).is_ok();
    let ops = Reduction::ALL.into_iter().filter(is_legal);
    ops.map(reduction::<T>)
}

/// Reduces into a row of a tensor, and into half of a row.
fn reduction<T: Element>(op: Reduction) -> OpTrial {
    let (ty, dtype, how) = (T::Reg::TYPE, T::DTYPE, op.name());
    let decl = unswizzled_map(dtype, [ROW, 1]);
    let bytes = ROW * dtype.bytes() as u32;
    let kernel = kernel(&format!("tensor_{how}_{dtype}"), |k| {
        let (x, map) = (k.pointer::<T>("x"), k.tensor_map("to", decl.clone()));
        let t = k.tile::<T>("t", 1, ROW).unswizzled().declare();
        let full = k.barrier("full", 1).arrivals(1);
        k.role("all").warps(1).body(|| {
            elect(|| {
                full.at(0).arrive_expect(bytes);
                bulk_load(t.whole(), x.address(0u32), bytes, full.at(0));
                full.at(0).wait(0);
                map.reduce(op, t.whole(), [0, 0]);
                map.reduce(op, t.whole(), [ROW / 2, 1]);
                bulk_commit();
                bulk_wait(0);
            });
        });
    });
    let n = ROW as usize;
    OpTrial::new(
        format!("tensor_store, {how}, {dtype}"),
        &["tensor_store"],
        kernel,
    )
    .input(&values(ty, n, 83))
    .in_out_map("tensor", ty, &[u64::from(ROW), 2], &values(ty, 2 * n, 84))
}

//! `st.async` and `red.async` to a peer.

use crate::trial::OpTrial;
use half::bf16;
use warpline_ir::builder::*;
use warpline_ir::ops::bulk::Reduction;
use warpline_ir::{Element, Scalar, Type};

pub(crate) fn trials() -> Vec<OpTrial> {
    vec![
        stores(),
        reductions::<u32>(&Reduction::ALL),
        reductions::<i32>(&[
            Reduction::Add,
            Reduction::Min,
            Reduction::Max,
            Reduction::And,
            Reduction::Or,
            Reduction::Xor,
        ]),
        reductions::<u64>(&[Reduction::Add]),
    ]
}

/// Stores of every element type, one, two or four at a time.
fn stores() -> OpTrial {
    let kernel = super::kernel("store_async", |k| {
        k.cluster(2, 1, 1);
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 32, 16).unswizzled().declare();
        let full = k.barrier("full", 1).arrivals(1);
        k.role("all").warps(1).body(|| {
            let (rank, lane) = (cluster_rank(), lane_id());
            elect(|| full.at(0).arrive_expect(32u32 * 60));
            cluster_sync();
            let (to, bar) = (t.whole().peer(rank ^ 1), full.at(0).peer(rank ^ 1));
            let at = |col: u32| (rank * 32 + lane) * 16 + col;
            store_async::<_, u32, 4>(to, lane, 0u32, x.load_as::<u32, 4>(at(0)), bar);
            store_async::<_, u64, 2>(to, lane, 4u32, x.load_as::<u64, 2>(at(4)), bar);
            store_async::<_, u64, 1>(to, lane, 8u32, x.load_as::<u64, 1>(at(8)), bar);
            store_async::<_, f32, 2>(to, lane, 10u32, x.load_as::<f32, 2>(at(10)), bar);
            store_async::<_, i32, 1>(to, lane, 12u32, x.load_as::<i32, 1>(at(12)), bar);
            let pair = x.load_as::<warpline_ir::Bf16x2, 1>(at(13));
            store_async::<_, warpline_ir::Bf16x2, 1>(to, lane, 13u32, pair, bar);
            let one = bf16::ONE.to_bits();
            let pair_of_ones = u32::from(one) << 16 | u32::from(one);
            store_async::<_, u32, 1>(to, lane, 14u32, [pair_of_ones], bar);
            full.at(0).wait_cluster(0);
            for col in 0..15u32 {
                out.store(at(col), t.whole().load(lane ^ 1, col));
            }
        });
    });
    OpTrial::new("store_async", &["store_async"], kernel)
        .input(&super::words(1024, 60))
        .output("words", Type::U32, 1024)
}

/// Every reduction of a type, on one word per lane.
fn reductions<T: Element>(ops: &[Reduction]) -> OpTrial {
    let ty = T::Reg::TYPE;
    let n = ops.len() as u32;
    let kernel = super::kernel(&format!("reduce_async_{ty}"), |k| {
        k.cluster(2, 1, 1);
        let (x, out) = (k.pointer::<T>("x"), k.pointer::<T>("out"));
        let t = k.tile::<T>("t", n, 32).unswizzled().declare();
        let full = k.barrier("full", 1).arrivals(1);
        k.role("all").warps(1).body(|| {
            let (rank, lane) = (cluster_rank(), lane_id());
            let at = |row: u32| (rank * (2 * n) + row) * 32 + lane;
            for row in 0..n {
                t.whole().store(row, lane, x.load(at(n + row)));
            }
            elect(|| full.at(0).arrive_expect(n * 32 * T::DTYPE.bytes() as u32));
            cluster_sync();
            let (to, bar) = (t.whole().peer(rank ^ 1), full.at(0).peer(rank ^ 1));
            for (row, &op) in (0u32..).zip(ops) {
                reduce_async(op, to, row, lane, x.load(at(row)), bar);
            }
            full.at(0).wait_cluster(0);
            for row in 0..n {
                out.store((rank * n + row) * 32 + lane, t.whole().load(row, lane));
            }
        });
    });
    let n = n as usize * 32;
    OpTrial::new(format!("reduce_async, {ty}"), &["reduce_async"], kernel)
        .input(&super::values(ty, 4 * n, 61))
        .output("words", ty, 2 * n)
}

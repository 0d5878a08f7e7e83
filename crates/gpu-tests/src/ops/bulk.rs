//! Bulk copies: to and from shared memory, to peers, and bulk reductions.

use crate::trial::OpTrial;
use half::{bf16, f16};
use warpline_ir::builder::*;
use warpline_ir::ops::bulk::Reduction;
use warpline_ir::ops::policy::{CacheHint, EvictionPriority};
use warpline_ir::{DType, Element, Operand, Scalar, Type};

pub(crate) fn trials() -> Vec<OpTrial> {
    vec![
        sizes_and_hints(),
        multicast(),
        reductions::<u32>(),
        reductions::<i32>(),
        reductions::<u64>(),
        reductions::<i64>(),
        reductions::<f32>(),
        reductions::<f16>(),
        reductions::<bf16>(),
        copies_to_peer::<u32>(),
        copies_to_peer::<i32>(),
        copies_to_peer::<u64>(),
        copies_to_peer::<i64>(),
    ]
}

/// Copies of 16 to 4096 bytes in and out, with every cache hint.
fn sizes_and_hints() -> OpTrial {
    const SIZES: [u32; 5] = [16, 48, 128, 1024, 4096];
    let kernel = super::kernel("bulk_sizes", |k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 1, 1024).unswizzled().stages(5).declare();
        let full = k.barrier("full", 5).arrivals(1);
        k.role("all").warps(1).body(|| {
            elect(|| {
                let hints = [
                    None,
                    Some(CacheHint::EvictNormal),
                    Some(CacheHint::EvictFirst),
                    Some(CacheHint::EvictLast),
                    Some(cache_policy(EvictionPriority::First, 0.5f32)),
                ];
                for ((i, bytes), hint) in (0u32..).zip(SIZES).zip(hints) {
                    let (bar, tile) = (full.at(i), t.stage(i));
                    let from = x.address(i * 1024 + 4);
                    bulk_prefetch(from, bytes, hint);
                    bar.arrive_expect(bytes);
                    bulk_load_with(tile, from, bytes, bar, None, hint);
                    bar.wait(0);
                    bulk_store_with(tile, out.address(i * 1024 + 8), bytes, hint);
                    bulk_commit();
                }
                bulk_wait_read(0);
                bulk_wait(0);
            });
        });
    });
    OpTrial::new(
        "bulk copies",
        &[
            "bulk_load",
            "bulk_store",
            "bulk_prefetch",
            "bulk_commit",
            "bulk_wait",
        ],
        kernel,
    )
    .input(&super::words(5 * 1024 + 16, 50))
    .output("runs", Type::U32, 5 * 1024 + 16)
}

/// Each CTA of a cluster of four multicasts a row to all CTAs, and one to two CTAs.
fn multicast() -> OpTrial {
    let kernel = super::kernel("multicast", |k| {
        k.cluster(4, 1, 1);
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 8, 32).unswizzled().declare();
        let full = k.barrier("full", 1).arrivals(1);
        k.role("all").warps(1).body(|| {
            let rank = cluster_rank();
            elect(|| full.at(0).arrive_expect(128u32 * 6));
            elect(|| {
                for from in 0..4u32 {
                    if_(rank.eq(from), || {
                        // To all CTAs, and to this CTA and its neighbor.
                        let row = |i: u32| t.whole().slice(i..i + 1, 0..32);
                        let source = x.address(from * 64);
                        let all_mask = Some(Operand::Imm(0xf));
                        bulk_load_with(row(from), source, 128u32, full.at(0), all_mask, None);
                        let pair_mask = Some(Operand::Imm(1 << from | 1 << (from ^ 1)));
                        let source = x.address(from * 64 + 32);
                        bulk_load_with(row(4 + from), source, 128u32, full.at(0), pair_mask, None);
                    });
                }
            });
            full.at(0).wait_cluster(0);
            let pair = (rank & 2) + 4;
            for row in 0..4u32 {
                out.store(
                    (rank * 6 + row) * 32 + lane_id(),
                    t.whole().load(row, lane_id()),
                );
            }
            for row in 0..2u32 {
                let word = t.whole().load(pair + row, lane_id());
                out.store((rank * 6 + 4 + row) * 32 + lane_id(), word);
            }
        });
    });
    OpTrial::new("bulk_load, multicast", &["bulk_load"], kernel)
        .input(&super::words(256, 51))
        .output("rows", Type::U32, 4 * 6 * 32)
}

/// The elements of a row.
const ROW: u32 = 64;

/// Every bulk reduction to global memory of a type.
fn reductions<T: Element>() -> OpTrial {
    let (ty, dtype) = (T::Reg::TYPE, T::DTYPE);
    let is_legal = |op: &Reduction| op.legal_in_global(dtype).is_ok();
    let ops: Vec<_> = Reduction::ALL.into_iter().filter(is_legal).collect();
    let n = ops.len() * ROW as usize;
    let kernel = super::kernel(&format!("combine_{dtype}"), |k| {
        let (x, out) = (k.pointer::<T>("x"), k.pointer::<T>("out"));
        let t = k.tile::<T>("t", 1, ROW).unswizzled().stages(8).declare();
        let full = k.barrier("full", 8).arrivals(1);
        let bytes = ROW * dtype.bytes() as u32;
        k.role("all").warps(1).body(|| {
            elect(|| {
                for (i, &op) in (0u32..).zip(&ops) {
                    full.at(i).arrive_expect(bytes);
                    bulk_load(t.stage(i), x.address(i * ROW), bytes, full.at(i));
                    full.at(i).wait(0);
                    bulk_reduce(op, t.stage(i), out.address(i * ROW), bytes);
                }
                bulk_commit();
                bulk_wait(0);
            });
        });
    });
    OpTrial::new(
        format!("bulk_store, combined, {dtype}"),
        &["bulk_store"],
        kernel,
    )
    .input(&super::values(ty, n, 52))
    .in_out("runs", ty, &super::values(ty, n, 53))
}

/// Rows copied to a peer, and every reduction to the shared memory of a peer.
fn copies_to_peer<T: Element>() -> OpTrial {
    let (ty, dtype) = (T::Reg::TYPE, T::DTYPE);
    let ops: Vec<Option<Reduction>> = std::iter::once(None)
        .chain(Reduction::ALL.map(Some))
        .filter(|op| op.is_none_or(|op| reduces_to_peer(op, dtype)))
        .collect();
    let n = ops.len() as u32;
    let bytes = ROW * dtype.bytes() as u32;
    let kernel = super::kernel(&format!("send_{dtype}"), |k| {
        k.cluster(2, 1, 1);
        let (x, out) = (k.pointer::<T>("x"), k.pointer::<T>("out"));
        let [source, inbox] = ["source", "inbox"]
            .map(|name| k.tile::<T>(name, 1, ROW).unswizzled().stages(n).declare());
        let full = k.barrier("full", 1).arrivals(1);
        k.role("all").warps(1).body(|| {
            let (rank, lane) = (cluster_rank(), lane_id());
            for i in 0..n {
                for half in [0, 32] {
                    let at = rank * (2 * n * ROW) + lane + (i * ROW + half);
                    source.stage(i).store(0u32, lane + half, x.load(at));
                    inbox
                        .stage(i)
                        .store(0u32, lane + half, x.load(at + n * ROW));
                }
            }
            fence_async();
            elect(|| full.at(0).arrive_expect(bytes * n));
            cluster_sync();
            elect(|| {
                let peer = rank ^ 1;
                for (i, &op) in (0u32..).zip(&ops) {
                    let (to, bar) = (inbox.stage(i).peer(peer), full.at(0).peer(peer));
                    match op {
                        None => bulk_copy_to_peer(source.stage(i), to, bytes, bar),
                        Some(op) => bulk_reduce_to_peer(op, source.stage(i), to, bytes, bar),
                    }
                }
            });
            full.at(0).wait_cluster(0);
            for i in 0..n {
                for half in [0, 32] {
                    let at = rank * (n * ROW) + lane + (i * ROW + half);
                    out.store(at, inbox.stage(i).load(0u32, lane + half));
                }
            }
        });
    });
    let n = (n * ROW) as usize;
    OpTrial::new(format!("bulk_send, {dtype}"), &["bulk_send"], kernel)
        .input(&super::values(ty, 4 * n, 55))
        .output("rows", ty, 2 * n)
}

/// Returns whether a reduction to a peer supports this type.
fn reduces_to_peer(op: Reduction, dtype: DType) -> bool {
    match op {
        Reduction::Inc | Reduction::Dec => dtype == DType::U32,
        Reduction::Add => true,
        _ => dtype.bytes() == 4,
    }
}

//! The nine programs, each one change to the previous one.

use super::Config;
use super::gemm::{CONSUMERS, GlobalPointer, LadderGemm, TILE_K, TILE_M};
use half::bf16;
use warpline_ir::builder::*;

/// The two consumers that take tiles in turn.
const PING_PONG: [&str; 2] = ["consumer0", "consumer1"];
/// The rasterization of a persistent grid.
const RASTER: Rasterization = Rasterization::Grouped(8);

/// 1. Every thread copies its part of a stage; all synchronize, multiply and synchronize again.
pub(super) fn plain(k: Builder, c: Config) {
    let gemm = &LadderGemm::<GlobalPointer, GlobalPointer>::declare(k, c);
    let a = k.tile::<bf16>("a", TILE_M, TILE_K).declare().whole();
    let b = k.tile::<bf16>("b", c.tile_n, TILE_K).declare().whole();
    let tile = gemm.tiles(Rasterization::RowMajor).at(cta_id());
    for (consumer, top) in CONSUMERS {
        k.role(consumer).warpgroups(1).body(|| {
            let acc = Acc::new(64, c.tile_n);
            steps(gemm.k_tiles).each(|step| {
                gemm.copy_a(a, tile, step);
                gemm.copy_b(b, tile, step);
                copy_wait_all();
                fence_async(); // threads wrote through the generic proxy; wgmma reads through the async proxy
                cta_sync();
                acc.mma(&a.slice(top..top + 64, 0..TILE_K), &b);
                acc.wait();
                cta_sync();
            });
            gemm.store(&acc.into_frag(), tile, top);
        });
    }
}

/// 2. One thread issues the TMA loads of the stage; all wait for it.
pub(super) fn tma(k: Builder, c: Config) {
    let gemm = &LadderGemm::<TensorMap, GlobalPointer>::declare(k, c);
    let ab = gemm.ring(k).broadcast();
    let tile = gemm.tiles(Rasterization::RowMajor).at(cta_id());
    for (consumer, top) in CONSUMERS {
        k.role(consumer).warpgroups(1).body(|| {
            let acc = Acc::new(64, c.tile_n);
            steps(gemm.k_tiles).each(|step| {
                if top == 0 {
                    elect(|| gemm.load(ab, tile, step));
                }
                let slot = ab.wait();
                acc.mma(&slot.0.slice(top..top + 64, 0..TILE_K), &slot.1);
                acc.wait();
                slot.release();
            });
            gemm.store(&acc.into_frag(), tile, top);
        });
    }
}

/// 3. Several stages: one warpgroup loads A ahead, the other B, and both multiply.
pub(super) fn ring(k: Builder, c: Config) {
    let gemm = &LadderGemm::<TensorMap, GlobalPointer>::declare(k, c);
    let ab = gemm.ring(k).cooperative_producers().broadcast();
    let tile = gemm.tiles(Rasterization::RowMajor).at(cta_id());
    for (consumer, top) in CONSUMERS {
        k.role(consumer).warpgroups(1).body(|| {
            let acc = Acc::new(64, c.tile_n);
            let multiply = || {
                let slot = ab.wait();
                acc.mma(&slot.0.slice(top..top + 64, 0..TILE_K), &slot.1);
                slot.release_after(&acc);
            };
            let load = |step| {
                let slot = ab.acquire();
                match top {
                    0 => gemm.load_a(&slot, tile, step),
                    _ => gemm.load_b(&slot, tile, step),
                }
                slot.commit();
            };
            let ahead = Var::new(0u32); // stages loaded but not yet multiplied
            steps(gemm.k_tiles).each(|step| {
                let now = ahead.get();
                if_else(now.eq(c.stages - 1), multiply, || ahead.set(now + 1));
                elect(|| load(step));
            });
            steps(ahead.get()).each(|_| multiply());
            gemm.store(&acc.into_frag(), tile, top);
        });
    }
}

/// 4. A separate warp loads, and the consumers only multiply.
// [excerpt: roles]
pub(super) fn roles(k: Builder, c: Config) {
    let gemm = &LadderGemm::<TensorMap, GlobalPointer>::declare(k, c);
    let ab = gemm.ring(k).broadcast();
    let tile = gemm.tiles(Rasterization::RowMajor).at(cta_id());
    for (consumer, top) in CONSUMERS {
        k.role(consumer).warpgroups(1).body(|| {
            let acc = gemm.multiply(ab, top, 64);
            gemm.store(&acc.into_frag(), tile, top);
        });
    }
    let load = k.role("load").warps(1);
    load.body(|| elect(|| gemm.load_all(ab, tile)));
}
// [end of excerpt]

/// 5. The load role gives its registers to the consumers; only whole warpgroups can give and take.
pub(super) fn registers(k: Builder, c: Config) {
    let gemm = &LadderGemm::<TensorMap, GlobalPointer>::declare(k, c);
    let ab = gemm.ring(k).broadcast();
    let tile = gemm.tiles(Rasterization::RowMajor).at(cta_id());
    let load = k.role("load").warpgroups(1).registers(40);
    load.body(|| elect(|| gemm.load_all(ab, tile)));
    for (consumer, top) in CONSUMERS {
        k.role(consumer).warpgroups(1).registers(232).body(|| {
            let acc = gemm.multiply(ab, top, 64);
            gemm.store(&acc.into_frag(), tile, top);
        });
    }
}

/// 6. One CTA per SM computes tile after tile: the producer loads the next tile while the consumers
///    store this one.
pub(super) fn persistent(k: Builder, c: Config) {
    let gemm = &LadderGemm::<TensorMap, GlobalPointer>::declare(k, c);
    let ab = gemm.ring(k).broadcast();
    let tiles = gemm.tiles(RASTER);
    let load = k.role("load").warpgroups(1).registers(40);
    load.body(|| elect(|| tiles.each(|tile| gemm.load_all(ab, tile))));
    for (consumer, top) in CONSUMERS {
        k.role(consumer).warpgroups(1).registers(232).body(|| {
            tiles.each(|tile| {
                let acc = gemm.multiply(ab, top, 64);
                gemm.store(&acc.into_frag(), tile, top);
            });
        });
    }
}

/// 7. Each tile belongs to one warpgroup: while one multiplies, the other stores.
///
/// 8. The same with the tile width that fills the waves.
pub(super) fn ping_pong(k: Builder, c: Config) {
    let gemm = &LadderGemm::<TensorMap, GlobalPointer>::declare(k, c);
    let ab = gemm.ring(k).round_robin();
    let turn = k.turn("tensor cores", PING_PONG);
    let tiles = gemm.tiles(RASTER);
    let load = k.role("load").warpgroups(1).registers(40);
    load.body(|| elect(|| tiles.each(|tile| gemm.load_all(ab, tile))));
    for (i, consumer) in (0..).zip(PING_PONG) {
        k.role(consumer).warpgroups(1).registers(232).body(|| {
            let tiles = tiles.round_robin(i, 2, |_| ab.skip(gemm.k_tiles));
            tiles.each(|tile| {
                let acc = turn.hold(|| gemm.multiply(ab, 0, TILE_M));
                gemm.store(&acc.into_frag(), tile, 0);
            });
        });
    }
}

/// 9. TMA stores a tile from shared memory while the next tile begins.
pub(super) fn store(k: Builder, c: Config) {
    let gemm = &LadderGemm::<TensorMap, TensorMap>::declare(k, c);
    let ab = gemm.ring(k).round_robin();
    let turn = k.turn("tensor cores", PING_PONG);
    let tiles = gemm.tiles(RASTER);
    let load = k.role("load").warpgroups(1).registers(40);
    load.body(|| elect(|| tiles.each(|tile| gemm.load_all(ab, tile))));
    for (i, consumer) in (0..).zip(PING_PONG) {
        let outbox = k.outbox::<bf16>(consumer, 2, TILE_M, c.store_cols());
        k.role(consumer).warpgroups(1).registers(232).body(|| {
            let tiles = tiles.round_robin(i, 2, |_| ab.skip(gemm.k_tiles));
            tiles.each(|tile| {
                let acc = turn.hold(|| gemm.multiply(ab, 0, TILE_M));
                gemm.store_by_tma(&acc.into_frag(), outbox, tile);
            });
        });
    }
}

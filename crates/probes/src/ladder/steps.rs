//! The nine programs, each a change of the one before.

use super::Config;
use super::parts::{DEPTH, HALVES, Line, Pointer, ROWS};
use half::bf16;
use warpline_ir::build::*;

/// The two that take tiles in turn.
const TURNS: [&str; 2] = ["ping", "pong"];
/// Bands of the order in which a persistent grid walks the tiles.
const ORDER: Order = Order::Grouped(8);

/// 1. Every thread copies its share of a stage; all meet; all multiply; all meet.
pub(super) fn plain(k: Builder, c: Config) {
    let line = &Line::<Pointer, Pointer>::declare(k, c);
    let a = k.tile::<bf16>("a", ROWS, DEPTH).declare().whole();
    let b = k.tile::<bf16>("b", c.width, DEPTH).declare().whole();
    let tile = line.tiles(Order::RowMajor).at(cta_id());
    for (half, top) in HALVES {
        k.role(half).warpgroups(1).body(|| {
            let acc = Acc::new(64, c.width);
            steps(line.depth).each(|step| {
                line.copy_a(a, tile, step);
                line.copy_b(b, tile, step);
                copy_wait_all();
                fence_async(); // The tensor cores read what threads wrote.
                cta_sync();
                acc.mma(&a.slice(top..top + 64, 0..DEPTH), &b);
                acc.wait();
                cta_sync();
            });
            line.store(&acc.finish(), tile, top);
        });
    }
}

/// 2. One thread asks the TMA for the stage; all wait for it.
pub(super) fn tma(k: Builder, c: Config) {
    let line = &Line::<Map, Pointer>::declare(k, c);
    let ab = line.ring(k).shared();
    let tile = line.tiles(Order::RowMajor).at(cta_id());
    for (half, top) in HALVES {
        k.role(half).warpgroups(1).body(|| {
            let acc = Acc::new(64, c.width);
            steps(line.depth).each(|step| {
                if top == 0 {
                    elect(|| line.load(ab, tile, step));
                }
                let slot = ab.wait();
                acc.mma(&slot.0.slice(top..top + 64, 0..DEPTH), &slot.1);
                acc.wait();
                slot.release();
            });
            line.store(&acc.finish(), tile, top);
        });
    }
}

/// 3. Several stages: one warpgroup loads A ahead, one B, and both multiply.
pub(super) fn ring(k: Builder, c: Config) {
    let line = &Line::<Map, Pointer>::declare(k, c);
    let ab = line.ring(k).joint().shared();
    let tile = line.tiles(Order::RowMajor).at(cta_id());
    for (half, top) in HALVES {
        k.role(half).warpgroups(1).body(|| {
            let acc = Acc::new(64, c.width);
            let multiply = || {
                let slot = ab.wait();
                acc.mma(&slot.0.slice(top..top + 64, 0..DEPTH), &slot.1);
                slot.release_after(&acc);
            };
            let load = |step| {
                let slot = ab.acquire();
                match top {
                    0 => line.load_a(&slot, tile, step),
                    _ => line.load_b(&slot, tile, step),
                }
                slot.commit();
            };
            let ahead = Var::new(0u32); // stages loaded and not multiplied yet
            steps(line.depth).each(|step| {
                let now = ahead.get();
                if_else(now.eq(c.stages - 1), multiply, || ahead.set(now + 1));
                elect(|| load(step));
            });
            steps(ahead.get()).each(|_| multiply());
            line.store(&acc.finish(), tile, top);
        });
    }
}

/// 4. Who multiplies no longer loads: a warp of its own does.
// [picture: roles]
pub(super) fn roles(k: Builder, c: Config) {
    let line = &Line::<Map, Pointer>::declare(k, c);
    let ab = line.ring(k).shared();
    let tile = line.tiles(Order::RowMajor).at(cta_id());
    for (half, top) in HALVES {
        k.role(half).warpgroups(1).body(|| {
            let acc = line.multiply(ab, top, 64);
            line.store(&acc.finish(), tile, top);
        });
    }
    let load = k.role("load").warps(1);
    load.body(|| elect(|| line.load_all(ab, tile)));
}
// [end of picture]

/// 5. The loader's registers go to those who multiply: whole warpgroups give and take.
pub(super) fn registers(k: Builder, c: Config) {
    let line = &Line::<Map, Pointer>::declare(k, c);
    let ab = line.ring(k).shared();
    let tile = line.tiles(Order::RowMajor).at(cta_id());
    let load = k.role("load").warpgroups(1).registers(40);
    load.body(|| elect(|| line.load_all(ab, tile)));
    for (half, top) in HALVES {
        k.role(half).warpgroups(1).registers(232).body(|| {
            let acc = line.multiply(ab, top, 64);
            line.store(&acc.finish(), tile, top);
        });
    }
}

/// 6. A CTA for each SM walks the tiles: the next one is loaded while this one is stored.
pub(super) fn persistent(k: Builder, c: Config) {
    let line = &Line::<Map, Pointer>::declare(k, c);
    let ab = line.ring(k).shared();
    let tiles = line.tiles(ORDER);
    let load = k.role("load").warpgroups(1).registers(40);
    load.body(|| elect(|| tiles.each(|tile| line.load_all(ab, tile))));
    for (half, top) in HALVES {
        k.role(half).warpgroups(1).registers(232).body(|| {
            tiles.each(|tile| {
                let acc = line.multiply(ab, top, 64);
                line.store(&acc.finish(), tile, top);
            });
        });
    }
}

/// 7. Each tile is one warpgroup's: while one multiplies, the other stores.
///
/// 8. The same with tiles as wide as fill the waves.
pub(super) fn ping_pong(k: Builder, c: Config) {
    let line = &Line::<Map, Pointer>::declare(k, c);
    let ab = line.ring(k).dealt();
    let turn = k.turn("tensor cores", TURNS);
    let tiles = line.tiles(ORDER);
    let load = k.role("load").warpgroups(1).registers(40);
    load.body(|| elect(|| tiles.each(|tile| line.load_all(ab, tile))));
    for (i, who) in (0..).zip(TURNS) {
        k.role(who).warpgroups(1).registers(232).body(|| {
            let tiles = tiles.dealt(i, 2, |_| ab.skip(line.depth));
            tiles.each(|tile| {
                let acc = turn.hold(|| line.multiply(ab, 0, ROWS));
                line.store(&acc.finish(), tile, 0);
            });
        });
    }
}

/// 9. Tiles leave through shared memory by TMA, while the next one is begun.
pub(super) fn store(k: Builder, c: Config) {
    let line = &Line::<Map, Map>::declare(k, c);
    let ab = line.ring(k).dealt();
    let turn = k.turn("tensor cores", TURNS);
    let tiles = line.tiles(ORDER);
    let load = k.role("load").warpgroups(1).registers(40);
    load.body(|| elect(|| tiles.each(|tile| line.load_all(ab, tile))));
    for (i, who) in (0..).zip(TURNS) {
        let outbox = k.outbox::<bf16>(who, 2, ROWS, c.parcel());
        k.role(who).warpgroups(1).registers(232).body(|| {
            let tiles = tiles.dealt(i, 2, |_| ab.skip(line.depth));
            tiles.each(|tile| {
                let acc = turn.hold(|| line.multiply(ab, 0, ROWS));
                line.send(&acc.finish(), outbox, tile);
            });
        });
    }
}

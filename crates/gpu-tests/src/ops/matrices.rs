//! 8×8 matrices distributed over a warp: `ldmatrix`, `stmatrix`, transposition.

use crate::trial::OpTrial;
use half::bf16;
use warpline_ir::Type;
use warpline_ir::builder::*;

pub(crate) fn trials() -> Vec<OpTrial> {
    vec![loads(), stores()]
}

/// The rows and columns of the tile.
const SIDE: u32 = 64;

/// Returns the row and column of the matrix row that this lane addresses in form `i`. Each form uses another
/// part of the tile.
fn matrix_row(i: u32) -> (Reg<u32>, Reg<u32>) {
    let lane = lane_id();
    let row = (lane & 7) + (lane / 16) * 8 + 16 * (i % 3);
    let col = ((lane / 8) & 1) * 8 + 16 * (i % 4);
    (row, col)
}

/// Loads of one, two and four matrices, plain and transposed.
fn loads() -> OpTrial {
    let kernel = super::kernel("load_matrix", |k| {
        let (x, out) = (k.pointer::<bf16>("x"), k.pointer::<u32>("out"));
        let t = k.tile::<bf16>("t", SIDE, SIDE).declare();
        k.role("all").warps(1).body(|| {
            fill(t.whole(), x);
            let index = |n: u32| lane_id() + n * 32;
            let mut n = 0;
            for (i, trans) in (0u32..).zip([false, true]) {
                let (r, c) = matrix_row(3 * i);
                let [a] = t.whole().load_matrix::<u32, 1>(r, c, trans);
                let (r, c) = matrix_row(3 * i + 1);
                let [b, d] = t.whole().load_matrix::<u32, 2>(r, c, trans);
                let (r, c) = matrix_row(3 * i + 2);
                let [e, f, g, h] = t.whole().load_matrix::<u32, 4>(r, c, trans);
                for word in [a, b, d, e, f, g, h] {
                    out.store(index(n), word);
                    n += 1;
                }
            }
        });
    });
    OpTrial::new("load_matrix", &["load_matrix"], kernel)
        .input(&super::values(Type::Bf16, (SIDE * SIDE) as usize, 80))
        .output("words", Type::U32, 14 * 32)
}

/// Stores of the same forms over a tile with data.
fn stores() -> OpTrial {
    let kernel = super::kernel("store_matrix", |k| {
        let (x, y) = (k.pointer::<bf16>("x"), k.pointer::<u32>("y"));
        let out = k.pointer::<bf16>("out");
        let t = k.tile::<bf16>("t", SIDE, SIDE).declare();
        k.role("all").warps(1).body(|| {
            let word = |n: u32| y.load(lane_id() + n * 32);
            for (i, trans) in (0u32..).zip([false, true]) {
                let forms: [&dyn Fn(); 3] = [
                    &|| {
                        let (r, c) = matrix_row(3 * i);
                        t.whole().store_matrix(r, c, [word(0)], trans);
                    },
                    &|| {
                        let (r, c) = matrix_row(3 * i + 1);
                        t.whole().store_matrix(r, c, [1, 2].map(word), trans);
                    },
                    &|| {
                        let (r, c) = matrix_row(3 * i + 2);
                        t.whole().store_matrix(r, c, [3, 4, 5, 6].map(word), trans);
                    },
                ];
                for (j, form) in (0u32..).zip(forms) {
                    fill(t.whole(), x);
                    form();
                    warp_sync();
                    let first = (3 * i + j) * SIDE * SIDE;
                    range(lane_id(), SIDE * SIDE).step_by(32u32).each(|i| {
                        out.store(i + first, t.whole().load(i / SIDE, i % SIDE));
                    });
                    warp_sync();
                }
            }
        });
    });
    let n = (SIDE * SIDE) as usize;
    OpTrial::new("store_matrix", &["store_matrix"], kernel)
        .input(&super::values(Type::Bf16, n, 81))
        .input(&super::words(7 * 32, 82))
        .output("tiles", Type::Bf16, 6 * n)
}

/// Fills a tile from rows in global memory.
fn fill(t: TileRef<bf16>, x: Global<bf16>) {
    range(lane_id(), SIDE * SIDE).step_by(32u32).each(|i| {
        t.store(i / SIDE, i % SIDE, x.load(i));
    });
    warp_sync();
}

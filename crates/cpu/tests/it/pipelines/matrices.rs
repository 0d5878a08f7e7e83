//! `mma.sync` of one warp, with operands from `ldmatrix`.

use crate::pipelines::harness::{Input, run, run_words, seeds, timings, words};
use half::{bf16, f16};
use warpline_ir::builder::*;
use warpline_ir::{
    Bf16x2, E4m3, E4m3x4, E5m2, E5m2x4, Element, F16x2, Kernel, Target, Tf32, accumulator_at,
};

/// Returns the elements in 32 bytes along K.
fn k_of<T: Element>() -> u32 {
    32 / T::DTYPE.bytes() as u32
}

/// Emits a copy of `rows` rows of 32 bytes into a tile.
fn fill<T: Element>(tile: &TileRef<T>, from: Global<u32>, rows: u32) {
    let per_word = 4 / T::DTYPE.bytes() as u32;
    range(lane_id(), rows * 8).step_by(32u32).each(|i| {
        tile.store_as::<u32, 1>(i >> 3, (i & 7) * per_word, [from.load(i)]);
    });
}

/// `D[16, 8] = A[16, k] · B[8, k]ᵀ + 1`, with k of 32 bytes; with `halves`, in two k-steps.
fn multiply<A: Element, B: Element, WA: MmaWith<WB>, WB: MmaWord>(halves: bool) -> Kernel {
    Kernel::build("multiply", &Target::SM_90A, |k| {
        let (a, b) = (k.pointer::<u32>("a"), k.pointer::<u32>("b"));
        let d = k.pointer::<f32>("d");
        let a_tile = k.tile::<A>("a", 16, k_of::<A>()).unswizzled().declare();
        let b_tile = k.tile::<B>("b", 8, k_of::<B>()).unswizzled().declare();
        k.role("all").warps(1).body(|| {
            fill(&a_tile.whole(), a, 16);
            fill(&b_tile.whole(), b, 8);
            warp_sync();
            let lane = lane_id();
            // Four matrices of A: rows 0 and 8 of the first 16 bytes, then of the second; two of B.
            let half = k_of::<A>() / 2;
            let x: [Reg<WA>; 4] = a_tile
                .whole()
                .load_matrix(lane & 15, (lane >> 4) * half, false);
            let y: [Reg<WB>; 2] =
                b_tile
                    .whole()
                    .load_matrix(lane & 7, ((lane >> 3) & 1) * half, false);
            let one = [1.0f32; 4];
            let sums = if halves {
                let first = mma_sync_half(one, [x[0], x[1]], [y[0]]);
                mma_sync_half(first, [x[2], x[3]], [y[1]])
            } else {
                mma_sync(one, x, y)
            };
            for (i, sum) in sums.into_iter().enumerate() {
                let (row, col) = accumulator_at(0, 0, i as u32);
                d.store(((lane >> 2) + row) * 8 + (lane & 3) * 2 + col, sum);
            }
        });
    })
    .expect("a valid kernel")
}

/// Returns small integers and halves that differ at every position.
fn number(i: usize) -> f32 {
    [1.0, -2.0, 0.5, 3.0, -1.5, 0.0, 2.5][i % 7] * if i.is_multiple_of(3) { -1.0 } else { 2.0 }
}

/// Checks a multiplication of numbers that both types represent exactly.
fn check<A: Element, B: Element, WA: MmaWith<WB>, WB: MmaWord>(
    a_bytes: impl Fn(f32) -> Vec<u8>,
    b_bytes: impl Fn(f32) -> Vec<u8>,
) {
    let k = k_of::<A>() as usize;
    let a: Vec<f32> = (0..16 * k).map(|i| number(i * i + i / k)).collect();
    let b: Vec<f32> = (0..8 * k).map(|i| number(3 * i + i / 5)).collect();
    let inputs = [
        Input::Data(a.iter().flat_map(|&x| a_bytes(x)).collect()),
        Input::Data(b.iter().flat_map(|&x| b_bytes(x)).collect()),
        Input::Output(16 * 8 * 4),
    ];
    for halves in [false, true] {
        let kernel = multiply::<A, B, WA, WB>(halves);
        for options in timings(seeds(3)) {
            let d = run_words(&kernel, 1, &inputs, &options);
            for (i, d) in d.into_iter().enumerate() {
                let (row, col) = (i / 8, i % 8);
                let pairs = (0..k).map(|j| a[row * k + j] * b[col * k + j]);
                let (got, want) = (f32::from_bits(d), 1.0 + pairs.sum::<f32>());
                assert_eq!(got, want, "{} times {} at {row}, {col}", A::DTYPE, B::DTYPE);
            }
        }
    }
}

#[test]
fn mma_sync_is_exact_for_every_operand_type() {
    let b16 = |x| bf16::from_f32(x).to_le_bytes().to_vec();
    check::<bf16, bf16, Bf16x2, Bf16x2>(b16, b16);
    let h = |x| f16::from_f32(x).to_le_bytes().to_vec();
    check::<f16, f16, F16x2, F16x2>(h, h);
    // The bits that tf32 ignores are set.
    let t = |x: f32| (x.to_bits() | Tf32::UNUSED).to_le_bytes().to_vec();
    check::<Tf32, Tf32, Tf32, Tf32>(t, t);
    let (e4, e5) = (|x| vec![E4m3::round(x).0], |x| vec![E5m2::round(x).0]);
    check::<E4m3, E4m3, E4m3x4, E4m3x4>(e4, e4);
    check::<E5m2, E4m3, E5m2x4, E4m3x4>(e5, e4);
}

/// Transposes an 8×8 matrix in three ways and stores each result.
#[test]
fn three_ways_to_transpose_agree() {
    let kernel = Kernel::build("transpose", &Target::SM_90A, |k| {
        let (x, y) = (k.pointer::<u32>("x"), k.pointer::<u32>("y"));
        let from = k.tile::<bf16>("from", 8, 8).unswizzled().declare();
        let to = k.tile::<bf16>("to", 24, 8).unswizzled().declare();
        k.role("all").warps(1).body(|| {
            let lane = lane_id();
            from.whole()
                .store_as::<u32, 1>(lane >> 2, (lane & 3) * 2, [x.load(lane)]);
            warp_sync();
            let row = lane & 7;
            let [plain] = from.whole().load_matrix::<Bf16x2, 1>(row, 0u32, false);
            let [loaded] = from.whole().load_matrix::<u32, 1>(row, 0u32, true);
            let to = to.whole();
            to.store_matrix(row, 0u32, [plain.transpose_matrix()], false);
            to.store_matrix(row + 8, 0u32, [loaded], false);
            to.store_matrix(row + 16, 0u32, [plain], true);
            warp_sync();
            for i in 0..3 {
                let [word] = to.load_as::<u32, 1>((lane >> 2) + 8 * i, (lane & 3) * 2);
                y.store(lane + 32 * i, word);
            }
        });
    })
    .expect("a valid kernel");
    let element = |row: u32, col: u32| 100 * row + col;
    let pairs = |at: &dyn Fn(u32, u32) -> u32| -> Vec<u32> {
        let word = |i: u32| at(i / 4, i % 4 * 2) | at(i / 4, i % 4 * 2 + 1) << 16;
        (0..32).map(word).collect()
    };
    let inputs = [words(pairs(&element)), Input::Output(3 * 128)];
    let want = pairs(&|row, col| element(col, row)).repeat(3);
    for options in timings(seeds(3)) {
        assert_eq!(run_words(&kernel, 1, &inputs, &options), want);
    }
}

#[test]
fn an_mma_of_a_partial_warp_is_a_fault() {
    let kernel = Kernel::build("part", &Target::SM_90A, |k| {
        let d = k.pointer::<f32>("d");
        k.role("all").warps(1).body(|| {
            let lane = lane_id();
            if_(lane.lt(16u32), || {
                let zero = 0u32.reg().bitcast::<Bf16x2>();
                let [x, ..] = mma_sync([0.0f32; 4], [zero; 4], [zero; 2]);
                d.store(lane, x);
            });
        });
    })
    .expect("a valid kernel");
    let inputs = [Input::Output(64)];
    for options in timings(seeds(1)) {
        let e = run(&kernel, 1, &inputs, &options).expect_err("half a warp multiplied");
        assert_eq!(e.kind, warpline_ir::FaultKind::Convergence);
    }
}

//! The test table: small problems that reach every path.

use super::problem::Problem;
use crate::nvfp4::ScaleLayout;
use crate::nvfp4_dual_gemm::{Choice, ScheduleKind};
use warpline_family::family::TestCase;
use warpline_family::float::FloatType;

type Cases = Vec<TestCase<Problem, Choice>>;

/// Small problems: one slot of weights and several, partial tiles, both scale layouts and types.
pub(super) fn cases() -> Cases {
    let choice = |consumers: u32, tile_k: u32| Choice {
        tile_m: Some(16),
        tile_k: Some(tile_k),
        consumers: Some(consumers),
        stages: Some(2),
        ctas: Some(2),
        ..Choice::default()
    };
    let problem = Problem::new;
    let layouts = [ScaleLayout::Plain, ScaleLayout::Block];
    let types = [FloatType::Bf16, FloatType::F16];
    let mut cases = Cases::new();
    let mut add = |problem: Problem, choice: Choice| cases.push(TestCase { problem, choice });
    for [m, n, k] in [[1, 8, 16], [7, 24, 64], [70, 136, 160], [131, 264, 80]] {
        add(problem(m, n, k), Choice::default());
    }
    // Consumers with their own outputs (64, 128), and consumers that take slots in turn (256).
    let shapes = [
        (1, 64),
        (2, 64),
        (3, 64),
        (4, 64),
        (2, 128),
        (2, 256),
        (4, 256),
    ];
    for (i, (consumers, tile_k)) in shapes.into_iter().enumerate() {
        let slots = if tile_k == 256 { consumers } else { 1 };
        for rounds in [1, 3].into_iter().take(if slots > 2 { 1 } else { 2 }) {
            let problem = Problem {
                scale_layout: layouts[(i + rounds as usize / 2) % 2],
                dtype: types[i % 2],
                scale: rounds > 2,
                bias: i % 2 == 0,
                ..problem(21, 264, 256 * slots * rounds - 32)
            };
            add(problem, choice(consumers, tile_k));
        }
    }
    // The schedule `warps`: one slot and more, aligned and unaligned rows.
    let shapes = [
        (64, 512, 16),
        (64, 512, 2560),
        (128, 256, 1616),
        (64, 1024, 2080),
        (128, 512, 1536),
    ];
    for (i, (tile_n, tile_k, k)) in shapes.into_iter().enumerate() {
        for split_k in [1, 2] {
            let warps = Choice {
                schedule: Some(ScheduleKind::Warps),
                // Two stages of 1024 elements of K for 32 tokens do not fit.
                tile_m: Some(if tile_k == 1024 { 16 } else { 16 * split_k }),
                tile_n: Some(tile_n),
                split_k: Some(split_k),
                ctas: Some(2 * split_k),
                ..choice(2, tile_k)
            };
            let problem = Problem {
                scale_layout: layouts[split_k as usize % 2],
                dtype: types[i % 2],
                scale: k > 2000,
                bias: split_k == 1,
                ..problem(21, 264, k)
            };
            add(problem, warps);
        }
    }
    for (consumers, tile_m) in [(1, 256), (2, 64), (2, 256), (3, 128)] {
        let large_tile = Choice {
            tile_m: Some(tile_m),
            ..choice(consumers, 64)
        };
        let strided = Problem {
            a_stride: Some(232),
            c_stride: Some(288),
            bias: tile_m == 256,
            ..problem(150, 264, 224)
        };
        add(strided, large_tile);
    }
    // Split-K, also with CTAs that have no k-tiles.
    for (split_k, tile_k, k) in [(2, 64, 64), (2, 128, 448), (2, 256, 1600), (4, 64, 1616)] {
        let split = Choice {
            split_k: Some(split_k),
            tile_m: Some(8 * split_k),
            ctas: Some(2 * split_k),
            ..choice(2, tile_k)
        };
        let problem = Problem {
            bias: true,
            ..problem(40, 136, k)
        };
        add(problem, split);
    }
    // Tiles of 128 tokens and more decode in the order of A.
    for (consumers, tile_k, tile_m, split_k) in [(2, 64, 128, 2), (1, 128, 256, 4)] {
        let split = Choice {
            split_k: Some(split_k),
            tile_m: Some(tile_m),
            ctas: Some(4),
            ..choice(consumers, tile_k)
        };
        let problem = Problem {
            scale: true,
            ..problem(150, 264, 1600)
        };
        add(problem, split);
    }
    cases
}

//! The test table: small problems that reach every path.

use super::config::Choice;
use super::problem::Problem;
use super::schedule::ScheduleKind;
use crate::gemm::Activation;
use crate::nvfp4::ScaleLayout;
use crate::weights::WeightLayout;
use warpline_family::family::TestCase;
use warpline_family::float::FloatType;

type Cases = Vec<TestCase<Problem, Choice>>;

/// Small problems: 1, S - 1, S, S + 1 and 2 S + 1 slots of weights for S stages, partial tiles, both
/// scale layouts.
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
    let mut cases = Cases::new();
    let mut add = |problem: Problem, choice: Choice| cases.push(TestCase { problem, choice });
    for [m, n, k] in [[1, 8, 16], [7, 24, 64], [70, 136, 160], [130, 264, 80]] {
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
    for (consumers, tile_k) in shapes {
        let slots = if tile_k == 256 { consumers } else { 1 };
        let max_cases = if slots > 2 { 1 } else { 3 };
        for rounds in [1, 3, 5].into_iter().take(max_cases) {
            let scale_layout = [ScaleLayout::Plain, ScaleLayout::Block][rounds as usize % 2];
            let problem = Problem {
                scale_layout,
                scales: rounds > 2,
                gate: Activation::ALL[rounds as usize % Activation::ALL.len()],
                ..problem(20, 136, 256 * slots * rounds - 32)
            };
            add(problem, choice(consumers, tile_k));
        }
    }
    for (consumers, steps) in [(1, 1), (2, 4), (2, 9)] {
        let dequantizer = Choice {
            schedule: Some(ScheduleKind::Dequantizer),
            ..choice(consumers, 64)
        };
        add(problem(20, 136, 64 * steps - 16), dequantizer);
    }
    // The schedule `warps`: one slot and more, aligned and unaligned rows.
    for (tile_n, tile_k, k) in [
        (32, 512, 16),
        (32, 512, 2560),
        (64, 256, 1616),
        (32, 1024, 2080),
        (64, 512, 1536),
    ] {
        for split_k in [1, 2] {
            let warps = Choice {
                schedule: Some(ScheduleKind::Warps),
                tile_m: Some(16 * split_k),
                tile_n: Some(tile_n),
                split_k: Some(split_k),
                ctas: Some(2 * split_k),
                ..choice(2, tile_k)
            };
            let problem = Problem {
                scale_layout: [ScaleLayout::Plain, ScaleLayout::Block][split_k as usize % 2],
                scales: k > 2000,
                ..problem(20, 136, k)
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
            c_stride: Some(288),
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
        add(problem(40, 136, k), split);
    }
    // Only the weights are NVFP4, separate or concatenated.
    for (float, k) in [(FloatType::F16, 144), (FloatType::Bf16, 256)] {
        for (weights, tile_k) in [
            (WeightLayout::Separate, 64),
            (WeightLayout::Concatenated, 256),
        ] {
            let weights_only = Problem {
                activations: Some(float),
                a_stride: Some(264),
                weights,
                scales: tile_k > 64,
                ..problem(40, 200, k)
            };
            add(weights_only.clone(), choice(2, tile_k));
            let warps = Choice {
                schedule: Some(ScheduleKind::Warps),
                ..choice(2, 512)
            };
            add(weights_only, warps);
        }
    }
    let concatenated = Problem {
        weights: WeightLayout::Concatenated,
        scale_layout: ScaleLayout::Block,
        ..problem(20, 128, 96)
    };
    add(concatenated, choice(3, 64));
    cases
}

//! The test tables: small problems that reach every path.

use super::problem::Problem;
use crate::gemm::table::{in_memory, small_choice};
use crate::gemm::{Activation, Choice, Cluster, OperandType, Raster, ScheduleKind};
use crate::weights::WeightLayout;
use warpline_family::family::TestCase;
use warpline_family::float::FloatType;

type Cases = Vec<TestCase<Problem, Choice>>;

const SCHEDULES: [ScheduleKind; 4] = [
    ScheduleKind::DoubleBuffer,
    ScheduleKind::Cooperative,
    ScheduleKind::PingPong,
    ScheduleKind::TwoConsumer,
];

const LAYOUTS: [WeightLayout; 3] = [
    WeightLayout::Separate,
    WeightLayout::Concatenated,
    WeightLayout::Interleaved,
];

/// Returns a swap-AB config for small M.
fn swap_ab(consumers: u32) -> Choice {
    Choice {
        swap_ab: Some(true),
        tile_m: Some(16),
        tile_n: Some(64 * consumers),
        consumers: Some(consumers),
        ..small_choice(ScheduleKind::Cooperative)
    }
}

/// Returns the problem with row strides larger than the rows.
fn strided(problem: Problem) -> Problem {
    Problem {
        a_stride: Some(88),
        weight_stride: Some(80),
        up_stride: (problem.weights == WeightLayout::Separate).then_some(96),
        c_stride: Some(160),
        ..problem
    }
}

/// Small problems.
pub(super) fn cases() -> Cases {
    let mut cases = Cases::new();
    let mut add = |problem: Problem, choice: Choice| cases.push(TestCase { problem, choice });
    let plain = Problem::new;
    // Odd shapes with the heuristic's configs.
    for [m, n, k] in [
        [1, 8, 8],
        [1, 8, 0],
        [127, 136, 72],
        [16, 256, 128],
        [131, 264, 200],
    ] {
        add(plain(m, n, k), Choice::default());
    }
    // Operands and outputs that TMA cannot address.
    for (i, weights) in (0..).zip(LAYOUTS) {
        let kinds = [ScheduleKind::Cooperative, ScheduleKind::PingPong];
        let odd_k = Problem {
            weights,
            ..plain(70, 72, 83)
        };
        add(odd_k.clone(), small_choice(kinds[i % 2]));
        add(odd_k, swap_ab(1));
        let odd_weights = Problem {
            weights,
            weight_align: Some(2),
            c_align: Some(4),
            ..plain(70, 136, 136)
        };
        add(odd_weights, small_choice(kinds[(i + 1) % 2]));
    }
    add(plain(33, 41, 55), Choice::default());
    add(
        Problem {
            dtype: OperandType::F32,
            ..plain(70, 72, 88)
        },
        small_choice(ScheduleKind::Cooperative),
    );
    // Split-K through memory.
    add(plain(140, 72, 456), in_memory(3, 128, 2));
    let swapped = Choice {
        swap_ab: Some(true),
        ..in_memory(3, 48, 1)
    };
    add(plain(40, 72, 456), swapped);
    // Full waves of wide tiles and a narrow last wave.
    for weights in LAYOUTS {
        let tail_n = Some(24);
        let problem = Problem {
            weights,
            ..plain(130, 152, 72)
        };
        let choice = Choice {
            tail_n,
            ..small_choice(ScheduleKind::PingPong)
        };
        add(strided(problem), choice);
    }
    // 0, 1, S and 2 S + 1 k-tiles for S stages; more tiles than CTAs; partial tiles.
    for kind in SCHEDULES {
        let choice = small_choice(kind);
        let s = choice.stages.unwrap_or(2);
        for k_tiles in [0, 1, s, 2 * s + 1] {
            add(plain(200, 136, 64 * k_tiles), choice.clone());
        }
        add(plain(136, 200, 104), choice.clone());
        let fp8 = Problem {
            dtype: OperandType::E4m3,
            scales: true,
            ..plain(130, 136, 208)
        };
        add(fp8, choice.clone());
        add(strided(plain(130, 136, 72)), choice.clone());
        let interleaved = Problem {
            weights: WeightLayout::Interleaved,
            gate: Activation::Sigmoid,
            ..plain(130, 136, 72)
        };
        add(strided(interleaved), choice);
    }
    // Layouts, gates, types.
    let choice = small_choice(ScheduleKind::Cooperative);
    for weights in LAYOUTS {
        let problem = Problem {
            weights,
            ..plain(130, 136, 72)
        };
        add(problem, choice.clone());
    }
    for &gate in Activation::ALL {
        let problem = Problem {
            gate,
            ..plain(72, 72, 72)
        };
        add(problem, choice.clone());
    }
    for &dtype in OperandType::ALL {
        for &out in FloatType::ALL {
            let problem = Problem {
                dtype,
                out: Some(out),
                scales: dtype.is_fp8(),
                ..plain(130, 136, 208)
            };
            add(problem, choice.clone());
        }
    }
    // Rasters, clusters, cache hints.
    for kind in [
        ScheduleKind::Cooperative,
        ScheduleKind::PingPong,
        ScheduleKind::TwoConsumer,
    ] {
        for raster in [Raster::RowMajor, Raster::Hilbert, Raster::Dynamic] {
            let mut choice = small_choice(kind);
            choice.raster = Some(raster);
            add(plain(300, 264, 136), choice);
        }
        for cluster in [Cluster::Rows, Cluster::Cols] {
            let mut choice = small_choice(kind);
            (choice.cluster, choice.ctas) = (Some(cluster), Some(4));
            add(plain(300, 264, 264), choice);
        }
        let mut choice = small_choice(kind);
        choice.cache_hints = Some(true);
        add(plain(300, 264, 136), choice);
    }
    // The tile shapes of fast configs.
    let big = |schedule, m, n, consumers, stages| Choice {
        schedule: Some(schedule),
        tile_m: Some(m),
        tile_n: Some(n),
        consumers: Some(consumers),
        stages: Some(stages),
        ctas: Some(2),
        ..Choice::default()
    };
    for choice in [
        big(ScheduleKind::Cooperative, 128, 64, 2, 6),
        big(ScheduleKind::Cooperative, 128, 88, 2, 5),
        big(ScheduleKind::Cooperative, 128, 96, 2, 5),
        big(ScheduleKind::Cooperative, 128, 112, 2, 4),
        big(ScheduleKind::Cooperative, 128, 128, 2, 4),
        big(ScheduleKind::Cooperative, 192, 64, 3, 4),
        big(ScheduleKind::PingPong, 128, 88, 2, 5),
        big(ScheduleKind::PingPong, 128, 96, 2, 4),
        big(ScheduleKind::PingPong, 128, 104, 2, 4),
        big(ScheduleKind::PingPong, 64, 128, 2, 4),
        big(ScheduleKind::TwoConsumer, 128, 128, 2, 3),
        big(ScheduleKind::DoubleBuffer, 128, 128, 2, 4),
    ] {
        add(plain(256, 264, 136), choice);
    }
    // Stream-K and split-K.
    for (ctas, [m, n, k]) in [(3, [136, 136, 320]), (5, [128, 64, 448]), (2, [128, 64, 0])] {
        let mut choice = small_choice(ScheduleKind::Cooperative);
        (choice.stream_k, choice.ctas) = (Some(true), Some(ctas));
        add(plain(m, n, k), choice);
    }
    for k in [0, 64, 192, 456] {
        let mut choice = small_choice(ScheduleKind::Cooperative);
        choice.split_k = Some(2);
        add(plain(136, 136, k), choice);
    }
    // Swap-AB for small M.
    for consumers in [1, 2] {
        let choice = swap_ab(consumers);
        for (m, weights) in [1, 16, 30].into_iter().zip(LAYOUTS) {
            let problem = Problem {
                weights,
                ..plain(m, 136, 200)
            };
            add(problem, choice.clone());
        }
        let f32_output = Problem {
            out: Some(FloatType::F32),
            gate: Activation::GeluTanh,
            ..plain(20, 136, 200)
        };
        add(f32_output, choice.clone());
        let stream_k = Choice {
            stream_k: Some(true),
            ..choice.clone()
        };
        add(plain(16, 264, 200), stream_k);
        let double_buffer = Choice {
            schedule: Some(ScheduleKind::DoubleBuffer),
            stages: Some(2),
            ..choice
        };
        add(plain(16, 136, 200), double_buffer);
    }
    cases
}

/// Odd shapes of realistic size, with every schedule.
pub(super) fn large() -> Cases {
    let big = |schedule, m, n, consumers| Choice {
        schedule: Some(schedule),
        tile_m: Some(m),
        tile_n: Some(n),
        consumers: Some(consumers),
        ..Choice::default()
    };
    let choices = [
        Choice::default(),
        big(ScheduleKind::DoubleBuffer, 128, 128, 2),
        big(ScheduleKind::Cooperative, 128, 128, 2),
        big(ScheduleKind::Cooperative, 128, 64, 2),
        big(ScheduleKind::PingPong, 128, 88, 2),
        big(ScheduleKind::PingPong, 128, 96, 2),
        big(ScheduleKind::TwoConsumer, 128, 128, 2),
    ];
    let shapes = [[1000, 1000, 1000], [2053, 2056, 1032], [33, 14336, 1000]];
    let cases = shapes.into_iter().flat_map(|[m, n, k]| {
        choices.clone().map(|choice| TestCase {
            problem: Problem::new(m, n, k),
            choice,
        })
    });
    cases.collect()
}

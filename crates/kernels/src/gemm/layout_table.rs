//! The test table of operands and outputs that TMA cannot address, and of every memory layout.

use super::config::{Choice, Raster, ScheduleKind};
use super::pack::Pack;
use super::problem::{ALayout, Activation, OperandLayout, OperandType, Problem};
use super::table::small_choice;
use super::tile_scheduler::Cluster;
use warpline_family::family::TestCase;
use warpline_family::float::FloatType;

type Cases = Vec<TestCase<Problem, Choice>>;

fn plain(m: u32, n: u32, k: u32) -> Problem {
    Problem::new(m, n, k, OperandType::Bf16)
}

/// Returns a swap-AB config; M innermost needs panels of 64 columns.
fn swap_ab(a_layout: ALayout) -> Choice {
    Choice {
        swap_ab: Some(true),
        tile_m: Some(match a_layout {
            ALayout::Mk => 16,
            ALayout::Km => 64,
        }),
        tile_n: Some(64),
        consumers: Some(1),
        ..small_choice(ScheduleKind::Cooperative)
    }
}

/// Returns a config that divides K: by a cluster, or by stream-K.
fn divided_k() -> [Choice; 2] {
    let base = small_choice(ScheduleKind::Cooperative);
    [
        Choice {
            split_k: Some(2),
            ..base.clone()
        },
        Choice {
            stream_k: Some(true),
            ..base
        },
    ]
}

/// Every layout of A and B, with every load of a gather.
fn operands() -> Vec<Problem> {
    let with = |p: Problem, change: fn(&mut Problem)| {
        let mut p = p;
        change(&mut p);
        p
    };
    let base = || plain(70, 72, 200);
    vec![
        // Single elements, 4, 8 and 16 bytes.
        plain(70, 72, 147),
        plain(70, 72, 150),
        plain(70, 72, 148),
        with(base(), |p| p.a_stride = Some(0)),
        // Only one operand leaves TMA.
        with(base(), |p| p.a_stride = Some(203)),
        with(base(), |p| p.b_stride = Some(202)),
        with(base(), |p| p.b_align = Some(2)),
        // TMA with rows that end inside of 16 bytes.
        with(plain(70, 72, 75), |p| {
            (p.a_stride, p.b_stride) = (Some(80), Some(88))
        }),
        // Elements of a row that are not neighbors.
        with(base(), |p| p.a_inner_stride = Some(2)),
        with(base(), |p| {
            (p.b_inner_stride, p.layout) = (Some(3), OperandLayout::Kn)
        }),
        with(base(), |p| p.a_inner_stride = Some(0)),
        // M or N innermost, by TMA and by a gather.
        with(base(), |p| (p.m, p.a_layout) = (72, ALayout::Km)),
        with(base(), |p| p.a_layout = ALayout::Km),
        with(base(), |p| (p.n, p.layout) = (73, OperandLayout::Kn)),
        with(base(), |p| {
            (p.m, p.n) = (69, 67);
            (p.a_layout, p.layout) = (ALayout::Km, OperandLayout::Kn);
        }),
    ]
}

/// GEMMs without epilogue.
pub(super) fn gemm() -> Cases {
    let mut cases = Cases::new();
    let mut add = |problem: Problem, choice: Choice| cases.push(TestCase { problem, choice });
    let schedules = [ScheduleKind::Cooperative, ScheduleKind::PingPong];
    // The smallest extents, with the heuristic's configs.
    for [m, n, k] in [[1, 1, 1], [1, 1, 0], [3, 1, 5], [1, 57, 33], [131, 65, 75]] {
        add(plain(m, n, k), Choice::default());
    }
    // 0, 1, S - 1, S, S + 1 and 2 S + 1 k-tiles for S stages; more tiles than CTAs; partial tiles.
    for kind in schedules {
        let choice = small_choice(kind);
        for k in [0, 1, 127, 191, 193, 385] {
            add(plain(135, 137, k), choice.clone());
        }
    }
    for (i, problem) in (0..).zip(operands()) {
        add(problem.clone(), small_choice(schedules[i % 2]));
        add(problem.clone(), swap_ab(problem.a_layout));
        if i % 4 == 0 {
            for choice in divided_k() {
                add(problem.clone(), choice);
            }
        }
        for &pack in Pack::options(&problem) {
            let base = small_choice(schedules[i % 2]);
            let pack = Some(pack);
            add(problem.clone(), Choice { pack, ..base });
        }
    }
    // Two panels of an operand with M or N innermost, in a cluster.
    for [m, n, k] in [[70, 264, 136], [200, 264, 392]] {
        let problem = Problem {
            layout: OperandLayout::Kn,
            ..plain(m, n, k)
        };
        let wide = |kind| Choice {
            tile_n: Some(128),
            ..small_choice(kind)
        };
        let cluster = Some(Cluster::Cols);
        for kind in schedules {
            add(
                problem.clone(),
                Choice {
                    cluster,
                    ..wide(kind)
                },
            );
        }
        let split_k = Some(2);
        let split = Choice {
            split_k,
            ..wide(ScheduleKind::Cooperative)
        };
        add(problem.clone(), split.clone());
        let a_layout = ALayout::Km;
        let m = m.next_multiple_of(8);
        add(
            Problem {
                m,
                a_layout,
                ..problem
            },
            split,
        );
    }
    // Every element type with K or M and N innermost.
    for &dtype in OperandType::ALL {
        let problem = Problem::new(70, 65, 91, dtype);
        add(problem.clone(), small_choice(ScheduleKind::Cooperative));
        let transposed = Problem {
            a_layout: ALayout::Km,
            layout: OperandLayout::Kn,
            ..problem.clone()
        };
        add(transposed.clone(), small_choice(ScheduleKind::PingPong));
        add(transposed.clone(), swap_ab(ALayout::Km));
        for &pack in Pack::options(&transposed) {
            let base = small_choice(ScheduleKind::Cooperative);
            let pack = Some(pack);
            add(transposed.clone(), Choice { pack, ..base });
        }
        let wide_tiles = Choice {
            tile_m: Some(128),
            tile_n: Some(256),
            stages: None,
            ..small_choice(ScheduleKind::Cooperative)
        };
        add(problem, wide_tiles);
    }
    // f32 by TMA.
    let f32 = Problem::new(130, 136, 200, OperandType::F32);
    for choice in divided_k().into_iter().chain([swap_ab(ALayout::Mk)]) {
        add(f32.clone(), choice);
    }
    // Outputs: only the output leaves TMA; f32 and f16; a row stride with padding and odd columns.
    for out in [FloatType::F32, FloatType::F16, FloatType::Bf16] {
        let problem = Problem {
            out: Some(out),
            ..plain(70, 75, 136)
        };
        add(problem.clone(), small_choice(ScheduleKind::Cooperative));
        let padded = Problem {
            c_stride: Some(80),
            ..problem.clone()
        };
        add(padded.clone(), small_choice(ScheduleKind::PingPong));
        add(padded, swap_ab(ALayout::Mk));
        for choice in divided_k().into_iter().chain([swap_ab(ALayout::Mk)]) {
            add(problem.clone(), choice);
        }
    }
    let narrow_tiles = Choice {
        tile_n: Some(48),
        ..small_choice(ScheduleKind::PingPong)
    };
    add(plain(70, 75, 136), narrow_tiles);
    let hilbert = Choice {
        raster: Some(Raster::Hilbert),
        ..small_choice(ScheduleKind::PingPong)
    };
    add(plain(300, 263, 135), hilbert);
    // Batches: odd batch strides; all GEMMs share A or B.
    for (a, b) in [(None, None), (Some(0), None), (None, Some(0))] {
        for [m, n, k] in [[72, 136, 104], [37, 51, 45]] {
            let problem = Problem {
                batch: Some(3),
                a_batch_stride: a,
                b_batch_stride: b,
                ..plain(m, n, k)
            };
            add(problem.clone(), small_choice(ScheduleKind::Cooperative));
            for &pack in Pack::options(&problem) {
                let base = small_choice(ScheduleKind::PingPong);
                let pack = Some(pack);
                add(problem.clone(), Choice { pack, ..base });
            }
            add(problem, swap_ab(ALayout::Mk));
        }
    }
    add(
        Problem {
            batch: Some(2),
            a_batch_stride: Some(72 * 104 + 1),
            c_batch_stride: Some(72 * 136 + 3),
            ..plain(72, 136, 104)
        },
        small_choice(ScheduleKind::PingPong),
    );
    cases
}

/// Linear layers: the epilogue of odd extents and of misaligned tensors.
pub(super) fn linear() -> Cases {
    let mut cases = Cases::new();
    let mut add = |problem: Problem, choice: Choice| cases.push(TestCase { problem, choice });
    let base = Problem {
        bias: true,
        residual: true,
        activation: Activation::GeluTanh,
        ..plain(70, 75, 83)
    };
    for choice in [
        small_choice(ScheduleKind::Cooperative),
        small_choice(ScheduleKind::PingPong),
        swap_ab(ALayout::Mk),
    ] {
        add(base.clone(), choice.clone());
        let f32 = Problem {
            out: Some(FloatType::F32),
            ..base.clone()
        };
        add(f32, choice.clone());
        // Aligned operands; bias and residual are not.
        let misaligned = Problem {
            epilogue_align: Some(2),
            residual_stride: Some(77),
            n: 72,
            k: 88,
            ..base.clone()
        };
        add(misaligned, choice);
    }
    for &pack in Pack::options(&base) {
        let small = small_choice(ScheduleKind::Cooperative);
        let pack = Some(pack);
        add(base.clone(), Choice { pack, ..small });
    }
    let reductions = Problem {
        residual: false,
        row_sums: true,
        col_sums: true,
        amax: true,
        ..base.clone()
    };
    add(reductions.clone(), small_choice(ScheduleKind::Cooperative));
    let pack = Some(Pack::Both);
    let small = small_choice(ScheduleKind::Cooperative);
    add(reductions, Choice { pack, ..small });
    for choice in divided_k() {
        add(base.clone(), choice);
    }
    cases
}

//! The test tables: small problems that reach every path.

use super::config::{Choice, Raster, ScheduleKind};
use super::problem::Activation;
use super::problem::{Accumulation, OperandLayout, OperandType, Problem};
use super::tile_scheduler::Cluster;
use warpline_family::family::TestCase;
use warpline_family::float::FloatType;

type Cases = Vec<TestCase<Problem, Choice>>;

fn bare(m: u32, n: u32, k: u32) -> Problem {
    Problem::new(m, n, k, OperandType::Bf16)
}

pub(crate) fn schedule(schedule: ScheduleKind) -> Choice {
    let small = Choice {
        schedule: Some(schedule),
        stages: Some(3),
        ctas: Some(2),
        ..Choice::default()
    };
    match schedule {
        ScheduleKind::DoubleBuffer => Choice {
            tile_m: Some(64),
            tile_n: Some(64),
            consumers: Some(1),
            stages: Some(2),
            ..small
        },
        ScheduleKind::PingPong => Choice {
            tile_m: Some(64),
            tile_n: Some(64),
            ..small
        },
        ScheduleKind::Cooperative | ScheduleKind::Storer | ScheduleKind::TwoConsumer => Choice {
            tile_m: Some(128),
            tile_n: Some(64),
            consumers: Some(2),
            ..small
        },
    }
}

const SCHEDULES: [ScheduleKind; 4] = [
    ScheduleKind::DoubleBuffer,
    ScheduleKind::Cooperative,
    ScheduleKind::PingPong,
    ScheduleKind::Storer,
];

/// GEMMs without epilogue.
pub(super) fn gemm() -> Cases {
    let mut cases = Cases::new();
    let mut add = |problem: Problem, choice: Choice| cases.push(TestCase { problem, choice });
    // Full waves of wide tiles and a narrow last wave; also stored by elements.
    for (f, out) in [
        (ScheduleKind::PingPong, None),
        (ScheduleKind::Cooperative, Some(FloatType::F32)),
    ] {
        let problem = Problem {
            bias: true,
            residual: true,
            residual_stride: Some(176),
            c_stride: Some(168),
            out,
            ..bare(270, 152, 72)
        };
        let choice = Choice {
            tail_n: Some(32),
            ..schedule(f)
        };
        add(problem, choice);
    }
    // Odd shapes with the heuristic's configs.
    for [m, n, k] in [
        [1, 8, 8],
        [1, 8, 0],
        [127, 136, 72],
        [16, 256, 128],
        [131, 264, 200],
        [256, 384, 320],
    ] {
        add(bare(m, n, k), Choice::default());
    }
    // 0, 1, S - 1, S, S + 1 and 2 S + 1 k-tiles for S stages; more tiles than CTAs; partial tiles.
    for f in SCHEDULES {
        let choice = schedule(f);
        let s = choice.stages.unwrap_or(2);
        for steps in [0, 1, s - 1, s, s + 1, 2 * s + 1] {
            add(bare(200, 136, 64 * steps), choice.clone());
        }
        add(bare(136, 200, 104), choice.clone());
    }
    let with = |f: ScheduleKind, change: fn(&mut Choice)| {
        let mut choice = schedule(f);
        change(&mut choice);
        choice
    };
    // Rasters, clusters, cache hints.
    for f in [ScheduleKind::Cooperative, ScheduleKind::PingPong] {
        for raster in [Raster::RowMajor, Raster::Hilbert, Raster::Dynamic] {
            let mut choice = schedule(f);
            choice.raster = Some(raster);
            add(bare(300, 264, 136), choice);
        }
        for cluster in [Cluster::Rows, Cluster::Cols] {
            let mut choice = schedule(f);
            (choice.cluster, choice.ctas) = (Some(cluster), Some(4));
            add(bare(300, 264, 264), choice.clone());
            choice.raster = Some(Raster::Dynamic);
            add(bare(300, 264, 136), choice);
        }
        add(bare(300, 264, 136), with(f, |c| c.cache_hints = Some(true)));
        add(bare(200, 200, 264), with(f, |c| c.tile_k = Some(128)));
        add(bare(200, 200, 264), with(f, |c| c.tile_k = Some(32)));
        add(bare(200, 240, 136), with(f, |c| c.tile_n = Some(112)));
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
    add(
        bare(256, 264, 136),
        big(ScheduleKind::PingPong, 128, 192, 2, 4),
    );
    add(
        bare(256, 264, 136),
        big(ScheduleKind::PingPong, 128, 176, 2, 5),
    );
    add(
        bare(256, 264, 136),
        big(ScheduleKind::PingPong, 128, 208, 2, 5),
    );
    add(
        bare(256, 264, 136),
        big(ScheduleKind::Cooperative, 128, 256, 2, 4),
    );
    add(
        bare(256, 264, 136),
        big(ScheduleKind::Cooperative, 192, 160, 3, 4),
    );
    add(
        bare(256, 264, 136),
        big(ScheduleKind::Cooperative, 256, 128, 2, 4),
    );
    add(
        bare(256, 264, 136),
        big(ScheduleKind::Storer, 128, 192, 2, 4),
    );
    add(
        bare(256, 264, 136),
        big(ScheduleKind::DoubleBuffer, 128, 256, 2, 4),
    );
    // Stream-K: tiles that several CTAs share.
    for (ctas, [m, n, k]) in [
        (3, [136, 136, 320]),
        (5, [128, 64, 448]),
        (4, [64, 64, 64]),
        (2, [256, 64, 128]),
        (2, [128, 64, 0]),
    ] {
        let mut choice = schedule(ScheduleKind::Cooperative);
        (choice.stream_k, choice.ctas) = (Some(true), Some(ctas));
        add(bare(m, n, k), choice);
    }
    for k in [0, 64, 128, 192, 456] {
        let choice = with(ScheduleKind::Cooperative, |c| c.split_k = Some(2));
        add(bare(136, 136, k), choice);
    }
    // Swap-AB for small M.
    for f in [ScheduleKind::Cooperative, ScheduleKind::DoubleBuffer] {
        for m in [1, 16, 30] {
            let mut choice = schedule(f);
            (choice.swap_ab, choice.tile_m, choice.consumers) = (Some(true), Some(16), Some(1));
            add(bare(m, 136, 200), choice.clone());
            let out = Some(FloatType::F32);
            add(
                Problem {
                    out,
                    ..bare(m, 136, 200)
                },
                choice.clone(),
            );
            if f == ScheduleKind::Cooperative {
                choice.stream_k = Some(true);
                add(bare(m, 264, 200), choice);
            }
        }
    }
    // Types.
    for &dtype in OperandType::ALL {
        for &out in FloatType::ALL {
            for f in [
                ScheduleKind::Cooperative,
                ScheduleKind::PingPong,
                ScheduleKind::Storer,
            ] {
                // Every output type with cooperative, and every schedule with bf16 outputs.
                if f != ScheduleKind::Cooperative && out != FloatType::Bf16 {
                    continue;
                }
                let problem = Problem::new(130, 136, 208, dtype);
                let problem = Problem {
                    out: Some(out),
                    scales: dtype.is_fp8(),
                    ..problem
                };
                add(problem, schedule(f));
            }
        }
        if dtype.is_fp8() {
            for f in [ScheduleKind::Cooperative, ScheduleKind::PingPong] {
                let problem = Problem {
                    accumulation: Accumulation::Promoted,
                    ..Problem::new(130, 72, 528, dtype)
                };
                add(problem, schedule(f));
            }
        }
    }
    // B as [K, N].
    for f in SCHEDULES {
        for dtype in [OperandType::Bf16, OperandType::F16] {
            let problem = Problem {
                layout: OperandLayout::Kn,
                ..Problem::new(130, 200, 136, dtype)
            };
            add(problem.clone(), schedule(f));
            if f == ScheduleKind::Cooperative {
                let mut choice = schedule(f);
                (choice.cluster, choice.ctas) = (Some(Cluster::Cols), Some(2));
                add(problem.clone(), choice);
                let mut choice = schedule(f);
                (choice.swap_ab, choice.tile_m, choice.consumers) = (Some(true), Some(16), Some(1));
                add(Problem { m: 16, ..problem }, choice);
            }
        }
    }
    // Batches and strides.
    for f in SCHEDULES {
        let problem = Problem {
            batch: Some(3),
            ..bare(72, 136, 104)
        };
        add(problem.clone(), schedule(f));
        let strided = Problem {
            a_stride: Some(120),
            b_stride: Some(112),
            c_stride: Some(160),
            ..problem
        };
        add(strided.clone(), schedule(f));
        add(
            Problem {
                batch: None,
                ..strided
            },
            schedule(f),
        );
    }
    cases
}

/// Odd shapes of realistic size, with every schedule.
pub(super) fn large() -> Cases {
    let shapes = [
        [1000, 1000, 1000],
        [4097, 4104, 1032],
        [997, 2048, 520],
        [2039, 136, 4096],
        [33, 14336, 1000],
    ];
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
        big(ScheduleKind::Cooperative, 128, 256, 2),
        big(ScheduleKind::Cooperative, 192, 160, 3),
        big(ScheduleKind::PingPong, 128, 192, 2),
        big(ScheduleKind::PingPong, 128, 208, 2),
        big(ScheduleKind::Storer, 128, 192, 2),
        Choice {
            stream_k: Some(true),
            ..big(ScheduleKind::Cooperative, 128, 224, 2)
        },
        Choice {
            split_k: Some(2),
            ..big(ScheduleKind::Cooperative, 128, 128, 2)
        },
        Choice {
            cluster: Some(Cluster::Rows),
            ..big(ScheduleKind::Cooperative, 128, 256, 2)
        },
        Choice {
            cluster: Some(Cluster::Cols),
            ..big(ScheduleKind::PingPong, 128, 192, 2)
        },
        Choice {
            raster: Some(Raster::Dynamic),
            ..big(ScheduleKind::PingPong, 128, 176, 2)
        },
        Choice {
            raster: Some(Raster::Hilbert),
            ..big(ScheduleKind::Cooperative, 128, 256, 2)
        },
        Choice {
            swap_ab: Some(true),
            ..big(ScheduleKind::Cooperative, 64, 128, 2)
        },
    ];
    let cases = shapes.into_iter().flat_map(|[m, n, k]| {
        let problem = bare(m, n, k);
        choices.clone().map(|choice| TestCase {
            problem: problem.clone(),
            choice,
        })
    });
    cases.collect()
}

/// Linear layers: every epilogue with every schedule.
pub(super) fn linear() -> Cases {
    let mut cases = Cases::new();
    let base = Problem {
        bias: true,
        ..bare(130, 264, 72)
    };
    let mut swap = schedule(ScheduleKind::Cooperative);
    (swap.swap_ab, swap.tile_m, swap.consumers) = (Some(true), Some(16), Some(1));
    for &activation in Activation::ALL {
        let problem = Problem {
            activation,
            ..base.clone()
        };
        for f in SCHEDULES {
            cases.push(TestCase {
                problem: problem.clone(),
                choice: schedule(f),
            });
        }
        let few = Problem { m: 20, ..problem };
        cases.push(TestCase {
            problem: few,
            choice: swap.clone(),
        });
    }
    cases.extend(reduced(&base, &swap));
    let full = Problem {
        activation: Activation::Silu,
        residual: true,
        scale: Some(-0.75),
        ..base
    };
    for &out in FloatType::ALL {
        let problem = Problem {
            out: Some(out),
            ..full.clone()
        };
        for choice in [
            schedule(ScheduleKind::Cooperative),
            schedule(ScheduleKind::PingPong),
            swap.clone(),
        ] {
            let batch = Some(2);
            let c_stride = Some(288);
            cases.push(TestCase {
                problem: Problem {
                    batch,
                    c_stride,
                    ..problem.clone()
                },
                choice: choice.clone(),
            });
            cases.push(TestCase {
                problem: problem.clone(),
                choice,
            });
        }
    }
    for problem in [
        Problem {
            k: 0,
            ..full.clone()
        },
        Problem {
            bias: false,
            ..full
        },
    ] {
        cases.push(TestCase {
            problem,
            choice: Choice::default(),
        });
    }
    cases
}

/// Reductions of C: all schedules that support them, partial tiles, and each reduction alone.
fn reduced(base: &Problem, swap: &Choice) -> Cases {
    let all = Problem {
        activation: Activation::Sigmoid,
        row_sums: true,
        col_sums: true,
        amax: true,
        ..base.clone()
    };
    let with = |f: ScheduleKind, change: fn(&mut Choice)| {
        let mut choice = schedule(f);
        change(&mut choice);
        choice
    };
    let choices = [
        schedule(ScheduleKind::DoubleBuffer),
        schedule(ScheduleKind::Cooperative),
        schedule(ScheduleKind::PingPong),
        with(ScheduleKind::PingPong, |c| c.raster = Some(Raster::Dynamic)),
        with(ScheduleKind::Cooperative, |c| {
            (c.cluster, c.ctas) = (Some(Cluster::Cols), Some(4));
        }),
        with(ScheduleKind::Cooperative, |c| c.split_k = Some(2)),
        with(ScheduleKind::Cooperative, |c| c.stream_k = Some(true)),
        swap.clone(),
    ];
    let case = |problem: &Problem, choice: Choice| TestCase {
        problem: problem.clone(),
        choice,
    };
    let mut cases: Cases = choices.map(|choice| case(&all, choice)).into();
    for [row_sums, col_sums, amax] in [
        [true, false, false],
        [false, true, false],
        [false, false, true],
    ] {
        let one = Problem {
            row_sums,
            col_sums,
            amax,
            out: Some(FloatType::F32),
            ..all.clone()
        };
        cases.push(case(&one, Choice::default()));
        cases.push(case(&Problem { m: 1, k: 0, ..one }, swap.clone()));
    }
    cases
}

//! The test tables: small problems that reach every path.

use super::config::{Choice, Exchange, Raster, ScheduleKind};
use super::problem::Activation;
use super::problem::{Accumulation, OperandLayout, OperandType, Problem};
use super::tile_scheduler::Cluster;
use warpline_family::family::TestCase;
use warpline_family::float::FloatType;

type Cases = Vec<TestCase<Problem, Choice>>;

fn plain(m: u32, n: u32, k: u32) -> Problem {
    Problem::new(m, n, k, OperandType::Bf16)
}

pub(crate) fn small_choice(kind: ScheduleKind) -> Choice {
    let small = Choice {
        schedule: Some(kind),
        stages: Some(3),
        ctas: Some(2),
        ..Choice::default()
    };
    match kind {
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
    // Full waves of wide tiles and a narrow last wave; also with f32 outputs.
    for (kind, out) in [
        (ScheduleKind::PingPong, None),
        (ScheduleKind::Cooperative, Some(FloatType::F32)),
    ] {
        let problem = Problem {
            bias: true,
            residual: true,
            residual_stride: Some(176),
            c_stride: Some(168),
            out,
            ..plain(270, 152, 72)
        };
        let choice = Choice {
            tail_n: Some(32),
            ..small_choice(kind)
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
        add(plain(m, n, k), Choice::default());
    }
    // 0, 1, S - 1, S, S + 1 and 2 S + 1 k-tiles for S stages; more tiles than CTAs; partial tiles.
    for kind in SCHEDULES {
        let choice = small_choice(kind);
        let s = choice.stages.unwrap_or(2);
        for k_tiles in [0, 1, s - 1, s, s + 1, 2 * s + 1] {
            add(plain(200, 136, 64 * k_tiles), choice.clone());
        }
        add(plain(136, 200, 104), choice.clone());
    }
    let with = |kind: ScheduleKind, change: fn(&mut Choice)| {
        let mut choice = small_choice(kind);
        change(&mut choice);
        choice
    };
    // Rasters, clusters, cache hints.
    for kind in [ScheduleKind::Cooperative, ScheduleKind::PingPong] {
        for raster in [Raster::RowMajor, Raster::Hilbert, Raster::Dynamic] {
            let mut choice = small_choice(kind);
            choice.raster = Some(raster);
            add(plain(300, 264, 136), choice);
        }
        for cluster in [Cluster::Rows, Cluster::Cols] {
            let mut choice = small_choice(kind);
            (choice.cluster, choice.ctas) = (Some(cluster), Some(4));
            add(plain(300, 264, 264), choice.clone());
            choice.raster = Some(Raster::Dynamic);
            add(plain(300, 264, 136), choice);
        }
        add(
            plain(300, 264, 136),
            with(kind, |c| c.cache_hints = Some(true)),
        );
        add(plain(200, 200, 264), with(kind, |c| c.tile_k = Some(128)));
        add(plain(200, 200, 264), with(kind, |c| c.tile_k = Some(32)));
        add(plain(200, 240, 136), with(kind, |c| c.tile_n = Some(112)));
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
        plain(256, 264, 136),
        big(ScheduleKind::PingPong, 128, 192, 2, 4),
    );
    add(
        plain(256, 264, 136),
        big(ScheduleKind::PingPong, 128, 176, 2, 5),
    );
    add(
        plain(256, 264, 136),
        big(ScheduleKind::PingPong, 128, 208, 2, 5),
    );
    add(
        plain(256, 264, 136),
        big(ScheduleKind::Cooperative, 128, 256, 2, 4),
    );
    add(
        plain(256, 264, 136),
        big(ScheduleKind::Cooperative, 192, 160, 3, 4),
    );
    add(
        plain(256, 264, 136),
        big(ScheduleKind::Cooperative, 256, 128, 2, 4),
    );
    add(
        plain(256, 264, 136),
        big(ScheduleKind::Storer, 128, 192, 2, 4),
    );
    add(
        plain(256, 264, 136),
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
        let mut choice = small_choice(ScheduleKind::Cooperative);
        (choice.stream_k, choice.ctas) = (Some(true), Some(ctas));
        add(plain(m, n, k), choice);
    }
    for (parts, ks) in [
        (2, [0, 64, 128, 192, 456]),
        (4, [0, 64, 256, 320, 968]),
        (8, [64, 448, 512, 576, 1992]),
    ] {
        for k in ks {
            let mut choice = small_choice(ScheduleKind::Cooperative);
            (choice.split_k, choice.ctas) = (Some(parts), Some(parts));
            if parts > 2 {
                (choice.tile_m, choice.consumers, choice.tile_n) = (Some(64), Some(1), Some(32));
            }
            add(plain(136, 136, k), choice);
        }
    }
    // Swap-AB for small M.
    for kind in [ScheduleKind::Cooperative, ScheduleKind::DoubleBuffer] {
        for m in [1, 16, 30] {
            let mut choice = small_choice(kind);
            (choice.swap_ab, choice.tile_m, choice.consumers) = (Some(true), Some(16), Some(1));
            add(plain(m, 136, 200), choice.clone());
            let out = Some(FloatType::F32);
            add(
                Problem {
                    out,
                    ..plain(m, 136, 200)
                },
                choice.clone(),
            );
            if kind == ScheduleKind::Cooperative {
                choice.stream_k = Some(true);
                add(plain(m, 264, 200), choice);
            }
        }
    }
    // Swap-AB with wide tiles: a staging tile holds some rows of C.
    for m in [112, 200, 250] {
        let mut choice = small_choice(ScheduleKind::Cooperative);
        (choice.swap_ab, choice.tile_m) = (Some(true), Some(m / 16 * 16 + 16));
        (choice.tile_n, choice.stages) = (Some(128), Some(4));
        add(plain(m, 136, 200), choice.clone());
        add(plain(m + 100, 72, 72), choice);
    }
    // Types.
    for &dtype in OperandType::ALL {
        for &out in FloatType::ALL {
            for kind in [
                ScheduleKind::Cooperative,
                ScheduleKind::PingPong,
                ScheduleKind::Storer,
            ] {
                // Every output type with cooperative, and every schedule with bf16 outputs.
                if kind != ScheduleKind::Cooperative && out != FloatType::Bf16 {
                    continue;
                }
                let problem = Problem::new(130, 136, 208, dtype);
                let problem = Problem {
                    out: Some(out),
                    scales: dtype.is_fp8(),
                    ..problem
                };
                add(problem, small_choice(kind));
            }
        }
        if dtype.is_fp8() {
            for kind in [ScheduleKind::Cooperative, ScheduleKind::PingPong] {
                let problem = Problem {
                    accumulation: Accumulation::Promoted,
                    ..Problem::new(130, 72, 528, dtype)
                };
                add(problem, small_choice(kind));
            }
        }
    }
    // B as [K, N].
    for kind in SCHEDULES {
        for dtype in [OperandType::Bf16, OperandType::F16] {
            let problem = Problem {
                layout: OperandLayout::Kn,
                ..Problem::new(130, 200, 136, dtype)
            };
            add(problem.clone(), small_choice(kind));
            if kind == ScheduleKind::Cooperative {
                let mut choice = small_choice(kind);
                (choice.cluster, choice.ctas) = (Some(Cluster::Cols), Some(2));
                add(problem.clone(), choice);
                let mut choice = small_choice(kind);
                (choice.swap_ab, choice.tile_m, choice.consumers) = (Some(true), Some(16), Some(1));
                add(Problem { m: 16, ..problem }, choice);
            }
        }
    }
    // Batches and strides.
    for kind in SCHEDULES {
        let problem = Problem {
            batch: Some(3),
            ..plain(72, 136, 104)
        };
        add(problem.clone(), small_choice(kind));
        let strided = Problem {
            a_stride: Some(120),
            b_stride: Some(112),
            c_stride: Some(160),
            ..problem
        };
        add(strided.clone(), small_choice(kind));
        add(
            Problem {
                batch: None,
                ..strided
            },
            small_choice(kind),
        );
    }
    cases.extend(exchanges_in_memory());
    cases
}

/// Returns a small choice of split-K through memory.
pub(crate) fn in_memory(parts: u32, tile_m: u32, consumers: u32) -> Choice {
    Choice {
        split_k: Some(parts),
        exchange: Some(Exchange::Memory),
        tile_m: Some(tile_m),
        consumers: Some(consumers),
        ctas: None,
        ..small_choice(ScheduleKind::Cooperative)
    }
}

/// Split-K through memory: parts of different lengths and without k-tiles, more parts than blocks of
/// columns, every kind of output.
fn exchanges_in_memory() -> Cases {
    let swapped = Choice {
        swap_ab: Some(true),
        ..in_memory(3, 48, 1)
    };
    let full = Problem {
        bias: true,
        residual: true,
        activation: Activation::GeluTanh,
        scale: Some(-0.75),
        ..plain(130, 136, 456)
    };
    let with_out = |out, problem: &Problem| Problem {
        out: Some(out),
        ..problem.clone()
    };
    let swapped_full = Problem {
        m: 90,
        ..full.clone()
    };
    let cases = [
        (plain(136, 136, 0), in_memory(2, 128, 2)),
        (plain(136, 136, 64), in_memory(3, 128, 2)),
        (plain(200, 72, 456), in_memory(5, 64, 1)),
        (plain(129, 64, 712), in_memory(11, 128, 2)),
        (full.clone(), in_memory(4, 128, 2)),
        (with_out(FloatType::F32, &full), in_memory(3, 64, 1)),
        (
            Problem {
                batch: Some(2),
                ..full
            },
            in_memory(2, 128, 2),
        ),
        // A row pitch that TMA cannot address.
        (plain(130, 129, 200), in_memory(3, 128, 2)),
        (
            Problem::new(130, 136, 528, OperandType::E4m3),
            in_memory(3, 64, 1),
        ),
        (plain(40, 136, 456), swapped.clone()),
        (swapped_full.clone(), swapped.clone()),
        (with_out(FloatType::F32, &swapped_full), swapped),
    ];
    let case = |(problem, choice)| TestCase { problem, choice };
    cases.map(case).into()
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
        let problem = plain(m, n, k);
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
        ..plain(130, 264, 72)
    };
    let mut swap_ab = small_choice(ScheduleKind::Cooperative);
    (swap_ab.swap_ab, swap_ab.tile_m, swap_ab.consumers) = (Some(true), Some(16), Some(1));
    for &activation in Activation::ALL {
        let problem = Problem {
            activation,
            ..base.clone()
        };
        for kind in SCHEDULES {
            cases.push(TestCase {
                problem: problem.clone(),
                choice: small_choice(kind),
            });
        }
        let small_m = Problem { m: 20, ..problem };
        cases.push(TestCase {
            problem: small_m,
            choice: swap_ab.clone(),
        });
    }
    cases.extend(reductions(&base, &swap_ab));
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
            small_choice(ScheduleKind::Cooperative),
            small_choice(ScheduleKind::PingPong),
            swap_ab.clone(),
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
fn reductions(base: &Problem, swap_ab: &Choice) -> Cases {
    let all = Problem {
        activation: Activation::Sigmoid,
        row_sums: true,
        col_sums: true,
        amax: true,
        ..base.clone()
    };
    let with = |kind: ScheduleKind, change: fn(&mut Choice)| {
        let mut choice = small_choice(kind);
        change(&mut choice);
        choice
    };
    let choices = [
        small_choice(ScheduleKind::DoubleBuffer),
        small_choice(ScheduleKind::Cooperative),
        small_choice(ScheduleKind::PingPong),
        with(ScheduleKind::PingPong, |c| c.raster = Some(Raster::Dynamic)),
        with(ScheduleKind::Cooperative, |c| {
            (c.cluster, c.ctas) = (Some(Cluster::Cols), Some(4));
        }),
        with(ScheduleKind::Cooperative, |c| c.split_k = Some(2)),
        with(ScheduleKind::Cooperative, |c| c.stream_k = Some(true)),
        swap_ab.clone(),
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
        cases.push(case(&Problem { m: 1, k: 0, ..one }, swap_ab.clone()));
    }
    cases
}

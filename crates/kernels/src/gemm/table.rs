//! The test tables: small problems that reach every path.

use super::config::{Choice, Form, Order};
use super::problem::Activation;
use super::problem::{Factor, Layout, Problem, Sums};
use super::tile_scheduler::Cluster;
use warpline_family::family::Case;
use warpline_family::float::Float;

type Cases = Vec<Case<Problem, Choice>>;

fn bare(m: u32, n: u32, k: u32) -> Problem {
    Problem::new(m, n, k, Factor::Bf16)
}

pub(crate) fn form(form: Form) -> Choice {
    let small = Choice {
        form: Some(form),
        stages: Some(3),
        ctas: Some(2),
        ..Choice::default()
    };
    match form {
        Form::DoubleBuffer => Choice {
            tile_m: Some(64),
            tile_n: Some(64),
            consumers: Some(1),
            stages: Some(2),
            ..small
        },
        Form::PingPong => Choice {
            tile_m: Some(64),
            tile_n: Some(64),
            ..small
        },
        Form::Cooperative | Form::Storer | Form::TwoConsumer => Choice {
            tile_m: Some(128),
            tile_n: Some(64),
            consumers: Some(2),
            ..small
        },
    }
}

const FORMS: [Form; 4] = [
    Form::DoubleBuffer,
    Form::Cooperative,
    Form::PingPong,
    Form::Storer,
];

/// Bare products.
pub(super) fn gemm() -> Cases {
    let mut cases = Cases::new();
    let mut add = |problem: Problem, choice: Choice| cases.push(Case { problem, choice });
    // Whole waves of wide tiles, and narrow ones behind them; by elements too.
    for (f, out) in [
        (Form::PingPong, None),
        (Form::Cooperative, Some(Float::F32)),
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
            ..form(f)
        };
        add(problem, choice);
    }
    // What the chooser makes of odd shapes.
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
    // K of 0, 1, S - 1, S, S + 1 and 2 S + 1 steps; more tiles than CTAs, and edges.
    for f in FORMS {
        let choice = form(f);
        let s = choice.stages.unwrap_or(2);
        for steps in [0, 1, s - 1, s, s + 1, 2 * s + 1] {
            add(bare(200, 136, 64 * steps), choice.clone());
        }
        add(bare(136, 200, 104), choice.clone());
    }
    let with = |f: Form, change: fn(&mut Choice)| {
        let mut choice = form(f);
        change(&mut choice);
        choice
    };
    // Orders, clusters, hints.
    for f in [Form::Cooperative, Form::PingPong] {
        for order in [Order::RowMajor, Order::Hilbert, Order::Dynamic] {
            let mut choice = form(f);
            choice.order = Some(order);
            add(bare(300, 264, 136), choice);
        }
        for cluster in [Cluster::Rows, Cluster::Cols] {
            let mut choice = form(f);
            (choice.cluster, choice.ctas) = (Some(cluster), Some(4));
            add(bare(300, 264, 264), choice.clone());
            choice.order = Some(Order::Dynamic);
            add(bare(300, 264, 136), choice);
        }
        add(bare(300, 264, 136), with(f, |c| c.hints = Some(true)));
        add(bare(200, 200, 264), with(f, |c| c.tile_k = Some(128)));
        add(bare(200, 200, 264), with(f, |c| c.tile_k = Some(32)));
        add(bare(200, 240, 136), with(f, |c| c.tile_n = Some(112)));
    }
    // The tiles that are meant to be fast.
    let big = |form, m, n, consumers, stages| Choice {
        form: Some(form),
        tile_m: Some(m),
        tile_n: Some(n),
        consumers: Some(consumers),
        stages: Some(stages),
        ctas: Some(2),
        ..Choice::default()
    };
    add(bare(256, 264, 136), big(Form::PingPong, 128, 192, 2, 4));
    add(bare(256, 264, 136), big(Form::PingPong, 128, 176, 2, 5));
    add(bare(256, 264, 136), big(Form::PingPong, 128, 208, 2, 5));
    add(bare(256, 264, 136), big(Form::Cooperative, 128, 256, 2, 4));
    add(bare(256, 264, 136), big(Form::Cooperative, 192, 160, 3, 4));
    add(bare(256, 264, 136), big(Form::Cooperative, 256, 128, 2, 4));
    add(bare(256, 264, 136), big(Form::Storer, 128, 192, 2, 4));
    add(bare(256, 264, 136), big(Form::DoubleBuffer, 128, 256, 2, 4));
    // Sums that several CTAs make.
    for (ctas, [m, n, k]) in [
        (3, [136, 136, 320]),
        (5, [128, 64, 448]),
        (4, [64, 64, 64]),
        (2, [256, 64, 128]),
        (2, [128, 64, 0]),
    ] {
        let mut choice = form(Form::Cooperative);
        (choice.stream_k, choice.ctas) = (Some(true), Some(ctas));
        add(bare(m, n, k), choice);
    }
    for k in [0, 64, 128, 192, 456] {
        let choice = with(Form::Cooperative, |c| c.split_k = Some(2));
        add(bare(136, 136, k), choice);
    }
    // Few rows: B times A.
    for f in [Form::Cooperative, Form::DoubleBuffer] {
        for m in [1, 16, 30] {
            let mut choice = form(f);
            (choice.swap, choice.tile_m, choice.consumers) = (Some(true), Some(16), Some(1));
            add(bare(m, 136, 200), choice.clone());
            let out = Some(Float::F32);
            add(
                Problem {
                    out,
                    ..bare(m, 136, 200)
                },
                choice.clone(),
            );
            if f == Form::Cooperative {
                choice.stream_k = Some(true);
                add(bare(m, 264, 200), choice);
            }
        }
    }
    // Types.
    for &dtype in Factor::ALL {
        for &out in Float::ALL {
            for f in [Form::Cooperative, Form::PingPong, Form::Storer] {
                // Every type that comes out, and every form of the usual one.
                if f != Form::Cooperative && out != Float::Bf16 {
                    continue;
                }
                let problem = Problem::new(130, 136, 208, dtype);
                let problem = Problem {
                    out: Some(out),
                    scales: dtype.is_fp8(),
                    ..problem
                };
                add(problem, form(f));
            }
        }
        if dtype.is_fp8() {
            for f in [Form::Cooperative, Form::PingPong] {
                let problem = Problem {
                    sums: Sums::Promoted,
                    ..Problem::new(130, 72, 528, dtype)
                };
                add(problem, form(f));
            }
        }
    }
    // B as [K, N].
    for f in FORMS {
        for dtype in [Factor::Bf16, Factor::F16] {
            let problem = Problem {
                layout: Layout::Kn,
                ..Problem::new(130, 200, 136, dtype)
            };
            add(problem.clone(), form(f));
            if f == Form::Cooperative {
                let mut choice = form(f);
                (choice.cluster, choice.ctas) = (Some(Cluster::Cols), Some(2));
                add(problem.clone(), choice);
                let mut choice = form(f);
                (choice.swap, choice.tile_m, choice.consumers) = (Some(true), Some(16), Some(1));
                add(Problem { m: 16, ..problem }, choice);
            }
        }
    }
    // Batches and strides.
    for f in FORMS {
        let problem = Problem {
            batch: Some(3),
            ..bare(72, 136, 104)
        };
        add(problem.clone(), form(f));
        let strided = Problem {
            a_stride: Some(120),
            b_stride: Some(112),
            c_stride: Some(160),
            ..problem
        };
        add(strided.clone(), form(f));
        add(
            Problem {
                batch: None,
                ..strided
            },
            form(f),
        );
    }
    cases
}

/// Odd shapes at the sizes that people have, in every form.
pub(super) fn large() -> Cases {
    let shapes = [
        [1000, 1000, 1000],
        [4097, 4104, 1032],
        [997, 2048, 520],
        [2039, 136, 4096],
        [33, 14336, 1000],
    ];
    let big = |form, m, n, consumers| Choice {
        form: Some(form),
        tile_m: Some(m),
        tile_n: Some(n),
        consumers: Some(consumers),
        ..Choice::default()
    };
    let choices = [
        Choice::default(),
        big(Form::DoubleBuffer, 128, 128, 2),
        big(Form::Cooperative, 128, 256, 2),
        big(Form::Cooperative, 192, 160, 3),
        big(Form::PingPong, 128, 192, 2),
        big(Form::PingPong, 128, 208, 2),
        big(Form::Storer, 128, 192, 2),
        Choice {
            stream_k: Some(true),
            ..big(Form::Cooperative, 128, 224, 2)
        },
        Choice {
            split_k: Some(2),
            ..big(Form::Cooperative, 128, 128, 2)
        },
        Choice {
            cluster: Some(Cluster::Rows),
            ..big(Form::Cooperative, 128, 256, 2)
        },
        Choice {
            cluster: Some(Cluster::Cols),
            ..big(Form::PingPong, 128, 192, 2)
        },
        Choice {
            order: Some(Order::Dynamic),
            ..big(Form::PingPong, 128, 176, 2)
        },
        Choice {
            order: Some(Order::Hilbert),
            ..big(Form::Cooperative, 128, 256, 2)
        },
        Choice {
            swap: Some(true),
            ..big(Form::Cooperative, 64, 128, 2)
        },
    ];
    let cases = shapes.into_iter().flat_map(|[m, n, k]| {
        let problem = bare(m, n, k);
        choices.clone().map(|choice| Case {
            problem: problem.clone(),
            choice,
        })
    });
    cases.collect()
}

/// Layers: every epilogue in every form.
pub(super) fn linear() -> Cases {
    let mut cases = Cases::new();
    let base = Problem {
        bias: true,
        ..bare(130, 264, 72)
    };
    let mut swap = form(Form::Cooperative);
    (swap.swap, swap.tile_m, swap.consumers) = (Some(true), Some(16), Some(1));
    for &activation in Activation::ALL {
        let problem = Problem {
            activation,
            ..base.clone()
        };
        for f in FORMS {
            cases.push(Case {
                problem: problem.clone(),
                choice: form(f),
            });
        }
        let few = Problem { m: 20, ..problem };
        cases.push(Case {
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
    for &out in Float::ALL {
        let problem = Problem {
            out: Some(out),
            ..full.clone()
        };
        for choice in [form(Form::Cooperative), form(Form::PingPong), swap.clone()] {
            let batch = Some(2);
            let c_stride = Some(288);
            cases.push(Case {
                problem: Problem {
                    batch,
                    c_stride,
                    ..problem.clone()
                },
                choice: choice.clone(),
            });
            cases.push(Case {
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
        cases.push(Case {
            problem,
            choice: Choice::default(),
        });
    }
    cases
}

/// Reductions of C: in every schedule that has them, at edges, and each by itself.
fn reduced(base: &Problem, swap: &Choice) -> Cases {
    let all = Problem {
        activation: Activation::Sigmoid,
        row_sums: true,
        col_sums: true,
        amax: true,
        ..base.clone()
    };
    let with = |f: Form, change: fn(&mut Choice)| {
        let mut choice = form(f);
        change(&mut choice);
        choice
    };
    let choices = [
        form(Form::DoubleBuffer),
        form(Form::Cooperative),
        form(Form::PingPong),
        with(Form::PingPong, |c| c.order = Some(Order::Dynamic)),
        with(Form::Cooperative, |c| {
            (c.cluster, c.ctas) = (Some(Cluster::Cols), Some(4));
        }),
        with(Form::Cooperative, |c| c.split_k = Some(2)),
        with(Form::Cooperative, |c| c.stream_k = Some(true)),
        swap.clone(),
    ];
    let case = |problem: &Problem, choice: Choice| Case {
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
            out: Some(Float::F32),
            ..all.clone()
        };
        cases.push(case(&one, Choice::default()));
        cases.push(case(&Problem { m: 1, k: 0, ..one }, swap.clone()));
    }
    cases
}

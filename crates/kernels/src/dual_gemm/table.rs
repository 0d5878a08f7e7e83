//! The test tables: small problems that reach every path.

use super::problem::Problem;
use crate::gemm::table::form;
use crate::gemm::{Activation, Choice, Cluster, Factor, Form, Order};
use crate::weights::Weights;
use warpline_family::family::Case;
use warpline_family::float::Float;

type Cases = Vec<Case<Problem, Choice>>;

const FORMS: [Form; 4] = [
    Form::DoubleBuffer,
    Form::Cooperative,
    Form::PingPong,
    Form::TwoConsumer,
];

const LAYOUTS: [Weights; 3] = [Weights::Apart, Weights::Concatenated, Weights::Interleaved];

/// Few rows: the weights times A.
fn swapped(consumers: u32) -> Choice {
    Choice {
        swap: Some(true),
        tile_m: Some(16),
        tile_n: Some(64 * consumers),
        consumers: Some(consumers),
        ..form(Form::Cooperative)
    }
}

/// The same with rows further apart than they are long.
fn strided(problem: Problem) -> Problem {
    Problem {
        a_stride: Some(88),
        weight_stride: Some(80),
        up_stride: (problem.weights == Weights::Apart).then_some(96),
        c_stride: Some(160),
        ..problem
    }
}

/// Small problems.
pub(super) fn cases() -> Cases {
    let mut cases = Cases::new();
    let mut add = |problem: Problem, choice: Choice| cases.push(Case { problem, choice });
    let plain = Problem::new;
    // What the chooser makes of odd shapes.
    for [m, n, k] in [
        [1, 8, 8],
        [1, 8, 0],
        [127, 136, 72],
        [16, 256, 128],
        [131, 264, 200],
    ] {
        add(plain(m, n, k), Choice::default());
    }
    // Whole waves of wide tiles, and narrow ones behind them.
    for weights in LAYOUTS {
        let tail_n = Some(24);
        let problem = Problem {
            weights,
            ..plain(130, 152, 72)
        };
        let choice = Choice {
            tail_n,
            ..form(Form::PingPong)
        };
        add(strided(problem), choice);
    }
    // K of 0, 1, S and 2 S + 1 steps; more tiles than CTAs, and edges.
    for f in FORMS {
        let choice = form(f);
        let s = choice.stages.unwrap_or(2);
        for steps in [0, 1, s, 2 * s + 1] {
            add(plain(200, 136, 64 * steps), choice.clone());
        }
        add(plain(136, 200, 104), choice.clone());
        let eight = Problem {
            dtype: Factor::E4m3,
            scales: true,
            ..plain(130, 136, 208)
        };
        add(eight, choice.clone());
        add(strided(plain(130, 136, 72)), choice.clone());
        let interleaved = Problem {
            weights: Weights::Interleaved,
            gate: Activation::Sigmoid,
            ..plain(130, 136, 72)
        };
        add(strided(interleaved), choice);
    }
    // Layouts, gates, types.
    let choice = form(Form::Cooperative);
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
    for &dtype in Factor::ALL {
        for &out in Float::ALL {
            let problem = Problem {
                dtype,
                out: Some(out),
                scales: dtype.is_fp8(),
                ..plain(130, 136, 208)
            };
            add(problem, choice.clone());
        }
    }
    // Orders, clusters, hints.
    for f in [Form::Cooperative, Form::PingPong, Form::TwoConsumer] {
        for order in [Order::RowMajor, Order::Hilbert, Order::Dynamic] {
            let mut choice = form(f);
            choice.order = Some(order);
            add(plain(300, 264, 136), choice);
        }
        for cluster in [Cluster::Rows, Cluster::Cols] {
            let mut choice = form(f);
            (choice.cluster, choice.ctas) = (Some(cluster), Some(4));
            add(plain(300, 264, 264), choice);
        }
        let mut choice = form(f);
        choice.hints = Some(true);
        add(plain(300, 264, 136), choice);
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
    for choice in [
        big(Form::Cooperative, 128, 64, 2, 6),
        big(Form::Cooperative, 128, 88, 2, 5),
        big(Form::Cooperative, 128, 96, 2, 5),
        big(Form::Cooperative, 128, 112, 2, 4),
        big(Form::Cooperative, 128, 128, 2, 4),
        big(Form::Cooperative, 192, 64, 3, 4),
        big(Form::PingPong, 128, 88, 2, 5),
        big(Form::PingPong, 128, 96, 2, 4),
        big(Form::PingPong, 128, 104, 2, 4),
        big(Form::PingPong, 64, 128, 2, 4),
        big(Form::TwoConsumer, 128, 128, 2, 3),
        big(Form::DoubleBuffer, 128, 128, 2, 4),
    ] {
        add(plain(256, 264, 136), choice);
    }
    // Sums that several CTAs make.
    for (ctas, [m, n, k]) in [(3, [136, 136, 320]), (5, [128, 64, 448]), (2, [128, 64, 0])] {
        let mut choice = form(Form::Cooperative);
        (choice.stream_k, choice.ctas) = (Some(true), Some(ctas));
        add(plain(m, n, k), choice);
    }
    for k in [0, 64, 192, 456] {
        let mut choice = form(Form::Cooperative);
        choice.split_k = Some(2);
        add(plain(136, 136, k), choice);
    }
    // Few rows.
    for consumers in [1, 2] {
        let choice = swapped(consumers);
        for (m, weights) in [1, 16, 30].into_iter().zip(LAYOUTS) {
            let problem = Problem {
                weights,
                ..plain(m, 136, 200)
            };
            add(problem, choice.clone());
        }
        let whole = Problem {
            out: Some(Float::F32),
            gate: Activation::GeluTanh,
            ..plain(20, 136, 200)
        };
        add(whole, choice.clone());
        let stream_k = Choice {
            stream_k: Some(true),
            ..choice.clone()
        };
        add(plain(16, 264, 200), stream_k);
        let alone = Choice {
            form: Some(Form::DoubleBuffer),
            stages: Some(2),
            ..choice
        };
        add(plain(16, 136, 200), alone);
    }
    cases
}

/// Odd shapes at the sizes that people have, in every form.
pub(super) fn large() -> Cases {
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
        big(Form::Cooperative, 128, 128, 2),
        big(Form::Cooperative, 128, 64, 2),
        big(Form::PingPong, 128, 88, 2),
        big(Form::PingPong, 128, 96, 2),
        big(Form::TwoConsumer, 128, 128, 2),
    ];
    let shapes = [[1000, 1000, 1000], [2053, 2056, 1032], [33, 14336, 1000]];
    let cases = shapes.into_iter().flat_map(|[m, n, k]| {
        choices.clone().map(|choice| Case {
            problem: Problem::new(m, n, k),
            choice,
        })
    });
    cases.collect()
}

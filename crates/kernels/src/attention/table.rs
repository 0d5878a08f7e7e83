//! The test table: small problems that reach every path.

use super::bias::BiasStrides;
use super::config::{Choice, Rescale, Schedule, TileAssignment};
use super::problem::{AddendType, Corner, ElementType, KeyLens, Problem};
use super::rows::Strides;
use warpline_family::family::TestCase;

/// Returns the cases.
pub(super) fn cases() -> Vec<TestCase<Problem, Choice>> {
    let mut cases = Vec::new();
    let mut add = |problem: Problem, choice: Choice| cases.push(TestCase { problem, choice });
    let with = |schedule: Schedule, consumers: u32| Choice {
        schedule: Some(schedule),
        consumers: Some(consumers),
        ..Choice::default()
    };
    let causal = |problem: Problem| Problem {
        causal: true,
        lse: true,
        ..problem
    };
    for schedule in [Schedule::PingPong, Schedule::Cooperative] {
        // 1, S, S + 1 and 2 S + 1 blocks of keys, and a part of one.
        for keys in [1, 100, 128, 256, 384, 600] {
            let problem = Problem::new(1, 1, [130, keys], 64);
            add(problem.clone(), with(schedule, 2));
            add(causal(problem), with(schedule, 2));
        }
        // More queries than keys: the first ones see nothing.
        for [queries, keys] in [[200, 40], [500, 130], [1, 1], [64, 300], [300, 0]] {
            add(
                causal(Problem::new(1, 2, [queries, keys], 128)),
                with(schedule, 2),
            );
        }
        for consumers in [1, 3] {
            let problem = Problem {
                kv_heads: Some(2),
                dtype: ElementType::F16,
                ..Problem::new(2, 4, [200, 333], 64)
            };
            add(problem.clone(), with(schedule, consumers));
            add(causal(problem), with(schedule, consumers));
        }
    }
    // Persistent CTAs: 3 CTAs compute 16 tiles. The queries of some tiles see no key.
    for tiles in [TileAssignment::Static, TileAssignment::Queue] {
        for schedule in [Schedule::PingPong, Schedule::Cooperative] {
            let problem = Problem {
                kv_heads: Some(2),
                ..causal(Problem::new(1, 4, [200, 130], 64))
            };
            let choice = Choice {
                tiles: Some(tiles),
                ctas: Some(3),
                ..with(schedule, 1)
            };
            add(problem, choice);
        }
    }
    add(
        Problem {
            corner: Corner::TopLeft,
            ..causal(Problem::new(1, 2, [200, 333], 64))
        },
        Choice::default(),
    );
    // Heads before rows, rows with padding, one head of K and V for all.
    let strided = Problem {
        kv_heads: Some(1),
        q_strides: Some(Strides {
            row: 136,
            head: 136 * 150,
            batch: 136 * 150 * 3 + 8,
        }),
        v_strides: Some(Strides {
            row: 256,
            head: 8,
            batch: 256 * 200,
        }),
        o_strides: Some(Strides {
            row: 128,
            head: 128 * 150,
            batch: 128 * 450,
        }),
        scale: Some(0.5),
        ..Problem::new(2, 3, [150, 190], 128)
    };
    add(strided.clone(), Choice::default());
    add(causal(strided), Choice::default());
    for [dim, dim_v] in [
        [8, 8],
        [40, 24],
        [72, 80],
        [96, 96],
        [128, 64],
        [192, 128],
        [256, 256],
    ] {
        let problem = Problem {
            dim_v: (dim_v != dim).then_some(dim_v),
            ..Problem::new(1, 2, [150, 190], dim)
        };
        add(problem.clone(), Choice::default());
        add(causal(problem), Choice::default());
    }
    add(Problem::new(1, 1, [0, 5], 64), Choice::default());
    add(Problem::new(1, 1, [5, 0], 64), Choice::default());
    let narrow = Choice {
        tile_keys: Some(80),
        stages: Some(3),
        ..Choice::default()
    };
    add(causal(Problem::new(1, 1, [150, 500], 64)), narrow);
    cases.extend(windows());
    cases.extend(score_rules());
    cases.extend(sequences());
    cases.extend(splits());
    cases.extend(rescaling());
    cases
}

/// Returns cases of sliding windows: within a block, over several blocks, wider than the sequence, and
/// of queries that see no key.
fn windows() -> Vec<TestCase<Problem, Choice>> {
    let mut cases = Vec::new();
    for schedule in [Schedule::PingPong, Schedule::Cooperative] {
        for [left, right] in [
            [Some(0), Some(0)],
            [Some(7), Some(0)],
            [Some(70), Some(20)],
            [Some(200), None],
            [None, Some(50)],
            [Some(5000), Some(3)],
        ] {
            for [queries, keys] in [[330, 410], [300, 90], [70, 0]] {
                let problem = Problem {
                    window_left: left,
                    window_right: right,
                    lse: true,
                    ..Problem::new(1, 2, [queries, keys], 64)
                };
                // Blocks of 32 keys: many without a masked score.
                let choice = Choice {
                    schedule: Some(schedule),
                    tile_keys: Some(32),
                    consumers: Some(1),
                    ..Choice::default()
                };
                cases.push(TestCase { problem, choice });
            }
        }
    }
    let problem = Problem {
        causal: true,
        window_left: Some(100),
        corner: Corner::TopLeft,
        ..Problem::new(2, 1, [300, 500], 128)
    };
    for tiles in TileAssignment::ALL {
        cases.push(TestCase {
            problem: problem.clone(),
            choice: Choice {
                tiles: Some(*tiles),
                ..Choice::default()
            },
        });
    }
    cases
}

/// Returns cases of softcap, sink and bias, alone and together.
fn score_rules() -> Vec<TestCase<Problem, Choice>> {
    let base = Problem {
        kv_heads: Some(1),
        lse: true,
        ..Problem::new(2, 2, [150, 300], 64)
    };
    let bias = |bias: AddendType, strides: Option<[u64; 4]>| Problem {
        bias: Some(bias),
        bias_strides: strides.map(|[key, row, head, batch]| BiasStrides {
            key,
            row,
            head,
            batch,
        }),
        ..base.clone()
    };
    let odd = Problem {
        keys: 299,
        ..bias(AddendType::Bf16, None)
    };
    let problems = [
        Problem {
            softcap: Some(0.7),
            ..base.clone()
        },
        Problem {
            softcap: Some(30.0),
            causal: true,
            ..base.clone()
        },
        Problem {
            sink: Some(AddendType::F32),
            ..base.clone()
        },
        // More queries than keys: some see the sink only.
        Problem {
            sink: Some(AddendType::Bf16),
            queries: 400,
            causal: true,
            ..base.clone()
        },
        Problem {
            sink: Some(AddendType::F16),
            keys: 0,
            ..base.clone()
        },
        bias(AddendType::F32, None),
        bias(AddendType::F16, None),
        bias(AddendType::Bf16, Some([1, 0, 0, 300])),
        bias(AddendType::F32, Some([0, 1, 150, 0])),
        bias(AddendType::F32, Some([2, 600, 0, 0])),
        Problem {
            keys: 1,
            ..bias(AddendType::F16, None)
        },
        Problem {
            keys: 0,
            ..bias(AddendType::Bf16, None)
        },
        Problem {
            softcap: Some(5.0),
            sink: Some(AddendType::F32),
            window_left: Some(60),
            causal: true,
            ..odd.clone()
        },
        odd,
    ];
    let cases = problems.into_iter().map(|problem| TestCase {
        problem,
        choice: Choice::default(),
    });
    let cooperative = TestCase {
        problem: Problem {
            sink: Some(AddendType::F32),
            softcap: Some(5.0),
            causal: true,
            ..bias(AddendType::Bf16, None)
        },
        choice: Choice {
            schedule: Some(Schedule::Cooperative),
            ..Choice::default()
        },
    };
    cases.chain([cooperative]).collect()
}

/// Returns cases of packed sequences, lengths of keys, and pages.
fn sequences() -> Vec<TestCase<Problem, Choice>> {
    let base = Problem {
        kv_heads: Some(2),
        lse: true,
        ..Problem::new(5, 4, [500, 700], 64)
    };
    let packed = Problem {
        packed_queries: true,
        packed_keys: true,
        ..base.clone()
    };
    let lengths = Problem {
        key_lens: Some(KeyLens::Lengths),
        queries: 90,
        keys: 300,
        ..base.clone()
    };
    let paged = |page: u32, max_pages: u32, pages: u32| Problem {
        page: Some(page),
        max_pages: Some(max_pages),
        keys: page * pages,
        ..lengths.clone()
    };
    let causal = |problem: Problem| Problem {
        causal: true,
        ..problem
    };
    let problems = [
        packed.clone(),
        causal(packed.clone()),
        Problem {
            corner: Corner::TopLeft,
            window_left: Some(50),
            dim: 40,
            dim_v: Some(24),
            ..causal(packed.clone())
        },
        Problem {
            batch: 1,
            ..packed.clone()
        },
        Problem {
            batch: 40,
            sink: Some(AddendType::F32),
            ..causal(packed.clone())
        },
        Problem {
            keys: 0,
            ..packed.clone()
        },
        Problem {
            packed_keys: false,
            keys: 130,
            ..causal(packed.clone())
        },
        Problem {
            packed_queries: false,
            queries: 150,
            window_left: Some(70),
            window_right: Some(20),
            ..packed.clone()
        },
        lengths.clone(),
        Problem {
            bias: Some(AddendType::F32),
            softcap: Some(3.0),
            ..causal(lengths.clone())
        },
        paged(64, 5, 12),
        causal(paged(16, 20, 70)),
        Problem {
            key_lens: Some(KeyLens::Ends),
            packed_queries: true,
            queries: 400,
            ..causal(paged(24, 9, 30))
        },
        paged(256, 2, 7),
        paged(16, 3, 0),
    ];
    let cases = problems.into_iter().flat_map(|problem| {
        [Schedule::PingPong, Schedule::Cooperative].map(|schedule| TestCase {
            problem: problem.clone(),
            choice: Choice {
                schedule: Some(schedule),
                ctas: Some(7),
                ..Choice::default()
            },
        })
    });
    cases.collect()
}

/// Returns cases of rescaling: a large scale makes maxima grow by more than a row keeps, and the first blocks
/// of a window have no visible key.
fn rescaling() -> Vec<TestCase<Problem, Choice>> {
    let causal = Problem {
        causal: true,
        lse: true,
        scale: Some(3.0),
        ..Problem::new(1, 2, [200, 600], 64)
    };
    let windowed = Problem {
        window_left: Some(60),
        dtype: ElementType::F16,
        scale: None,
        ..causal.clone()
    };
    let split = Problem {
        kv_heads: Some(1),
        queries: 3,
        ..causal.clone()
    };
    let cases = [causal, windowed, split].into_iter().flat_map(|problem| {
        let both =
            |&schedule: &Schedule| Rescale::ALL.iter().map(move |&rescale| (schedule, rescale));
        let choices = Schedule::ALL.iter().flat_map(both);
        choices.map(move |(schedule, rescale)| TestCase {
            problem: problem.clone(),
            choice: Choice {
                schedule: Some(schedule),
                rescale: Some(rescale),
                ..Choice::default()
            },
        })
    });
    cases.collect()
}

/// Returns cases of decoding: parts of the keys, and tiles of several heads.
fn splits() -> Vec<TestCase<Problem, Choice>> {
    let base = Problem {
        kv_heads: Some(2),
        lse: true,
        ..Problem::new(2, 8, [3, 700], 64)
    };
    let paged = Problem {
        key_lens: Some(KeyLens::Lengths),
        page: Some(16),
        max_pages: Some(40),
        keys: 16 * 90,
        ..base.clone()
    };
    let mut cases = Vec::new();
    for splits in [1, 2, 3, 20] {
        for tile_heads in [1, 4] {
            for problem in [base.clone(), paged.clone()] {
                let problem = Problem {
                    causal: true,
                    ..problem
                };
                let choice = Choice {
                    splits: Some(splits),
                    tile_heads: Some(tile_heads),
                    ctas: Some(9),
                    ..Choice::default()
                };
                cases.push(TestCase { problem, choice });
            }
        }
    }
    let windowed = Problem {
        window_left: Some(200),
        sink: Some(AddendType::Bf16),
        dtype: ElementType::F16,
        dim: 72,
        dim_v: Some(80),
        ..paged.clone()
    };
    let sevens = Problem {
        heads: 14,
        sink: Some(AddendType::F32),
        lse: false,
        queries: 8,
        dim: 72,
        key_lens: Some(KeyLens::Lengths),
        ..base.clone()
    };
    let packed = Problem {
        packed_queries: true,
        queries: 9,
        batch: 4,
        causal: true,
        ..paged.clone()
    };
    for problem in [windowed, sevens, packed] {
        for splits in [None, Some(1), Some(2), Some(5)] {
            let choice = Choice {
                splits,
                ..Choice::default()
            };
            cases.push(TestCase {
                problem: problem.clone(),
                choice,
            });
        }
    }
    // Tiles of 9 queries of 7 heads.
    for splits in [1, 2] {
        cases.push(TestCase {
            problem: Problem {
                heads: 14,
                queries: 30,
                keys: 130,
                causal: true,
                ..base.clone()
            },
            choice: Choice {
                splits: Some(splits),
                tile_heads: Some(7),
                ..Choice::default()
            },
        });
    }
    for tiles in [TileAssignment::One, TileAssignment::Static] {
        let choice = Choice {
            splits: Some(3),
            tiles: Some(tiles),
            ..Choice::default()
        };
        cases.push(TestCase {
            problem: base.clone(),
            choice,
        });
    }
    cases
}

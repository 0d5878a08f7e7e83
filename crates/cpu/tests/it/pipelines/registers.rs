//! Fragments: element positions match the accumulator layout, and every function of a fragment equals
//! the function of a matrix.

use crate::pipelines::harness::{
    Input, fill, floats, noise, round, run, run_floats, timings, to_floats,
};
use half::{bf16, f16};
use warpline_ir::builder::*;
use warpline_ir::{E4m3, E5m2, Kernel, Target, Tf32};

/// A matrix of rows.
#[derive(Clone, PartialEq, Debug)]
struct Matrix {
    cols: usize,
    values: Vec<f32>,
}

impl Matrix {
    fn new(rows: usize, cols: usize, f: impl Fn(usize, usize) -> f32) -> Self {
        let values = (0..rows * cols).map(|i| f(i / cols, i % cols)).collect();
        Self { cols, values }
    }

    fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.values.chunks(self.cols)
    }
}

/// Asserts that all values are equal; NaN equals NaN.
#[track_caller]
fn assert_same(what: &str, got: &[f32], want: &[f32]) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (x, y)) in got.iter().zip(want).enumerate() {
        let equal = x == y || x.is_nan() && y.is_nan();
        assert!(equal, "{what}: value {i} is {x}, not {y}");
    }
}

/// Loads the matrix `x` into a fragment of a warpgroup and runs `body`, which writes `len` floats.
#[track_caller]
fn run_on(x: &Matrix, len: usize, body: impl Fn(Frag, Global<f32>)) -> Vec<f32> {
    let n = x.cols as u32;
    let m = x.values.len() as u32 / n;
    let kernel = Kernel::build("tile", &Target::SM_90A, |k| {
        let [from, to] = ["x", "y"].map(|name| k.pointer::<f32>(name));
        k.role("all").warpgroups(1).body(|| {
            body(read(Frag::zeros(m, n), from), to);
        });
    });
    let kernel = kernel.unwrap_or_else(|e| panic!("{e}"));
    let inputs = [floats(x.values.clone()), Input::Output(len * 4)];
    run_floats(&kernel, 1, &inputs, &timings(0)[1])
}

/// Reads a fragment from rows of global memory.
fn read(shape: Frag, from: Global<f32>) -> Frag {
    let n = shape.cols();
    shape.map_with_coord(|_, at| from.load(at.row * n + at.col))
}

/// Writes a fragment to rows of global memory.
fn write(tile: &Frag, to: Global<f32>) {
    let n = tile.cols();
    tile.each_pair(|at, pair| to.store_vec(at.row * n + at.col, pair));
}

/// Returns numbers in −1…1.
fn random_matrix(rows: usize, cols: usize, seed: u32) -> Matrix {
    let x = noise(rows * cols, seed);
    Matrix::new(rows, cols, |i, j| x[i * cols + j])
}

/// Returns the matrix `256 · row + column`.
fn coordinates(rows: usize, cols: usize) -> Matrix {
    Matrix::new(rows, cols, |i, j| (256 * i + j) as f32)
}

/// A GEMM with K = 16 computes `256 · row + column`, so the results encode their position.
#[test]
fn fragment_positions_match_the_accumulator_layout() {
    for (m, n) in [(64, 8), (64, 64), (128, 24), (192, 136), (64, 256)] {
        let kernel = Kernel::build("cells", &Target::SM_90A, |k| {
            let [a, b] = ["a", "b"].map(|name| k.pointer::<bf16>(name));
            let [pairs, distances] = ["pairs", "distances"].map(|name| k.pointer::<f32>(name));
            let (ta, tb) = (k.tile("a", m, 16).declare(), k.tile("b", n, 16).declare());
            k.role("all").warpgroups(1).body(|| {
                fill(ta.whole(), a);
                fill(tb.whole(), b);
                let acc = Acc::new(m, n);
                acc.mma(&ta.whole(), &tb.whole());
                let sums = acc.into_frag();
                write(&sums, pairs);
                let distance =
                    |x: Reg<f32>, at: FragCoord| x - (at.row * 256 + at.col).cast::<f32>();
                write(&sums.map_with_coord(distance), distances);
            });
        });
        let kernel = kernel.expect("a valid kernel");
        let half = |x: Matrix| {
            let bytes = x
                .values
                .iter()
                .flat_map(|&x| bf16::from_f32(x).to_le_bytes());
            Input::Data(bytes.collect())
        };
        let (rows, cols) = (m as usize, n as usize);
        let len = Input::Output(rows * cols * 4);
        let inputs = [
            half(Matrix::new(rows, 16, |i, k| {
                [i as f32, 1.0].get(k).copied().unwrap_or(0.0)
            })),
            half(Matrix::new(cols, 16, |j, k| {
                [256.0, j as f32].get(k).copied().unwrap_or(0.0)
            })),
            len.clone(),
            len,
        ];
        for options in timings(1) {
            let out =
                run(&kernel, 1, &inputs, &options).unwrap_or_else(|e| panic!("{m} x {n}: {e}"));
            let out: Vec<Vec<f32>> = out.iter().map(|b| to_floats(b)).collect();
            assert_same(
                &format!("{m} x {n}"),
                &out[0],
                &coordinates(rows, cols).values,
            );
            assert_same(
                &format!("{m} x {n}, distances"),
                &out[1],
                &vec![0.0; rows * cols],
            );
        }
    }
}

#[test]
fn values_are_mapped_and_combined() {
    for (m, n) in [(64, 8), (128, 40)] {
        let x = random_matrix(m, n, 1);
        let got = run_on(&x, m * n, |tile, to| {
            let other = tile
                .clone()
                .map_with_coord(|x, at| x * at.col.cast::<f32>());
            write(&tile.map(|x| x * 3.0).zip(&other, |x, y| x - y), to);
        });
        let want = Matrix::new(m, n, |i, j| {
            let x = x.values[i * n + j];
            x * 3.0 - x * j as f32
        });
        assert_same("map and zip", &got, &want.values);
    }
}

#[test]
fn rows_and_columns_are_combined_with_their_indices() {
    for (m, n) in [(64, 16), (128, 72)] {
        let x = random_matrix(m, n, 2);
        let first: Vec<f32> = x
            .rows()
            .map(|r| r.iter().copied().fold(r[0], f32::max))
            .collect();
        let got = run_on(&x, m * n, |tile, to| {
            let max = tile.row_max();
            write(&tile.zip_rows(&max, |x, max| x - max), to);
        });
        let want = Matrix::new(m, n, |i, j| x.values[i * n + j] - first[i]);
        assert_same("zip_rows", &got, &want.values);

        let got = run_on(&x, m * n, |tile, to| {
            let by = tile.row_max().map(|r| r * 2.0);
            write(&tile.rescale(&by), to);
        });
        let want = Matrix::new(m, n, |i, j| x.values[i * n + j] * (first[i] * 2.0));
        assert_same("rescale", &got, &want.values);

        let calls = std::cell::Cell::new(0);
        let got = run_on(&x, m * n, |tile, to| {
            calls.set(0);
            let column = |col: Reg<u32>| {
                calls.set(calls.get() + 1);
                (col * col).cast::<f32>()
            };
            write(&tile.zip_cols(column, |x, c| x + c), to);
        });
        let want = Matrix::new(m, n, |i, j| x.values[i * n + j] + (j * j) as f32);
        assert_same("zip_cols", &got, &want.values);
        assert_eq!(
            calls.get(),
            n / 4,
            "the function runs once for each column of a lane"
        );
    }
}

#[test]
fn predicates_select_elements() {
    let (m, n) = (128, 64);
    let x = random_matrix(m, n, 3);
    let kept = |keep: &dyn Fn(FragCoord) -> Reg<bool>| {
        run_on(&x, m * n, |tile, to| {
            write(&tile.mask(keep, f32::NEG_INFINITY), to)
        })
    };
    let want = |keep: &dyn Fn(usize, usize) -> bool| {
        let selected = |i, j| {
            if keep(i, j) {
                x.values[i * n + j]
            } else {
                f32::NEG_INFINITY
            }
        };
        Matrix::new(m, n, selected).values
    };
    for first in [0u32, 7, 64] {
        let got = kept(&|at| (at.col + first).le(at.row));
        assert_same("causal", &got, &want(&|i, j| j + first as usize <= i));
    }
    let got = kept(&|at| at.row.lt(77u32) & at.col.lt(19u32));
    assert_same("edge", &got, &want(&|i, j| i < 77 && j < 19));
}

/// Writes one float per row.
fn write_rows(rows: &RowVector, to: Global<f32>) {
    rows.each(|row, x| to.store(row, x));
}

#[test]
fn rows_are_reduced() {
    for (m, n) in [(64, 8), (128, 56)] {
        // The sums of integers are exact in any order.
        let x = Matrix::new(m, n, |i, j| ((i * 31 + j * 57) % 199) as f32 - 99.0);
        let sums: Vec<f32> = x.rows().map(|r| r.iter().sum()).collect();
        let max: Vec<f32> = x
            .rows()
            .map(|r| r.iter().copied().fold(r[0], f32::max))
            .collect();
        let min: Vec<f32> = x
            .rows()
            .map(|r| r.iter().copied().fold(r[0], f32::min))
            .collect();
        assert_same(
            "sum",
            &run_on(&x, m, |t, to| write_rows(&t.row_sum(), to)),
            &sums,
        );
        assert_same(
            "max",
            &run_on(&x, m, |t, to| write_rows(&t.row_max(), to)),
            &max,
        );
        let got = run_on(&x, m, |t, to| {
            write_rows(&t.row_reduce(|x, y| x.min(y)), to)
        });
        assert_same("min", &got, &min);
        // Partial reductions of two fragments are joined before the shuffle.
        let got = run_on(&x, m, |t, to| {
            let parts = t.row_reduce_partial(|x, y| x + y);
            let twice = parts.zip(&t.row_reduce_partial(|x, y| x + y), |x, y| x + y);
            write_rows(&twice.reduce_lanes(|x, y| x + y), to);
        });
        assert_same(
            "parts",
            &got,
            &sums.iter().map(|x| 2.0 * x).collect::<Vec<_>>(),
        );
    }
}

/// A maximum ignores NaN unless all elements are NaN.
#[test]
fn a_row_maximum_ignores_nan_and_a_row_sum_does_not() {
    let (m, n) = (64, 24);
    let x = Matrix::new(m, n, |i, j| match (i % 4, j) {
        (0, _) => f32::NEG_INFINITY,
        (1, 5) => -7.0,
        (1, _) => f32::NEG_INFINITY,
        (2, 17) => -3.0,
        (2, _) | (3, _) => f32::NAN,
        _ => 0.0,
    });
    let want: Vec<f32> = (0..m)
        .map(|i| [f32::NEG_INFINITY, -7.0, -3.0, f32::NAN][i % 4])
        .collect();
    assert_same(
        "max",
        &run_on(&x, m, |t, to| write_rows(&t.row_max(), to)),
        &want,
    );
    // A sum does not ignore NaN.
    let want: Vec<f32> = (0..m)
        .map(|i| {
            if i % 4 < 2 {
                f32::NEG_INFINITY
            } else {
                f32::NAN
            }
        })
        .collect();
    assert_same(
        "sum",
        &run_on(&x, m, |t, to| write_rows(&t.row_sum(), to)),
        &want,
    );
}

#[test]
fn columns_are_sliced_and_split() {
    let (m, n) = (128, 48);
    let x = random_matrix(m, n, 4);
    let part = |from: usize, to: usize| {
        Matrix::new(m, to - from, |i, j| x.values[i * n + from + j]).values
    };
    for (from, to) in [(0, 48), (0, 8), (8, 24), (40, 48)] {
        let got = run_on(&x, m * (to - from), |tile, out| {
            write(&tile.slice(from as u32..to as u32), out);
        });
        assert_same(&format!("columns {from}..{to}"), &got, &part(from, to));
    }
    let got = run_on(&x, m * n, |tile, out| {
        let (left, right) = tile.split_cols(16);
        write(&left, out);
        write(&right, out.offset((m * 16) as u32));
    });
    assert_same("split", &got, &[part(0, 16), part(16, 48)].concat());
}

#[test]
fn tiles_and_rows_are_carried_through_loops() {
    let (m, n) = (64, 16);
    let x = random_matrix(m, n, 5);
    for rounds in [0u32, 1, 3] {
        let got = run_on(&x, m * n + m, |tile, to| {
            let first = (tile.clone(), RowVector::splat(64, 1.0));
            let (tile, rows) = steps(rounds).fold(first, |i, (tile, rows)| {
                let by = rows.map(|r| r * 2.0);
                (tile.rescale(&by).map(|x| x + i.cast::<f32>()), by)
            });
            write(&tile, to);
            write_rows(&rows, to.offset((m * n) as u32));
        });
        let step = |x: f32, i: u32| x * 2f32.powi(i as i32 + 1) + i as f32;
        let want = x.values.iter().map(|&x| (0..rounds).fold(x, step));
        let rows = vec![2f32.powi(rounds as i32); m];
        assert_same(
            &format!("{rounds} rounds"),
            &got,
            &[want.collect(), rows].concat(),
        );
    }
}

#[test]
fn two_accumulators_are_promoted_in_sequence() {
    let (m, n) = (64u32, 24u32);
    let kernel = Kernel::build("promote", &Target::SM_90A, |k| {
        let [a, b] = ["a", "b"].map(|name| k.pointer::<f16>(name));
        let to = k.pointer::<f32>("c");
        let (ta, tb) = (k.tile("a", m, 64).declare(), k.tile("b", n, 64).declare());
        k.role("all").warpgroups(1).body(|| {
            fill(ta.whole(), a);
            fill(tb.whole(), b);
            let sums = [0, 32].into_iter().fold(Frag::zeros(m, n), |sums, k| {
                let part = Acc::new(m, n);
                let (a, b) = (ta.whole(), tb.whole());
                part.mma(&a.slice(0..m, k..k + 32), &b.slice(0..n, k..k + 32));
                sums.promote(part)
            });
            write(&sums, to);
        });
    });
    // The sums of small integers are exact in any order.
    let (rows, cols) = (m as usize, n as usize);
    let a = Matrix::new(rows, 64, |i, k| ((i * 5 + k * 3) % 17) as f32 - 8.0);
    let b = Matrix::new(cols, 64, |j, k| ((j * 7 + k * k) % 13) as f32 - 6.0);
    let half = |x: &Matrix| {
        let bytes = x
            .values
            .iter()
            .flat_map(|&x| f16::from_f32(x).to_le_bytes());
        Input::Data(bytes.collect())
    };
    let inputs = [half(&a), half(&b), Input::Output(rows * cols * 4)];
    let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f32>();
    let want: Vec<f32> = a
        .rows()
        .flat_map(|x| b.rows().map(move |y| dot(x, y)))
        .collect();
    for options in timings(2) {
        let got = run_floats(
            kernel.as_ref().expect("a valid kernel"),
            1,
            &inputs,
            &options,
        );
        assert_same("promoted", &got, &want);
    }
}

/// Writes a fragment to shared memory, and reads it back by elements and as a fragment.
#[test]
fn a_fragment_keeps_its_values_through_shared_memory() {
    for (m, n) in [(64u32, 8u32), (64, 32), (128, 48)] {
        let kernel = Kernel::build("through", &Target::SM_90A, |k| {
            let from = k.pointer::<f32>("x");
            let [by_element, by_tile] = ["e", "t"].map(|name| k.pointer::<f32>(name));
            let tile = k.tile::<f32>("tile", m, n).declare();
            k.role("all").warpgroups(1).body(|| {
                read(Frag::zeros(m, n), from).store(&tile.whole());
                cta_sync();
                range(thread_id(), m * n).step_by(128u32).each(|i| {
                    by_element.store(i, tile.whole().load(i / n, i % n));
                });
                write(&Frag::load(&tile.whole()), by_tile);
            });
        });
        let kernel = kernel.expect("a valid kernel");
        let x = random_matrix(m as usize, n as usize, 6);
        let len = Input::Output(x.values.len() * 4);
        let inputs = [floats(x.values.clone()), len.clone(), len];
        for options in timings(1) {
            let out = run(&kernel, 1, &inputs, &options).unwrap_or_else(|e| panic!("{e}"));
            for (got, how) in out.iter().zip(["elements", "tile"]) {
                assert_same(&format!("{m} x {n} by {how}"), &to_floats(got), &x.values);
            }
        }
    }
}

/// Rounds a fragment to 16 bits, stores it straight and transposed, and checks every element.
fn check_half_stores<T: Half>(m: u32, n: u32, bits: impl Fn(f32) -> u16) {
    let kernel = Kernel::build("half_stores", &Target::SM_90A, |k| {
        let from = k.pointer::<f32>("x");
        let [straight, transposed] = ["straight", "transposed"].map(|name| k.pointer::<T>(name));
        let s = k.tile::<T>("straight", m, n).declare();
        let t = k.tile::<T>("transposed", n, m).declare();
        k.role("all").warpgroups(1).body(|| {
            let tile = read(Frag::zeros(m, n), from);
            tile.store_matrix(&s.whole());
            tile.store_transposed(&t.whole());
            cta_sync();
            range(thread_id(), m * n).step_by(128u32).each(|i| {
                straight.store_as::<u16, 1>(i, s.whole().load_as(i / n, i % n));
                transposed.store_as::<u16, 1>(i, t.whole().load_as(i / m, i % m));
            });
        });
    });
    let kernel = kernel.unwrap_or_else(|e| panic!("{e}"));
    let x = random_matrix(m as usize, n as usize, 7);
    let len = Input::Output(x.values.len() * 2);
    let inputs = [floats(x.values.clone()), len.clone(), len];
    let out = run(&kernel, 1, &inputs, &timings(0)[1]).unwrap_or_else(|e| panic!("{e}"));
    let got = |i: usize, at: usize| u16::from_le_bytes([out[i][2 * at], out[i][2 * at + 1]]);
    for (i, row) in x.rows().enumerate() {
        for (j, &x) in row.iter().enumerate() {
            let what = format!("{} {m} x {n} at {i}, {j}", T::DTYPE);
            assert_eq!(got(0, i * row.len() + j), bits(x), "{what}");
            assert_eq!(got(1, j * m as usize + i), bits(x), "{what}, transposed");
        }
    }
}

#[test]
fn a_fragment_is_rounded_and_stored_straight_and_transposed() {
    for (m, n) in [(64, 16), (64, 48), (128, 64), (128, 96)] {
        check_half_stores::<bf16>(m, n, |x| bf16::from_f32(x).to_bits());
        check_half_stores::<f16>(m, n, |x| f16::from_f32(x).to_bits());
    }
}

/// Two warps run `mma.sync`, each on its own rows of B.
fn check_mma_by_warps<T: MmaElement<Word: MmaWith<T::Word>>>(m: u32, n: u32, depth: u32) {
    let kernel = Kernel::build("warps", &Target::SM_90A, |k| {
        let [a, b] = ["a", "b"].map(|name| k.pointer::<T>(name));
        let to = k.pointer::<f32>("c");
        let ta = k.tile::<T>("a", m + 16, depth).declare();
        let tb = k.tile::<T>("b", 2 * n, depth).declare();
        k.role("all").warps(2).body(|| {
            fill(ta.whole(), a);
            fill(tb.whole(), b);
            let zeros = Frag::warp_zeros(m, n);
            let mine = warp_in_role() * n;
            let sums = zeros.mma_sync(&ta.whole(), 16u32, &tb.whole(), mine);
            // Adds the product with the first rows of A.
            let sums = sums.mma_sync(&ta.whole(), 0u32, &tb.whole(), mine);
            write(&sums, to.offset(mine * m));
        });
    });
    let kernel = kernel.unwrap_or_else(|e| panic!("{e}"));
    let (rows, cols, depth) = (m as usize, n as usize, depth as usize);
    let a = Matrix::new(rows + 16, depth, |i, k| ((i * 5 + k * 3) % 17) as f32 - 8.0);
    let b = Matrix::new(2 * cols, depth, |j, k| ((j * 7 + k * k) % 13) as f32 - 6.0);
    let bytes = |x: &Matrix| Input::Data(round::<T>(&x.values).0);
    let inputs = [bytes(&a), bytes(&b), Input::Output(2 * rows * cols * 4)];
    let dot = |i: usize, j: usize| -> f32 {
        let (x, y) = (
            &a.values[i * depth..][..depth],
            &b.values[j * depth..][..depth],
        );
        x.iter().zip(y).map(|(x, y)| x * y).sum()
    };
    let want: Vec<f32> = (0..2 * rows * cols)
        .map(|at| {
            let (warp, i, j) = (at / (rows * cols), at / cols % rows, at % cols);
            dot(i + 16, warp * cols + j) + dot(i, warp * cols + j)
        })
        .collect();
    for options in timings(1) {
        let got = run_floats(&kernel, 1, &inputs, &options);
        assert_same(&format!("{} {m} x {n} x {depth}", T::DTYPE), &got, &want);
    }
}

#[test]
fn each_warp_multiplies_its_own_rows() {
    check_mma_by_warps::<bf16>(16, 16, 16);
    check_mma_by_warps::<bf16>(32, 48, 64);
    check_mma_by_warps::<f16>(16, 32, 48);
    check_mma_by_warps::<f16>(48, 16, 32);
    check_mma_by_warps::<Tf32>(16, 32, 24);
    check_mma_by_warps::<E4m3>(32, 16, 96);
    check_mma_by_warps::<E5m2>(16, 16, 32);
}

#[test]
fn a_warp_fragment_is_stored_and_reduced() {
    let (m, n) = (32u32, 48u32);
    let kernel = Kernel::build("warp_tile", &Target::SM_90A, |k| {
        let from = k.pointer::<f32>("x");
        let [sums, tiles] = ["sums", "tiles"].map(|name| k.pointer::<f32>(name));
        let transposed = k.tile::<bf16>("transposed", n, m).declare();
        k.role("all").warps(1).body(|| {
            let tile = read(Frag::warp_zeros(m, n), from);
            write_rows(&tile.row_sum(), sums);
            tile.store_transposed(&transposed.whole());
            warp_sync();
            range(lane_id(), m * n).step_by(32u32).each(|i| {
                let [x] = transposed.whole().load_as::<bf16, 1>(i / m, i % m);
                tiles.store(i, x.cast::<f32>());
            });
        });
    });
    let kernel = kernel.unwrap_or_else(|e| panic!("{e}"));
    let x = Matrix::new(m as usize, n as usize, |i, j| {
        ((i * 31 + j * 57) % 199) as f32 - 99.0
    });
    let inputs = [
        floats(x.values.clone()),
        Input::Output(m as usize * 4),
        Input::Output(x.values.len() * 4),
    ];
    let out = run(&kernel, 1, &inputs, &timings(0)[1]).unwrap_or_else(|e| panic!("{e}"));
    let sums: Vec<f32> = x.rows().map(|r| r.iter().sum()).collect();
    assert_same("sums", &to_floats(&out[0]), &sums);
    let want = Matrix::new(n as usize, m as usize, |j, i| x.values[i * n as usize + j]);
    assert_same("transposed", &to_floats(&out[1]), &want.values);
}

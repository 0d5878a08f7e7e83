//! Operands of wgmma: tiles of every type, transposed tiles and registers, compared with float64.

use crate::pipelines::harness::{Input, fill, floats, noise, round, run_floats, timings};
use half::{bf16, f16};
use warpline_ir::builder::*;
use warpline_ir::{Bf16x2, E4m3, E4m3x4, E5m2, E5m2x4, Element, F16x2, Kernel, Target, Tf32};

/// The layout of an m (or n) × k matrix in a tile.
#[derive(Clone, Copy, Debug)]
enum Layout {
    /// Row-major, with a K order.
    Rows(&'static [u8]),
    /// Transposed: rows along K.
    Transposed,
}

const NATURAL: Layout = Layout::Rows(Natural::K);

impl Layout {
    /// Returns the rows and columns of the tile.
    fn shape(self, mn: u32, k: u32) -> (u32, u32) {
        match self {
            Layout::Rows(_) => (mn, k),
            Layout::Transposed => (k, mn),
        }
    }

    /// Permutes a matrix to the layout of the tile.
    fn permute(self, x: &[f32], k: usize) -> Vec<f32> {
        match self {
            Layout::Rows(order) => {
                let n = order.len();
                let at = |i: usize| i / n * n + usize::from(order[i % n]);
                (0..x.len()).map(|i| x[at(i)]).collect()
            }
            Layout::Transposed => {
                let mn = x.len() / k;
                (0..x.len()).map(|i| x[i % mn * k + i / mn]).collect()
            }
        }
    }
}

/// Computes `A · Bᵀ` with `body`, which receives the accumulator and the tiles of A and B.
#[track_caller]
fn check_product<A: Element, B: Element>(
    [m, n, k]: [u32; 3],
    (a_layout, b_layout): (Layout, Layout),
    body: impl Fn(&Acc, TileRef<A>, TileRef<B>),
) {
    let (a_shape, b_shape) = (a_layout.shape(m, k), b_layout.shape(n, k));
    let what = format!(
        "{} ({a_layout:?}) · {} ({b_layout:?}), {m} x {n} x {k}",
        A::DTYPE,
        B::DTYPE
    );
    let kernel = Kernel::build("product", &Target::SM_90A, |b| {
        let (from_a, from_b) = (b.pointer::<A>("a"), b.pointer::<B>("b"));
        let to = b.pointer::<f32>("c");
        let a_tile = b.tile::<A>("a", a_shape.0, a_shape.1).declare();
        let b_tile = b.tile::<B>("b", b_shape.0, b_shape.1).declare();
        b.role("all").warpgroups(1).body(|| {
            fill(a_tile.whole(), from_a);
            fill(b_tile.whole(), from_b);
            let acc = Acc::new(m, n);
            body(&acc, a_tile.whole(), b_tile.whole());
            acc.into_frag()
                .each_pair(|at, pair| to.store_vec(at.row * n + at.col, pair));
        });
    });
    let kernel = kernel.unwrap_or_else(|e| panic!("{what}: {e}"));
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let (a, b) = (noise(m * k, 1), noise(n * k, 2));
    let inputs = [
        Input::Data(round::<A>(&a_layout.permute(&a, k)).0),
        Input::Data(round::<B>(&b_layout.permute(&b, k)).0),
        Input::Output(m * n * 4),
    ];
    let (a, b) = (round::<A>(&a).1, round::<B>(&b).1);
    for options in timings(1) {
        let got = run_floats(&kernel, 1, &inputs, &options);
        assert_close(&what, &got, &a, &b, k);
    }
}

/// Asserts that every element is within the error bound of an f32 dot product of length `k`.
#[track_caller]
fn assert_close(what: &str, got: &[f32], a: &[f64], b: &[f64], k: usize) {
    let n = b.len() / k;
    for (i, &got) in got.iter().enumerate() {
        let (row, col) = (i / n, i % n);
        let pairs = || (0..k).map(|j| a[row * k + j] * b[col * k + j]);
        let (want, size) = (pairs().sum::<f64>(), pairs().map(f64::abs).sum::<f64>());
        let bound = size * 2f64.powi(-23) * (k as f64).sqrt();
        let err = (f64::from(got) - want).abs();
        assert!(
            err <= bound,
            "{what}: C[{row},{col}] is {got}, not {want} ± {bound}"
        );
    }
}

#[test]
fn tiles_of_every_type_multiply_correctly() {
    check_product::<Tf32, Tf32>([64, 24, 32], (NATURAL, NATURAL), |c, a, b| c.mma(&a, &b));
    check_product::<E4m3, E4m3>([128, 16, 128], (NATURAL, NATURAL), |c, a, b| c.mma(&a, &b));
    check_product::<E4m3, E5m2>([64, 40, 64], (NATURAL, NATURAL), |c, a, b| c.mma(&a, &b));
    check_product::<E5m2, E4m3>([64, 8, 32], (NATURAL, NATURAL), |c, a, b| c.mma(&a, &b));
    check_product::<f16, f16>([128, 136, 32], (NATURAL, NATURAL), |c, a, b| c.mma(&a, &b));
}

#[test]
fn transposed_tiles_multiply_correctly() {
    let (transposed, natural) = (Layout::Transposed, NATURAL);
    check_product::<bf16, bf16>([64, 64, 48], (transposed, natural), |c, a, b| {
        c.mma(&a.t(), &b)
    });
    check_product::<bf16, bf16>([128, 64, 32], (natural, transposed), |c, a, b| {
        c.mma(&a, &b.t())
    });
    check_product::<f16, f16>([128, 96, 64], (transposed, transposed), |c, a, b| {
        c.mma(&a.t(), &b.t())
    });
    check_product::<f16, f16>([64, 192, 16], (transposed, transposed), |c, a, b| {
        c.mma(&a.t(), &b.t())
    });
}

/// The slices are parts of K, of a tile and of a transposed tile.
#[test]
fn slices_of_tiles_multiply_correctly() {
    check_product::<bf16, bf16>([64, 64, 128], (NATURAL, Layout::Transposed), |c, a, b| {
        for k in [64..128, 0..64] {
            c.mma(&a.slice(0..64, k.clone()), &b.slice(k, 0..64).t());
        }
    });
}

#[test]
fn register_operands_loaded_from_a_tile_multiply_correctly() {
    let (rows, transposed) = ((NATURAL, NATURAL), (NATURAL, Layout::Transposed));
    check_product::<bf16, bf16>([64, 16, 64], rows, |c, a, b| {
        c.mma(&RegOperand::load(&a), &b)
    });
    check_product::<f16, f16>([128, 24, 48], rows, |c, a, b| {
        c.mma(&RegOperand::load(&a), &b)
    });
    check_product::<f16, f16>([64, 64, 32], transposed, |c, a, b| {
        c.mma(&RegOperand::load(&a), &b.t())
    });
    check_product::<Tf32, Tf32>([64, 24, 40], rows, |c, a, b| {
        c.mma(&RegOperand::load(&a), &b)
    });
    check_product::<E5m2, E5m2>([64, 8, 96], rows, |c, a, b| {
        c.mma(&RegOperand::load(&a), &b)
    });
    check_product::<E4m3, E5m2>([128, 16, 32], rows, |c, a, b| {
        c.mma(&RegOperand::load(&a), &b)
    });
    // Any K order is correct if both operands have it.
    let quads = (Layout::Rows(Quads::K), Layout::Rows(Quads::K));
    check_product::<bf16, bf16>([64, 16, 32], quads, |c, a, b| {
        c.mma(
            &RegOperand::load(&a.with_k_order::<Quads>()),
            &b.with_k_order::<Quads>(),
        );
    });
}

/// Checks a wgmma with a register operand from a fragment; A is rounded from `f32` in global memory.
#[track_caller]
fn check_fragment_operand<T: FragOperand, B: Element>([m, n, k]: [u32; 3]) {
    let order = <T::Order as KOrder>::K;
    let what = format!("{} in registers, {m} x {n} x {k}", T::DTYPE);
    let kernel = Kernel::build("fragment", &Target::SM_90A, |b| {
        let (from_a, from_b) = (b.pointer::<f32>("a"), b.pointer::<B>("b"));
        let to = b.pointer::<f32>("c");
        let tile = b.tile::<B>("b", n, k).declare();
        b.role("all").warpgroups(1).body(|| {
            fill(tile.whole(), from_b);
            let a = Frag::zeros(m, k).map_with_coord(|_, at| from_a.load(at.row * k + at.col));
            let acc = Acc::new(m, n);
            acc.mma(&a.operand::<T>(), &tile.whole().with_k_order::<T::Order>());
            acc.into_frag()
                .each_pair(|at, pair| to.store_vec(at.row * n + at.col, pair));
        });
    });
    let kernel = kernel.unwrap_or_else(|e| panic!("{what}: {e}"));
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let (a, b) = (noise(m * k, 3), noise(n * k, 4));
    let inputs = [
        floats(a.clone()),
        Input::Data(round::<B>(&Layout::Rows(order).permute(&b, k)).0),
        Input::Output(m * n * 4),
    ];
    let (a, b) = (round::<T>(&a).1, round::<B>(&b).1);
    for options in timings(1) {
        assert_close(&what, &run_floats(&kernel, 1, &inputs, &options), &a, &b, k);
    }
}

#[test]
fn register_operands_from_fragments_multiply_correctly() {
    check_fragment_operand::<bf16, bf16>([64, 24, 64]);
    check_fragment_operand::<f16, f16>([128, 16, 48]);
    // Eight-bit operands have the K order `Pairs`.
    check_fragment_operand::<E4m3, E4m3>([64, 16, 64]);
    check_fragment_operand::<E5m2, E5m2>([128, 8, 96]);
    check_fragment_operand::<E4m3, E5m2>([64, 8, 32]);
}

fn from_e4m3(codes: Reg<u32>) -> [Reg<F16x2>; 2] {
    codes.bitcast::<E4m3x4>().widen_f16()
}

fn from_e5m2(codes: Reg<u32>) -> [Reg<Bf16x2>; 2] {
    let [a, b, c, d] = codes.bitcast::<E5m2x4>().widen4();
    [Reg::round(a, b), Reg::round(c, d)]
}

#[test]
fn register_operands_decoded_from_bytes_multiply_correctly() {
    // Bytes in the natural order decode to an operand in quads.
    let to_quads = (NATURAL, Layout::Rows(Quads::K));
    check_product::<E4m3, f16>([64, 16, 64], to_quads, |c, a, b| {
        let a = RegBytes::load(&a).decode::<f16>(from_e4m3);
        c.mma(&a, &b.with_k_order::<Quads>());
    });
    check_product::<E5m2, bf16>([128, 24, 32], to_quads, |c, a, b| {
        let a = RegBytes::load(&a).decode::<bf16>(from_e5m2);
        c.mma(&a, &b.with_k_order::<Quads>());
    });
    // Bytes in pairs decode to an operand in the natural order.
    let to_natural = (Layout::Rows(Pairs::K), NATURAL);
    check_product::<E4m3, f16>([128, 16, 48], to_natural, |c, a, b| {
        let a = RegBytes::load(&a.with_k_order::<Pairs>()).decode::<f16>(from_e4m3);
        c.mma(&a, &b);
    });
    let to_transposed = (Layout::Rows(Pairs::K), Layout::Transposed);
    check_product::<E5m2, bf16>([64, 64, 32], to_transposed, |c, a, b| {
        let a = RegBytes::load(&a.with_k_order::<Pairs>()).decode::<bf16>(from_e5m2);
        c.mma(&a, &b.t());
    });
}

/// Two GEMMs with an A halved by `map` and carried through a loop sum to the whole GEMM.
#[test]
fn operands_keep_their_values_through_map_and_loops() {
    check_product::<bf16, bf16>([64, 16, 32], (NATURAL, NATURAL), |c, a, b| {
        let half = Reg::<Bf16x2>::round(0.5, 0.5);
        let a = RegOperand::load(&a).map(|x| x * half);
        let (a, _) = steps(3u32).fold((a, 0u32.reg()), |i, (a, sum)| (a, sum + i));
        c.mma(&a, &b);
        c.mma(&a, &b);
    });
    check_product::<E4m3, f16>(
        [64, 16, 32],
        (NATURAL, Layout::Rows(Quads::K)),
        |c, a, b| {
            let bytes = steps(2u32).fold(RegBytes::load(&a), |_, bytes| bytes);
            c.mma(&bytes.decode::<f16>(from_e4m3), &b.with_k_order::<Quads>());
        },
    );
}

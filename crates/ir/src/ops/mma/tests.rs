use super::*;
use crate::job::fake::Cta;
use crate::lanes::fake::{arg, ptx, reg};
use crate::layout::accumulator_at;
use crate::machine::{FaultKind, WARP};
use crate::types::Tf32;
use half::{bf16, f16};

/// Returns the code of a number that the type represents exactly.
pub(in crate::ops) fn code(ty: MmaType, x: f32) -> u32 {
    let code = match ty {
        MmaType::Bf16 => bf16::from_f32(x).to_bits().into(),
        MmaType::F16 => f16::from_f32(x).to_bits().into(),
        MmaType::Tf32 => x.to_bits(),
        MmaType::E4m3 | MmaType::E5m2 => (0..=255)
            .find(|&code| number(ty, code) == x)
            .expect("an fp8 number"),
    };
    assert_eq!(number(ty, code), x);
    code
}

/// Returns the number of a code, by the definition of the format.
pub(in crate::ops) fn number(ty: MmaType, code: u32) -> f32 {
    let (exponent_bits, mantissa_bits) = match ty {
        MmaType::Bf16 => (8, 7),
        MmaType::F16 => (5, 10),
        MmaType::Tf32 => (8, 10),
        MmaType::E4m3 => (4, 3),
        MmaType::E5m2 => (5, 2),
    };
    // tf32 ignores the low 13 bits.
    let code = if ty == MmaType::Tf32 {
        code >> 13
    } else {
        code
    };
    let mantissa = code & ((1 << mantissa_bits) - 1);
    let top = (1 << exponent_bits) - 1;
    let exponent = code >> mantissa_bits & top;
    let bias = (1 << (exponent_bits - 1)) - 1;
    let unit = |e: i32| 2f64.powi(e - bias - mantissa_bits);
    let size = match (exponent, mantissa) {
        (e, 7) if ty == MmaType::E4m3 && e == top => f64::NAN,
        (e, 0) if ty != MmaType::E4m3 && e == top => f64::INFINITY,
        (e, _) if ty != MmaType::E4m3 && e == top => f64::NAN,
        (0, m) => f64::from(m) * unit(1),
        (e, m) => f64::from(m | 1 << mantissa_bits) * unit(e as i32),
    };
    let negative = code >> (exponent_bits + mantissa_bits) & 1 == 1;
    if negative { -size as f32 } else { size as f32 }
}

/// Returns all supported pairs of operand types.
pub(in crate::ops) fn pairs() -> impl Iterator<Item = (MmaType, MmaType)> {
    let types = MmaType::ALL.into_iter();
    types
        .flat_map(|a| MmaType::ALL.map(|b| (a, b)))
        .filter(|(a, b)| a.mixes(*b))
}

/// Packs elements into a register, the first in the low bits.
pub(in crate::ops) fn pack_codes(ty: MmaType, codes: impl IntoIterator<Item = u32>) -> u32 {
    let bits = 8 * ty.bytes();
    let shifted = |(j, code): (usize, u32)| code << (bits * j as u32);
    codes.into_iter().enumerate().map(shifted).sum()
}

/// Returns an op whose D starts at register 10, A at 20, B at 30 and C at 40.
fn op(a_ty: MmaType, b_ty: MmaType, registers: usize) -> Mma {
    let args = |from, n| (from..from + n as u32).map(arg).collect();
    Mma {
        a_ty,
        b_ty,
        d: [10, 11, 12, 13].map(reg),
        a: args(20, registers),
        b: args(30, registers / 2),
        c: [40, 41, 42, 43].map(arg),
    }
}

/// Executes an op on matrices of codes, A `[row][k]` and B `[col][k]`, with accumulators `c`; returns D.
///
/// Fragments follow the figures of the PTX ISA, not the functions under test.
fn run(
    op: &Mma,
    a: &[Vec<u32>],
    b: &[Vec<u32>],
    c: impl Fn(usize, usize) -> f32,
) -> [[f32; 8]; 16] {
    assert_eq!(op.legal(&Target::SM_90A), Ok(()));
    let mut cta = Cta::new(1, 0);
    let per_reg = 4 / op.a_ty.bytes() as usize;
    for (i, &o) in op.a.iter().enumerate() {
        let v: PerLane<u32> = std::array::from_fn(|t| {
            let (row, k) = (t / 4 + [0, 8, 0, 8][i], per_reg * (t % 4 + [0, 0, 4, 4][i]));
            pack_codes(op.a_ty, a[row][k..k + per_reg].iter().copied())
        });
        cta.set(o.as_reg().unwrap(), &v);
    }
    for (i, &o) in op.b.iter().enumerate() {
        let v: PerLane<u32> = std::array::from_fn(|t| {
            let k = per_reg * (t % 4 + 4 * i);
            pack_codes(op.b_ty, b[t / 4][k..k + per_reg].iter().copied())
        });
        cta.set(o.as_reg().unwrap(), &v);
    }
    let position = |t: usize, i: usize| (t / 4 + i / 2 * 8, t % 4 * 2 + i % 2);
    for (i, o) in op.c.iter().enumerate() {
        if let Operand::Reg(r) = o {
            let v: PerLane<f32> = std::array::from_fn(|t| c(position(t, i).0, position(t, i).1));
            cta.set(*r, &v);
        }
    }
    cta.run(op);
    let mut d = [[0.0; 8]; 16];
    for (i, r) in op.d.iter().enumerate() {
        for (t, x) in cta.warp.read::<f32>(r.0).into_iter().enumerate() {
            let (row, col) = position(t, i);
            assert_eq!(
                accumulator_at(0, t as u32, i as u32),
                (row as u32, col as u32)
            );
            d[row][col] = x;
        }
    }
    d
}

/// Returns a number that depends on its position; sums of products of such numbers are exact.
fn test_number(row: usize, k: usize) -> f32 {
    [1.0, -2.0, 0.5, 3.0, -0.25, 1.5, -1.0, 4.0, 0.0, -3.5, 2.5][(7 * row + 3 * k + row * k) % 11]
}

#[test]
fn mma_equals_the_naive_product_for_every_type_and_shape() {
    for (a_ty, b_ty) in pairs() {
        for registers in [2, 4] {
            let op = op(a_ty, b_ty, registers);
            let k = op.k() as usize;
            assert_eq!(k, registers * 8 / a_ty.bytes() as usize);
            let numbers = |rows: usize, from: usize| -> Vec<Vec<f32>> {
                let row = |r: usize| (0..k).map(|k| test_number(r + from, k)).collect();
                (0..rows).map(row).collect()
            };
            let codes = |ty, m: &[Vec<f32>]| -> Vec<Vec<u32>> {
                let row = |r: &Vec<f32>| r.iter().map(|&x| code(ty, x)).collect();
                m.iter().map(row).collect()
            };
            let (a, b) = (numbers(16, 0), numbers(8, 16));
            let c = |row: usize, col: usize| (16 * col + row) as f32;
            let d = run(&op, &codes(a_ty, &a), &codes(b_ty, &b), c);
            for (row, col) in (0..16).flat_map(|r| (0..8).map(move |c| (r, c))) {
                let products = a[row].iter().zip(&b[col]).map(|(x, y)| f64::from(x * y));
                let want = products.sum::<f64>() + f64::from(c(row, col));
                assert_eq!(
                    f64::from(d[row][col]),
                    want,
                    "{} at {row}, {col}",
                    op.name()
                );
            }
        }
    }
}

/// A has every code, B is the identity, so each result is one element of A.
#[test]
fn multiplying_by_the_identity_keeps_every_code() {
    for ty in MmaType::ALL {
        let k = ty.k() as usize;
        let op = Mma {
            c: [Operand::Imm(0); 4],
            ..op(ty, ty, 4)
        };
        let one = code(ty, 1.0);
        let identity: Vec<Vec<u32>> = (0..8)
            .map(|col| (0..k).map(|k| if k == col { one } else { 0 }).collect())
            .collect();
        let code_count = 1u64 << (8 * ty.bytes());
        let step = if ty == MmaType::Tf32 { 0xff_fffb } else { 1 };
        let mut codes = (0..code_count).step_by(step).map(|c| c as u32).peekable();
        while codes.peek().is_some() {
            let mut a = vec![vec![0; k]; 16];
            for row in a.iter_mut() {
                row[..8].fill_with(|| codes.next().unwrap_or(0));
            }
            // One code per row: a NaN or infinity times 0 affects its whole row.
            for col in 0..8 {
                let column: Vec<Vec<u32>> = a
                    .iter()
                    .map(|row| (0..k).map(|k| if k == col { row[k] } else { 0 }).collect())
                    .collect();
                let d = run(&op, &column, &identity, |_, _| 0.0);
                for (row, codes) in column.iter().enumerate() {
                    let want = number(ty, codes[col]);
                    let got = d[row][col];
                    let same = got == want || got.to_bits() == 0x7fff_ffff && want.is_nan();
                    assert!(same, "{} {:#x}: {got}, not {want}", ty.name(), codes[col]);
                }
            }
        }
    }
}

#[test]
fn mma_ignores_the_low_bits_of_tf32() {
    let noisy = |x: f32| x.to_bits() | Tf32::UNUSED;
    let op = op(MmaType::Tf32, MmaType::Tf32, 4);
    let matrix = |rows: usize, f: &dyn Fn(f32) -> u32| -> Vec<Vec<u32>> {
        let row = |r| (0..8).map(|k| f(test_number(r, k))).collect();
        (0..rows).map(row).collect()
    };
    let clean = run(
        &op,
        &matrix(16, &f32::to_bits),
        &matrix(8, &f32::to_bits),
        |_, _| 0.5,
    );
    let dirty = run(&op, &matrix(16, &noisy), &matrix(8, &noisy), |_, _| 0.5);
    assert_eq!(clean, dirty);
}

#[test]
fn infinities_and_subnormals_behave_as_in_f32() {
    let op = op(MmaType::Bf16, MmaType::Bf16, 4);
    let bits = |x: f32| u32::from(bf16::from_f32(x).to_bits());
    let (mut a, mut b) = (vec![vec![0; 16]; 16], vec![vec![0; 16]; 8]);
    // Row 0: ∞ · 1; row 1: ∞ · 0; row 2: ∞ − ∞; row 3: the smallest subnormal.
    (a[0][0], a[1][1], a[2][0], a[2][2]) = (
        bits(f32::INFINITY),
        bits(f32::INFINITY),
        bits(f32::INFINITY),
        bits(f32::NEG_INFINITY),
    );
    a[3][0] = 1;
    (b[0][0], b[0][2]) = (bits(1.0), bits(1.0));
    let d = run(&op, &a, &b, |_, _| 0.0);
    assert_eq!(d[0][0], f32::INFINITY);
    assert_eq!(
        (d[1][0].to_bits(), d[2][0].to_bits()),
        (0x7fff_ffff, 0x7fff_ffff)
    );
    assert_eq!(d[3][0].to_bits(), 1 << 16);
}

#[test]
fn fragments_cover_their_matrix_once() {
    for ty in MmaType::ALL {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for (lane, i) in (0..WARP as u32).flat_map(|l| (0..4).map(move |i| (l, i))) {
            for j in 0..ty.per_reg() {
                let (row, k) = mma_a_at(ty, lane, i);
                a.push((row, k + j));
                if i < 2 {
                    let (k, col) = mma_b_at(ty, lane, i);
                    b.push((col, k + j));
                }
            }
        }
        for (mut all, rows) in [(a, 16), (b, 8)] {
            all.sort_unstable();
            let want: Vec<_> = (0..rows)
                .flat_map(|r| (0..ty.k()).map(move |k| (r, k)))
                .collect();
            assert_eq!(all, want);
        }
    }
}

#[test]
fn mma_faults_with_inactive_lanes() {
    let mut cta = Cta::new(1, 0);
    cta.warp.active = 0xffff;
    let fault = cta.fault(&op(MmaType::F16, MmaType::F16, 4));
    assert_eq!(fault.kind, FaultKind::Convergence);
}

#[test]
fn unsupported_types_and_register_counts_are_rejected() {
    use MmaType::*;
    let assert_rejected = |op: Mma, text: &str| {
        let why = op.legal(&Target::SM_90A).unwrap_err();
        assert!(why.contains(text), "{why}");
    };
    assert_rejected(op(Bf16, F16, 4), "does not support bf16 with f16");
    assert_rejected(op(E4m3, F16, 4), "does not support e4m3 with f16");
    assert_rejected(op(F16, F16, 3), "3 registers for A and 1 for B");
    assert_rejected(op(F16, F16, 8), "8 registers for A and 4 for B");
}

#[test]
fn mma_prints_its_shape_and_types() {
    let c = "{%40, %41, %42, %43}";
    assert_eq!(
        ptx(&op(MmaType::Bf16, MmaType::Bf16, 4)),
        [format!(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {{%10, %11, %12, %13}}, {{%20, %21, %22, %23}}, {{%30, %31}}, {c}"
        )]
    );
    assert_eq!(
        ptx(&op(MmaType::E4m3, MmaType::E5m2, 2)),
        [format!(
            "mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e5m2.f32 {{%10, %11, %12, %13}}, {{%20, %21}}, {{%30}}, {c}"
        )]
    );
    assert_eq!(op(MmaType::E4m3, MmaType::E5m2, 4).ptx_version(), (8, 4));
    assert_eq!(op(MmaType::Tf32, MmaType::Tf32, 4).ptx_version(), (8, 0));
}

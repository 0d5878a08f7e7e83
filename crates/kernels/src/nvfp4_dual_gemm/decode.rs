//! Codes of NVFP4 to numbers, in registers.

use half::{bf16, f16};
use warpline_ir::build::*;
use warpline_ir::{Bf16x2, E4m3x4, F16x2};

/// How much smaller numbers are than what [`Decoded::numbers`] gives: 2⁸.
///
/// A code, moved to where a wider float has sign, exponent and mantissa, is
/// that number but for the bias of the exponent: 2¹⁴ times too small in f16.
/// To multiply it with 2¹⁴ times its scale would leave the range from a scale
/// of 4 on. With a factor that is 2⁸ times less every product of a code and a
/// scale is in range, and none loses a bit, in f16 as in bf16.
pub(super) const SMALLER: f32 = 256.0;

/// A type that codes are decoded to: each product of a code and a scale is exact in it.
pub(super) trait Decoded: Half<Pair: Mixes<<Self as Half>::Pair>> + Stored {
    /// Eight codes times their scale: numbers i and i + 4 as pair i, [`SMALLER`].
    fn numbers(codes: Reg<u32>, scale: Reg<Self::Pair>) -> [Reg<Self::Pair>; 4];

    /// The scale that `selector` picks of four, twice, with what [`numbers`](Self::numbers) needs.
    fn scale(four: Reg<u32>, selector: Reg<u32>) -> Reg<Self::Pair>;

    /// The same of two rows, with a [`selector_of_two`].
    fn scales(fours: [Reg<u32>; 2], selector: Reg<u32>) -> [Reg<Self::Pair>; 2];
}

impl Decoded for f16 {
    /// A byte has all that a code becomes, so four codes are worked on at a time.
    #[track_caller]
    fn numbers(codes: Reg<u32>, scale: Reg<F16x2>) -> [Reg<F16x2>; 4] {
        // Of s e e m the byte s 0 0 0 e e m 0. What is left of signs beside the
        // first bit of a byte lies where the mask takes the rest.
        let signs = codes & 0x8888_8888u32;
        let bytes = |signs: Reg<u32>, rest: Reg<u32>| {
            lop3(rest, 0x0e0e_0e0eu32, signs, |rest, mask, signs| {
                rest & mask | signs & !mask
            })
        };
        let even = bytes(signs << 4u32, codes << 1u32);
        let odd = bytes(signs, codes >> 3u32);
        [(even, 0x2404), (odd, 0x2404), (even, 0x3414), (odd, 0x3414)]
            .map(|(four, two)| prmt(four, 0u32, two as u32).bitcast::<F16x2>() * scale)
    }

    #[track_caller]
    fn scale(four: Reg<u32>, selector: Reg<u32>) -> Reg<F16x2> {
        picked(four, selector) * both(64.0)
    }

    #[track_caller]
    fn scales([a, b]: [Reg<u32>; 2], selector: Reg<u32>) -> [Reg<F16x2>; 2] {
        let two = picked_of_two(a, b, selector);
        (two * both(64.0)).halves().map(|one| Reg::pack(one, one))
    }
}

impl Decoded for bf16 {
    #[track_caller]
    fn numbers(codes: Reg<u32>, scale: Reg<Bf16x2>) -> [Reg<Bf16x2>; 4] {
        let shifted = |left: i32| match left {
            0 => codes,
            1.. => codes << left as u32,
            _ => codes >> left.unsigned_abs(),
        };
        std::array::from_fn(|i| {
            let first = 4 * i as i32;
            let sign = shifted(12 - first) & 0x8000_8000u32;
            let bits = lop3(
                shifted(6 - first),
                0x01c0_01c0u32,
                sign,
                |rest, mask, sign| rest & mask | sign,
            );
            bits.bitcast::<Bf16x2>() * scale
        })
    }

    #[track_caller]
    fn scale(four: Reg<u32>, selector: Reg<u32>) -> Reg<Bf16x2> {
        let [one, _] = picked(four, selector).widen();
        biased(one)
    }

    #[track_caller]
    fn scales([a, b]: [Reg<u32>; 2], selector: Reg<u32>) -> [Reg<Bf16x2>; 2] {
        picked_of_two(a, b, selector).widen().map(biased)
    }
}

/// The scale that `selector` picks of four, twice.
#[track_caller]
fn picked(four: Reg<u32>, selector: Reg<u32>) -> Reg<F16x2> {
    let same = prmt(four, 0u32, selector).bitcast::<E4m3x4>();
    let [twice, _] = same.widen_f16();
    twice
}

/// The scales that a [`selector_of_two`] picks of four and four.
#[track_caller]
fn picked_of_two(a: Reg<u32>, b: Reg<u32>, selector: Reg<u32>) -> Reg<F16x2> {
    let two = prmt(a, b, selector).bitcast::<E4m3x4>();
    let [two, _] = two.widen_f16();
    two
}

/// A scale twice, with the bias of 126 that a code lacks in bf16, less 2⁸.
#[track_caller]
fn biased(scale: Reg<f32>) -> Reg<Bf16x2> {
    let scale = scale * 2f32.powi(118);
    Reg::round(scale, scale)
}

/// What picks byte `i` of a word four times.
#[track_caller]
pub(super) fn selector(i: Reg<u32>) -> Reg<u32> {
    i * 0x1111u32
}

/// What picks byte `i` of a word, and of another.
#[track_caller]
pub(super) fn selector_of_two(i: Reg<u32>) -> Reg<u32> {
    i * 0x11u32 + 0x40u32
}

/// A number twice.
#[track_caller]
pub(super) fn both(x: f32) -> Reg<F16x2> {
    let bits = u32::from(f16::from_f32(x).to_bits());
    (bits << 16 | bits).reg().bitcast()
}

//! Decoding of NVFP4 codes in registers.

use half::{bf16, f16};
use warpline_ir::builder::*;
use warpline_ir::{Bf16x2, E4m3x4, F16x2};

/// [`DecodeTarget::decode8`] returns values divided by this number, 2⁸.
///
/// The bits of a code, placed at the sign, exponent and mantissa of a wider float, give its value except
/// for the exponent bias: 2¹⁴ too small in f16. A factor of 2¹⁴ · scale would overflow f16 for scales
/// from 4 on. With a factor 2⁸ smaller every product of a code and a scale is in range and exact, in
/// f16 and in bf16.
pub(super) const DECODE_SCALE: f32 = 256.0;

/// An element type that represents every product of a code and a scale exactly.
pub(crate) trait DecodeTarget:
    Half<Pair: MmaWith<<Self as Half>::Pair>> + OutboxElement
{
    /// Widens an element to f32.
    fn widen(x: Reg<Self::Reg>) -> Reg<f32>;

    /// Decodes eight codes and multiplies them by their scales, divided by [`DECODE_SCALE`]. Pair i holds
    /// numbers i and i + 4. The first scale is that of pairs 0 and 1, the second that of pairs 2 and 3.
    fn decode8(codes: Reg<u32>, scales: [Reg<Self::Pair>; 2]) -> [Reg<Self::Pair>; 4];

    /// Decodes the scale that `selector` picks from a word of four into both halves of a pair, with the
    /// exponent correction that [`decode8`](Self::decode8) needs.
    fn decode_scale(word: Reg<u32>, selector: Reg<u32>) -> Reg<Self::Pair>;

    /// Decodes one scale of each of two rows, picked by a [`two_byte_selector`].
    fn decode_scales(words: [Reg<u32>; 2], selector: Reg<u32>) -> [Reg<Self::Pair>; 2];
}

impl DecodeTarget for f16 {
    #[track_caller]
    fn widen(x: Reg<f16>) -> Reg<f32> {
        x.cast()
    }

    /// Decodes four codes at a time: the result of a code fits a byte, the upper half of an f16.
    #[track_caller]
    fn decode8(codes: Reg<u32>, scales: [Reg<F16x2>; 2]) -> [Reg<F16x2>; 4] {
        // The code bits s e e m become the byte s 0 0 0 e e m 0. `signs` also has a stray bit 3 in each
        // byte; the mask replaces it by a bit of e e m.
        let signs = codes & 0x8888_8888u32;
        let bytes = |signs: Reg<u32>, rest: Reg<u32>| {
            lop3(rest, 0x0e0e_0e0eu32, signs, |rest, mask, signs| {
                rest & mask | signs & !mask
            })
        };
        let even = bytes(signs << 4u32, codes << 1u32);
        let odd = bytes(signs, codes >> 3u32);
        let [low, high] = scales;
        [
            (even, 0x2404u32, low),
            (odd, 0x2404, low),
            (even, 0x3414, high),
            (odd, 0x3414, high),
        ]
        .map(|(bytes, selector, scale)| prmt(bytes, 0u32, selector).bitcast::<F16x2>() * scale)
    }

    #[track_caller]
    fn decode_scale(word: Reg<u32>, selector: Reg<u32>) -> Reg<F16x2> {
        select_scale(word, selector) * splat(64.0)
    }

    #[track_caller]
    fn decode_scales([a, b]: [Reg<u32>; 2], selector: Reg<u32>) -> [Reg<F16x2>; 2] {
        let pair = select_two_scales(a, b, selector);
        (pair * splat(64.0))
            .halves()
            .map(|scale| Reg::pack(scale, scale))
    }
}

impl DecodeTarget for bf16 {
    #[track_caller]
    fn widen(x: Reg<bf16>) -> Reg<f32> {
        x.cast()
    }

    #[track_caller]
    fn decode8(codes: Reg<u32>, scales: [Reg<Bf16x2>; 2]) -> [Reg<Bf16x2>; 4] {
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
            bits.bitcast::<Bf16x2>() * scales[i / 2]
        })
    }

    #[track_caller]
    fn decode_scale(word: Reg<u32>, selector: Reg<u32>) -> Reg<Bf16x2> {
        let [scale, _] = select_scale(word, selector).widen();
        rebiased(scale)
    }

    #[track_caller]
    fn decode_scales([a, b]: [Reg<u32>; 2], selector: Reg<u32>) -> [Reg<Bf16x2>; 2] {
        select_two_scales(a, b, selector).widen().map(rebiased)
    }
}

/// Returns the scale that `selector` picks from a word of four, in both halves.
#[track_caller]
fn select_scale(word: Reg<u32>, selector: Reg<u32>) -> Reg<F16x2> {
    let scales = prmt(word, 0u32, selector).bitcast::<E4m3x4>();
    let [pair, _] = scales.widen_f16();
    pair
}

/// Returns the scales that a [`two_byte_selector`] picks from two words.
#[track_caller]
fn select_two_scales(a: Reg<u32>, b: Reg<u32>, selector: Reg<u32>) -> Reg<F16x2> {
    let scales = prmt(a, b, selector).bitcast::<E4m3x4>();
    let [pair, _] = scales.widen_f16();
    pair
}

/// Returns a scale in both halves of a pair, times 2¹¹⁸: the exponent bias of 126 that a code lacks in
/// bf16, divided by [`DECODE_SCALE`].
#[track_caller]
fn rebiased(scale: Reg<f32>) -> Reg<Bf16x2> {
    let scale = scale * 2f32.powi(118);
    Reg::round(scale, scale)
}

/// Returns the `prmt` selector that replicates byte `i` of a word.
#[track_caller]
pub(super) fn byte_selector(i: Reg<u32>) -> Reg<u32> {
    i * 0x1111u32
}

/// Returns the `prmt` selector that picks byte `i` of each of two words.
#[track_caller]
pub(super) fn two_byte_selector(i: Reg<u32>) -> Reg<u32> {
    i * 0x11u32 + 0x40u32
}

/// Returns a number in both halves of a pair.
#[track_caller]
pub(super) fn splat(x: f32) -> Reg<F16x2> {
    let bits = u32::from(f16::from_f32(x).to_bits());
    (bits << 16 | bits).reg().bitcast()
}

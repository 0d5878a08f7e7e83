//! Codes of NVFP4 to numbers, in registers.

use warpline_ir::F16x2;
use warpline_ir::build::*;

/// How much smaller weights are as an operand of a product: 2⁸. What is
/// multiplied with the codes is at most 448 · 2⁶, and so in range, and no
/// product of a code and a scale loses a bit.
pub(super) const SMALLER: f32 = 256.0;

/// Codes i and i + 4 of eight, as numbers 2¹⁴ times smaller; exact.
///
/// A code is sign, two bits of exponent, one of mantissa: shifted to where f16
/// has these, it is that number with the exponent of f16's bias.
#[track_caller]
pub(super) fn pair(codes: Reg<u32>, i: u32) -> Reg<F16x2> {
    let shifted = |by: i32| match by {
        0 => codes,
        1.. => codes << by as u32,
        _ => codes >> (-by) as u32,
    };
    let at = 4 * i as i32;
    let sign = shifted(12 - at) & 0x8000_8000u32;
    let rest = shifted(9 - at);
    // sign | (rest & 0x0e00_0e00)
    lop3(rest, 0x0e00_0e00u32, sign, 0xea).bitcast()
}

/// A scale of four in a word, by a selector that names it four times: twice,
/// and 2⁶ times greater; exact.
#[track_caller]
pub(super) fn scale(word: Reg<u32>, selector: Reg<u32>) -> Reg<F16x2> {
    let four = prmt(word, 0u32, selector);
    let [twice, _] = four.bitcast::<warpline_ir::E4m3x4>().widen_f16();
    twice * Reg::<F16x2>::splat(64.0)
}

/// The selector of byte `i` of four.
#[track_caller]
pub(super) fn selector(i: Reg<u32>) -> Reg<u32> {
    i * 0x1111u32
}

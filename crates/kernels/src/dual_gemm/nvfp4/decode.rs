//! Codes of NVFP4 to numbers, in registers.

use warpline_ir::build::*;
use warpline_ir::{E4m3x4, F16x2};

/// How much smaller numbers are that [`pair`] and [`scale`] give together: 2⁸.
///
/// A code in f16 is 2¹⁴ times too small; to multiply it with 2¹⁴ times its
/// scale would leave f16's range from a scale of 4 on. With 2⁶ times the scale
/// every product of a code and a scale is in range, and none loses a bit.
pub(super) const SMALLER: f32 = 256.0;

/// Codes i and i + 4 of eight, as numbers 2¹⁴ times smaller; exact.
///
/// A code is sign, two bits of exponent, one of mantissa: shifted to where f16
/// has these, it is that number, but for the bias of the exponent.
#[track_caller]
pub(super) fn pair(codes: Reg<u32>, i: u32) -> Reg<F16x2> {
    let shifted = |left: i32| match left {
        0 => codes,
        1.. => codes << left as u32,
        _ => codes >> left.unsigned_abs(),
    };
    let first = 4 * i as i32;
    let sign = shifted(12 - first) & 0x8000_8000u32;
    let rest = shifted(9 - first);
    lop3(rest, 0x0e00_0e00u32, sign, |rest, mask, sign| {
        rest & mask | sign
    })
    .bitcast()
}

/// Byte `i` of four scales twice, and 2⁶ times greater; exact. `selector` is
/// that of [`selector`].
#[track_caller]
pub(super) fn scale(four: Reg<u32>, selector: Reg<u32>) -> Reg<F16x2> {
    let same = prmt(four, 0u32, selector).bitcast::<E4m3x4>();
    let [twice, _] = same.widen_f16();
    twice * both(64.0)
}

/// What picks byte `i` of a word four times.
#[track_caller]
pub(super) fn selector(i: Reg<u32>) -> Reg<u32> {
    i * 0x1111u32
}

/// A number twice.
#[track_caller]
pub(super) fn both(x: f32) -> Reg<F16x2> {
    let bits = u32::from(half::f16::from_f32(x).to_bits());
    (bits << 16 | bits).reg().bitcast()
}

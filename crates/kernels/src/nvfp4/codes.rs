//! e2m1 codes: sign, two exponent bits, one mantissa bit.

use super::require;
use warpline_family::error::FamilyError;

/// Magnitudes by the low three bits of a code; bit 3 is the sign.
pub const MAGNITUDES: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

/// Returns the value of a code; only its low four bits count.
///
/// ```
/// use warpline_kernels::nvfp4::codes::decode;
/// assert_eq!((decode(0b0101), decode(0b1111)), (3.0, -6.0));
/// ```
pub fn decode(code: u8) -> f32 {
    let x = MAGNITUDES[usize::from(code & 7)];
    if code & 8 == 0 { x } else { -x }
}

/// Returns the nearest code, ties to even, saturating to ±6.
///
/// A zero keeps its sign. NaN has no code and becomes +6, as in the GPU's conversions.
///
/// ```
/// use warpline_kernels::nvfp4::codes::{decode, encode};
/// assert_eq!(decode(encode(2.5f32)), 2.0);
/// assert_eq!(decode(encode(3.5)), 4.0);
/// assert_eq!(decode(encode(-1e9)), -6.0);
/// assert_eq!(decode(encode(f64::NAN)), 6.0);
/// ```
pub fn encode(x: impl Into<f64>) -> u8 {
    let x = x.into();
    if x.is_nan() {
        return 7;
    }
    let above = |&(lower, pair): &(usize, &[f32])| {
        let middle = f64::from(pair[0] + pair[1]) / 2.0;
        x.abs() > middle || (x.abs() == middle && lower % 2 == 1)
    };
    let steps = MAGNITUDES.windows(2).enumerate().take_while(above).count();
    u8::from(x.is_sign_negative()) << 3 | steps as u8
}

/// Packs two codes per byte, the first in the low four bits.
///
/// Rejects an odd number of codes, and codes above 15.
///
/// ```
/// use warpline_kernels::nvfp4::codes::{pack, unpack};
/// assert_eq!(pack(&[1, 2, 3, 15])?, [0x21, 0xf3]);
/// assert_eq!(unpack(&[0x21, 0xf3]), [1, 2, 3, 15]);
/// # Ok::<(), warpline_kernels::FamilyError>(())
/// ```
pub fn pack(codes: &[u8]) -> Result<Vec<u8>, FamilyError> {
    let len = codes.len();
    require(len.is_multiple_of(2), || {
        format!("there are {len} codes; a byte holds 2, so their number must be even")
    })?;
    let most = codes.iter().copied().max().unwrap_or(0);
    require(most <= 15, || {
        format!("a code is {most}; it must be at most 15")
    })?;
    let pairs = codes.chunks_exact(2);
    Ok(pairs.map(|pair| pair[0] | pair[1] << 4).collect())
}

/// Unpacks the codes of bytes: the inverse of [`pack`].
pub fn unpack(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|b| [b & 15, b >> 4]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_rounds_to_the_nearest_code_and_ties_to_even() {
        for lower in 0..7u8 {
            let (lo, hi) = (decode(lower), decode(lower + 1));
            let middle = f64::from(lo + hi) / 2.0;
            for (x, code) in [
                (f64::from(lo), lower),
                (f64::from(hi), lower + 1),
                (middle, lower + lower % 2),
                (middle.next_down(), lower),
                (middle.next_up(), lower + 1),
            ] {
                assert_eq!(encode(x), code, "of {x}");
                assert_eq!(encode(-x), 8 | code, "of -{x}");
            }
        }
        for x in [6.0f32, 7.0, f32::MAX, f32::INFINITY, f32::NAN] {
            assert_eq!(encode(x), 7, "of {x}");
        }
        assert_eq!(encode(f64::NEG_INFINITY), 15);
        assert_eq!(encode(-f64::NAN), 7);
        assert_eq!([encode(0.0), encode(-0.0)], [0, 8]);
    }

    #[test]
    fn pack_and_unpack_are_inverse() -> Result<(), FamilyError> {
        let bytes: Vec<u8> = (0..=255).collect();
        let codes = unpack(&bytes);
        assert_eq!((codes[2 * 0x4a], codes[2 * 0x4a + 1]), (0xa, 0x4));
        assert_eq!(pack(&codes)?, bytes);
        let rejected = |codes: &[u8]| pack(codes).map_err(|e| e.to_string());
        let odd = "nvfp4: there are 3 codes; a byte holds 2, so their number must be even";
        assert_eq!(rejected(&[1, 2, 3]), Err(odd.into()));
        let large = "nvfp4: a code is 16; it must be at most 15";
        assert_eq!(rejected(&[1, 16]), Err(large.into()));
        Ok(())
    }
}

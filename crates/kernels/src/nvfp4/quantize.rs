//! Quantization of tensors to NVFP4, and back.

use super::{BLOCK, check_k, check_len, codes, require, scales};
use warpline_family::error::FamilyError;

/// The source of the tensor scale.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum TensorScale {
    /// 1.
    #[default]
    One,
    /// This number, finite and positive.
    Fixed(f32),
    /// The largest magnitude divided by 448 · 6 = 2688, at least the smallest normal f32; 1 if all
    /// values are zero.
    FromMax,
}

/// A tensor [rows, K] in NVFP4.
#[derive(Clone, PartialEq, Debug)]
pub struct Quantized {
    /// Number of rows.
    pub rows: usize,
    /// Numbers per row.
    pub k: usize,
    /// The codes, [rows, K/2], packed by [`codes::pack`].
    pub codes: Vec<u8>,
    /// The scale of each block, [rows, K/16]: [plain](super::ScaleLayout::Plain).
    pub scales: Vec<u8>,
    /// The tensor scale.
    pub tensor_scale: f32,
}

/// Quantizes `rows` rows of `k` values.
///
/// The scale of a block is its largest magnitude divided by 6 and by the tensor scale, rounded to
/// e4m3. A code is the value divided by both scales, rounded to e2m1. Both round from f64 to nearest,
/// ties to even, and saturate. If a scale rounds to zero, all codes of its block are zeros with the
/// signs of the values. A block that is already NVFP4 and contains ±6 is returned unchanged; a block
/// without ±6 may get another scale. The error of a value is at most half a step, unless the scale of
/// its block is subnormal or saturated.
///
/// Rejects a K that is not a positive multiple of 16, a number of values other than rows · K, values
/// that are not finite, and a tensor scale that is not finite and positive.
pub fn quantize(
    values: &[f32],
    rows: usize,
    k: usize,
    scale: TensorScale,
) -> Result<Quantized, FamilyError> {
    check_k(k)?;
    check_len("values", rows.saturating_mul(k), values.len())?;
    if let Some(i) = values.iter().position(|x| !x.is_finite()) {
        let (x, row, column) = (values[i], i / k, i % k);
        let text =
            format!("nvfp4: the value in row {row}, column {column} is {x}; values must be finite");
        return Err(FamilyError::Problem(text));
    }
    let tensor_scale = match scale {
        TensorScale::One => 1.0,
        TensorScale::Fixed(scale) => scale,
        TensorScale::FromMax => match max_abs(values) {
            0.0 => 1.0,
            max => (max / (scales::MAX * codes::MAGNITUDES[7])).max(f32::MIN_POSITIVE),
        },
    };
    check_tensor_scale(tensor_scale)?;
    let tensor_scale_f64 = f64::from(tensor_scale);
    let (mut codes, mut scales) = (Vec::new(), Vec::new());
    for block in values.chunks_exact(BLOCK) {
        let scale = scales::encode(f64::from(max_abs(block)) / (6.0 * tensor_scale_f64));
        let step = scales::decode(scale) * tensor_scale_f64;
        let code = |x: f32| match step {
            0.0 => codes::encode(0f32.copysign(x)),
            step => codes::encode(f64::from(x) / step),
        };
        scales.push(scale);
        codes.extend(block.chunks_exact(2).map(|x| code(x[0]) | code(x[1]) << 4));
    }
    Ok(Quantized {
        rows,
        k,
        codes,
        scales,
        tensor_scale,
    })
}

/// Returns the largest magnitude.
fn max_abs(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |max, x| x.abs().max(max))
}

/// Rejects a tensor scale that is not finite and positive.
fn check_tensor_scale(scale: f32) -> Result<(), FamilyError> {
    require(scale.is_finite() && scale > 0.0, || {
        format!("the tensor scale is {scale:?}; it must be finite and positive")
    })
}

impl Quantized {
    /// Returns the exact values, row by row; a block with a NaN scale is NaN.
    ///
    /// Rejects codes and scales whose lengths do not match rows · K, and a K or tensor scale that
    /// [`quantize`] rejects.
    pub fn dequantize(&self) -> Result<Vec<f64>, FamilyError> {
        check_k(self.k)?;
        let values = self.rows.saturating_mul(self.k);
        check_len("bytes of codes", values / 2, self.codes.len())?;
        check_len("scales", values / BLOCK, self.scales.len())?;
        check_tensor_scale(self.tensor_scale)?;
        let tensor_scale = f64::from(self.tensor_scale);
        let mut values = Vec::with_capacity(values);
        for (bytes, &scale) in self.codes.chunks_exact(BLOCK / 2).zip(&self.scales) {
            let step = scales::decode(scale) * tensor_scale;
            let codes = bytes.iter().flat_map(|b| [b & 15, b >> 4]);
            values.extend(codes.map(|code| f64::from(codes::decode(code)) * step));
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_family::numbers::Random;

    /// Returns random codes with a 6 or -6 in each block, and random scales except zero.
    fn random_tensor(rows: usize, k: usize, tensor_scale: f32) -> Quantized {
        let mut random = Random::new(rows as u64);
        let mut codes: Vec<u8> = (0..rows * k / 2).map(|_| random.bits() as u8).collect();
        for block in codes.chunks_exact_mut(8) {
            block[random.bits() as usize % 8] |= [0x07, 0x70][random.bits() as usize % 2];
        }
        let scale = |_| 1 + (random.bits() % 0x7e) as u8;
        let scales = (0..rows * k / 16).map(scale).collect();
        Quantized {
            rows,
            k,
            codes,
            scales,
            tensor_scale,
        }
    }

    fn requantize(q: &Quantized, scale: TensorScale) -> Result<Quantized, FamilyError> {
        let values: Vec<f32> = q.dequantize()?.iter().map(|&x| x as f32).collect();
        quantize(&values, q.rows, q.k, scale)
    }

    #[test]
    fn quantizing_nvfp4_values_is_the_identity() -> Result<(), FamilyError> {
        for (rows, k) in [(1, 16), (7, 48), (129, 80), (3, 1040)] {
            let q = random_tensor(rows, k, 1.0);
            assert_eq!(requantize(&q, TensorScale::One)?, q);
            // With other tensor scales f32 rounds the values, and the codes stay the same.
            for scale in [0.25, 0.3, 1e-30, 1e30] {
                let q = random_tensor(rows, k, scale);
                assert_eq!(requantize(&q, TensorScale::Fixed(scale))?, q);
            }
        }
        Ok(())
    }

    #[test]
    fn dequantize_matches_the_bits_of_every_code_and_scale() -> Result<(), FamilyError> {
        /// Returns the magnitude of a float with `m` mantissa bits in units of its smallest subnormal.
        fn units(code: u32, m: u32) -> u32 {
            match (code >> m, code & ((1 << m) - 1)) {
                (0, mantissa) => mantissa,
                (e, mantissa) => ((1 << m) + mantissa) << (e - 1),
            }
        }
        let codes = codes::pack(&(0..16).collect::<Vec<u8>>().repeat(256))?;
        let q = Quantized {
            rows: 256,
            k: 16,
            codes,
            scales: (0..=255).collect(),
            tensor_scale: 0.1,
        };
        let values = q.dequantize()?;
        assert_eq!(values.len(), 4096);
        for (i, x) in (0u32..).zip(values) {
            let (scale, code) = (i / 16, i % 16);
            if scale & 0x7f == 0x7f {
                assert!(x.is_nan());
                continue;
            }
            let size = f64::from(units(code & 7, 1) * units(scale & 0x7f, 3)) / 1024.0;
            let negative = (code >> 3) != (scale >> 7);
            let expected = if negative { -size } else { size } * f64::from(0.1f32);
            assert_eq!(x.to_bits(), expected.to_bits(), "{code} · {scale}");
        }
        Ok(())
    }

    #[test]
    fn quantization_error_is_at_most_half_a_step() -> Result<(), FamilyError> {
        let (rows, k) = (65, 272);
        let mut random = Random::new(5);
        for (size, fixed) in [(1e-4, 5e-5), (1.0, 1.0), (100.0, 3.0), (1e20, 1e20)] {
            let values = (0..rows * k).map(|_| (random.normal() * size) as f32);
            let values: Vec<f32> = values.collect();
            for choice in [TensorScale::FromMax, TensorScale::Fixed(fixed)] {
                let q = quantize(&values, rows, k, choice)?;
                for (i, (&x, y)) in values.iter().zip(q.dequantize()?).enumerate() {
                    let scale = q.scales[i / 16];
                    assert!((8..0x7f).contains(&scale), "normal: {scale}");
                    let step = scales::decode(scale) * f64::from(q.tensor_scale);
                    let x = f64::from(x);
                    let half = match x.abs() / step {
                        x if x <= 2.0 => 0.25,
                        x if x <= 4.0 => 0.5,
                        _ => 1.0,
                    };
                    assert!((x - y).abs() <= half * step, "{choice:?}: {x} became {y}");
                }
            }
        }
        Ok(())
    }

    #[test]
    fn scales_round_saturate_and_underflow() -> Result<(), FamilyError> {
        let quantize_max = |max: f32, scale| {
            let mut values = [0.0; 16];
            (values[3], values[4]) = (-max, -max / 2.0);
            let q = quantize(&values, 1, 16, scale)?;
            let code = codes::unpack(&q.codes);
            Ok::<_, FamilyError>((q.tensor_scale, q.scales[0], [code[3], code[4]]))
        };
        let (one, from_max) = (TensorScale::One, TensorScale::FromMax);
        assert_eq!(quantize_max(6.0, one)?, (1.0, 0x38, [15, 13]));
        // Ties of the scale: 1 1/16 goes to 1, 1 3/16 to 1 1/4.
        assert_eq!(quantize_max(6.375, one)?, (1.0, 0x38, [15, 13]));
        assert_eq!(quantize_max(7.125, one)?, (1.0, 0x3a, [15, 13]));
        // A scale saturates, is subnormal, and is zero with zeros for codes.
        assert_eq!(quantize_max(1e9, one)?, (1.0, 0x7e, [15, 15]));
        assert_eq!(quantize_max(6.0 / 512.0, one)?, (1.0, 1, [15, 13]));
        assert_eq!(quantize_max(2.9 / 512.0, one)?, (1.0, 0, [8, 8]));
        assert_eq!(quantize_max(0.0, from_max)?, (1.0, 0, [8, 8]));
        assert_eq!(
            quantize_max(2688.0 * 0.75, from_max)?,
            (0.75, 0x7e, [15, 13])
        );
        assert_eq!(quantize_max(f32::MAX, from_max)?.1, 0x7e);
        let least = f32::MIN_POSITIVE;
        assert_eq!(
            quantize_max(6.0 * least, from_max)?,
            (least, 0x38, [15, 13])
        );
        Ok(())
    }

    #[test]
    fn bad_values_and_sizes_are_rejected() -> Result<(), FamilyError> {
        let rejected = |values: &[f32], rows, k, scale| {
            let text = quantize(values, rows, k, scale).err();
            text.map(|e| e.to_string()).unwrap_or_default()
        };
        let one = TensorScale::One;
        let text = "nvfp4: K is 8; it must be a positive multiple of 16";
        assert_eq!(rejected(&[0.0; 16], 2, 8, one), text);
        let text = "nvfp4: there are 32 values; 48 are needed";
        assert_eq!(rejected(&[0.0; 32], 3, 16, one), text);
        assert_eq!(rejected(&[], 0, 16, TensorScale::FromMax), "");
        let text = "nvfp4: K is 0; it must be a positive multiple of 16";
        assert_eq!(rejected(&[], 1, 0, one), text);
        for x in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut values = [0.0; 32];
            values[18] = x;
            let text = format!("nvfp4: the value in row 1, column 2 is {x}; values must be finite");
            assert_eq!(rejected(&values, 2, 16, one), text);
        }
        for x in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            let text = format!("nvfp4: the tensor scale is {x:?}; it must be finite and positive");
            assert_eq!(rejected(&[0.0; 16], 1, 16, TensorScale::Fixed(x)), text);
        }
        let changes: [fn(&mut Quantized); 5] = [
            |q| q.rows = 3,
            |q| (q.rows, q.k) = (4, 8),
            |q| q.codes.truncate(15),
            |q| q.scales.push(0),
            |q| q.tensor_scale = 0.0,
        ];
        for (i, change) in changes.iter().enumerate() {
            let mut q = quantize(&[1.0; 32], 2, 16, one)?;
            change(&mut q);
            assert!(q.dequantize().is_err(), "change {i}");
        }
        Ok(())
    }
}

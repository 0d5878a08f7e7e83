//! Tensors to NVFP4 and back.

use super::{BLOCK, codes, exactly, require, scales, whole_blocks};
use warpline_family::error::FamilyError;

/// Where the scale of a whole tensor comes from.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum TensorScale {
    /// It is 1.
    #[default]
    One,
    /// It is this number, finite and positive.
    Given(f32),
    /// The greatest magnitude becomes 448 · 6: that magnitude over 2688, but
    /// no less than the least normal number, and 1 where all values are zero.
    Chosen,
}

/// A tensor of [rows, K] in NVFP4.
#[derive(Clone, PartialEq, Debug)]
pub struct Quantised {
    /// How many rows.
    pub rows: usize,
    /// K: how many numbers a row has.
    pub k: usize,
    /// The codes, [rows, K/2], as of [`codes::pack`].
    pub codes: Vec<u8>,
    /// The scale of each block, [rows, K/16]: [plain](super::ScaleLayout::Plain).
    pub scales: Vec<u8>,
    /// The scale of all.
    pub tensor_scale: f32,
}

/// Quantises `rows` rows of `k` values.
///
/// The scale of a block is its greatest magnitude over 6 and over the scale of
/// the tensor, rounded to e4m3; a code is the value over both scales, rounded
/// to e2m1. Both are rounded to nearest, ties to even, from f64, and saturate.
/// A scale that rounds to zero makes all codes of its block zeros, which keep
/// the signs of the values. What is NVFP4 already and has ±6 in a block comes
/// back as it is; a block without may get another scale. A value errs by half
/// a step at most, unless the scale of its block is subnormal or saturated.
///
/// Refused are a K that is no positive multiple of 16, values that are not
/// rows · K, values that are not finite, and a scale of the tensor that is not
/// finite and positive.
pub fn quantise(
    values: &[f32],
    rows: usize,
    k: usize,
    scale: TensorScale,
) -> Result<Quantised, FamilyError> {
    whole_blocks(k)?;
    exactly("values", rows.saturating_mul(k), values.len())?;
    if let Some(at) = values.iter().position(|x| !x.is_finite()) {
        let (x, row, column) = (values[at], at / k, at % k);
        let text = format!("nvfp4: values are finite, not {x} in row {row}, column {column}");
        return Err(FamilyError::Problem(text));
    }
    let tensor_scale = match scale {
        TensorScale::One => 1.0,
        TensorScale::Given(scale) => scale,
        TensorScale::Chosen => match greatest(values) {
            0.0 => 1.0,
            all => (all / (scales::MAX * codes::MAGNITUDES[7])).max(f32::MIN_POSITIVE),
        },
    };
    positive(tensor_scale)?;
    let all = f64::from(tensor_scale);
    let (mut codes, mut scales) = (Vec::new(), Vec::new());
    for block in values.chunks_exact(BLOCK) {
        let scale = scales::encode(f64::from(greatest(block)) / (6.0 * all));
        let step = scales::decode(scale) * all;
        let code = |x: f32| match step {
            0.0 => codes::encode(0f32.copysign(x)),
            step => codes::encode(f64::from(x) / step),
        };
        scales.push(scale);
        codes.extend(block.chunks_exact(2).map(|x| code(x[0]) | code(x[1]) << 4));
    }
    Ok(Quantised {
        rows,
        k,
        codes,
        scales,
        tensor_scale,
    })
}

/// The greatest magnitude.
fn greatest(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |most, x| x.abs().max(most))
}

/// Refuses a scale of a tensor that is none.
fn positive(scale: f32) -> Result<(), FamilyError> {
    let rule = "the scale of a tensor is finite and positive";
    require(scale.is_finite() && scale > 0.0, || {
        format!("{rule}, not {scale:?}")
    })
}

impl Quantised {
    /// The values, row by row, exactly; all of a block whose scale is NaN are.
    ///
    /// Refused are codes and scales that are not those of rows · K values, and
    /// what [`quantise`] refuses of K and of the scale of the tensor.
    pub fn dequantise(&self) -> Result<Vec<f64>, FamilyError> {
        whole_blocks(self.k)?;
        let values = self.rows.saturating_mul(self.k);
        exactly("bytes of codes", values / 2, self.codes.len())?;
        exactly("scales", values / BLOCK, self.scales.len())?;
        positive(self.tensor_scale)?;
        let all = f64::from(self.tensor_scale);
        let mut values = Vec::with_capacity(values);
        for (bytes, &scale) in self.codes.chunks_exact(BLOCK / 2).zip(&self.scales) {
            let step = scales::decode(scale) * all;
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

    /// Any codes, a 6 or -6 in each block, and any scales but zero.
    fn any(rows: usize, k: usize, tensor_scale: f32) -> Quantised {
        let mut random = Random::new(rows as u64);
        let mut codes: Vec<u8> = (0..rows * k / 2).map(|_| random.bits() as u8).collect();
        for block in codes.chunks_exact_mut(8) {
            block[random.bits() as usize % 8] |= [0x07, 0x70][random.bits() as usize % 2];
        }
        let scale = |_| 1 + (random.bits() % 0x7e) as u8;
        let scales = (0..rows * k / 16).map(scale).collect();
        Quantised {
            rows,
            k,
            codes,
            scales,
            tensor_scale,
        }
    }

    fn again(q: &Quantised, scale: TensorScale) -> Result<Quantised, FamilyError> {
        let values: Vec<f32> = q.dequantise()?.iter().map(|&x| x as f32).collect();
        quantise(&values, q.rows, q.k, scale)
    }

    #[test]
    fn what_is_nvfp4_already_stays_as_it_is() -> Result<(), FamilyError> {
        for (rows, k) in [(1, 16), (7, 48), (129, 80), (3, 1040)] {
            let q = any(rows, k, 1.0);
            assert_eq!(again(&q, TensorScale::One)?, q);
            // The scale may be any number: f32 then rounds, and codes return.
            for scale in [0.25, 0.3, 1e-30, 1e30] {
                let q = any(rows, k, scale);
                assert_eq!(again(&q, TensorScale::Given(scale))?, q);
            }
        }
        Ok(())
    }

    #[test]
    fn every_code_and_scale_have_the_value_of_their_bits() -> Result<(), FamilyError> {
        /// A code of `m` bits of mantissa in units of its least magnitude.
        fn units(code: u32, m: u32) -> u32 {
            match (code >> m, code & ((1 << m) - 1)) {
                (0, mantissa) => mantissa,
                (e, mantissa) => ((1 << m) + mantissa) << (e - 1),
            }
        }
        let codes = codes::pack(&(0..16).collect::<Vec<u8>>().repeat(256))?;
        let q = Quantised {
            rows: 256,
            k: 16,
            codes,
            scales: (0..=255).collect(),
            tensor_scale: 0.1,
        };
        let values = q.dequantise()?;
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
    fn a_value_errs_by_half_a_step_at_most() -> Result<(), FamilyError> {
        let (rows, k) = (65, 272);
        let mut random = Random::new(5);
        for (size, given) in [(1e-4, 5e-5), (1.0, 1.0), (100.0, 3.0), (1e20, 1e20)] {
            let values = (0..rows * k).map(|_| (random.normal() * size) as f32);
            let values: Vec<f32> = values.collect();
            for choice in [TensorScale::Chosen, TensorScale::Given(given)] {
                let q = quantise(&values, rows, k, choice)?;
                for (i, (&x, y)) in values.iter().zip(q.dequantise()?).enumerate() {
                    let scale = q.scales[i / 16];
                    assert!((8..0x7f).contains(&scale), "normal: {scale}");
                    let one = scales::decode(scale) * f64::from(q.tensor_scale);
                    let x = f64::from(x);
                    let half = match x.abs() / one {
                        x if x <= 2.0 => 0.25,
                        x if x <= 4.0 => 0.5,
                        _ => 1.0,
                    };
                    assert!((x - y).abs() <= half * one, "{choice:?}: {x} became {y}");
                }
            }
        }
        Ok(())
    }

    #[test]
    fn scales_are_those_of_the_recipe() -> Result<(), FamilyError> {
        let of = |most: f32, scale| {
            let mut values = [0.0; 16];
            (values[3], values[4]) = (-most, -most / 2.0);
            let q = quantise(&values, 1, 16, scale)?;
            let code = codes::unpack(&q.codes);
            Ok::<_, FamilyError>((q.tensor_scale, q.scales[0], [code[3], code[4]]))
        };
        let (one, chosen) = (TensorScale::One, TensorScale::Chosen);
        assert_eq!(of(6.0, one)?, (1.0, 0x38, [15, 13]));
        // Ties of the scale: 1 1/16 goes to 1, 1 3/16 to 1 1/4.
        assert_eq!(of(6.375, one)?, (1.0, 0x38, [15, 13]));
        assert_eq!(of(7.125, one)?, (1.0, 0x3a, [15, 13]));
        // A scale saturates, is subnormal, and is zero with zeros for codes.
        assert_eq!(of(1e9, one)?, (1.0, 0x7e, [15, 15]));
        assert_eq!(of(6.0 / 512.0, one)?, (1.0, 1, [15, 13]));
        assert_eq!(of(2.9 / 512.0, one)?, (1.0, 0, [8, 8]));
        assert_eq!(of(0.0, chosen)?, (1.0, 0, [8, 8]));
        assert_eq!(of(2688.0 * 0.75, chosen)?, (0.75, 0x7e, [15, 13]));
        assert_eq!(of(f32::MAX, chosen)?.1, 0x7e);
        let least = f32::MIN_POSITIVE;
        assert_eq!(of(6.0 * least, chosen)?, (least, 0x38, [15, 13]));
        Ok(())
    }

    #[test]
    fn what_breaks_a_rule_is_refused() -> Result<(), FamilyError> {
        let told = |values: &[f32], rows, k, scale| {
            let text = quantise(values, rows, k, scale).err();
            text.map(|e| e.to_string()).unwrap_or_default()
        };
        let one = TensorScale::One;
        let text = "nvfp4: K is a positive multiple of 16, not 8";
        assert_eq!(told(&[0.0; 16], 2, 8, one), text);
        let text = "nvfp4: there must be 48 values, not 32";
        assert_eq!(told(&[0.0; 32], 3, 16, one), text);
        assert_eq!(told(&[], 0, 16, TensorScale::Chosen), "");
        let text = "nvfp4: K is a positive multiple of 16, not 0";
        assert_eq!(told(&[], 1, 0, one), text);
        for x in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut values = [0.0; 32];
            values[18] = x;
            let text = format!("nvfp4: values are finite, not {x} in row 1, column 2");
            assert_eq!(told(&values, 2, 16, one), text);
        }
        for x in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            let text = format!("nvfp4: the scale of a tensor is finite and positive, not {x:?}");
            assert_eq!(told(&[0.0; 16], 1, 16, TensorScale::Given(x)), text);
        }
        let changes: [fn(&mut Quantised); 5] = [
            |q| q.rows = 3,
            |q| (q.rows, q.k) = (4, 8),
            |q| q.codes.truncate(15),
            |q| q.scales.push(0),
            |q| q.tensor_scale = 0.0,
        ];
        for (i, change) in changes.iter().enumerate() {
            let mut q = quantise(&[1.0; 32], 2, 16, one)?;
            change(&mut q);
            assert!(q.dequantise().is_err(), "change {i}");
        }
        Ok(())
    }
}

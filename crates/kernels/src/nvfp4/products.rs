//! Products of a code and its scale, and the element types that represent them exactly.

use super::{codes, scales};
use warpline_family::tensor::{HostTensor, TensorSpec};
use warpline_ir::DType;

/// Returns code · scale, exactly; NaN if the scale is NaN.
///
/// ```
/// use warpline_kernels::nvfp4::products::product;
/// assert_eq!(product(0b1111, 0x7e), -6.0 * 448.0);
/// ```
pub fn product(code: u8, scale: u8) -> f64 {
    f64::from(codes::decode(code)) * scales::decode(scale)
}

/// Does an element type represent every finite product of a code and a scale exactly? f16 and bf16
/// do, so 16-bit tensor cores lose no bits of an NVFP4 tensor.
///
/// ```
/// use warpline_ir::DType;
/// use warpline_kernels::nvfp4::products::are_exact_in;
/// assert!(are_exact_in(DType::F16) && are_exact_in(DType::Bf16));
/// assert!(!are_exact_in(DType::E4m3));
/// ```
pub fn are_exact_in(dtype: DType) -> bool {
    let pairs = (0..=255).flat_map(|scale| (0..16).map(move |code| (code, scale)));
    let all = pairs.map(|(code, scale)| product(code, scale));
    let finite: Vec<f64> = all.filter(|x| x.is_finite()).collect();
    let spec = TensorSpec {
        name: "products",
        dtype,
        shape: vec![finite.len()],
    };
    let rounded = HostTensor::round(spec, finite.iter().copied());
    let bits = rounded.values().map(f64::to_bits);
    bits.eq(finite.into_iter().map(f64::to_bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_exact_in_16_bits_and_not_in_8() {
        for dtype in [DType::F16, DType::Bf16, DType::F32] {
            assert!(are_exact_in(dtype), "{dtype}");
        }
        for dtype in [DType::E4m3, DType::E5m2, DType::I32] {
            assert!(!are_exact_in(dtype), "{dtype}");
        }
    }
}

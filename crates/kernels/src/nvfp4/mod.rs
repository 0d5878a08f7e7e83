//! NVFP4: 4-bit codes with one scale per block of 16.
//!
//! A row of K numbers has K/2 bytes of e2m1 [codes], two per byte, and K/16 bytes of e4m3 [scales].
//! The tensor may have one more scale in f32. A value is code · scale · tensor scale.
//!
//! ```
//! use warpline_kernels::nvfp4::{TensorScale, quantize};
//! let x: Vec<f32> = (0..16).map(|i| [0.0, -3.0, 8.0, 12.0][i % 4]).collect();
//! let q = quantize(&x, 1, 16, TensorScale::One)?;
//! assert_eq!((q.codes.len(), q.scales.len()), (8, 1));
//! assert!(q.dequantize()?.into_iter().eq(x.into_iter().map(f64::from)));
//! # Ok::<(), warpline_kernels::FamilyError>(())
//! ```

pub mod codes;
pub mod products;
pub mod quantize;
pub mod scales;

pub use quantize::{Quantized, TensorScale, quantize};
pub use scales::ScaleLayout;

use warpline_family::error::FamilyError;

/// Consecutive numbers of a row that share a scale.
pub const BLOCK: usize = 16;

/// Rejects the input with a message unless `holds`.
fn require(holds: bool, message: impl FnOnce() -> String) -> Result<(), FamilyError> {
    match holds {
        true => Ok(()),
        false => Err(FamilyError::Problem(format!("nvfp4: {}", message()))),
    }
}

/// Rejects a K that is not a positive multiple of the block.
fn check_k(k: usize) -> Result<(), FamilyError> {
    let holds = k > 0 && k.is_multiple_of(BLOCK);
    require(holds, || {
        format!("K is {k}; it must be a positive multiple of {BLOCK}")
    })
}

/// Rejects a length that is not the expected one.
fn check_len(what: &str, expected: usize, len: usize) -> Result<(), FamilyError> {
    require(len == expected, || {
        format!("there are {len} {what}; {expected} are needed")
    })
}

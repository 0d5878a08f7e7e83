//! NVFP4: numbers of four bits with a scale for every sixteen of them.
//!
//! A row of K numbers is K/2 bytes of e2m1 [codes], two in a byte, and K/16
//! bytes of e4m3 [scales]; the whole tensor may have one more scale in f32. A
//! value is code · scale · scale of the tensor.
//!
//! ```
//! use warpline_kernels::nvfp4::{TensorScale, quantise};
//! let x: Vec<f32> = (0..16).map(|i| [0.0, -3.0, 8.0, 12.0][i % 4]).collect();
//! let q = quantise(&x, 1, 16, TensorScale::One)?;
//! assert_eq!((q.codes.len(), q.scales.len()), (8, 1));
//! assert!(q.dequantise()?.into_iter().eq(x.into_iter().map(f64::from)));
//! # Ok::<(), warpline_kernels::FamilyError>(())
//! ```

pub mod codes;
pub mod products;
pub mod quantise;
pub mod scales;

pub use quantise::{Quantised, TensorScale, quantise};
pub use scales::ScaleLayout;

use warpline_family::error::FamilyError;

/// How many numbers of a row share a scale.
pub const BLOCK: usize = 16;

/// Refuses with a sentence what breaks a rule.
fn require(holds: bool, sentence: impl FnOnce() -> String) -> Result<(), FamilyError> {
    match holds {
        true => Ok(()),
        false => Err(FamilyError::Problem(format!("nvfp4: {}", sentence()))),
    }
}

/// Refuses a K that is not made of whole blocks.
fn whole_blocks(k: usize) -> Result<(), FamilyError> {
    let holds = k > 0 && k.is_multiple_of(BLOCK);
    require(holds, || {
        format!("K is a positive multiple of {BLOCK}, not {k}")
    })
}

/// Refuses a number of things that is not the number there should be.
fn exactly(what: &str, expected: usize, len: usize) -> Result<(), FamilyError> {
    require(len == expected, || {
        format!("there must be {expected} {what}, not {len}")
    })
}

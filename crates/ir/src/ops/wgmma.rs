//! `wgmma`: asynchronous warpgroup matrix multiply-accumulate, D (64×n, f32 registers) = ±A (64×k) · B (k×n) + D.
//!
//! One instruction covers 32 bytes of K: 8 tf32, 16 16-bit or 32 fp8 elements.
//! On the CPU each warp issues its 16 rows as one job. Operands in shared
//! memory have the layout of their matrix descriptors. The elements of a K-major
//! operand are contiguous along K, those of an MN-major operand (16-bit types
//! only) along M or N. The swizzle permutes 16-byte chunks by the absolute
//! shared address.

mod groups;
mod job;
mod op;
mod operand;

pub use super::mma::MmaType;
pub use groups::{WgmmaCommit, WgmmaFence, WgmmaWait};
pub use job::WgmmaJob;
pub use op::{MatrixA, Wgmma};

use crate::target::Target;

/// Rejects a target without `wgmma`.
fn legal_wgmma(target: &Target) -> Result<(), String> {
    match target.features.wgmma {
        true => Ok(()),
        false => Err(format!("{} does not support wgmma", target.name)),
    }
}

#[cfg(test)]
mod tests;

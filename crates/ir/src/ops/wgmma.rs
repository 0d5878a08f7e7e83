//! Warpgroup products: D (64×n, f32 registers) = ±A (64×k) · B (k×n) + D.
//!
//! One instruction takes 32 bytes of K: 8 tf32, 16 of 16 bits, 32 of fp8. On
//! the CPU each warp submits its 16 rows as a job of its own. Operands in
//! shared memory are read as the descriptors say: K-major operands have the
//! elements of a row side by side, MN-major ones (16-bit types alone) have a
//! row per k; 16-byte chunks are permuted by the swizzle of the absolute
//! shared byte.

mod groups;
mod job;
mod op;
mod operand;

pub use super::mma::MmaType;
pub use groups::{WgmmaCommit, WgmmaFence, WgmmaWait};
pub use job::WgmmaJob;
pub use op::{MatrixA, Wgmma};

use crate::target::Target;

/// Refuses a target without warpgroup products.
fn legal_wgmma(target: &Target) -> Result<(), String> {
    match target.features.wgmma {
        true => Ok(()),
        false => Err(format!("{} has no wgmma", target.name)),
    }
}

#[cfg(test)]
mod tests;

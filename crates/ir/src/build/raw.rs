//! The raw layer: barriers, fences and copies as the machine has them.
//!
//! Rings and turns lower to these. Here nothing is derived: counts, bytes and
//! parities are what the author writes, and the checker judges the result.

mod barrier;
mod copy;
mod fence;
mod group;
mod map;

pub use barrier::{Bar, BarHandle, Named};
pub use copy::*;
pub use fence::*;
pub use group::*;
pub use map::Map;

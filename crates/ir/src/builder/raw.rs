//! The raw layer: mbarriers, fences and copies, one function for each instruction.
//!
//! Rings and turns lower to these functions. The builder derives nothing here: the author
//! writes counts, bytes and parities, and the checker checks them.

mod barrier;
mod copy;
mod cta;
mod fence;
mod tensor_map;

pub use barrier::{MbarrierArray, MbarrierHandle, NamedBarrierHandle};
pub use copy::*;
pub use cta::*;
pub use fence::*;
pub use tensor_map::TensorMap;

//! Op calls on the caller's memory.
//!
//! A [`Call`] has an op and its arguments. On a GPU, [`Call::launch`] takes device addresses and a
//! stream of the caller, does not wait, and can be captured in a CUDA graph. On the CPU executor,
//! [`Call::simulate`] takes bytes:
//!
//! ```
//! use warpline::ops::{Call, TensorView};
//! use warpline::{DType, RunOptions};
//!
//! # fn main() -> Result<(), warpline::Error> {
//! let row = TensorView::dense(DType::F32, &[1, 4], 0);
//! let bytes: Vec<u8> = [0.0f32, 0.0, 0.0, f32::NEG_INFINITY]
//!     .iter()
//!     .flat_map(|x| x.to_le_bytes())
//!     .collect();
//!
//! let call = Call::new("softmax")?.tensor("x", row.clone())?.out(row);
//! let y = call.simulate(&[&bytes], &RunOptions::default())?;
//! assert_eq!(y[0][..4], (1.0f32 / 3.0).to_le_bytes());
//! # Ok(())
//! # }
//! ```
//!
//! | where | what |
//! |---|---|
//! | `call` | a call: an op and its arguments |
//! | `key` | the key of a call's plan |
//! | `launch` | launches on a GPU |
//! | `plans` | the cache of plans |
//! | `workspace` | workspaces of streams |
//! | `simulate` | runs on the CPU executor |
//! | `interop` | cudarc slices and streams (feature `cudarc`) |

mod call;
#[cfg(feature = "cudarc")]
pub mod interop;
mod key;
mod launch;
mod plans;
mod simulate;
mod workspace;

pub use call::Call;
pub use key::CallKey;
pub use launch::PlannedCall;
pub(crate) use plans::Plans;
use std::sync::LazyLock;
pub use warpline_kernels::AnyOp;
pub use warpline_kernels::op::{ArgValue, TensorView};
pub(crate) use workspace::Workspaces;

/// Returns all ops, in the order of the registry.
pub fn all() -> &'static [AnyOp] {
    static ALL: LazyLock<Vec<AnyOp>> = LazyLock::new(warpline_kernels::ops);
    &ALL
}

//! The library's functions, on the caller's memory.
//!
//! A [`Call`] names an op and its arguments. On a GPU it takes device
//! addresses and a stream of the caller's ([`Call::launch`]), waits for nothing and
//! can be captured in a graph; on the simulator it takes bytes
//! ([`Call::simulate`]):
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
//! | `call` | an op and its arguments |
//! | `launch` | a call on a GPU |
//! | `plans` | what calls came to, kept by what they have in common |
//! | `workspace` | where ops work that were given no workspace |
//! | `simulate` | a call on the simulator |
//! | `interop` | cudarc's slices and streams, by the feature `cudarc` |

mod call;
#[cfg(feature = "cudarc")]
pub mod interop;
mod launch;
mod plans;
mod simulate;
mod workspace;

pub use call::Call;
pub use launch::Planned;
pub(crate) use plans::Plans;
use std::sync::LazyLock;
pub use warpline_kernels::AnyOp;
pub use warpline_kernels::op::{TensorView, Value};
pub(crate) use workspace::Workspaces;

/// Every op, in the order of the registry.
pub fn all() -> &'static [AnyOp] {
    static ALL: LazyLock<Vec<AnyOp>> = LazyLock::new(warpline_kernels::ops);
    &ALL
}

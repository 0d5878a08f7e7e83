//! Ops on cudarc's slices, in cudarc's streams; by the feature `cudarc`.
//!
//! A [`StreamOps`] is the ops in one stream. A call borrows its inputs and its
//! outputs as Rust does, so that launching it is safe:
//!
//! ```no_run
//! use cudarc::driver::CudaContext;
//! use warpline::ops::interop::StreamOps;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // cudarc panics where there is no driver; this says so.
//! warpline::Device::cuda(0)?;
//! let stream = CudaContext::new(0)?.new_stream()?;
//! let x = stream.clone_htod(&vec![0.5f32; 37 * 1000])?;
//! let mut y = stream.alloc_zeros::<f32>(37 * 1000)?;
//!
//! let ops = StreamOps::new(&stream)?;
//! ops.call("softmax")?
//!     .input("x", &x, &[37, 1000])?
//!     .output(&mut y, &[37, 1000])?
//!     .launch()?;
//! let y = stream.clone_dtoh(&y)?;
//! # Ok(())
//! # }
//! ```
//!
//! What differs from [`Call::launch`](super::Call::launch), where the caller
//! promises everything:
//!
//! - slices are as long as their shapes and strides reach, on the stream's
//!   device, and of a type that ops have;
//! - they belong to the stream, so that cudarc frees them behind the launch
//!   ([`StreamCall::launch_across`] takes those of other streams);
//! - work in other streams is ordered by cudarc's events, as with its own copies;
//! - captures are refused: a graph can be replayed when the borrows are over.
//!
//! | where | what |
//! |---|---|
//! | `stream` | the ops in one of cudarc's streams |
//! | `call` | a call that borrows its tensors |
//! | `memory` | cudarc's memory that ops take, and its elements |
//! | `layout` | how a tensor lies in a slice |

mod call;
mod layout;
mod memory;
mod stream;

pub use call::StreamCall;
pub use layout::Layout;
pub use memory::{Element, Readable, Writable};
pub use stream::StreamOps;

use crate::error::Error;
use cudarc::driver::DriverError;
use std::ffi::CStr;
use warpline_cuda::CudaError;

/// An error of the driver that cudarc met, as ours.
fn met(call: &'static str) -> impl FnOnce(DriverError) -> Error {
    let text = |said: Result<&CStr, DriverError>| match said {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => "an error this driver does not describe".into(),
    };
    move |error| {
        Error::Cuda(CudaError::DriverCall {
            call,
            result: error.0 as i32,
            name: text(error.error_name()),
            text: text(error.error_string()),
        })
    }
}

//! Ops on cudarc slices and streams (feature `cudarc`).
//!
//! [`StreamOps`] runs ops in one stream. A call borrows its inputs and outputs, so that its launch is
//! safe:
//!
//! ```no_run
//! use cudarc::driver::CudaContext;
//! use warpline::ops::interop::StreamOps;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // cudarc panics without a driver; this returns an error.
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
//! [`Call::launch`](super::Call::launch) leaves all guarantees to the caller. Here, the library
//! checks them:
//!
//! - Slices are on the stream's device, have a supported element type, and are as long as their
//!   shapes and strides span.
//! - Slices belong to the stream, so that cudarc frees them after the launch
//!   ([`StreamCall::launch_across`] accepts slices of other streams).
//! - cudarc's events order work in other streams, as for its own copies.
//! - Stream capture is rejected, because a graph can be replayed after the borrows end.
//!
//! | where | what |
//! |---|---|
//! | `stream` | ops in a cudarc stream |
//! | `call` | a call that borrows its tensors |
//! | `memory` | cudarc memory and element types that ops accept |
//! | `layout` | the layout of a tensor in a slice |

mod call;
mod layout;
mod memory;
mod stream;

pub use call::StreamCall;
pub use layout::SliceLayout;
pub use memory::{CudarcElement, Readable, Writable};
pub use stream::StreamOps;

use crate::error::Error;
use cudarc::driver::DriverError;
use std::ffi::CStr;
use warpline_cuda::CudaError;

/// Converts a driver error of cudarc.
fn driver_error(call: &'static str) -> impl FnOnce(DriverError) -> Error {
    let text = |result: Result<&CStr, DriverError>| match result {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => "an error that the driver does not describe".into(),
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

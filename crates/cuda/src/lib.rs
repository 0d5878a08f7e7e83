//! The CUDA driver, loaded at run time.
//!
//! This crate alone talks to the driver, and asks nothing else of the machine:
//! no toolkit, no runtime library, no compiler. A machine without a driver is
//! a normal case: [`Driver::load`] returns an error that says so, and nothing
//! happens before it is called.
//!
//! ```no_run
//! use warpline_cuda::{Args, Buffer, Driver, JitOptions, LaunchConfig, Module, Stream, launch};
//!
//! # fn main() -> Result<(), warpline_cuda::CudaError> {
//! # let ptx = "";
//! let context = Driver::load()?.device(0)?.context()?;
//! let stream = Stream::new(&context)?;
//! let module = Module::from_ptx(&context, ptx, &JitOptions::default())?;
//! let kernel = module.function("scale")?;
//! let mut data = Buffer::alloc(&context, 4096)?;
//! data.fill(0, &stream)?;
//! let mut args = Args::new();
//! args.buffer(&data).push(1024u32).push(2.0f32);
//! launch(&kernel, &LaunchConfig::new([8, 1, 1], [128, 1, 1]), &stream, &args)?;
//! stream.synchronize()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Why our own table of functions, and not cudarc
//!
//! cudarc is the well-kept binding, with two traps for a library: it panics
//! where the driver or one of its symbols is missing, and a build in which two
//! crates ask for different `cuda-*` features does not compile. The first
//! breaks "no driver is a normal case", the second makes us a burden on
//! whoever depends on us. We need about sixty functions; they are loaded
//! through `libloading`, each with a `Result` that names the symbol.
//!
//! # What holds
//!
//! - The library is opened once and never closed: the driver keeps threads and
//!   exit handlers of its own. Every handle here keeps a `&'static Driver`.
//! - The context is the device's **primary** one, so pointers and streams are
//!   shared with any other user in the process (PyTorch). Each call pushes it
//!   and pops it again: the caller's current context is left as it was.
//! - Handles are `Send` and `Sync`: the driver API is thread-safe and ours
//!   carry no thread state.
//! - [`launch()`] allocates nothing and synchronises nothing, so that
//!   [`Stream::capture`] can record it in a graph.
//! - Errors are values ([`CudaError`]), nothing is printed, nothing panics.
//!   Failures while dropping a handle are ignored: after a device fault every
//!   call fails, and the fault was reported by the call that met it.
//!
//! # What is taken on trust
//!
//! Device code. Loading a module and launching it are safe functions, since
//! the layers above contain no `unsafe`; what a kernel does with its pointers
//! is proved by the checker, not here. A kernel that leaves its buffers faults
//! its context ([`CudaError::is_fault`]), which the process survives; only
//! where the GPU maps ordinary host memory could it reach more.

// The workspace denies `unsafe_code`; this crate is the one place whose work is
// to call a C library. Each block states why it is sound.
#![allow(unsafe_code)]
#![deny(clippy::undocumented_unsafe_blocks, unsafe_op_in_unsafe_fn)]

mod compile;
mod context;
mod device;
mod driver;
mod elf;
mod error;
mod ffi;
mod function;
mod graph;
mod host;
mod launch;
mod memory;
mod module;
mod stream;
mod tensor_map;

pub use compile::{Cubin, JitOptions};
pub use context::Context;
pub use device::{ComputeCapability, Device, DeviceInfo, devices};
pub use driver::{Driver, DriverVersion};
pub use error::CudaError;
pub use function::{Function, FunctionAttributes};
pub use graph::{Graph, GraphExec};
pub use host::HostBuffer;
pub use launch::{Args, LaunchConfig, Scalar, launch};
pub use memory::Buffer;
pub use module::Module;
pub use stream::{Event, Stream};
pub use tensor_map::{DataType, Im2col, L2Promotion, OobFill, Swizzle, Tensor, TensorMap, Tiled};

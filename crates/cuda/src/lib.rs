//! Bindings of the CUDA driver, loaded at run time.
//!
//! Only this crate calls the driver. It needs no toolkit, no runtime library and no compiler. A
//! machine without a driver is a normal case: [`Driver::load`] returns an error, and nothing
//! happens before that call.
//!
//! ```no_run
//! use warpline_cuda::{Args, DeviceBuffer, Driver, JitOptions, LaunchConfig, Module, Stream, launch};
//!
//! # fn main() -> Result<(), warpline_cuda::CudaError> {
//! # let ptx = "";
//! let context = Driver::load()?.device(0)?.context()?;
//! let stream = Stream::new(&context)?;
//! let module = Module::from_ptx(&context, ptx, &JitOptions::default())?;
//! let kernel = module.function("scale")?;
//! let mut data = DeviceBuffer::alloc(&context, 4096)?;
//! data.fill(0, &stream)?;
//! let mut args = Args::new();
//! args.buffer(&data).push(1024u32).push(2.0f32);
//! launch(&kernel, &LaunchConfig::new([8, 1, 1], [128, 1, 1]), &stream, &args)?;
//! stream.synchronize()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Why not cudarc
//!
//! cudarc has two problems for a library. It panics where the driver or one of its symbols is
//! missing, and a build with two crates that request different `cuda-*` features does not
//! compile. Warpline needs about sixty functions. `libloading` loads them, and an error names the
//! missing symbol.
//!
//! # Guarantees
//!
//! - The library is opened once and never closed, because the driver owns threads and exit
//!   handlers. Every handle keeps a `&'static Driver`.
//! - The context is the device's **primary** context, so pointers and streams are shared with
//!   other users in the process (PyTorch). Each call pushes and pops it; the caller's current
//!   context does not change.
//! - Handles are `Send` and `Sync`: the driver API is thread-safe, and the handles hold no
//!   thread state.
//! - [`launch()`] does not allocate or synchronize, so [`Stream::capture`] can record it in a
//!   graph.
//! - Errors are values ([`CudaError`]). Nothing is printed, and nothing panics. Errors while
//!   dropping a handle are ignored: after a device fault every call fails, and the first failing
//!   call has reported the fault.
//!
//! # Trust
//!
//! Device code is trusted. Module loading and kernel launches are safe functions, because the
//! layers above contain no `unsafe`. The checker does not prove that accesses to global memory are
//! in bounds. An out-of-bounds access faults the context ([`CudaError::is_fault`]) and not the
//! process, unless the GPU maps ordinary host memory.

// The workspace denies `unsafe_code`; this crate is the exception because it calls a C library.
// Each block states why it is sound.
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
pub use device::{ComputeCapability, CudaDevice, CudaDeviceInfo, devices};
pub use driver::{Driver, DriverVersion};
pub use error::CudaError;
pub use function::{Function, FunctionAttributes};
pub use graph::{Graph, GraphExec};
pub use host::HostBuffer;
pub use launch::{Args, LaunchConfig, ScalarArg, launch};
pub use memory::DeviceBuffer;
pub use module::Module;
pub use stream::{Event, Stream};
pub use tensor_map::{
    EncodedTensorMap, GlobalTensor, Im2colMap, L2Promotion, OobFill, TensorMapSwizzle,
    TensorMapType, TiledMap,
};

//! Tensors in files: inputs and outputs of runs.
//!
//! A folder has one file per tensor: `NAME.bin` (raw little-endian elements in row-major order) or
//! `NAME.safetensors`. Alternatively, one `.safetensors` file has all tensors.
//!
//! | where | what |
//! |---|---|
//! | `files` | the tensors of a folder or a file, by name |
//! | `location` | the location of one tensor, and a check of its type and shape |
//! | `safetensors` | safetensors files |
//!
//! ```
//! use warpline::data::TensorFiles;
//! use warpline::kernels::{DeviceKind, registry};
//! use warpline::{Device, RunData, RunOptions, run};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Device::cpu();
//! let work = registry()[1].default_workload(DeviceKind::Cpu, &device.target())?;
//! let folder = tempfile::tempdir()?;
//! for tensor in work.draw(7) {
//!     let file = folder.path().join(format!("{}.bin", tensor.spec.name));
//!     std::fs::write(file, &tensor.data)?;
//! }
//! let inputs = TensorFiles::open(folder.path())?.tensors(&work.inputs())?;
//! assert_eq!(inputs, work.draw(7));
//! let options = RunOptions::with_data(RunData::new(inputs));
//! let report = run(work.as_ref(), &device, &options)?;
//! assert!(report.passed());
//! # Ok(())
//! # }
//! ```

mod files;
mod location;
mod safetensors;

pub use files::TensorFiles;
pub use safetensors::encode;

/// The extension of safetensors files.
pub const SAFETENSORS: &str = "safetensors";
/// The extension of raw files.
pub const BIN: &str = "bin";

//! Tensors in files: what a run takes its inputs from, and what it leaves.
//!
//! A folder holds one file for each tensor, by its name: `NAME.bin`, the
//! elements alone, little-endian and the last side fastest, or
//! `NAME.safetensors`. Or one `.safetensors` file holds all of them.
//!
//! | where | what |
//! |---|---|
//! | `source` | the tensors of a folder or a file, by name |
//! | `found` | one of them: where it lies, and whether it is the one asked for |
//! | `safetensors` | files that say types and shapes |
//!
//! ```
//! use warpline::data::Source;
//! use warpline::kernels::{Place, registry};
//! use warpline::{Device, RunData, RunOptions, run};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Device::cpu();
//! let work = registry()[1].default_work(Place::Cpu, &device.target())?;
//! let folder = tempfile::tempdir()?;
//! for tensor in work.draw(7) {
//!     let file = folder.path().join(format!("{}.bin", tensor.spec.name));
//!     std::fs::write(file, &tensor.data)?;
//! }
//! let inputs = Source::open(folder.path())?.tensors(&work.inputs())?;
//! assert_eq!(inputs, work.draw(7));
//! let options = RunOptions::with_data(RunData::new(inputs));
//! let outcome = run(work.as_ref(), &device, &options)?;
//! assert!(outcome.passed());
//! # Ok(())
//! # }
//! ```

mod found;
mod safetensors;
mod source;

pub use safetensors::encode;
pub use source::Source;

/// How the name of a file ends that says types and shapes.
pub const SAFETENSORS: &str = "safetensors";
/// How the name of a file ends that holds elements alone.
pub const BIN: &str = "bin";

//! Warp-specialized GPU kernels: devices, launches, and the kernel library.
//!
//! A [family](kernels::Family) states a problem and the kernels that solve it.
//! [`run()`] takes such work to a [`Device`], the CPU simulator or a GPU, and
//! compares what comes out with a float64 reference:
//!
//! ```
//! use warpline::kernels::vector_add::{Choice, Float, Form, Problem, VectorAdd};
//! use warpline::kernels::Work;
//! use warpline::{Device, RunOptions, run};
//!
//! # fn main() -> Result<(), warpline::Error> {
//! let device = Device::cpu();
//! let problem = Problem { n: 4099, dtype: Float::Bf16 };
//! let choice = Choice { form: Some(Form::Specialized), ..Choice::default() };
//! let work = Work::<VectorAdd>::new(problem, &choice, &device.target())?;
//!
//! let outcome = run(&work, &device, &RunOptions::default())?;
//! assert!(outcome.passed());
//! assert_eq!(outcome.outputs[0].elements, 4099);
//! # Ok(())
//! # }
//! ```
//!
//! Nothing here prints; what happens on the way is told as `tracing` events.
//!
//! | where | what |
//! |---|---|
//! | [`device`] | the CPU simulator and the GPUs, and why one cannot be used |
//! | [`mod@prepare`] | a plan whose kernels have all been checked |
//! | [`gpu`] | a plan on a GPU: kernels that are compiled once, launches that wait for nothing |
//! | [`mod@run`] | from work to outcome |
//! | [`data`] | tensors in files: inputs that are read, and what a run leaves |
//! | [`ops`] | the library's functions, on the caller's memory |
//! | [`mod@compare`] | what came out against the reference |
//! | [`outcome`] | what a run gives: comparison, times, rates, counters |
//! | [`mod@bench`] | contenders against each other and against the limit, in one run |
//! | [`mod@tune`] | which config is fastest here: raced, remembered, looked up |
//! | [`child`] | this program once more, for what may hang |
//! | [`estimate`] | how long the simulator will take, and what it needs |

pub mod bench;
pub mod child;
pub mod compare;
mod cpu;
pub mod data;
pub mod device;
pub mod error;
pub mod estimate;
pub mod gpu;
pub mod ops;
pub mod outcome;
pub mod prepare;
pub mod run;
pub mod tune;

pub use compare::{Comparison, Worst};
pub use device::{Device, DeviceInfo, devices};
pub use error::Error;
pub use gpu::{BuildTimes, Flush, Launches, LoadOptions, Origin, Ready};
pub use outcome::{KernelRun, Outcome, Times};
pub use prepare::{Fallback, Prepared, PreparedStep, prepare, prepare_exactly};
pub use run::{Build, Phase, Progress, RunData, RunOptions, Tensors, run, run_and_keep, watch};
pub use tune::{TuneOptions, Tuned, tune};
pub use warpline_cpu::Timing;
pub use warpline_cuda as cuda;
pub use warpline_ir::DType;
pub use warpline_kernels as kernels;

/// The guide's programs compile, run, and give the numbers it states.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide.md")]
struct Guide;

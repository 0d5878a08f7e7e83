//! Warp-specialized GPU kernels: devices, launches, and the kernel library.
//!
//! A [family](kernels::Family) defines a problem and the kernels that solve it. [`run()`] runs a
//! workload on a [`Device`], the CPU executor or a GPU, and compares the outputs with a float64
//! reference:
//!
//! ```
//! use warpline::kernels::vector_add::{Choice, FloatType, Schedule, Problem, VectorAdd};
//! use warpline::kernels::Workload;
//! use warpline::{Device, RunOptions, run};
//!
//! # fn main() -> Result<(), warpline::Error> {
//! let device = Device::cpu();
//! let problem = Problem { n: 4099, dtype: FloatType::Bf16 };
//! let choice = Choice { schedule: Some(Schedule::Specialized), ..Choice::default() };
//! let work = Workload::<VectorAdd>::new(problem, &choice, &device.target())?;
//!
//! let report = run(&work, &device, &RunOptions::default())?;
//! assert!(report.passed());
//! assert_eq!(report.outputs[0].elements, 4099);
//! # Ok(())
//! # }
//! ```
//!
//! The library prints nothing; it emits `tracing` events.
//!
//! | where | what |
//! |---|---|
//! | [`device`] | the CPU executor and the GPUs |
//! | [`mod@prepare`] | plans with proved kernels |
//! | [`gpu`] | plans on a GPU: cached compilation, asynchronous launches |
//! | [`mod@run`] | runs a workload and compares its outputs |
//! | [`data`] | input and output tensors in files |
//! | [`mod@fuzz`] | random calls of a family: each must run a proved plan |
//! | [`ops`] | op calls on the caller's memory |
//! | [`mod@compare`] | comparison of outputs with the reference |
//! | [`report`] | the report of a run: comparison, times, rates, counters |
//! | [`mod@bench`] | benchmarks of candidates against each other and a measured limit |
//! | [`mod@tune`] | autotuning and the cache of tuned configs |
//! | [`child`] | child processes for kernels that may hang |
//! | [`estimate`] | estimated time and host memory of a run on the CPU executor |

pub mod bench;
pub mod child;
pub mod compare;
mod cpu;
pub mod data;
pub mod device;
pub mod error;
pub mod estimate;
pub mod fuzz;
pub mod gpu;
pub mod ops;
pub mod prepare;
pub mod report;
pub mod run;
pub mod tune;

pub use compare::{Comparison, ElementError};
pub use device::{Device, DeviceInfo, devices};
pub use error::Error;
pub use gpu::{BoundPlan, BuildTimes, CodeOrigin, Flush, LoadOptions, LoadedPlan};
pub use prepare::{Fallback, Prepared, PreparedStep, prepare, prepare_selected};
pub use report::{KernelRun, RunReport, Times};
pub use run::{
    Build, RunData, RunOptions, RunPhase, RunProgress, RunTensors, run, run_watchdog,
    run_with_tensors,
};
pub use tune::{TuneOptions, TuneReport, tune};
pub use warpline_cpu::Timing;
pub use warpline_cuda as cuda;
pub use warpline_ir::DType;
pub use warpline_kernels as kernels;

/// Compiles and runs the programs of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide.md")]
struct Guide;

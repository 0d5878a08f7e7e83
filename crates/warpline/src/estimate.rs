//! Estimates of simulation time and host memory.

use crate::error::Error;
use crate::run::RunOptions;
use std::fs;
use warpline_cpu::Timing;
use warpline_kernels::{AnyWorkload, Cost};

/// The time limit of a simulation unless [`RunOptions::simulate`] is set, in seconds.
pub const DEFAULT_SIMULATION_LIMIT_S: f64 = 30.0;

// Measured on two cores of a server: bytes with vector add, whose three schedules differ by a factor
// of two, and FLOPs with wgmma.

/// The tensor bytes per second for which the host draws inputs, computes the reference and compares.
const HOST_BYTES_PER_S: f64 = 60e6;
/// The bytes of global memory per second that the CPU executor moves, by timing.
const EAGER_BYTES_PER_S: f64 = 250e6;
const CHECKED_BYTES_PER_S: f64 = 60e6;
/// The floating-point operations per second of the CPU executor.
const FLOPS_PER_S: f64 = 2e9;

/// Estimates the seconds of a run on the CPU executor, within a small factor.
///
/// ```
/// use warpline::{Timing, estimate};
/// use warpline::kernels::Cost;
/// let cost = Cost { flops: 1e6, bytes: 12e6 };
/// let eager = estimate::simulation_seconds(&cost, Timing::Eager, 1);
/// assert!(eager < estimate::DEFAULT_SIMULATION_LIMIT_S);
/// assert!(estimate::simulation_seconds(&cost, Timing::Late, 1) > eager);
/// ```
pub fn simulation_seconds(cost: &Cost, timing: Timing, repeats: u32) -> f64 {
    let moved = match timing {
        Timing::Eager => cost.bytes / EAGER_BYTES_PER_S,
        Timing::Late | Timing::Random => cost.bytes / CHECKED_BYTES_PER_S,
    };
    let once = moved + cost.flops / FLOPS_PER_S;
    cost.bytes / HOST_BYTES_PER_S + once * f64::from(repeats)
}

/// Rejects a workload that exceeds the simulation time limit, unless [`RunOptions::simulate`] is set.
pub fn check_simulation_time(work: &dyn AnyWorkload, options: &RunOptions) -> Result<(), Error> {
    if options.simulate {
        return Ok(());
    }
    let repeats = options.repeat.map_or(1, |n| n.get());
    let seconds = simulation_seconds(&work.cost(), options.timing, repeats);
    match seconds > DEFAULT_SIMULATION_LIMIT_S {
        true => Err(Error::TooLong { seconds }),
        false => Ok(()),
    }
}

/// Estimates the host memory of a run in bytes: two copies of the tensors, and two f64 per output
/// element for the reference.
pub fn host_bytes(work: &dyn AnyWorkload) -> f64 {
    let reference: f64 = work
        .outputs()
        .iter()
        .map(|s| s.elements() as f64 * 16.0)
        .sum();
    2.0 * work.cost().bytes + reference
}

/// Rejects a workload that does not fit into host memory, if the available memory is known.
pub fn check_host_memory(work: &dyn AnyWorkload) -> Result<(), Error> {
    let needed = host_bytes(work);
    match available_bytes() {
        Some(available) if needed > available as f64 => Err(Error::HostMemory {
            needed: needed as u64,
            available,
        }),
        _ => Ok(()),
    }
}

/// Returns the memory that is available without swapping, as reported by Linux.
fn available_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_ir::Target;
    use warpline_kernels::Workload;
    use warpline_kernels::vector_add::{Choice, FloatType, Problem, VectorAdd};

    #[test]
    #[cfg(target_os = "linux")]
    fn a_problem_that_exceeds_host_memory_is_rejected() {
        let problem = Problem {
            n: 1 << 40,
            dtype: FloatType::F32,
        };
        let work =
            Workload::<VectorAdd>::new(problem, &Choice::default(), &Target::SM_90A).unwrap();
        let error = check_host_memory(&work).unwrap_err();
        assert_eq!((error.code(), error.exit_code()), ("host-memory", 2));
    }
}

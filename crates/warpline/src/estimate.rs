//! How long the simulator will take, and how much memory a run needs.

use crate::error::Error;
use crate::run::RunOptions;
use std::fs;
use warpline_cpu::Timing;
use warpline_kernels::{AnyWork, Cost};

/// The most seconds that the simulator takes unasked.
pub const UNASKED_SECONDS: f64 = 30.0;

// Measured on two cores of a server. Bytes are those of vector add, whose three
// forms differ by a factor of two; flops are those of wgmma.

/// Bytes of tensors for which the host draws inputs, computes the reference
/// and compares, in a second.
const HOST_BYTES_PER_S: f64 = 60e6;
/// Bytes of global memory that the simulator moves in a second, by timing.
const EAGER_BYTES_PER_S: f64 = 250e6;
const CHECKED_BYTES_PER_S: f64 = 60e6;
/// Floating-point operations that the simulator makes in a second.
const FLOPS_PER_S: f64 = 2e9;

/// Seconds that a run on the simulator will take, to a factor of a few.
///
/// ```
/// use warpline::{Timing, estimate};
/// use warpline::kernels::Cost;
/// let cost = Cost { flops: 1e6, bytes: 12e6 };
/// let eager = estimate::simulation_seconds(&cost, Timing::Eager, 1);
/// assert!(eager < estimate::UNASKED_SECONDS);
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

/// Refuses work that takes the simulator long, unless that was asked for.
pub fn affordable(work: &dyn AnyWork, options: &RunOptions) -> Result<(), Error> {
    if options.simulate {
        return Ok(());
    }
    let repeats = options.repeat.map_or(1, |n| n.get());
    let seconds = simulation_seconds(&work.cost(), options.timing, repeats);
    match seconds > UNASKED_SECONDS {
        true => Err(Error::TooLong { seconds }),
        false => Ok(()),
    }
}

/// Bytes of host memory that a run needs: the tensors here and on the device's
/// side of the copy, and two numbers per output element for the reference.
pub fn host_bytes(work: &dyn AnyWork) -> f64 {
    let reference: f64 = work
        .outputs()
        .iter()
        .map(|s| s.elements() as f64 * 16.0)
        .sum();
    2.0 * work.cost().bytes + reference
}

/// Refuses work that does not fit into the memory of this machine, where that is known.
pub fn fits_host(work: &dyn AnyWork) -> Result<(), Error> {
    let needed = host_bytes(work);
    match available_bytes() {
        Some(available) if needed > available as f64 => Err(Error::HostMemory {
            needed: needed as u64,
            available,
        }),
        _ => Ok(()),
    }
}

/// Bytes of memory that a process can get without swapping, as Linux tells it.
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
    use warpline_kernels::Work;
    use warpline_kernels::vector_add::{Choice, Float, Problem, VectorAdd};

    #[test]
    #[cfg(target_os = "linux")]
    fn a_problem_beyond_this_machine_is_refused_before_anything_is_allocated() {
        let problem = Problem {
            n: 1 << 40,
            dtype: Float::F32,
        };
        let work = Work::<VectorAdd>::new(problem, &Choice::default(), &Target::SM_90A).unwrap();
        let refused = fits_host(&work).unwrap_err();
        assert_eq!((refused.code(), refused.exit_code()), ("host-memory", 2));
    }
}

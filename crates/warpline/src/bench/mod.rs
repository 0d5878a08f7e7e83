//! Benchmarks on a GPU: candidates are compared with each other and with a measured limit.
//!
//! A [`BenchGroup`] is one problem with one or more configs. It is measured in rounds. Each round
//! times every candidate once in a new random order, because a fixed order biases times by up to
//! 10 %. The same rounds time the limit (a device copy or a large GEMM) and the first candidate a
//! second time. The difference of the two medians of that candidate estimates the noise.
//!
//! - *Correctness first*: every candidate runs on poisoned outputs at the timed shape and is
//!   compared with the float64 reference before it is timed.
//! - *Inputs*: drawing hundreds of millions of normal numbers takes longer than the measurement. A
//!   family can declare a small problem that the large one repeats
//!   ([`Family::period`](crate::kernels::Family::period)). The tensors of the large problem repeat
//!   those of the small one, and so do the outputs: one period is compared with the reference, the
//!   others with that period.
//! - *L2 cache*: flushed before each launch by reading. A flush that writes leaves dirty lines,
//!   whose write-back slows the next kernel.
//! - *Time*: CUDA events around each launch. The launch is enqueued while the flush runs, so that
//!   host time does not count.
//!
//! | where | what |
//! |---|---|
//! | [`suite`] | groups of candidates, by suite or by family |
//! | `candidate` | timed work: a plan on its buffers, a device copy |
//! | `tensors` | tensors on the device, and the expected outputs |
//! | `check` | comparison of an output with the reference, period by period |
//! | [`limits`] | memory bound or compute bound, and the limit |
//! | `rounds` | measurement rounds in random order |
//! | `timer` | timing of one launch, and of a sustained run |
//! | [`sensors`] | clocks and power from NVML |
//! | [`statistics`] | medians and quartiles |
//! | `group` | one group from kernels to rows |
//! | [`report`] | the report |

pub(crate) mod candidate;
pub(crate) mod check;
pub(crate) mod group;
pub mod limits;
pub mod report;
pub(crate) mod rounds;
pub mod sensors;
pub mod statistics;
pub mod suite;
pub(crate) mod tensors;
pub(crate) mod timer;

pub use report::{BenchGroupReport, BenchReport, BenchRow};
pub use suite::BenchGroup;

use crate::device::Device;
use crate::error::Error;
use group::BenchRunner;
use std::fmt;
use std::sync::Arc;
use warpline_kernels::AnyWorkload;

/// The minimum number of rounds.
pub const MIN_ROUNDS: u32 = 15;

/// Options of [`bench()`].
#[derive(Clone)]
#[non_exhaustive]
pub struct BenchOptions {
    /// The number of measurement rounds; fewer than [`MIN_ROUNDS`] are raised to it.
    pub rounds: u32,
    /// The seed of the inputs and of the order in each round.
    pub seed: u64,
    /// Whether to also run every candidate alone for more than a second.
    pub sustained: bool,
    /// The progress callback.
    pub progress: Option<BenchProgress>,
}

impl Default for BenchOptions {
    fn default() -> Self {
        Self {
            rounds: 25,
            seed: 0,
            sustained: false,
            progress: None,
        }
    }
}

impl fmt::Debug for BenchOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BenchOptions")
            .field("rounds", &self.rounds)
            .field("seed", &self.seed)
            .field("sustained", &self.sustained)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// The progress of a benchmark.
#[derive(Clone, PartialEq, Debug)]
pub struct BenchStage {
    /// The index of the group.
    pub group: usize,
    /// The number of groups.
    pub groups: usize,
    /// The family: `softmax`.
    pub family: &'static str,
    /// The current action: `drawing the inputs`.
    pub action: &'static str,
}

/// A progress callback.
pub type BenchProgress = Arc<dyn Fn(&BenchStage) + Send + Sync>;

/// Measures groups on a GPU, one after the other.
///
/// `limit_gemm` is a large GEMM whose rate is the limit of compute-bound workloads. Without it, they
/// have no limit.
///
/// A candidate that computes a wrong result or cannot be built is a row with a failure, not an
/// error.
pub fn bench(
    groups: &[BenchGroup],
    limit_gemm: Option<&dyn AnyWorkload>,
    device: &Device,
    options: &BenchOptions,
) -> Result<BenchReport, Error> {
    let mut runner = BenchRunner::new(device, limit_gemm, options)?;
    let mut reports = Vec::new();
    for (i, group) in groups.iter().enumerate() {
        let report_progress = |action: &'static str| {
            if let Some(progress) = &options.progress {
                progress(&BenchStage {
                    group: i,
                    groups: groups.len(),
                    family: group.family(),
                    action,
                });
            }
        };
        match runner.run(group, &report_progress) {
            Ok(report) => reports.push(report),
            Err(e) => {
                if e.is_device_lost() {
                    // Freeing memory would wait for a kernel that never ends.
                    std::mem::forget(runner);
                }
                return Err(e);
            }
        }
    }
    Ok(BenchReport {
        device: device.info(),
        seed: options.seed,
        rounds: options.rounds.max(MIN_ROUNDS),
        flush_bytes: runner.flush_bytes(),
        no_sensors: runner.no_sensors(),
        groups: reports,
    })
}

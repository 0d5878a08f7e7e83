//! Measuring on a GPU: contenders against each other and against the limit, in one run.
//!
//! A [`Heat`] is work of one problem with one or more configs. It is measured
//! in rounds: each round times every contender once, in a fresh random order,
//! since a fixed one is wrong by up to a tenth. Beside the work stand the
//! limit it is held against, measured in the same rounds, and its first
//! contender once more: how far the two medians of the same kernel lie apart
//! is what the other differences are worth.
//!
//! - *Correct first*: every contender runs on poisoned outputs at the timed
//!   shape and is compared with the float64 reference before it is timed.
//! - *Inputs*: drawing hundreds of millions of normal numbers takes longer than
//!   measuring them. A family that can states a small problem which the large
//!   one repeats ([`Family::period`](crate::kernels::Family::period)); its tensors are written
//!   over and over until the large ones are full. The outputs then repeat too:
//!   one period is compared with the reference, the others with that one.
//! - *Level-2 cache*: flushed before each launch by reading, since a flush that
//!   writes leaves lines that the next kernel pays for.
//! - *Time*: CUDA events around each launch, which is queued while the flush
//!   runs, so that the host's part does not count.
//!
//! | where | what |
//! |---|---|
//! | [`suite`] | what is measured: heats, by suite or by family |
//! | `contender` | what is timed: a plan on its buffers, a device copy |
//! | `data` | tensors on the device, and what must come out |
//! | `check` | an output against the reference, period by period |
//! | [`limits`] | what binds, and the rate that is the limit |
//! | `rounds` | entries in a fresh random order each round |
//! | `timer` | one launch between two events; many for a second |
//! | [`sensors`] | clocks and power, from NVML where there is one |
//! | [`statistics`] | medians and quartiles |
//! | `heat` | one heat from kernels to rows |
//! | [`report`] | what comes out |

pub(crate) mod check;
pub(crate) mod contender;
pub(crate) mod data;
pub(crate) mod heat;
pub mod limits;
pub mod report;
pub(crate) mod rounds;
pub mod sensors;
pub mod statistics;
pub mod suite;
pub(crate) mod timer;

pub use report::{BenchReport, HeatReport, Row};
pub use suite::Heat;

use crate::device::Device;
use crate::error::Error;
use heat::Track;
use std::fmt;
use std::sync::Arc;
use warpline_kernels::AnyWork;

/// The fewest rounds that a median is taken of.
pub const LEAST_ROUNDS: u32 = 15;

/// How to measure.
#[derive(Clone)]
#[non_exhaustive]
pub struct BenchOptions {
    /// Rounds that count; fewer than [`LEAST_ROUNDS`] are raised to it.
    pub rounds: u32,
    /// Draws the inputs and the orders.
    pub seed: u64,
    /// Also runs every contender alone for more than a second.
    pub sustained: bool,
    /// Told how far it has come.
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

/// How far a measurement has come.
#[derive(Clone, PartialEq, Debug)]
pub struct Stage {
    /// The heat, from 0.
    pub heat: usize,
    /// How many there are.
    pub heats: usize,
    /// What is measured: `softmax`.
    pub family: &'static str,
    /// What is being done: `draws the inputs`.
    pub doing: &'static str,
}

/// Told how far a measurement has come.
pub type BenchProgress = Arc<dyn Fn(&Stage) + Send + Sync>;

/// Measures heats on a GPU, one after the other.
///
/// `product` is the plain large product whose rate is the limit of work that
/// the tensor cores bind; without it such work has no limit to be held against.
///
/// A contender that gives a wrong result or cannot be built is a row that says
/// so, not an error.
pub fn bench(
    heats: &[Heat],
    product: Option<&dyn AnyWork>,
    device: &Device,
    options: &BenchOptions,
) -> Result<BenchReport, Error> {
    let mut track = Track::new(device, product, options)?;
    let mut reports = Vec::new();
    for (i, heat) in heats.iter().enumerate() {
        let tell = |doing: &'static str| {
            if let Some(progress) = &options.progress {
                progress(&Stage {
                    heat: i,
                    heats: heats.len(),
                    family: heat.family(),
                    doing,
                });
            }
        };
        match track.run(heat, &tell) {
            Ok(report) => reports.push(report),
            Err(e) => {
                if e.is_lost() {
                    // Freeing anything would wait for a kernel that does not end.
                    std::mem::forget(track);
                }
                return Err(e);
            }
        }
    }
    Ok(BenchReport {
        device: device.info(),
        seed: options.seed,
        rounds: options.rounds.max(LEAST_ROUNDS),
        flush_bytes: track.flush_bytes(),
        no_sensors: track.no_sensors(),
        heats: reports,
    })
}

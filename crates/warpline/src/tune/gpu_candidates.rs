//! Candidates on a GPU: rotated buffers, cold L2 cache.

use super::build::BuiltCandidate;
use super::measure::CandidateTimer;
use crate::bench::candidate::PlannedCandidate;
use crate::bench::group::check;
use crate::bench::tensors::BenchTensors;
use crate::bench::timer::Timer;
use crate::device::Device;
use crate::error::Error;
use std::time::{Duration, Instant};
use warpline_kernels::AnyWorkload;

/// The maximum number of tensor sets that launches rotate through.
const MAX_SETS: u64 = 4;
/// Tensors larger than this have one set. They exceed the L2 cache, so rotation adds nothing to the
/// flush, and copies take long.
const LARGE_BYTES: f64 = 1e9;

/// Candidates that are bound to tensors on a GPU.
pub(super) struct GpuCandidates {
    timer: Timer,
    sets: Vec<BenchTensors>,
    /// Indexed by candidate, then by tensor set.
    candidates: Vec<Vec<PlannedCandidate>>,
    /// The tensor set of the next launch.
    next: usize,
    start: Instant,
}

impl GpuCandidates {
    /// Draws the tensors and binds all candidates to them. Returns one result per candidate.
    pub(super) fn new(
        built: &[(&dyn AnyWorkload, &BuiltCandidate)],
        device: &Device,
        seed: u64,
    ) -> Result<(Self, Vec<Result<(), Error>>), Error> {
        let timer = Timer::new(device)?;
        let Some((workload, _)) = built.first() else {
            return Err(Error::NoGpu);
        };
        let workspace = built.iter().map(|(_, b)| b.workspace).sum();
        let max_sets = match workload.cost().bytes > LARGE_BYTES {
            true => 1,
            false => MAX_SETS,
        };
        let sets = BenchTensors::sets(*workload, seed, workspace, max_sets, &timer.stream)?;
        let mut gpu_candidates = Self {
            timer,
            sets,
            candidates: Vec::new(),
            next: 0,
            start: Instant::now(),
        };
        let mut bound = Vec::new();
        for (workload, built) in built {
            bound.push(match gpu_candidates.bind(*workload, built) {
                Ok(planned) => {
                    gpu_candidates.candidates.push(planned);
                    Ok(())
                }
                Err(e) if e.is_device_lost() => {
                    // Freeing memory would wait for a kernel that never ends.
                    std::mem::forget(gpu_candidates);
                    return Err(e);
                }
                Err(e) => Err(e),
            });
        }
        gpu_candidates.start = Instant::now();
        Ok((gpu_candidates, bound))
    }

    /// Binds a candidate to every tensor set.
    fn bind(
        &self,
        workload: &dyn AnyWorkload,
        built: &BuiltCandidate,
    ) -> Result<Vec<PlannedCandidate>, Error> {
        let stream = &self.timer.stream;
        let workspace = PlannedCandidate::zeroed_workspace(&built.loaded, built.workspace, stream)?;
        let sets = self.sets.iter();
        sets.map(|tensors| {
            PlannedCandidate::with_workspace(workload, &built.loaded, workspace.clone(), tensors)
        })
        .collect()
    }
}

impl CandidateTimer for GpuCandidates {
    fn time(&mut self, candidate: usize) -> Result<f64, Error> {
        self.next = (self.next + 1) % self.sets.len();
        let planned = &mut self.candidates[candidate][self.next];
        Ok(self.timer.time(planned, false)?.seconds)
    }

    fn wrong_result(&mut self, candidate: usize) -> Result<Option<String>, Error> {
        let planned = &mut self.candidates[candidate][0];
        Ok(check(&self.timer, planned, &mut self.sets[0])?.failure())
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

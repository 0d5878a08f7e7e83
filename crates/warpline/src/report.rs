//! The report of a run.

use crate::compare::Comparison;
use crate::device::DeviceInfo;
use crate::gpu::{BuildTimes, CodeOrigin};
use crate::prepare::{Fallback, PreparedStep};
use serde::Serialize;
use serde_json::Value;
use warpline_cpu::Stats;
use warpline_kernels::Cost;

/// The report of a run: the comparison with the reference, times and rates.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RunReport {
    /// The name of the family.
    pub family: &'static str,
    /// The device.
    pub device: DeviceInfo,
    /// The problem.
    pub problem: Value,
    /// The config.
    pub config: Value,
    /// The baseline that replaced the selected config, if that config is undecided.
    pub fallback: Option<Fallback>,
    /// The seed of the inputs.
    pub seed: u64,
    /// The comparison of each output with the reference.
    pub outputs: Vec<Comparison>,
    /// Whether all repeats produced the same bits.
    pub same_bits: bool,
    /// The kernels that ran, in order.
    pub kernels: Vec<KernelRun>,
    /// The run times of the plan. CPU executor time is not GPU time.
    pub times: Times,
    /// The time to build, check and load the kernels.
    pub build: BuildTimes,
    /// The minimum cost of the problem.
    pub cost: Cost,
    /// The achieved rates of a GPU; `None` on the CPU executor.
    pub rates: Option<Rates>,
}

impl RunReport {
    /// Returns whether every element of every output passes in every repeat.
    pub fn passed(&self) -> bool {
        self.same_bits && self.outputs.iter().all(Comparison::passed)
    }

    /// Returns the number of compared elements.
    pub fn elements(&self) -> usize {
        self.outputs.iter().map(|o| o.elements).sum()
    }

    /// Returns the number of failing elements.
    pub fn failed(&self) -> usize {
        self.outputs.iter().map(|o| o.failed).sum()
    }
}

/// One kernel of a run.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct KernelRun {
    /// The name.
    pub name: String,
    /// The program hash.
    pub hash: String,
    /// The grid size in CTAs.
    pub grid: [u32; 3],
    /// The number of threads per CTA.
    pub threads: u32,
    /// The shared memory per CTA in bytes.
    pub shared_bytes: u32,
    /// The counters of the CPU executor.
    pub stats: Option<Stats>,
    /// The origin of the GPU code.
    pub origin: Option<CodeOrigin>,
}

impl KernelRun {
    pub(crate) fn new(
        step: &PreparedStep,
        stats: Option<Stats>,
        origin: Option<CodeOrigin>,
    ) -> Self {
        Self {
            name: step.kernel.name.clone(),
            hash: step.hash.to_string(),
            grid: step.grid(),
            threads: step.kernel.threads(),
            shared_bytes: step.kernel.shared_bytes,
            stats,
            origin,
        }
    }
}

/// The run times of all repeats.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Times {
    /// The median in seconds.
    pub median_s: f64,
    /// All times in seconds, in the order of the runs.
    pub all_s: Vec<f64>,
}

impl Times {
    /// Computes the median of the times.
    pub fn new(all_s: Vec<f64>) -> Self {
        let mut sorted = all_s.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = |i: usize| sorted.get(i).copied().unwrap_or(0.0);
        let n = sorted.len();
        let median_s = (middle(n / 2) + middle(n.saturating_sub(1) / 2)) / 2.0;
        Self { median_s, all_s }
    }

    /// Returns the shortest time in seconds.
    pub fn min_s(&self) -> f64 {
        self.all_s.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Returns the longest time in seconds.
    pub fn max_s(&self) -> f64 {
        self.all_s.iter().copied().fold(0.0, f64::max)
    }
}

/// The achieved rates of a GPU: the minimum cost divided by the median time.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Rates {
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Floating-point operations per second.
    pub flops_per_s: f64,
    /// The fraction of the peak memory bandwidth, if the driver reports the peak.
    pub memory_fraction: Option<f64>,
}

impl Rates {
    pub(crate) fn new(cost: &Cost, times: &Times, device: &DeviceInfo) -> Option<Self> {
        let limit = device.gpu.as_ref()?.memory_bytes_per_s;
        let bytes_per_s = cost.bytes / times.median_s;
        Some(Self {
            bytes_per_s,
            flops_per_s: cost.flops / times.median_s,
            memory_fraction: limit.map(|limit| bytes_per_s / limit),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_count_is_the_mean_of_the_middle_two() {
        assert_eq!(Times::new(vec![3.0, 1.0, 2.0]).median_s, 2.0);
        assert_eq!(Times::new(vec![4.0, 1.0, 2.0, 3.0]).median_s, 2.5);
        let one = Times::new(vec![7.0]);
        assert_eq!((one.median_s, one.min_s(), one.max_s()), (7.0, 7.0, 7.0));
        assert_eq!(Times::new(vec![]).median_s, 0.0);
    }
}

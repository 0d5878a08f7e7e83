//! What a run gives.

use crate::compare::Comparison;
use crate::device::DeviceInfo;
use crate::gpu::{BuildTimes, Origin};
use crate::prepare::{Fallback, PreparedStep};
use serde::Serialize;
use serde_json::Value;
use warpline_cpu::Stats;
use warpline_kernels::Cost;

/// What a run gives: the comparison with the reference, times and rates.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// The family's name.
    pub family: &'static str,
    /// Where it ran.
    pub device: DeviceInfo,
    /// What was asked.
    pub problem: Value,
    /// How it was solved.
    pub config: Value,
    /// The baseline that took the place of the selected config, where that is undecided.
    pub fallback: Option<Fallback>,
    /// The seed of the inputs.
    pub seed: u64,
    /// The outputs against the reference.
    pub outputs: Vec<Comparison>,
    /// Did every repeat give the same bits?
    pub same_bits: bool,
    /// The kernels that ran, in order.
    pub kernels: Vec<KernelRun>,
    /// How long the plan took; on the simulator no measure of a GPU.
    pub times: Times,
    /// How long it took until the kernels could be launched.
    pub build: BuildTimes,
    /// What the problem costs at least.
    pub cost: Cost,
    /// What a GPU reached; none on the simulator.
    pub rates: Option<Rates>,
}

impl Outcome {
    /// Is every element of every output right, in every repeat?
    pub fn passed(&self) -> bool {
        self.same_bits && self.outputs.iter().all(Comparison::passed)
    }

    /// How many elements were compared.
    pub fn elements(&self) -> usize {
        self.outputs.iter().map(|o| o.elements).sum()
    }

    /// How many elements are wrong.
    pub fn failed(&self) -> usize {
        self.outputs.iter().map(|o| o.failed).sum()
    }
}

/// One kernel of a run.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct KernelRun {
    /// Its name.
    pub name: String,
    /// Its program hash.
    pub hash: String,
    /// CTAs, by axis.
    pub grid: [u32; 3],
    /// Threads of a CTA.
    pub threads: u32,
    /// Bytes of shared memory of a CTA.
    pub shared_bytes: u32,
    /// What the simulator counted.
    pub stats: Option<Stats>,
    /// Where a GPU's code of it came from.
    pub origin: Option<Origin>,
}

impl KernelRun {
    pub(crate) fn new(step: &PreparedStep, stats: Option<Stats>, origin: Option<Origin>) -> Self {
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

/// How long the repeats took.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Times {
    /// The middle one, in seconds.
    pub median_s: f64,
    /// Each, in the order they ran.
    pub all_s: Vec<f64>,
}

impl Times {
    /// Of repeats in the order they ran.
    pub fn new(all_s: Vec<f64>) -> Self {
        let mut sorted = all_s.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = |i: usize| sorted.get(i).copied().unwrap_or(0.0);
        let n = sorted.len();
        let median_s = (middle(n / 2) + middle(n.saturating_sub(1) / 2)) / 2.0;
        Self { median_s, all_s }
    }

    /// The shortest, in seconds.
    pub fn least_s(&self) -> f64 {
        self.all_s.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The longest, in seconds.
    pub fn most_s(&self) -> f64 {
        self.all_s.iter().copied().fold(0.0, f64::max)
    }
}

/// What a GPU reached: the least cost of the problem by the median time.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Rates {
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Floating-point operations per second.
    pub flops_per_s: f64,
    /// Share of the bytes per second that the memory has at its highest
    /// clock, if the driver tells that.
    pub memory_share: Option<f64>,
}

impl Rates {
    pub(crate) fn new(cost: &Cost, times: &Times, device: &DeviceInfo) -> Option<Self> {
        let limit = device.gpu.as_ref()?.memory_bytes_per_s;
        let bytes_per_s = cost.bytes / times.median_s;
        Some(Self {
            bytes_per_s,
            flops_per_s: cost.flops / times.median_s,
            memory_share: limit.map(|limit| bytes_per_s / limit),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one_or_the_mean_of_two() {
        assert_eq!(Times::new(vec![3.0, 1.0, 2.0]).median_s, 2.0);
        assert_eq!(Times::new(vec![4.0, 1.0, 2.0, 3.0]).median_s, 2.5);
        let one = Times::new(vec![7.0]);
        assert_eq!((one.median_s, one.least_s(), one.most_s()), (7.0, 7.0, 7.0));
        assert_eq!(Times::new(vec![]).median_s, 0.0);
    }
}

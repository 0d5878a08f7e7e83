//! Roofline bounds: memory bound or compute bound, and the limit.

use serde::Serialize;
use warpline_kernels::Cost;

/// The arithmetic intensity above which a kernel is compute bound on an H200: a large GEMM reaches
/// about 780 TFLOP/s, a copy 4.2 TB/s.
const FLOPS_PER_BYTE: f64 = 185.0;

/// The resource that limits the fastest possible kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RooflineBound {
    /// Memory bound: the limit is the rate of a device copy, in bytes read and written.
    Memory,
    /// Compute bound: the limit is the rate of a large GEMM.
    Compute,
}

impl RooflineBound {
    /// Returns the bound of a workload with this cost.
    pub fn for_cost(cost: &Cost) -> Self {
        match cost.flops > FLOPS_PER_BYTE * cost.bytes {
            true => RooflineBound::Compute,
            false => RooflineBound::Memory,
        }
    }

    /// Returns the rate in bytes or operations per second.
    pub fn rate(self, cost: &Cost, seconds: f64) -> f64 {
        match self {
            RooflineBound::Memory => cost.bytes / seconds,
            RooflineBound::Compute => cost.flops / seconds,
        }
    }

    /// Returns the unit of the rate.
    pub fn unit(self) -> &'static str {
        match self {
            RooflineBound::Memory => "B/s",
            RooflineBound::Compute => "FLOP/s",
        }
    }

    /// Returns the name of the workload that measures the limit.
    pub fn limit_name(self) -> &'static str {
        match self {
            RooflineBound::Memory => "copy",
            RooflineBound::Compute => "GEMM",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_memory_bound_and_large_gemms_are_compute_bound() {
        let cost = |flops, bytes| Cost { flops, bytes };
        assert_eq!(
            RooflineBound::for_cost(&cost(1e9, 12e9)),
            RooflineBound::Memory
        );
        let n = 4096f64;
        let gemm = cost(2.0 * n.powi(3), 3.0 * n * n * 2.0);
        assert_eq!(RooflineBound::for_cost(&gemm), RooflineBound::Compute);
        let thin = cost(2.0 * 16.0 * n * n, n * n * 2.0);
        assert_eq!(RooflineBound::for_cost(&thin), RooflineBound::Memory);
        assert_eq!(RooflineBound::Memory.rate(&cost(1.0, 8e9), 2.0), 4e9);
        assert_eq!(RooflineBound::Compute.rate(&gemm, 1.0), gemm.flops);
    }
}

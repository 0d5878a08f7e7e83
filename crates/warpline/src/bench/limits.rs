//! What binds, and the rate that is the limit.

use serde::Serialize;
use warpline_kernels::Cost;

/// Floating-point operations per byte of memory above which the tensor cores
/// bind on an H200: a large product reaches about 780 TFLOP/s, a copy 4.2 TB/s.
const FLOPS_PER_BYTE: f64 = 185.0;

/// What binds a kernel at best.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// Global memory: the limit is the rate of a device copy, bytes read and written.
    Memory,
    /// The tensor cores: the limit is the rate of a plain large product.
    Compute,
}

impl Bound {
    /// What binds work of this cost.
    pub fn of(cost: &Cost) -> Self {
        match cost.flops > FLOPS_PER_BYTE * cost.bytes {
            true => Bound::Compute,
            false => Bound::Memory,
        }
    }

    /// Bytes or operations per second, if work of this cost takes so long.
    pub fn rate(self, cost: &Cost, seconds: f64) -> f64 {
        match self {
            Bound::Memory => cost.bytes / seconds,
            Bound::Compute => cost.flops / seconds,
        }
    }

    /// The unit of its rate.
    pub fn unit(self) -> &'static str {
        match self {
            Bound::Memory => "B/s",
            Bound::Compute => "FLOP/s",
        }
    }

    /// What the limit is measured with.
    pub fn limit(self) -> &'static str {
        match self {
            Bound::Memory => "copy",
            Bound::Compute => "product",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_bound_by_memory_and_large_products_are_not() {
        let cost = |flops, bytes| Cost { flops, bytes };
        assert_eq!(Bound::of(&cost(1e9, 12e9)), Bound::Memory);
        let n = 4096f64;
        let product = cost(2.0 * n.powi(3), 3.0 * n * n * 2.0);
        assert_eq!(Bound::of(&product), Bound::Compute);
        let thin = cost(2.0 * 16.0 * n * n, n * n * 2.0);
        assert_eq!(Bound::of(&thin), Bound::Memory);
        assert_eq!(Bound::Memory.rate(&cost(1.0, 8e9), 2.0), 4e9);
        assert_eq!(Bound::Compute.rate(&product, 1.0), product.flops);
    }
}

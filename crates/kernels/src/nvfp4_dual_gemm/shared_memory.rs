//! Shared memory of a config, asked of the builder once.

use super::config::Config;
use super::kernel::declare;
use super::kernel_spec::KernelSpec;
use crate::gemm::Activation;
use half::f16;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use warpline_ir::build::{Order, Resources};
use warpline_ir::{BuildErrors, Target};

/// The most configs that are remembered; beyond, all are forgotten.
const MOST: usize = 8192;

/// Target, config, and whether the kernel gets A in codes.
type Key = (&'static str, Config, bool);

/// Returns the bytes of shared memory that the kernel of a config takes, for an A in codes or in
/// 16 bits.
pub(super) fn shared_bytes(
    c: &Config,
    a_is_coded: bool,
    target: &Target,
) -> Result<u32, BuildErrors> {
    static KNOWN: LazyLock<Mutex<HashMap<Key, u32>>> = LazyLock::new(Mutex::default);
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    // Neither the grid nor the order of tiles nor cache hints take any.
    let config = Config {
        order: Order::RowMajor,
        hints: false,
        ctas: 0,
        ..*c
    };
    let key = (target.name, config, a_is_coded);
    if let Some(&bytes) = known().get(&key) {
        return Ok(bytes);
    }
    let spec = KernelSpec {
        config,
        gate: Activation::None,
        tensor_scales: &[],
        a_is_coded: config.takes_codes(a_is_coded),
        is_settled: true,
        is_whole: true,
    };
    let bytes = Resources::of(target, |k| declare::<f16>(k, &spec))?.shared_bytes;
    let mut known = known();
    if known.len() >= MOST {
        known.clear();
    }
    known.insert(key, bytes);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvfp4_dual_gemm::kernel;
    use crate::nvfp4_dual_gemm::schedule::{Consumers, Depth, Dequantizer, Schedule, WarpTile};

    #[test]
    fn the_declared_bytes_are_those_of_the_kernel() {
        let target = Target::default();
        let own = Schedule::OwnOutputs {
            consumers: Consumers::Four,
            depth: Depth::TwoBlocks,
        };
        for schedule in [
            own,
            Schedule::InTurn { consumers: 3 },
            Schedule::Dequantizer(Dequantizer::One),
            Schedule::Warps(WarpTile::N64K256),
        ] {
            for (split_k, coded) in [(1, true), (2, false)] {
                let config = Config {
                    schedule,
                    tile_m: 16,
                    stages: 3,
                    order: Order::Grouped(8),
                    split_k,
                    hints: true,
                    ctas: 2,
                };
                let spec = KernelSpec {
                    config,
                    gate: Activation::Silu,
                    tensor_scales: &["scale_gate", "scale_up"],
                    a_is_coded: config.takes_codes(coded),
                    is_settled: false,
                    is_whole: false,
                };
                let built = kernel::build::<half::bf16>(&spec, &target).unwrap();
                let declared = shared_bytes(&config, coded, &target).unwrap();
                assert_eq!(declared, built.shared_bytes, "{schedule:?}");
            }
        }
    }
}

//! Shared memory of a config, and the stages that fit; the builder computes each once.

use super::config::Config;
use super::kernel::declare;
use super::kernel_spec::{KernelSpec, Outputs};
use super::scale_boxes::ScaleBoxes;
use super::schedule::Schedule;
use super::shape::Shape;
use crate::gemm::Activation;
use crate::memo::Memo;
use half::f16;
use warpline_ir::builder::{Rasterization, Resources};
use warpline_ir::{BuildErrors, Target};

/// Target, config, whether A is in NVFP4, the boxes of scales, and the outputs without gate or bias.
type Key = (&'static str, Config, bool, ScaleBoxes, Outputs);

/// Bytes of shared memory that stay free unless the caller fixes the stages: the heuristic was fitted to
/// kernels with this much free.
const SPARE_BYTES: u32 = 2048;

/// Returns the shared memory in bytes of the kernel of a config, for an A in NVFP4 or in 16 bits.
pub(super) fn shared_bytes(c: &Config, p: &Shape, target: &Target) -> Result<u32, BuildErrors> {
    static CACHE: Memo<Key, u32> = Memo::new();
    memoized(&CACHE, c, p, target, |config| {
        let spec = KernelSpec {
            config: *config,
            outputs: storing_only(p.outputs),
            scale_boxes: p.scale_boxes,
            tensor_scales: &[],
            a_is_coded: config.loads_coded_a(p.a_is_coded),
            weights_are_pdl_safe: true,
            has_whole_blocks: true,
        };
        let resources = Resources::of(target, |k| declare::<f16>(k, &spec))?;
        Ok(resources.shared_bytes)
    })
}

/// Returns the largest useful number of stages that leaves [`SPARE_BYTES`] free; `None` if 2 do not fit.
pub(super) fn max_useful_stages(
    c: &Config,
    p: &Shape,
    target: &Target,
) -> Result<Option<u32>, BuildErrors> {
    static CACHE: Memo<Key, u32> = Memo::new();
    let c = Config { stages: 0, ..*c };
    let stages = memoized(&CACHE, &c, p, target, |config| {
        // More stages are not faster, and with split-K the checker takes long.
        let useful = match (config.schedule, config.split_k) {
            (Schedule::InTurn { .. }, _) => 3,
            (_, 1) => 8,
            _ => 5,
        };
        for stages in (2..=useful).rev() {
            let bytes = shared_bytes(&Config { stages, ..*config }, p, target)?;
            if bytes + SPARE_BYTES <= target.shared_bytes {
                return Ok(stages);
            }
        }
        Ok(0)
    })?;
    Ok(Some(stages).filter(|&stages| stages > 0))
}

/// Returns the outputs without gate and bias, which need no shared memory.
fn storing_only(outputs: Outputs) -> Outputs {
    match outputs {
        Outputs::Gated(_) => Outputs::Gated(Activation::None),
        Outputs::Linear { .. } => Outputs::Linear { bias: false },
    }
}

/// Returns the memoized number of a config, and computes it on the first call. Grid, raster and cache
/// hints do not change shared memory.
fn memoized(
    cache: &Memo<Key, u32>,
    c: &Config,
    p: &Shape,
    target: &Target,
    compute: impl FnOnce(&Config) -> Result<u32, BuildErrors>,
) -> Result<u32, BuildErrors> {
    let config = Config {
        raster: Rasterization::RowMajor,
        cache_hints: false,
        ctas: 0,
        ..*c
    };
    let outputs = storing_only(p.outputs);
    let key = (target.name, config, p.a_is_coded, p.scale_boxes, outputs);
    cache.get(key, || compute(&config))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvfp4_dual_gemm::kernel;
    use crate::nvfp4_dual_gemm::schedule::{Consumers, DequantConsumers, KDepth, WarpTile};

    #[test]
    fn shared_bytes_match_the_built_kernel() {
        let target = Target::default();
        let own_outputs = Schedule::OwnOutputs {
            consumers: Consumers::Four,
            depth: KDepth::TwoBlocks,
        };
        for schedule in [
            own_outputs,
            Schedule::InTurn { consumers: 3 },
            Schedule::Dequantizer(DequantConsumers::One),
            Schedule::Warps(WarpTile::N64K256),
        ] {
            for (split_k, a_is_coded) in [(1, true), (2, false)] {
                let config = Config {
                    schedule,
                    tile_m: 16,
                    stages: 3,
                    raster: Rasterization::Grouped(8),
                    split_k,
                    cache_hints: true,
                    ctas: 2,
                };
                let gated = (
                    Outputs::Gated(Activation::Silu),
                    &["scale_gate", "scale_up"][..],
                );
                let linear = (Outputs::Linear { bias: true }, &["scale_weight"][..]);
                for (outputs, tensor_scales) in [gated, linear] {
                    let scale_boxes = [ScaleBoxes::Blocks, ScaleBoxes::Rows][split_k as usize % 2];
                    let a_is_coded = a_is_coded && outputs.weights() == 2;
                    if outputs.weights() == 1 && matches!(schedule, Schedule::Dequantizer(_)) {
                        continue;
                    }
                    let spec = KernelSpec {
                        config,
                        outputs,
                        scale_boxes,
                        tensor_scales,
                        a_is_coded: config.loads_coded_a(a_is_coded),
                        weights_are_pdl_safe: false,
                        has_whole_blocks: false,
                    };
                    let shape = Shape {
                        m: 1,
                        n: 1,
                        k: 16,
                        a_is_coded,
                        streams_weights: false,
                        bytes: 0.0,
                        scale_boxes,
                        outputs,
                    };
                    let built = kernel::build::<half::bf16>(&spec, &target).unwrap();
                    let declared = shared_bytes(&config, &shape, &target).unwrap();
                    assert_eq!(declared, built.shared_bytes, "{schedule:?} {outputs:?}");
                }
            }
        }
    }
}

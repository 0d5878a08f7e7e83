//! The config: that of the NVFP4 kernels, whose tiles have twice as many columns here.

use super::problem::Problem;
use crate::batch_invariant::fix;
use crate::nvfp4_dual_gemm::{self, Choice, ScheduleKind, heuristic};
use warpline_family::error::FamilyError;
use warpline_family::field::Fields as _;
use warpline_ir::Target;

/// A complete config.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// Roles, tiles, stages and grid of the kernel.
    pub kernel: nvfp4_dual_gemm::Config,
}

impl From<&Config> for Choice {
    fn from(c: &Config) -> Self {
        let choice = Choice::from(&c.kernel);
        Choice {
            // One column for each of the two weight rows of an accumulator pair.
            tile_n: choice.tile_n.map(|pairs| 2 * pairs),
            ..choice
        }
    }
}

impl Config {
    /// Completes a config from `choice`, then `base`, then defaults; rejects illegal combinations.
    pub(super) fn new(
        p: &Problem,
        base: &Choice,
        choice: &Choice,
        target: &Target,
    ) -> Result<Self, FamilyError> {
        let flags = choice.or(base);
        check_schedule(&flags)?;
        let kernel = nvfp4_dual_gemm::Config::new(&p.shape(), base, choice, target)?;
        Ok(Self { kernel })
    }

    /// Returns the config with the shortest estimated time.
    pub(super) fn selected(
        p: &Problem,
        choice: &Choice,
        target: &Target,
    ) -> Result<Self, FamilyError> {
        check_schedule(choice)?;
        let kernel = heuristic::config(&p.shape(), choice, target)?;
        Ok(Self { kernel })
    }

    /// Returns the candidates for autotuning, shortest estimated time first.
    pub(super) fn candidates(p: &Problem, target: &Target) -> Vec<Self> {
        let all = heuristic::candidates(&p.shape(), target).into_iter();
        all.map(|kernel| Self { kernel }).collect()
    }

    /// Returns the estimated seconds.
    pub(super) fn estimate(&self, p: &Problem, target: &Target) -> f64 {
        heuristic::estimate(&p.shape(), &self.kernel, target)
    }
}

/// Rows of a tile of a batch-invariant layer.
const INVARIANT_TILE_M: u32 = 64;

/// Returns the choice with the fields fixed on which the bits of a row may depend, for batch invariance:
/// as for two weights, and the rows of a tile, with which the order of K in the decoded weight changes.
pub(super) fn fixed_choice(choice: &Choice) -> Result<Choice, FamilyError> {
    let fixed = heuristic::fixed_choice(choice)?;
    match choice.batch_invariant {
        Some(true) => Ok(Choice {
            tile_m: fix("--tile-m", choice.tile_m, INVARIANT_TILE_M)?,
            ..fixed
        }),
        _ => Ok(fixed),
    }
}

/// Rejects the schedule that serves two weights only.
fn check_schedule(choice: &Choice) -> Result<(), FamilyError> {
    match choice.schedule {
        Some(ScheduleKind::Dequantizer) => Err(FamilyError::Config(
            "schedule dequantizer serves two weights (nvfp4-dual-gemm)\n\
             help: use --schedule cooperative or --schedule warps"
                .into(),
        )),
        _ => Ok(()),
    }
}

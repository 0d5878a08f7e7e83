//! The config: that of the NVFP4 kernels, whose tiles have twice as many columns here.

use super::problem::Problem;
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

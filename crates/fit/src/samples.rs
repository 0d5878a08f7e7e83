//! The problems of a table with their configs.

use crate::table::Table;
use anyhow::{Context as _, Result};
use rayon::prelude::*;
use warpline_family::field::Fields as _;
use warpline_ir::Target;
use warpline_kernels::gemm::fitting::{self, Constants, Features};
use warpline_kernels::gemm::{Choice, Config, OperandType, Problem};

/// A problem with its measured configs.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The problem.
    pub problem: Problem,
    /// The measured configs.
    pub timings: Vec<Timing>,
}

/// A measured config.
#[derive(Clone, Debug)]
pub struct Timing {
    /// The config.
    pub config: Config,
    /// What the model knows of it.
    pub features: Features,
    /// The measured seconds.
    pub seconds: f64,
}

impl Sample {
    /// Returns the time of the fastest measured config.
    pub fn best(&self) -> f64 {
        let times = self.timings.iter().map(|timing| timing.seconds);
        times.fold(f64::INFINITY, f64::min)
    }

    /// Returns the config with the least estimate.
    pub fn selected(&self, constants: &Constants) -> Option<&Timing> {
        let estimates = self
            .timings
            .iter()
            .map(|timing| (timing.features.seconds(constants), timing));
        let least = estimates.min_by(|(x, _), (y, _)| x.total_cmp(y));
        least.map(|(_, timing)| timing)
    }

    /// Returns the time of the selected config relative to the fastest one.
    pub fn slowdown(&self, constants: &Constants) -> f64 {
        match self.selected(constants) {
            Some(timing) => timing.seconds / self.best(),
            None => 1.0,
        }
    }

    /// Returns the kind of the problem in reports.
    pub fn kind(&self) -> &'static str {
        let p = &self.problem;
        match p.dtype {
            _ if !fitting::is_aligned(p) => "unaligned",
            OperandType::F32 => "tf32",
            OperandType::E4m3 | OperandType::E5m2 if p.up.is_some() => "gated fp8",
            OperandType::E4m3 | OperandType::E5m2 => "fp8",
            _ if p.up.is_some() => "gated",
            _ if p.bias => "epilogue",
            _ => "bf16",
        }
    }
}

/// Reads the samples of a table. Configs that this build does not accept, or launches on another grid,
/// are left out.
pub fn read(table: &Table, target: &Target) -> Result<Vec<Sample>> {
    let choices: Vec<Choice> = (table.configs.iter())
        .map(|json| {
            let mut choice = Choice::default();
            choice.set_json(json).context("a config of the table")?;
            Ok(choice)
        })
        .collect::<Result<_>>()?;
    table
        .rows
        .par_iter()
        .map(|row| {
            let mut problem = Problem::new(1, 1, 1, OperandType::Bf16);
            problem
                .set_json(&row.problem)
                .context("a problem of the table")?;
            let timing = |&(i, us): &(usize, f64)| {
                let config = fitting::config(&problem, &choices[i], target).ok()?;
                let same_grid = choices[i].ctas.is_none_or(|ctas| ctas == config.ctas);
                same_grid.then(|| Timing {
                    features: Features::of(&problem, &config, target),
                    config,
                    seconds: us * 1e-6,
                })
            };
            let timings = row.times.iter().filter_map(timing).collect();
            Ok(Sample { problem, timings })
        })
        .collect()
}

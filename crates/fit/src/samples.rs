//! The problems of a table with their configs.

use crate::table::Table;
use anyhow::{Context as _, Result};
use rayon::prelude::*;
use warpline_family::field::Fields as _;
use warpline_ir::Target;
use warpline_kernels::gemm::{Choice, Config, OperandType, Problem, fitting};

/// A problem with its measured configs.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The problem.
    pub problem: Problem,
    /// The configs with their times in seconds.
    pub configs: Vec<(Config, f64)>,
}

impl Sample {
    /// Returns the time of the fastest measured config.
    pub fn best(&self) -> f64 {
        let times = self.configs.iter().map(|(_, seconds)| *seconds);
        times.fold(f64::INFINITY, f64::min)
    }

    /// Returns the index of the config with the least estimate.
    pub fn selected(&self, constants: &fitting::Constants, target: &Target) -> Option<usize> {
        let estimate = |(config, _): &(Config, f64)| {
            fitting::estimate(constants, &self.problem, config, target)
        };
        (0..self.configs.len())
            .min_by(|&i, &j| estimate(&self.configs[i]).total_cmp(&estimate(&self.configs[j])))
    }

    /// Returns the time of the selected config relative to the fastest one.
    pub fn slowdown(&self, constants: &fitting::Constants, target: &Target) -> f64 {
        match self.selected(constants, target) {
            Some(i) => self.configs[i].1 / self.best(),
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

/// Reads the samples of a table. Configs that this build does not accept are left out.
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
            let config = |&(i, us): &(usize, f64)| {
                let config = fitting::config(&problem, &choices[i], target).ok()?;
                Some((config, us * 1e-6))
            };
            let configs = row.times.iter().filter_map(config).collect();
            Ok(Sample { problem, configs })
        })
        .collect()
}

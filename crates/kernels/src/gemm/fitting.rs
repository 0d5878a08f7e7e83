//! Access to the heuristic for the program that fits it.

pub use super::heuristic::{Constants, Features};

use super::config::{Choice, Config};
use super::heuristic;
use super::problem::Problem;
use warpline_family::error::FamilyError;
use warpline_ir::Target;

/// Returns the candidate configs of a problem with their estimated seconds, fastest first.
pub fn ranked(p: &Problem, target: &Target) -> Vec<(f64, Config)> {
    heuristic::ranked(p, &Choice::default(), target).unwrap_or_default()
}

/// Returns the config with these flags, on the grid that fits the problem.
pub fn config(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
    let choice = choice.clone().without_grid();
    Config::new(p, &choice, &Choice::default(), target)
}

/// Returns whether TMA can address all operands and the output.
pub fn is_aligned(p: &Problem) -> bool {
    let class = p.class();
    !class.gathers() && !class.c_by_element
}

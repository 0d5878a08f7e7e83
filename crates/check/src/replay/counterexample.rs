//! A counterexample: a launch and a schedule in which the CPU executor fails.

use super::skeleton::skeleton;
use super::values::LaunchValues;
use super::{SKELETON_STEPS, STEPS, Trial};
use std::fmt;
use warpline_cpu::{RunError, Timing};
use warpline_ir::Kernel;

/// A launch and a schedule in which the CPU executor sees a kernel fail.
///
/// It displays as one line: the arguments, the grid, the words of memory, the timing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counterexample {
    /// The names of the kernel's parameters.
    pub params: Vec<String>,
    /// The arguments of the launch and the contents of memory.
    pub values: LaunchValues,
    /// The completion times of asynchronous operations.
    pub timing: Timing,
    /// The seed of a random timing, which makes the schedule reproducible.
    pub seed: u64,
    /// Was only the synchronization of the kernel run, because the launch has too many iterations?
    pub synchronization_only: bool,
    /// The failure, as the executor reports it.
    pub fault: String,
}

impl Counterexample {
    /// Runs the kernel on the executor with this launch and schedule; `Err` is the failure.
    pub fn replay(&self, kernel: &Kernel) -> Result<(), Box<RunError>> {
        let trial = Trial {
            values: self.values.clone(),
            timing: self.timing,
            seed: self.seed,
        };
        let error = match self.synchronization_only {
            true => trial.run(&skeleton(kernel), SKELETON_STEPS),
            false => trial.run(kernel, STEPS),
        };
        error.map_or(Ok(()), Err)
    }

    /// Returns the schedule in words.
    pub fn schedule(&self) -> String {
        match self.timing {
            Timing::Random => format!("random, seed {}", self.seed),
            timing => timing.name().to_owned(),
        }
    }

    /// Returns the name of a parameter.
    pub(crate) fn name(&self, param: usize) -> &str {
        self.params.get(param).map_or("?", String::as_str)
    }
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LaunchValues {
            grid,
            scalars,
            words,
            fill,
            follows_search: _,
        } = &self.values;
        for (i, value) in scalars.iter().enumerate() {
            if let Some(value) = value {
                write!(f, "{} = {value}, ", self.name(i))?;
            }
        }
        let [x, y, z] = grid;
        write!(f, "grid {x}x{y}x{z}, ")?;
        for w in words {
            let (name, byte) = (self.name(w.param), w.byte);
            write!(f, "`{name}` at byte {byte} = {} ({}), ", w.value, w.ty)?;
        }
        let other = if words.is_empty() { "" } else { "other " };
        write!(f, "{other}global memory filled with {fill}, ")?;
        write!(f, "timing {}", self.schedule())?;
        if self.synchronization_only {
            write!(f, ", synchronization only")?;
        }
        Ok(())
    }
}

//! A run that fails.

use super::skeleton::skeleton;
use super::values::Values;
use super::{SKELETON_STEPS, STEPS, Trial};
use std::fmt;
use warpline_cpu::{RunError, Timing};
use warpline_ir::Kernel;

/// A launch and a schedule in which the executor sees a kernel fail.
///
/// It reads as one line: the values of the launch, the words of memory, the schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Witness {
    /// The names of the kernel's parameters.
    pub params: Vec<String>,
    /// What the launch passes and memory holds.
    pub values: Values,
    /// When asynchronous work completes.
    pub timing: Timing,
    /// The seed of a random timing: with it the schedule is always the same.
    pub seed: u64,
    /// Was only the synchronization run, as the launch has too many iterations?
    pub skeleton: bool,
    /// What the executor says.
    pub fault: String,
}

impl Witness {
    /// Runs the kernel on the executor as the witness says; `Err` is the failure.
    pub fn replay(&self, kernel: &Kernel) -> Result<(), Box<RunError>> {
        let trial = Trial {
            values: self.values.clone(),
            timing: self.timing,
            seed: self.seed,
        };
        let error = match self.skeleton {
            true => trial.run(&skeleton(kernel), SKELETON_STEPS),
            false => trial.run(kernel, STEPS),
        };
        error.map_or(Ok(()), Err)
    }

    /// The schedule in words.
    pub fn schedule(&self) -> String {
        match self.timing {
            Timing::Random => format!("random, seed {}", self.seed),
            timing => timing.name().to_owned(),
        }
    }

    /// The name of a parameter.
    pub(crate) fn name(&self, param: usize) -> &str {
        self.params.get(param).map_or("?", String::as_str)
    }
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Values {
            grid,
            scalars,
            words,
            fill,
        } = &self.values;
        for (i, value) in scalars.iter().enumerate() {
            if let Some(value) = value {
                write!(f, "{} = {value}, ", self.name(i))?;
            }
        }
        let [x, y, z] = grid;
        write!(f, "grid {x}x{y}x{z}; ")?;
        for w in words {
            let (name, byte) = (self.name(w.param), w.byte);
            write!(f, "{name} at byte {byte} = {} ({}), ", w.value, w.ty)?;
        }
        let other = if words.is_empty() { "" } else { "other " };
        write!(f, "{other}words of memory: {fill}; ")?;
        write!(f, "schedule {}", self.schedule())?;
        if self.skeleton {
            write!(f, "; synchronization alone")?;
        }
        Ok(())
    }
}

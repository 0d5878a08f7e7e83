//! The proof of having been checked: a type that only the checker makes.

use crate::assumption::Assumption;
use crate::proof::Proof;
use crate::protocol;
use crate::refusal::Refusals;
use crate::replay;
use crate::report::Report;
use crate::rules;
use std::fmt;
use std::ops::Deref;
use std::time::Instant;
use warpline_ir::{Kernel, Target};

/// A kernel that the checker let pass, or that was let through by name with a reason.
///
/// It reads as the kernel it holds.
#[derive(Clone, Debug)]
pub struct Checked<K = Kernel> {
    kernel: K,
    verdict: Verdict,
    assumptions: Vec<Assumption>,
}

#[derive(Clone, Debug)]
enum Verdict {
    Proved(Target),
    Unproved(String),
}

/// Checks a kernel for a target, structure, resources and protocol; refuses with everything that
/// is wrong or cannot be decided.
///
/// A kernel that was proved in this process is recognized by its text hash, and is not proved
/// again. [`examine`] also says how far it was looked.
///
/// ```
/// use warpline_check::check;
/// use warpline_ir::{Kernel, Target};
///
/// let kernel = |registers| Kernel::build("k", &Target::SM_90A, |k| {
///     k.role("load").warpgroups(1).registers(registers).body(|| {});
///     k.role("math").warpgroups(2).registers(240).body(|| {});
/// });
/// assert!(check(kernel(24)?, &Target::SM_90A).is_ok());
///
/// // One step of eight too many: the last increase would wait for ever.
/// let refused = check(kernel(32)?, &Target::SM_90A).unwrap_err();
/// assert_eq!(refused.refusals[0].code(), "R9.pool");
/// # Ok::<(), warpline_ir::BuildErrors>(())
/// ```
pub fn check(kernel: Kernel, target: &Target) -> Result<Checked, Refusals> {
    let proof = Proof::of(&kernel, target);
    let known = proof.as_ref().and_then(Proof::known);
    let assumptions = match known {
        Some(assumptions) => assumptions,
        None => {
            let report = examine(&kernel, target);
            if !report.refusals.is_empty() {
                return Err(Refusals {
                    kernel: kernel.name,
                    refusals: report.refusals,
                });
            }
            if let Some(proof) = proof {
                proof.keep(report.assumptions.clone());
            }
            report.assumptions
        }
    };
    Ok(Checked {
        kernel,
        verdict: Verdict::Proved(*target),
        assumptions,
    })
}

/// Examines a kernel for a target, structure and protocol, and reports what was found and how far
/// it was looked.
pub fn examine(kernel: &Kernel, target: &Target) -> Report {
    let start = Instant::now();
    let (mut refusals, mut assumptions) = rules::judge(kernel, target);
    let (mut states, mut steps) = (0, 0);
    if refusals.is_empty() {
        let walked = protocol::judge(kernel, target);
        refusals.extend(replay::confirmed(kernel, walked.refusals));
        assumptions.extend(walked.assumptions);
        (states, steps) = (walked.states, walked.steps);
    }
    Report {
        kernel: kernel.name.clone(),
        hash: match rules::references::are_declared(kernel) {
            true => kernel.program_hash(),
            false => String::new(),
        },
        refusals,
        assumptions,
        states,
        steps,
        time: start.elapsed(),
    }
}

impl<K> Checked<K> {
    /// Lets a kernel through unchecked, for experiments. The reason is shown wherever the kernel is.
    pub fn unproved(kernel: K, reason: impl Into<String>) -> Self {
        Self {
            kernel,
            verdict: Verdict::Unproved(reason.into()),
            assumptions: Vec::new(),
        }
    }

    /// Did the checker let it pass?
    pub fn is_proved(&self) -> bool {
        matches!(self.verdict, Verdict::Proved(_))
    }

    /// Why it was let through unchecked, if it was.
    pub fn unproved_reason(&self) -> Option<&str> {
        match &self.verdict {
            Verdict::Proved(_) => None,
            Verdict::Unproved(reason) => Some(reason),
        }
    }

    /// The target it was checked for, if it was checked.
    pub fn target(&self) -> Option<&Target> {
        match &self.verdict {
            Verdict::Proved(target) => Some(target),
            Verdict::Unproved(_) => None,
        }
    }

    /// Facts that the proof rests on and that the checker does not prove: whoever launches the
    /// kernel vouches for them. None for a kernel that was let through unchecked.
    pub fn assumptions(&self) -> &[Assumption] {
        &self.assumptions
    }

    /// The kernel, without the proof.
    pub fn into_inner(self) -> K {
        self.kernel
    }
}

impl<K> Deref for Checked<K> {
    type Target = K;
    fn deref(&self) -> &K {
        &self.kernel
    }
}

impl fmt::Display for Checked<Kernel> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.verdict {
            Verdict::Proved(target) => {
                write!(
                    f,
                    "kernel {}, checked for {}",
                    self.kernel.name, target.name
                )
            }
            Verdict::Unproved(reason) => {
                write!(f, "kernel {}, unproved: {reason}", self.kernel.name)
            }
        }
    }
}

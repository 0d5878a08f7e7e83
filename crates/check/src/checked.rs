//! [`Checked`]: the type of a kernel that passed the checker. Only the checker creates it.

use crate::assumption::Assumption;
use crate::diagnostic::Diagnostics;
use crate::proof::ProofKey;
use crate::protocol;
use crate::replay;
use crate::report::Report;
use crate::rules;
use std::fmt;
use std::ops::Deref;
use std::time::Instant;
use warpline_ir::{Kernel, Target};

/// A kernel that the checker proved, or that was admitted unproved with a reason.
///
/// It dereferences to the kernel.
#[derive(Clone, Debug)]
pub struct Checked<K = Kernel> {
    kernel: K,
    basis: Basis,
    assumptions: Vec<Assumption>,
}

#[derive(Clone, Debug)]
enum Basis {
    Proved(Target),
    Unproved(String),
}

/// Checks the structure, the resources and the protocol of a kernel for a target. Returns all
/// diagnostics if the kernel is refuted or undecided.
///
/// A kernel that this process has proved before is recognized by its text hash and not proved
/// again. [`examine`] also returns the extent of the search.
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
/// // Eight registers too many: the last increase would wait forever.
/// let error = check(kernel(32)?, &Target::SM_90A).unwrap_err();
/// assert_eq!(error.diagnostics[0].code(), "R9.pool");
/// # Ok::<(), warpline_ir::BuildErrors>(())
/// ```
pub fn check(kernel: Kernel, target: &Target) -> Result<Checked, Diagnostics> {
    let proof = ProofKey::of(&kernel, target);
    let cached = proof.as_ref().and_then(ProofKey::cached_assumptions);
    let assumptions = match cached {
        Some(assumptions) => assumptions,
        None => {
            let report = examine(&kernel, target);
            if !report.diagnostics.is_empty() {
                return Err(Diagnostics {
                    kernel: kernel.name,
                    diagnostics: report.diagnostics,
                });
            }
            if let Some(proof) = proof {
                proof.store(report.assumptions.clone());
            }
            report.assumptions
        }
    };
    Ok(Checked {
        kernel,
        basis: Basis::Proved(*target),
        assumptions,
    })
}

/// Checks a kernel for a target and returns the full report, with the diagnostics, the
/// assumptions and the extent of the search.
pub fn examine(kernel: &Kernel, target: &Target) -> Report {
    let start = Instant::now();
    let (mut diagnostics, mut assumptions) = rules::check(kernel, target);
    let (mut states, mut steps) = (0, 0);
    if diagnostics.is_empty() {
        let search = protocol::check(kernel, target);
        diagnostics.extend(replay::confirmed(kernel, search.diagnostics));
        assumptions.extend(search.assumptions);
        (states, steps) = (search.states, search.steps);
    }
    Report {
        kernel: kernel.name.clone(),
        hash: match rules::references::are_declared(kernel) {
            true => kernel.program_hash(),
            false => String::new(),
        },
        diagnostics,
        assumptions,
        states,
        steps,
        time: start.elapsed(),
    }
}

impl<K> Checked<K> {
    /// Admits a kernel without a check, for experiments. The reason is printed with the kernel.
    pub fn unproved(kernel: K, reason: impl Into<String>) -> Self {
        Self {
            kernel,
            basis: Basis::Unproved(reason.into()),
            assumptions: Vec::new(),
        }
    }

    /// Did the checker prove the kernel?
    pub fn is_proved(&self) -> bool {
        matches!(self.basis, Basis::Proved(_))
    }

    /// Returns the reason that an unproved kernel was admitted with.
    pub fn unproved_reason(&self) -> Option<&str> {
        match &self.basis {
            Basis::Proved(_) => None,
            Basis::Unproved(reason) => Some(reason),
        }
    }

    /// Returns the target of the proof; `None` for an unproved kernel.
    pub fn target(&self) -> Option<&Target> {
        match &self.basis {
            Basis::Proved(target) => Some(target),
            Basis::Unproved(_) => None,
        }
    }

    /// Returns the assumptions of the proof, which the launcher must ensure. Empty for an unproved
    /// kernel.
    pub fn assumptions(&self) -> &[Assumption] {
        &self.assumptions
    }

    /// Returns the kernel without the proof.
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
        match &self.basis {
            Basis::Proved(target) => {
                write!(
                    f,
                    "kernel {}, checked for {}",
                    self.kernel.name, target.name
                )
            }
            Basis::Unproved(reason) => {
                write!(f, "kernel {}, unproved: {reason}", self.kernel.name)
            }
        }
    }
}

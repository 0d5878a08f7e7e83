//! Mutants that hang, to be confirmed on a GPU.

use crate::mutation::{Mutation, mutations};
use crate::original::{PlanStep, small_steps};
use std::collections::HashSet;
use std::vec::IntoIter;
use warpline_check::{Diagnostic, examine};
use warpline_cpu::{GlobalMemory, Options, Timing};
use warpline_ir::{FaultKind, Target};
use warpline_kernels::{BufferAddresses, FamilyError, HostTensor, LaunchStep, TensorSpec};

/// A mutant that the checker refutes as a deadlock, with a small launch that deadlocks in the
/// executor.
#[derive(Clone, Debug)]
pub struct DeadlockMutant {
    /// The kernel and the mutant.
    pub name: String,
    /// The launch of the mutant.
    pub step: LaunchStep,
    /// The inputs.
    pub inputs: Vec<HostTensor>,
    /// The outputs.
    pub outputs: Vec<TensorSpec>,
    /// The size of the workspace in bytes.
    pub workspace: u64,
    /// The checker's diagnostic.
    pub diagnostic: Diagnostic,
}

/// The rules whose breach can hang a launch.
const DEADLOCK_RULES: [&str; 7] = [
    "R1.arrivals",
    "R2.bytes",
    "R4.trips",
    "R8.agree",
    "R9.pool",
    "R10.count",
    "R17.cycle",
];

/// Returns whether a diagnostic refutes the kernel by a wait that never ends.
fn is_deadlock(diagnostic: &Diagnostic) -> bool {
    !diagnostic.undecided && DEADLOCK_RULES.contains(&diagnostic.code())
}

/// The seed of the inputs.
const SEED: u64 = 1;

/// Returns at most `max` mutants that the checker refutes as deadlocks, each of a different kind.
/// The kernels take turns; the result is deterministic.
pub fn deadlocks(max: usize, target: &Target) -> Result<Vec<DeadlockMutant>, FamilyError> {
    let mut found: Vec<DeadlockMutant> = Vec::new();
    let mut seen = HashSet::new();
    let mut plan_steps: Vec<(PlanStep, Option<IntoIter<Mutation>>)> = small_steps(target)?
        .into_iter()
        .map(|plan_step| (plan_step, None))
        .collect();
    while !plan_steps.is_empty() && found.len() < max {
        plan_steps.retain_mut(|(plan_step, remaining)| {
            if found.len() == max {
                return false;
            }
            let remaining =
                remaining.get_or_insert_with(|| mutations(&plan_step.step.kernel).into_iter());
            let fresh = remaining.filter(|m| !seen.contains(m.kind.name));
            let next = { fresh }.find_map(|m| Some((m.kind.name, confirm(plan_step, &m, target)?)));
            let Some((kind, deadlock)) = next else {
                return false;
            };
            seen.insert(kind);
            found.push(deadlock);
            true
        });
    }
    Ok(found)
}

/// Returns a deadlock mutant by its name.
pub fn find_deadlock(name: &str, target: &Target) -> Result<Option<DeadlockMutant>, FamilyError> {
    for plan_step in small_steps(target)? {
        if !name.starts_with(&plan_step.name) {
            continue;
        }
        let all = mutations(&plan_step.step.kernel);
        let named = all.iter().find(|m| mutant_name(&plan_step, m) == name);
        if let Some(mutation) = named {
            return Ok(confirm(&plan_step, mutation, target));
        }
    }
    Ok(None)
}

fn mutant_name(plan_step: &PlanStep, mutation: &Mutation) -> String {
    format!("{}, {}", plan_step.name, mutation.id())
}

/// Returns the mutant if the checker and the executor both find a deadlock.
fn confirm(plan_step: &PlanStep, mutation: &Mutation, target: &Target) -> Option<DeadlockMutant> {
    let kernel = mutation.apply(&plan_step.step.kernel);
    let diagnostics = examine(&kernel, target).diagnostics;
    let diagnostic = diagnostics.into_iter().find(is_deadlock)?;
    let step = plan_step.step.with_kernel(kernel);
    let deadlock = DeadlockMutant {
        name: mutant_name(plan_step, mutation),
        step,
        inputs: plan_step.workload.draw(SEED),
        outputs: plan_step.workload.outputs(),
        workspace: plan_step.workspace,
        diagnostic,
    };
    deadlock.deadlocks_in_executor().then_some(deadlock)
}

impl DeadlockMutant {
    /// Returns whether the launch deadlocks in the executor.
    fn deadlocks_in_executor(&self) -> bool {
        let mut memory = GlobalMemory::new();
        let bound = BufferAddresses {
            inputs: (self.inputs.iter())
                .map(|t| memory.alloc_from(&t.data, t.spec.name))
                .collect(),
            outputs: (self.outputs.iter())
                .map(|s| memory.alloc(s.bytes(), s.name))
                .collect(),
            workspace: memory.alloc_from(&vec![0; self.workspace as usize], "workspace"),
        };
        let launch = self.step.launch(&bound);
        // Eager copies: a race must not end the launch before the deadlock.
        let options = Options::with_timing(Timing::Eager);
        let ended = warpline_cpu::run(&self.step.kernel, &launch, &memory, &options);
        ended.is_err_and(|error| error.kind == FaultKind::Deadlock)
    }
}

//! Mutants that hang, for a GPU to confirm.

use crate::mutation::{Mutation, mutations};
use crate::subject::{Part, small};
use std::collections::HashSet;
use std::vec::IntoIter;
use warpline_check::{Diagnostic, examine};
use warpline_cpu::{GlobalMemory, Options, Timing};
use warpline_ir::{FaultKind, Target};
use warpline_kernels::{BufferAddresses, FamilyError, HostTensor, LaunchStep, TensorSpec};

/// A mutant that the checker calls a deadlock, with a small launch that
/// deadlocks in the executor.
#[derive(Clone, Debug)]
pub struct Deadlock {
    /// The kernel and the mutant.
    pub name: String,
    /// The mutant and its launch.
    pub step: LaunchStep,
    /// Its inputs.
    pub inputs: Vec<HostTensor>,
    /// Its outputs.
    pub outputs: Vec<TensorSpec>,
    /// Bytes of workspace.
    pub workspace: u64,
    /// What the checker says.
    pub diagnostic: Diagnostic,
}

/// Rules whose breach can stop a launch for good.
const STOPS: [&str; 7] = [
    "R1.arrivals",
    "R2.bytes",
    "R4.trips",
    "R8.agree",
    "R9.pool",
    "R10.count",
    "R17.cycle",
];

/// Is a diagnostic a wait that never ends?
fn stops(diagnostic: &Diagnostic) -> bool {
    !diagnostic.undecided && STOPS.contains(&diagnostic.code())
}

/// The seed of the inputs.
const SEED: u64 = 1;

/// At most `most` mutants that the checker calls deadlocks: of one kernel
/// after the other, each of a kind of its own, and always the same.
pub fn deadlocks(most: usize, target: &Target) -> Result<Vec<Deadlock>, FamilyError> {
    let mut found: Vec<Deadlock> = Vec::new();
    let mut seen = HashSet::new();
    let mut parts: Vec<(Part, Option<IntoIter<Mutation>>)> = small(target)?
        .into_iter()
        .map(|part| (part, None))
        .collect();
    while !parts.is_empty() && found.len() < most {
        parts.retain_mut(|(part, left)| {
            if found.len() == most {
                return false;
            }
            let left = left.get_or_insert_with(|| mutations(&part.step.kernel).into_iter());
            let fresh = left.filter(|m| !seen.contains(m.kind.name));
            let next = { fresh }.find_map(|m| Some((m.kind.name, confirmed(part, &m, target)?)));
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

/// One of them by its name.
pub fn deadlock(name: &str, target: &Target) -> Result<Option<Deadlock>, FamilyError> {
    for part in small(target)? {
        if !name.starts_with(&part.name) {
            continue;
        }
        let all = mutations(&part.step.kernel);
        let named = all.iter().find(|m| named(&part, m) == name);
        if let Some(mutation) = named {
            return Ok(confirmed(&part, mutation, target));
        }
    }
    Ok(None)
}

fn named(part: &Part, mutation: &Mutation) -> String {
    format!("{}, {}", part.name, mutation.id())
}

/// The mutant, if checker and executor agree that it stops.
fn confirmed(part: &Part, mutation: &Mutation, target: &Target) -> Option<Deadlock> {
    let kernel = mutation.of(&part.step.kernel);
    let diagnostics = examine(&kernel, target).diagnostics;
    let diagnostic = diagnostics.into_iter().find(stops)?;
    let step = part.step.with_kernel(kernel);
    let deadlock = Deadlock {
        name: named(part, mutation),
        step,
        inputs: part.work.draw(SEED),
        outputs: part.work.outputs(),
        workspace: part.workspace,
        diagnostic,
    };
    deadlock.stops_on_the_cpu().then_some(deadlock)
}

impl Deadlock {
    /// Does its launch deadlock in the executor?
    fn stops_on_the_cpu(&self) -> bool {
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
        // Copies come at once, so that no race ends the launch before it stops.
        let options = Options::with_timing(Timing::Eager);
        let ended = warpline_cpu::run(&self.step.kernel, &launch, &memory, &options);
        ended.is_err_and(|error| error.kind == FaultKind::Deadlock)
    }
}

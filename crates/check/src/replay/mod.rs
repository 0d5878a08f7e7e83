//! Confirms refutations: the CPU executor runs the launch that the protocol search found.
//!
//! A refutation rests on decisions about the arguments of the launch and the contents of memory.
//! [`LaunchValues`] are integers that satisfy these decisions. The executor runs the kernel with
//! them under several schedules. If a run fails, the diagnostic carries the [`Counterexample`]. If
//! no run fails, the kernel is *undecided*, because the search over-approximates.
//!
//! The executor does not show hazards that exist only in the specification. The checker refutes
//! these by citing the rule.
//!
//! | where | what |
//! |---|---|
//! | `values` | the arguments and memory of a launch |
//! | `counterexample` | a run that fails |
//! | `skeleton` | the kernel reduced to its synchronization, for many iterations |

mod counterexample;
mod skeleton;
mod values;

pub use counterexample::Counterexample;
pub use values::{LaunchValues, MemoryFill, MemoryWord};
pub(crate) use values::{buffer_address, buffer_at};

use crate::diagnostic::Diagnostic;
use crate::protocol::rules::RUN;
use skeleton::skeleton;
use warpline_cpu::{BlockedOn, Options, RunError, Timing, run};
use warpline_ir::{FaultKind, Kernel, ParamKind};

/// The statement limit of a run with the values that the search found.
const STEPS: u64 = 200_000;
/// The statement limit of a run with other values.
const VARIED_STEPS: u64 = 60_000;
/// The statement limit of a run of the skeleton.
const SKELETON_STEPS: u64 = 20_000_000;

/// The number of further random schedules for the values that the search found.
const RANDOM_SCHEDULES: u64 = 8;

/// Rules about hazards that the executor does not show: a CTA of a cluster that starts late,
/// accesses ordered by a release of too narrow a scope, and lanes of a warp that reach a wait one
/// after the other.
const CITED: [&str; 3] = ["R8.start", "R8.scope", "R15.late"];

/// Returns the first diagnostic that a run confirms; if there is none, the kernel is undecided.
/// A kernel that the search does not decide is refuted as well if a run fails.
pub(crate) fn confirmed(
    kernel: &Kernel,
    found: Vec<(Diagnostic, LaunchValues)>,
) -> Option<Diagnostic> {
    let mut cut_off = None;
    for (diagnostic, values) in &found {
        if CITED.contains(&diagnostic.code()) {
            return Some(diagnostic.clone());
        }
        if let Some(failed) = first_failed(kernel, schedules(values), STEPS, &mut cut_off) {
            return Some(failed.refute(kernel, diagnostic.clone()));
        }
    }
    let (first, values) = found.into_iter().next()?;
    let varied = varied_trials(kernel, &values);
    let random_schedules = (3..3 + RANDOM_SCHEDULES).map(|seed| Trial {
        values: values.clone(),
        timing: Timing::Random,
        seed,
    });
    let failed = first_failed(kernel, varied, VARIED_STEPS, &mut cut_off)
        .or_else(|| first_failed(kernel, random_schedules, VARIED_STEPS, &mut cut_off))
        .or_else(|| on_skeleton(kernel, cut_off));
    Some(match failed {
        Some(failed) => failed.refute(kernel, first),
        None if first.undecided => first,
        None => unconfirmed(first),
    })
}

/// Turns a refutation that no run confirms into an undecided point.
fn unconfirmed(diagnostic: Diagnostic) -> Diagnostic {
    let help = "if the launch guarantees more than the types state, declare it with `at_least`, \
                `at_most` or `multiple_of`; write trip counts that are equal as the same \
                expression in all roles";
    let cause = "the checker finds this run, but no run on the CPU executor shows the failure: \
                 either the run is possible and rare, or a fact about the launch is not declared";
    Diagnostic {
        text: format!("possible {}", diagnostic.text),
        cause: Some(match diagnostic.cause {
            Some(found) => format!("{found}; {cause}"),
            None => cause.to_owned(),
        }),
        help: diagnostic.help.or(Some(help.to_owned())),
        undecided: true,
        ..diagnostic
    }
}

/// A run that failed.
struct FailedRun {
    trial: Trial,
    skeleton: bool,
    error: Box<RunError>,
}

impl FailedRun {
    /// Returns the diagnostic with this run as its counterexample.
    fn refute(self, kernel: &Kernel, diagnostic: Diagnostic) -> Diagnostic {
        let Self {
            trial,
            skeleton,
            error,
        } = self;
        // The events of the search belong to another launch if the values differ from its decisions.
        let trace = match trial.values.follows_search {
            true => diagnostic.trace,
            false => Vec::new(),
        };
        let counterexample = Counterexample {
            params: kernel.params.iter().map(|p| p.name.clone()).collect(),
            values: trial.values,
            timing: trial.timing,
            seed: trial.seed,
            synchronization_only: skeleton,
            fault: error.to_string(),
        };
        let counterexample = Some(Box::new(counterexample));
        if !diagnostic.undecided {
            return Diagnostic {
                counterexample,
                trace,
                ..diagnostic
            };
        }
        let waits = error.waits.first().map(|w| &w.at);
        let at = error.at.as_ref().or(waits);
        Diagnostic {
            rule: RUN,
            text: format!("{}: {}", RUN.title, error.text),
            label: "the run fails here".to_owned(),
            cause: None,
            role: at.map(|site| site.role.clone()),
            at: at.and_then(|site| site.frame),
            stack: at.map_or(Vec::new(), |site| site.stack.clone()),
            undecided: false,
            labels: Vec::new(),
            help: None,
            trace: Vec::new(),
            counterexample,
        }
    }
}

/// One run.
#[derive(Clone)]
struct Trial {
    values: LaunchValues,
    timing: Timing,
    seed: u64,
}

impl Trial {
    /// Returns the failure of the run; `None` also if the kernel does not accept the values.
    fn run(&self, kernel: &Kernel, steps: u64) -> Option<Box<RunError>> {
        let (launch, memory) = self.values.launch(kernel).ok()?;
        let options = Options {
            timing: self.timing,
            seed: self.seed,
            threads: 1,
            max_steps: Some(steps),
            require_complete_phases: true,
            ..Options::default()
        };
        run(kernel, &launch, &memory, &options).err()
    }
}

/// Returns the first run that fails. Stores the first run that exceeds its statement limit in
/// `cut_off`.
fn first_failed(
    kernel: &Kernel,
    trials: impl IntoIterator<Item = Trial>,
    steps: u64,
    cut_off: &mut Option<Trial>,
) -> Option<FailedRun> {
    for trial in trials {
        let Some(error) = trial.run(kernel, steps) else {
            continue;
        };
        if error.kind == FaultKind::Limit {
            cut_off.get_or_insert(trial);
        } else if is_protocol_failure(&error) {
            return Some(FailedRun {
                trial,
                skeleton: false,
                error,
            });
        }
    }
    None
}

/// Repeats a run that exceeded its statement limit, with the skeleton of the kernel.
fn on_skeleton(kernel: &Kernel, cut_off: Option<Trial>) -> Option<FailedRun> {
    let trial = cut_off?;
    let error = trial.run(&skeleton(kernel), SKELETON_STEPS)?;
    // The skeleton lacks stores that reads need, but has all arrivals at barriers.
    let is_reliable = matches!(error.kind, FaultKind::Deadlock | FaultKind::Barrier);
    (is_reliable && is_protocol_failure(&error)).then_some(FailedRun {
        trial,
        skeleton: true,
        error,
    })
}

/// Is the failure a synchronization error, not an error of the arguments? A poll that never ends
/// does not count, because another kernel may set its flag.
fn is_protocol_failure(error: &RunError) -> bool {
    let polls = error.waits.iter().any(|w| w.on == BlockedOn::Poll);
    let is_argument_error = matches!(
        error.kind,
        FaultKind::TensorMap
            | FaultKind::Trap
            | FaultKind::Limit
            | FaultKind::Launch
            | FaultKind::Illegal
    );
    !polls && !is_argument_error
}

/// Returns runs with these values under several schedules.
fn schedules(values: &LaunchValues) -> impl Iterator<Item = Trial> + '_ {
    let schedules = [
        (Timing::Late, 0),
        (Timing::Random, 1),
        (Timing::Random, 2),
        (Timing::Eager, 0),
    ];
    schedules.into_iter().map(|(timing, seed)| Trial {
        values: values.clone(),
        timing,
        seed,
    })
}

/// Up to this seed, [`varied_values`] keeps the values that the search found.
const LAST_KEEPING_SEED: u64 = 8;
/// Up to this seed, the values are arbitrary.
const LAST_ARBITRARY_SEED: u64 = 12;
/// Up to this seed, the values are as large as tensor extents: several tiles with several k-tiles.
const LAST_EXTENT_SEED: u64 = 16;

/// Returns runs with other contents of memory, then with other arguments where the search decided
/// nothing, then with other arguments everywhere.
fn varied_trials<'v>(
    kernel: &'v Kernel,
    found: &'v LaunchValues,
) -> impl Iterator<Item = Trial> + 'v {
    let fills = [
        MemoryFill::Same(1),
        MemoryFill::Below { end: 4, seed: 1 },
        MemoryFill::Below {
            end: u32::MAX,
            seed: 2,
        },
    ];
    let filled = fills.into_iter().map(|fill| LaunchValues {
        fill,
        ..found.clone()
    });
    let others = (1..=LAST_EXTENT_SEED).map(|seed| varied_values(kernel, found, seed));
    filled.chain(others).zip(1..).flat_map(|(values, seed)| {
        [(Timing::Late, 0), (Timing::Random, seed)].map(|(timing, seed)| Trial {
            values: values.clone(),
            timing,
            seed,
        })
    })
}

/// Returns values with other arguments: mostly small, as large as extents, or arbitrary.
fn varied_values(kernel: &Kernel, found: &LaunchValues, seed: u64) -> LaunchValues {
    let mut values = LaunchValues {
        follows_search: false,
        ..found.clone()
    };
    values.fill = match seed % 3 {
        0 => MemoryFill::Same(0),
        1 => MemoryFill::Below { end: 4, seed },
        _ => MemoryFill::Below {
            end: u32::MAX,
            seed,
        },
    };
    for (i, param) in kernel.params.iter().enumerate() {
        if !matches!(param.kind, ParamKind::Scalar(_)) {
            continue;
        }
        if values.scalars[i].is_none() || seed > LAST_KEEPING_SEED {
            let bounds = &param.bounds;
            let multiple = i128::from(bounds.multiple_of.max(1));
            let least = -(-bounds.least.max(0)).div_euclid(multiple) * multiple;
            let random = values::mix(seed, i as u64);
            let more = match (random >> 32) % 3 {
                _ if seed > LAST_ARBITRARY_SEED => i128::from(random % 1024) / multiple,
                0 => i128::from(random as u32),
                _ => i128::from(random % 7),
            };
            let value = (least + more * multiple).min(bounds.most);
            values.scalars[i] = Some(value - value.rem_euclid(multiple));
        }
    }
    values
}

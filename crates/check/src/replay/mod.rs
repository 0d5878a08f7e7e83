//! Refutations that happen: the executor runs the launch that the walk found.
//!
//! A walk that refutes has decided on its way what the launch passes and what
//! memory holds. [`Values`] are integers for which these decisions hold. The
//! executor runs the kernel with them, in several schedules. If a run fails,
//! the refutation carries the [`Witness`]. If none does, the kernel is
//! *undecided*: the walk has lost something on its way.
//!
//! Some hazards exist in the specification only: the executor does not show
//! them. They are refuted by citing the rule.
//!
//! | where | what |
//! |---|---|
//! | `values` | the values of a launch, and the launch they make |
//! | `witness` | a run that fails, in words |
//! | `skeleton` | the synchronization of a kernel alone, for many iterations |

mod skeleton;
mod values;
mod witness;

pub use values::{Fill, Values, Word};
pub(crate) use values::{base, place};
pub use witness::Witness;

use crate::protocol::rules::RUN;
use crate::refusal::Refusal;
use skeleton::skeleton;
use warpline_cpu::{Options, RunError, Timing, WaitOn, run};
use warpline_ir::{FaultKind, Kernel, ParamKind};

/// Statements of a run with the values that the walk found.
const STEPS: u64 = 200_000;
/// Statements of a run with others.
const FEW_STEPS: u64 = 60_000;
/// Statements of a run of the skeleton.
const SKELETON_STEPS: u64 = 20_000_000;

/// Further orders of the values that the walk found.
const ORDERS: u64 = 8;

/// Rules about hazards that the specification forbids and the executor does not show: a CTA of
/// a cluster that starts late, accesses that a release of too narrow a scope orders, and lanes
/// of a warp that come to a wait one after the other.
const CITED: [&str; 3] = ["R8.start", "R8.scope", "R15.late"];

/// The first refusal of a kernel that the executor sees; without one the kernel is undecided.
/// A kernel that the walk does not decide is refuted as well if a run fails.
pub(crate) fn confirmed(kernel: &Kernel, found: Vec<(Refusal, Values)>) -> Option<Refusal> {
    let mut cut_off = None;
    for (refusal, values) in &found {
        if CITED.contains(&refusal.code()) {
            return Some(refusal.clone());
        }
        if let Some(failed) = first_failed(kernel, schedules(values), STEPS, &mut cut_off) {
            return Some(failed.refute(kernel, refusal.clone()));
        }
    }
    let (first, values) = found.into_iter().next()?;
    let others = others(kernel, &values);
    let orders = (3..3 + ORDERS).map(|seed| Trial {
        values: values.clone(),
        timing: Timing::Random,
        seed,
    });
    let failed = first_failed(kernel, others, FEW_STEPS, &mut cut_off)
        .or_else(|| first_failed(kernel, orders, FEW_STEPS, &mut cut_off))
        .or_else(|| on_skeleton(kernel, cut_off));
    Some(match failed {
        Some(failed) => failed.refute(kernel, first),
        None if first.undecided => first,
        None => unseen(first),
    })
}

/// A refutation that no run shows decides nothing.
fn unseen(refusal: Refusal) -> Refusal {
    let help = "if the launch keeps to more than its types say, declare it: `at_least`, `at_most`, \
                `multiple_of`; write counts that are equal in the same way in all roles";
    Refusal {
        text: format!("{}; no run on the CPU executor shows it", refusal.text),
        help: refusal.help.or(Some(help.to_owned())),
        undecided: true,
        ..refusal
    }
}

/// A run that failed.
struct Failed {
    trial: Trial,
    skeleton: bool,
    error: Box<RunError>,
}

impl Failed {
    /// The refusal with this run as its witness.
    fn refute(self, kernel: &Kernel, refusal: Refusal) -> Refusal {
        let Self {
            trial,
            skeleton,
            error,
        } = self;
        let witness = Witness {
            params: kernel.params.iter().map(|p| p.name.clone()).collect(),
            values: trial.values,
            timing: trial.timing,
            seed: trial.seed,
            skeleton,
            fault: error.to_string(),
        };
        let witness = Some(Box::new(witness));
        if !refusal.undecided {
            return Refusal { witness, ..refusal };
        }
        let waits = error.waits.first().map(|w| &w.at);
        let at = error.at.as_ref().or(waits);
        Refusal {
            rule: RUN,
            text: format!("a run fails: {}", error.text),
            role: at.map(|site| site.role.clone()),
            at: at.and_then(|site| site.frame),
            stack: at.map_or(Vec::new(), |site| site.stack.clone()),
            undecided: false,
            others: Vec::new(),
            help: None,
            trace: Vec::new(),
            witness,
        }
    }
}

/// One run.
#[derive(Clone)]
struct Trial {
    values: Values,
    timing: Timing,
    seed: u64,
}

impl Trial {
    /// The error that the run ends with; none where the kernel does not take the values.
    fn run(&self, kernel: &Kernel, steps: u64) -> Option<Box<RunError>> {
        let (launch, memory) = self.values.launch(kernel).ok()?;
        let options = Options {
            timing: self.timing,
            seed: self.seed,
            threads: 1,
            max_steps: Some(steps),
            whole_phases: true,
            ..Options::default()
        };
        run(kernel, &launch, &memory, &options).err()
    }
}

/// The first run that fails. Notes the first that is cut off.
fn first_failed(
    kernel: &Kernel,
    trials: impl IntoIterator<Item = Trial>,
    steps: u64,
    cut_off: &mut Option<Trial>,
) -> Option<Failed> {
    for trial in trials {
        let Some(error) = trial.run(kernel, steps) else {
            continue;
        };
        if error.kind == FaultKind::Limit {
            cut_off.get_or_insert(trial);
        } else if is_of_protocol(&error) {
            return Some(Failed {
                trial,
                skeleton: false,
                error,
            });
        }
    }
    None
}

/// A run that was cut off, on the skeleton.
fn on_skeleton(kernel: &Kernel, cut_off: Option<Trial>) -> Option<Failed> {
    let trial = cut_off?;
    let error = trial.run(&skeleton(kernel), SKELETON_STEPS)?;
    // A read may miss a store that the skeleton lacks; barriers have all their arrivals.
    let counts = matches!(error.kind, FaultKind::Deadlock | FaultKind::Barrier);
    (counts && is_of_protocol(&error)).then_some(Failed {
        trial,
        skeleton: true,
        error,
    })
}

/// Is a failure one of synchronization, not of the values passed? A flag that is never raised
/// may be one that others raise.
fn is_of_protocol(error: &RunError) -> bool {
    let polls = error.waits.iter().any(|w| w.on == WaitOn::Poll);
    let of_values = matches!(
        error.kind,
        FaultKind::TensorMap
            | FaultKind::Trap
            | FaultKind::Limit
            | FaultKind::Launch
            | FaultKind::Illegal
    );
    !polls && !of_values
}

/// Values in several schedules.
fn schedules(values: &Values) -> impl Iterator<Item = Trial> + '_ {
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

/// Up to this seed other values keep what the walk found.
const KEEPING: u64 = 8;
/// Up to this seed they are anything.
const ANY: u64 = 12;
/// Up to this seed they are as large as extents of tensors: several tiles, and several steps each.
const EXTENTS: u64 = 16;

/// Other words in memory, and other numbers where the walk decided nothing; then anywhere.
fn others<'v>(kernel: &'v Kernel, found: &'v Values) -> impl Iterator<Item = Trial> + 'v {
    let fills = [
        Fill::Same(1),
        Fill::Below { end: 4, seed: 1 },
        Fill::Below {
            end: u32::MAX,
            seed: 2,
        },
    ];
    let filled = fills.into_iter().map(|fill| Values {
        fill,
        ..found.clone()
    });
    let others = (1..=EXTENTS).map(|seed| other(kernel, found, seed));
    filled.chain(others).zip(1..).flat_map(|(values, seed)| {
        [(Timing::Late, 0), (Timing::Random, seed)].map(|(timing, seed)| Trial {
            values: values.clone(),
            timing,
            seed,
        })
    })
}

/// Other numbers: mostly small, as large as extents, or anything.
fn other(kernel: &Kernel, found: &Values, seed: u64) -> Values {
    let mut values = found.clone();
    values.fill = match seed % 3 {
        0 => Fill::Same(0),
        1 => Fill::Below { end: 4, seed },
        _ => Fill::Below {
            end: u32::MAX,
            seed,
        },
    };
    for (i, param) in kernel.params.iter().enumerate() {
        if !matches!(param.kind, ParamKind::Scalar(_)) {
            continue;
        }
        if values.scalars[i].is_none() || seed > KEEPING {
            let bounds = &param.bounds;
            let multiple = i128::from(bounds.multiple_of.max(1));
            let least = -(-bounds.least.max(0)).div_euclid(multiple) * multiple;
            let random = values::mix(seed, i as u64);
            let more = match (random >> 32) % 3 {
                _ if seed > ANY => i128::from(random % 1024) / multiple,
                0 => i128::from(random as u32),
                _ => i128::from(random % 7),
            };
            let value = (least + more * multiple).min(bounds.most);
            values.scalars[i] = Some(value - value.rem_euclid(multiple));
        }
    }
    values
}

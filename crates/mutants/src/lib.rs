//! Mutates kernels and tests that the checker refutes the mutants.
//!
//! [`mutations`] returns every mutation that a kernel allows, by [kind](KINDS) and in program
//! order, and [`Mutation::apply`] returns the mutant. [`run`] checks some mutants of each shipped
//! kernel and of each probe. A refuted mutant is killed; a proved one survives. A mutant may
//! survive only if the committed list ([`EquivalentMutants`]) states why it is equivalent to its
//! kernel: the mutation does not change the order of any two accesses.
//!
//! ```
//! use warpline_check::{Verdict, examine};
//! use warpline_ir::{Kernel, Target, builder::*};
//! use warpline_mutants::mutations;
//!
//! let kernel = Kernel::build("budgets", &Target::SM_90A, |k| {
//!     let (load, math) = (k.role("load").warpgroups(1), k.role("math").warpgroups(2));
//!     load.registers(24).body(|| {});
//!     math.registers(240).body(|| {});
//! })?;
//! let mutations = mutations(&kernel);
//! let greedy = mutations.iter().find(|m| m.kind.name == "greedy-registers");
//! let greedy = greedy.expect("a mutation");
//! assert_eq!(greedy.text, "load: 32 registers per thread, not 24");
//! let report = examine(&greedy.apply(&kernel), &Target::SM_90A);
//! assert_eq!(report.verdict(), Verdict::Refuted);
//! # Ok::<(), warpline_ir::BuildErrors>(())
//! ```
//!
//! | module | content |
//! |---|---|
//! | `kinds` | the kinds of mutation, one file per group |
//! | `sites`, `edit` | the statements of a kernel with their position; edits of statements |
//! | `mutation` | the mutations of a kernel, and a selection of them |
//! | `original` | the kernels to mutate |
//! | `evaluate`, `equivalent` | the verdicts of the checker; the equivalent mutants |
//! | `table`, `date` | the report as text; the date of a recorded run |
//! | `deadlock` | mutants that hang, with a launch |

mod date;
mod deadlock;
mod edit;
mod equivalent;
mod evaluate;
mod kinds;
mod mutation;
mod original;
mod sites;
mod table;

pub use date::today;
pub use deadlock::{DeadlockMutant, deadlocks, find_deadlock};
pub use equivalent::{EquivalentMutant, EquivalentMutants};
pub use evaluate::{
    FalseAlarm, KindCounts, MutantReport, RecordedCounts, SlowestCheck, UnrefutedMutant, run,
};
pub use kinds::{ALL as KINDS, MutationKind};
pub use mutation::{Mutation, mutations, select_mutations};
pub use original::{OriginalKernel, repaired, shipped};

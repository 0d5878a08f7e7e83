//! Breaks kernels on purpose, and sees whether the checker tells.
//!
//! [`mutations`] finds every place of a kernel where one of the
//! [kinds](KINDS) of mutation can be done, in program order, and
//! [`Mutation::of`] does it. [`run`] takes some of them for each kernel that
//! ships and each probe, asks the checker, and counts: a mutant that is
//! refused is killed. One that is proved survives, and needs a reason in the
//! committed list ([`Survivors`]): its order of all accesses is that of the
//! kernel it was made from.
//!
//! ```
//! use warpline_check::{Verdict, examine};
//! use warpline_ir::{Kernel, Target, builder::*};
//! use warpline_mutants::mutations;
//!
//! let kernel = Kernel::build("line", &Target::SM_90A, |k| {
//!     let (load, math) = (k.role("load").warpgroups(1), k.role("math").warpgroups(2));
//!     load.registers(24).body(|| {});
//!     math.registers(240).body(|| {});
//! })?;
//! let mutations = mutations(&kernel);
//! let greedy = mutations.iter().find(|m| m.kind.name == "greedy-registers");
//! let greedy = greedy.expect("a place");
//! assert_eq!(greedy.text, "load: 32 registers per thread, not 24");
//! let report = examine(&greedy.of(&kernel), &Target::SM_90A);
//! assert_eq!(report.verdict(), Verdict::Refuted);
//! # Ok::<(), warpline_ir::BuildErrors>(())
//! ```
//!
//! | where | what |
//! |---|---|
//! | `kinds` | the kinds of mutation, one file per group |
//! | `case`, `edit` | a kernel's statements and their surroundings; what is changed |
//! | `mutation` | the mutations of a kernel, and some of them |
//! | `subject` | the kernels that are broken |
//! | `judge`, `survivors` | what the checker says, and what may survive |
//! | `table` | the report as text |
//! | `deadlock` | mutants that hang, with a launch |

mod case;
mod deadlock;
mod edit;
mod judge;
mod kinds;
mod mutation;
mod subject;
mod survivors;
mod table;

pub use deadlock::{Deadlock, deadlock, deadlocks};
pub use judge::{Count, FalseAlarm, Found, Report, Slowest, run};
pub use kinds::{ALL as KINDS, Kind};
pub use mutation::{Mutation, mutations, pick};
pub use subject::{Subject, repaired, shipped};
pub use survivors::{Survivor, Survivors};

//! Fuzzes the checker: random kernels, compared with the executor and with brute force.
//!
//! A [`plan`] is a list of communication steps among roles (a choreography); it is correct by
//! construction. [`generate`] draws a plan from a seed and may inject a bug. [`project`](mod@project)
//! builds the kernel: each role computes the same counts with different expressions. [`mutate`]
//! changes statements. The checker examines the kernel (`differential`), and a proved kernel runs in
//! the executor over many launches and timings. A proved kernel that fails and a correct kernel
//! that is not proved are findings: [`shrink`] reduces them, and [`corpus`] saves them.
//!
//! | module | content |
//! |---|---|
//! | [`plan`], [`generate`] | plans, and random plans |
//! | [`project`](mod@project) | the kernel of a plan: counts, conditions, loops and waits of each role |
//! | [`mutate`] | drops, doubles, swaps or weakens statements, changes their constants, or runs them only in some lanes |
//! | [`launch`] | parameters, tables and buffers |
//! | [`brute`] | explores every interleaving of a small kernel |
//! | [`campaign`], [`pool`], [`report`] | many kernels, in this process or in worker processes; the findings |
//! | [`shrink`], [`corpus`] | reduced findings; saved findings |
//!
//! Run `cargo xtask fuzz-checker --minutes 30 --seed 1`. `--brute` also explores all interleavings,
//! `--save DIR` shrinks and saves findings, `--show --seed S` prints the kernel of a seed, and
//! `--replay FILE` checks a saved finding. A worker process that runs out of time or memory is
//! replaced, and its kernel is a finding.
//!
//! A finding is named after the injected bug, or after the mutation and the constructs around it.
//! A correct kernel that is not proved is named after its constructs.
//!
//! ```
//! use warpline_fuzz::{Effort, campaign};
//!
//! let report = campaign::run(1, 20, Effort::NORMAL, &|_| true);
//! assert_eq!(report.kernels, 20);
//! ```

pub mod brute;
pub mod campaign;
mod cause;
pub mod corpus;
mod differential;
pub mod generate;
pub mod launch;
pub mod mutate;
pub mod plan;
pub mod pool;
pub mod project;
pub mod report;
mod rng;
pub mod shrink;

pub use differential::{CaseOutcome, CheckOutcome, Effort, FailedRun, FuzzCase, verdict};
pub use report::{FuzzFinding, FuzzReport};
pub use rng::Rng;

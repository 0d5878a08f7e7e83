//! Holds the checker against the executor, and against brute force, on random kernels.
//!
//! A [`plan`] is a choreography of communication steps among roles; it is correct by
//! construction. [`generate`] draws one from a seed, [`project`](mod@project) writes it as a
//! kernel, each role in its own words, and [`mutate`] breaks its statements. The checker judges
//! the kernel (`differential`); a proved kernel runs on the executor over many launches and
//! timings. A proved kernel that goes wrong, and a correct kernel that is not proved, are
//! findings: [`shrink`] makes them small, and [`corpus`] keeps them.
//!
//! | where | what |
//! |---|---|
//! | [`plan`], [`generate`] | the choreography, and random ones |
//! | [`project`](mod@project) | a plan as a kernel: counts, conditions, loops and waits in each role's writing |
//! | [`mutate`] | statements left out, doubled, moved, put into a branch, weakened |
//! | [`launch`] | parameters, tables and buffers |
//! | [`brute`] | a machine that explores every order of a small kernel |
//! | [`campaign`], [`pool`], [`report`] | many kernels, in this process or in worker processes; what was found |
//! | [`shrink`], [`corpus`] | a finding made small, and kept |
//!
//! Run `cargo xtask fuzz-checker --minutes 30 --seed 1`. `--brute` explores all orders as well,
//! `--save DIR` shrinks and keeps findings, `--show --seed S` prints the kernel of a seed, and
//! `--replay FILE` judges a kept finding. A worker process that runs out of time or memory is
//! replaced; its kernel is a finding.
//!
//! The name of a finding is that of the *twist* that makes the kernel wrong, or of the mutation
//! and the constructs around it. For a correct kernel that is not proved it lists the constructs.
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

pub use differential::{Effort, Failure, Outcomes, Subject, Verdict, verdict};
pub use report::{Finding, Report};
pub use rng::Rng;

//! Holds the checker against the executor, and against brute force, on random kernels.
//!
//! A [`plan`] is a choreography of communication steps among roles; it is correct by
//! construction. [`generate`] draws one from a seed, [`project`](mod@project) writes it as a
//! kernel, each role in its own words, and [`mutate`] breaks its statements. The checker judges
//! the kernel ([`differential`]); a proved kernel runs on the executor over many launches and
//! timings. A proved kernel that goes wrong, and a correct kernel that is not proved, are
//! findings: [`shrink`] makes them small, and [`corpus`] keeps them.
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

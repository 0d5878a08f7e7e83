//! Decides before launch whether a Warpline kernel can deadlock or race.
//!
//! [`check`] examines a kernel for a target. It returns a [`Checked`] kernel, or all
//! [`Diagnostics`] at once: each has the code of the rule, a headline, the author's lines, the
//! cause, a trace and the usual repair. Printers and launchers accept only [`Checked`] kernels.
//!
//! The checker first examines structure and resources, which one pass over the program decides.
//! Then it proves the synchronization protocol, for every schedule and every trip count.
//! [`codes::CODES`] lists all codes: `R` codes are the numbered rules (`R12` is shared memory),
//! `S` codes concern the structure of the program, `U` codes mark undecided points, and `A` codes
//! name assumptions. Codes without a letter, such as `bank-conflicts`, are lints.
//!
//! A proof may rely on facts that the checker does not prove. These [`Assumption`]s are part of
//! the report.
//!
//! | where | what |
//! |---|---|
//! | [`codes`] | every code: title, rule, usual repair |
//! | [`rules`] | structure and resources, one file per group of rules |
//! | [`protocol`] | the proof: no deadlock, no race, for any trip count |
//! | `symbolic` | integers that depend on the launch, as terms in a normal form |
//! | [`replay`] | counterexamples, run by the CPU executor |
//! | [`render`] | a report as text and as JSON |
//! | [`facts`] | the registers, memory and synchronization of one op |
//! | [`uniform`] | the threads that agree on a register |
//! | [`walk`] | every statement, with the threads that reach it together |

mod assumption;
mod bits;
mod checked;
pub mod codes;
mod diagnostic;
pub mod facts;
mod proof;
pub mod protocol;
pub mod render;
pub mod replay;
mod report;
pub mod rules;
mod symbolic;
pub mod uniform;
pub mod walk;

pub use assumption::Assumption;
pub use checked::{Checked, check, examine};
pub use codes::{CODES, Rule};
pub use diagnostic::{Diagnostic, Diagnostics, Label, TraceEvent};
pub use facts::Facts;
pub use report::{Report, Verdict};
pub use uniform::Uniformity;

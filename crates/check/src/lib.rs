//! Decides whether a Warpline kernel may be printed or launched.
//!
//! [`check`] reads a kernel against a target and gives a [`Checked`] kernel,
//! or all [`Refusals`] at once: each with the code of the rule, a sentence
//! with the value seen, and the author's line. Printers and launchers take
//! nothing but [`Checked`].
//!
//! What one reading of the program shows is judged first: structure and
//! resources. Then the protocol is proved, for every order and every trip
//! count. Codes that begin with `R` are the numbered rules of the protocol
//! (`R12` is shared memory); `S` codes are the shape of the program itself;
//! `U` codes say why something could not be decided. [`rules::ALL`] lists
//! them.
//!
//! A proof may rest on facts that the checker does not prove: its
//! [`Assumption`]s are part of the verdict.
//!
//! | where | what |
//! |---|---|
//! | [`rules`] | one file per group of rules |
//! | [`protocol`] | the walk that proves: no deadlock, no race, any trip count |
//! | `symbolic` | integers that a launch decides, as terms in a normal form |
//! | [`replay`] | refutations, replayed by the executor |
//! | [`render`] | a report as text and as JSON |
//! | [`facts`] | what one op does, collected from its effects |
//! | [`uniform`] | which threads agree on a register |
//! | [`walk`] | every statement, with the threads that reach it together |

mod assumption;
mod bits;
mod checked;
pub mod facts;
mod proof;
pub mod protocol;
mod refusal;
pub mod render;
pub mod replay;
mod report;
pub mod rules;
mod symbolic;
pub mod uniform;
pub mod walk;

pub use assumption::Assumption;
pub use checked::{Checked, check, examine};
pub use facts::Facts;
pub use refusal::{Event, Refusal, Refusals, Rule, Side};
pub use report::{Outcome, Report};
pub use uniform::Uniformity;

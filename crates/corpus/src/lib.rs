//! Public bugs of GPU kernels, transcribed in the raw layer, each beside its repair.
//!
//! Every kernel here hung, raced or was refused by the driver somewhere else
//! first. It is cut down to what the bug needs: a slot of 128 bytes, a few
//! warps. The broken form must be refused by the rule and at the line that the
//! bug names; the repaired one must be proved. [`verify`] looks at both.
//!
//! ```
//! use warpline_corpus::{find, verify};
//! use warpline_ir::Target;
//!
//! let bug = find("registers-32-240-240").unwrap();
//! let verdict = verify(bug, &Target::SM_90A)?;
//! assert_eq!(verdict.hit().unwrap().code(), "R9.pool");
//! # Ok::<(), warpline_ir::BuildErrors>(())
//! ```
//!
//! The line of a bug is the one that ends in `// BUG`, with the reason.
//!
//! | where | rules |
//! |---|---|
//! | `arrivals`, `bytes`, `parity`, `trips` | R1, R2, R3, R4 |
//! | `proxies`, `bulk`, `products` | R5, R6, R7 and R14 |
//! | `clusters`, `registers`, `named` | R8, R9, R10 |
//! | `init`, `aliases`, `maps` | R11, R12, R13 |
//! | `lanes`, `launch`, `cycles`, `global` | R15, R16, R17, R18 |
#![forbid(unsafe_code)]

mod aliases;
mod arrivals;
mod bug;
mod bulk;
mod bytes;
mod case;
mod clusters;
mod cycles;
mod global;
mod init;
mod kit;
mod lanes;
mod launch;
mod maps;
mod mark;
mod named;
mod parity;
mod products;
mod proxies;
mod registers;
mod trial;
mod trips;
mod verdict;

pub use bug::{Bug, Executor, Form, all, find};
pub use case::Case;
pub use mark::Line;
pub use trial::{Given, Trial};
pub use verdict::{Verdict, verify};

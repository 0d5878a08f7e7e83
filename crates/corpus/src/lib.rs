//! Kernels with known public bugs, each with its repaired version.
//!
//! Every bug was reported for another project: a hang, a race, or an error of the driver. The kernels
//! are minimal: slots of 128 bytes, a few warps, raw barriers. The checker must refute the broken
//! version with the rule and at the line that the bug names, and prove the repaired version.
//! [`verify`] checks both.
//!
//! ```
//! use warpline_corpus::{find, verify};
//! use warpline_ir::Target;
//!
//! let bug = find("registers-32-240-240").unwrap();
//! let result = verify(bug, &Target::SM_90A)?;
//! assert_eq!(result.hit().unwrap().code(), "R9.pool");
//! # Ok::<(), warpline_ir::BuildErrors>(())
//! ```
//!
//! A comment `// BUG`, with the reason, marks the line of a bug.
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
mod result;
mod template;
mod trips;

pub use bug::{Bug, ExpectedRun, Version, all, find};
pub use case::CorpusCase;
pub use mark::MarkedLine;
pub use result::{BugResult, verify};
pub use template::{LaunchTemplate, TemplateArg};

//! Kernels with known public bugs, each with its repaired version.
//!
//! Most bugs were reported for other projects: a hang, a race, or an error of the driver. Others come
//! from papers, from the PTX ISA, or from our own ports. The kernels are minimal: slots of 128 bytes, a
//! few warps, raw barriers. The checker must refute the broken version with the rule and at the line
//! that the bug names, and prove the repaired version. [`verify`] checks both.
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
//! | module | rules |
//! |---|---|
//! | `arrivals`, `bytes`, `parity`, `trips` | R1, R2, R3, R4 |
//! | `proxies`, `bulk`, `wgmmas` | R5, R6, R7 and R14 |
//! | `clusters`, `registers`, `named_barriers` | R8, R9, R10 |
//! | `init`, `aliases`, `tensor_maps` | R11, R12, R13 |
//! | `lanes`, `dependent_launch`, `cycles`, `global` | R15, R16, R17, R18 |
#![forbid(unsafe_code)]

mod aliases;
mod arrivals;
mod bug;
mod bulk;
mod bytes;
mod case;
mod clusters;
mod cycles;
mod dependent_launch;
mod global;
mod init;
mod lanes;
mod mark;
mod named_barriers;
mod parity;
mod proxies;
mod registers;
mod result;
mod ring;
mod template;
mod tensor_maps;
mod trips;
mod wgmmas;

pub use bug::{Bug, ExpectedRun, Version, all, find};
pub use case::CorpusCase;
pub use mark::MarkedLine;
pub use result::{BugResult, verify};
pub use template::{LaunchTemplate, TemplateArg};

//! Performance lints, with the source line of each warning.
//!
//! The checker decides whether a kernel is correct; a lint warns about likely performance problems
//! of a correct kernel. The numbers come from ptxas and from one run on the CPU executor, which
//! records every address and mask. A lint measures no time and rejects no kernel.
//!
//! [`lint()`] takes a workload of a family, or any [`AnyWorkload`]:
//!
//! ```
//! use warpline_kernels::{AnyFamily, DeviceKind, vector_add::VectorAdd};
//! use warpline_lint::{Options, LintStatus, lint};
//! use warpline_ptx::ptxas::Ptxas;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut options = Options::default();
//! options.ptxas = Ptxas::find().ok();
//! options.family = Some(&VectorAdd);
//!
//! let work = VectorAdd.default_workload(DeviceKind::Cpu, &options.target)?;
//! for finding in lint(work.as_ref(), &options)? {
//!     assert_ne!(finding.status, LintStatus::Warn, "{finding}");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A problem of GPU size works as well: if it would take too long on the CPU, a smaller problem
//! with the same programs runs instead. For persistent kernels a larger problem is better, because
//! each CTA then has enough tiles to fill its rings.
//!
//! [`lint_run`] takes one checked kernel and the counters of a run by the caller:
//!
//! ```
//! use warpline_check::check;
//! use warpline_cpu::{GlobalMemory, run};
//! use warpline_ir::{Arg, Kernel, Launch, Target, builder::*};
//! use warpline_lint::{Options, LintStatus, checks, lint_run};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let kernel = Kernel::build("double", &Target::SM_90A, |k| {
//!     let x = k.pointer::<u32>("x");
//!     k.role("all").warps(1).body(|| {
//!         let i = lane_id() * 8;
//!         x.store(i, x.load(i) * 2);
//!     });
//! })?;
//! let kernel = check(kernel, &Target::SM_90A)?;
//! let mut memory = GlobalMemory::new();
//! let x = memory.alloc_from(&[0; 1024], "x");
//! let launch = Launch { grid: [1, 1, 1], args: vec![Arg::Pointer(x)] };
//! let stats = run(&kernel, &launch, &memory, &Default::default())?;
//!
//! let findings = lint_run(&kernel, &stats, &Options::default())?;
//! let warned = findings.iter().find(|f| f.status == LintStatus::Warn).unwrap();
//! assert_eq!(warned.check, checks::COALESCING);
//! assert!(warned.text.starts_with("32.0 sectors per request, where 4.0 suffice"));
//! assert_eq!(warned.at.unwrap().line, kernel.locs.author(kernel.roles[0].loc).unwrap().line + 2);
//! # Ok(())
//! # }
//! ```
//!
//! Every check of [`checks::ALL`] has a result for every kernel: it passes, it warns, line by line
//! and worst first, or it is skipped with a reason, such as `skipped: no ptxas`.
//!
//! | where | what |
//! |---|---|
//! | [`checks`] | the checks and their thresholds, one file each |
//! | [`finding`] | the findings of a check |
//! | [`mod@lint`] | the run on the CPU executor, and the checks on it |
#![forbid(unsafe_code)]

pub mod checks;
pub mod finding;
pub mod lint;

mod format;
mod input;
mod lines;

pub use finding::{LintFinding, LintStatus};
pub use lint::{LintError, Options, lint, lint_run};
#[doc(no_inline)]
pub use warpline_kernels::AnyWorkload;

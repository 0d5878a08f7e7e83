//! A checklist of what costs a kernel speed, with the line that costs it.
//!
//! The checker says whether a kernel is right; a lint says what is slow in one
//! that is. Its numbers come from one run on the simulator, where every address
//! and every mask is known, and from ptxas. Nothing is measured and nothing is
//! refused: a warning is a place to look at.
//!
//! [`lint()`] takes work of a family, or anything that is [`AnyWork`]:
//!
//! ```
//! use warpline_kernels::{AnyFamily, Place, vector_add::VectorAdd};
//! use warpline_lint::{Options, Verdict, lint};
//! use warpline_ptx::ptxas::Ptxas;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut options = Options::default();
//! options.ptxas = Ptxas::find().ok();
//! options.family = Some(&VectorAdd);
//!
//! let work = VectorAdd.default_work(Place::Cpu, &options.target)?;
//! for finding in lint(work.as_ref(), &options)? {
//!     assert_ne!(finding.verdict, Verdict::Warn, "{finding}");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A problem for a GPU is as good: where it would take the simulator too long,
//! a smaller one that makes the same programs is run in its place. It is the
//! better one where CTAs stay, as each then has a share that fills its rings.
//!
//! [`lint_run`] takes one checked kernel, and what the simulator counted when
//! its author ran it:
//!
//! ```
//! use warpline_check::check;
//! use warpline_cpu::{Memory, run};
//! use warpline_ir::{Arg, Kernel, Launch, Target, build::*};
//! use warpline_lint::{Options, Verdict, checks, lint_run};
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
//! let mut memory = Memory::new();
//! let x = memory.alloc_from(&[0; 1024], "x");
//! let launch = Launch { grid: [1, 1, 1], args: vec![Arg::Pointer(x)] };
//! let stats = run(&kernel, &launch, &memory, &Default::default())?;
//!
//! let findings = lint_run(&kernel, &stats, &Options::default())?;
//! let warned = findings.iter().find(|f| f.verdict == Verdict::Warn).unwrap();
//! assert_eq!(warned.check, checks::COALESCING);
//! assert!(warned.text.starts_with("32.0 sectors per request where 4.0 would do"));
//! assert_eq!(warned.at.unwrap().line, kernel.locs.author(kernel.roles[0].loc).unwrap().line + 2);
//! # Ok(())
//! # }
//! ```
//!
//! Every check of [`checks::ALL`] says something of every kernel: that it
//! passes, that it warns, line by line and worst first, or why it could not
//! look. What needs ptxas says `not looked at: no ptxas` where there is none.
//!
//! | where | what |
//! |---|---|
//! | [`checks`] | the checks, one file each, with their thresholds |
//! | [`finding`] | what a check says |
//! | [`mod@lint`] | the run they read, kept small |
#![forbid(unsafe_code)]

pub mod checks;
pub mod finding;
pub mod lint;

mod case;
mod lines;
mod words;

pub use finding::{Finding, Verdict};
pub use lint::{Error, Options, lint, lint_run};
#[doc(no_inline)]
pub use warpline_kernels::AnyWork;

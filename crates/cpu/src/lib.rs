//! Runs Warpline kernels on the CPU, with asynchronous engines and shadow memory.
//!
//! [`run`] takes the same [`Kernel`](warpline_ir::Kernel) and
//! [`Launch`](warpline_ir::Launch) as a GPU does, and global memory as a
//! [`Memory`]. It is a simulator: warps run in lockstep with active masks,
//! copies and wgmmas complete when the [`Timing`] says, and every access is
//! checked. What goes wrong is a [`RunError`] at the author's line.
//!
//! | | `eager` | `late` | `random` |
//! |---|---|---|---|
//! | copies and wgmmas complete | at issue | when a warp needs them | when the seed says, in pieces |
//! | warps | take turns | take turns | one visible op, as the seed says |
//! | bounds, alignment, bytes never written, barrier counts, registers in flight | yes | yes | yes |
//! | races, proxy fences, init fences, CTAs that left | | yes | yes |
//!
//! # What is checked in `late` and `random`
//!
//! Shared memory is judged by happens-before, not by what the schedule showed:
//! each byte remembers who wrote and read it, barriers and waits pass vector
//! clocks on, and an access that is not ordered after a conflicting one is a
//! race, with both lines. Lanes of one warp know of each other's accesses only
//! after a warp-level sync (`bar.warp.sync`, a barrier of threads, or an
//! mbarrier wait of the whole warp). A generic write is seen by an engine only
//! after its thread's `fence.proxy.async`; an mbarrier's init is seen by others
//! only after its thread's `fence.mbarrier_init` and a barrier of threads. A
//! CTA whose warps have all returned has left at once.
//!
//! # Determinism
//!
//! The result is a function of kernel, launch, timing, seed and SMs. Clusters
//! run in parallel, each with its own stream of the seed, unless CTAs speak
//! with each other through global memory (a co-resident kernel, atomics,
//! acquire and release at GPU scope): those run under one scheduler, as many
//! at a time as fit the SMs. Clocks count statements.
//!
//! # Limits
//!
//! Races in global memory are not looked for. The two branches of an `if` on
//! lanes run one after the other, so that a branch that waits for the other is
//! a deadlock here.
//!
//! | where | what |
//! |---|---|
//! | `run`, `schedule`, `step` | a launch; who runs next; the inner loop |
//! | `compile` | a role as linear code |
//! | `machine`, `access`, `act`, `issue` | what ops do to registers, memory, barriers, engines |
//! | `engine`, `groups`, `complete` | work in flight, and its end |
//! | `warp`, `cluster`, `barrier`, `shared`, `memory` | state |
//! | `clock`, `shadow` | happens-before |
//! | `report`, `error`, `stats` | what comes out |
#![forbid(unsafe_code)]

mod access;
mod act;
mod barrier;
mod bits;
mod clock;
mod cluster;
mod compile;
mod complete;
mod engine;
mod env;
mod error;
mod groups;
mod issue;
mod machine;
mod memory;
mod options;
mod report;
mod residency;
mod rng;
mod run;
mod schedule;
mod shadow;
mod shared;
mod stats;
mod step;
mod warp;

pub use error::{RunError, Site, Wait, WaitOn};
pub use memory::Memory;
pub use options::{Options, Progress, Timing};
pub use run::run;
pub use stats::{Bytes, RoleStats, SiteStats, Stats, Traffic};

//! Runs Warpline kernels on the CPU, with asynchronous engines and shadow memory.
//!
//! [`run`] takes the same [`Kernel`](warpline_ir::Kernel) and
//! [`Launch`](warpline_ir::Launch) as a GPU does, and global memory as a
//! [`Memory`]. It is a simulator: warps run in lockstep with active masks,
//! copies and wgmmas complete when the [`Timing`] says, and every access is
//! checked. What goes wrong is a [`RunError`] at the author's line.
//!
//! ```
//! use warpline_cpu::{Memory, Options, run};
//! use warpline_ir::{Arg, Kernel, Launch, Target, build::*};
//!
//! let kernel = Kernel::build("double", &Target::SM_90A, |k| {
//!     let x = k.pointer::<u32>("x");
//!     k.role("all").warps(1).body(|| x.store(lane_id(), x.load(lane_id()) * 2));
//! })?;
//! let mut memory = Memory::new();
//! let x = memory.alloc_from(&[3, 0, 0, 0].repeat(32), "x");
//! let launch = Launch { grid: [1, 1, 1], args: vec![Arg::Pointer(x)] };
//! let stats = run(&kernel, &launch, &memory, &Options::default())?;
//! assert_eq!(memory.read(x, 128).unwrap(), [6, 0, 0, 0].repeat(32));
//! assert_eq!(stats.bytes.global_load, 128);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | | `eager` | `late` | `random` |
//! |---|---|---|---|
//! | copies and wgmmas complete | at issue | when a warp needs them | when the seed says, in pieces |
//! | warps | take turns | take turns | one visible op, as the seed says |
//! | bounds, alignment, bytes never written, barrier counts, registers in flight | yes | yes | yes |
//! | races, proxy fences, init fences, ends of mbarriers, CTAs that left | | yes | yes |
//!
//! # What is checked in `late` and `random`
//!
//! Memory is judged by happens-before, not by what the schedule showed:
//! each byte remembers who wrote and read it, barriers and waits pass vector
//! clocks on, and an access that is not ordered after a conflicting one is a
//! race, with both lines.
//!
//! Knowledge belongs to lanes. A lane knows its own accesses, and what it has
//! itself waited for; other lanes of the warp know of that after they meet it:
//! at a `bar.warp.sync` whose mask has both, or at a barrier of threads. A wait
//! on an mbarrier teaches the lanes that run it what the barrier hands on, and
//! does not bring them together. An arrival hands on what its own lanes did and
//! know, to the phase that it counts in; a wait for a bulk group covers the
//! groups of the lane that waits. An op of the whole warp together (wgmma)
//! comes after what any of its lanes did and knows.
//!
//! An engine may meet a generic write, or overwrite what a generic read read,
//! only after `fence.proxy.async` of each lane that made the access, which the
//! issuer must know of, or its release half there and its acquire half by the
//! thread that issues. A fence of `.shared::cta` says nothing of accesses to a peer's memory. An mbarrier's
//! init is seen by others only after its thread's `fence.mbarrier_init` and a
//! barrier of threads. Who ends an mbarrier (`mbarrier.inval`), or makes it
//! anew, must know of every wait, arrival and copy that used it.
//!
//! A CTA whose warps have all returned has left at once. All that other CTAs
//! did to its shared memory and mbarriers, lane by lane, must be ordered before
//! the return of one of its threads.
//!
//! Under `random` the lane that `elect` picks follows from the seed and the
//! mask of active lanes; under `eager` and `late` it is the lowest.
//!
//! What a lane copies by itself (`cp.async`) it sees after its wait, others
//! after a barrier behind that wait, and an engine after a proxy fence of
//! anyone in between. A release hands on what came before it through the word
//! it writes, to an acquire that reads the word within each other's scope;
//! relaxed accesses do so with fences around them.
//!
//! In global memory two accesses of any threads of the grid to one byte, of
//! which one writes, are a race unless ordered (R18.writer). Atomics, strong
//! accesses and bulk reductions do not race with each other if each is in the
//! other's scope (R18.scope). A bulk store is over for whoever knows of the
//! wait for its group. Bytes that a read-only load (`ld.global.nc`) reads may
//! not be written by any thread of the launch, ordered or not.
//!
//! # Loops that never end
//!
//! In every timing a loop that counts by 0 is a fault. So is a run in which all
//! warps that can run come back to a state they had while nothing changed that
//! they could see, and a warp that runs 2³⁰ ops without a wait. A run takes at
//! most [`Options::max_steps`] statements, or 2³⁶.
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
//! Proxy fences of global memory are not looked for. Of the reads of a byte
//! there that do not know of each other two are kept, and of atomics the last.
//! A release fence of shared memory alone is taken to cover writes to peers as
//! well. Arrivals and waits on mbarriers are taken to have the scope of the
//! cluster, and bytes that arrive hand on all that their issuer knew. The two
//! branches of an `if` on lanes run one after the other, so that a branch that
//! waits for the other is a deadlock here.
//!
//! | where | what |
//! |---|---|
//! | `run`, `schedule`, `step`, `spin` | a launch; who runs next; the inner loop; loops without an end |
//! | `compile`, `facts` | a role as linear code; what ops say beforehand |
//! | `machine`, `access`, `act`, `mbarrier`, `issue` | what ops do to registers, memory, barriers, engines |
//! | `engine`, `groups`, `complete` | work in flight, and its end |
//! | `warp`, `cluster`, `barrier`, `shared`, `memory` | state |
//! | `clock`, `warp_clock`, `far`, `proxy`, `order`, `last` | happens-before |
//! | `shadow`, `lane_sets`; `global`, `cells`, `reach`, `merge` | who touched shared memory; and global memory |
//! | `report`, `error`, `stats` | what comes out |
#![forbid(unsafe_code)]

mod access;
mod act;
mod barrier;
mod bits;
mod cells;
mod clock;
mod cluster;
mod compile;
mod complete;
mod engine;
mod env;
mod error;
mod facts;
mod far;
mod global;
mod groups;
mod issue;
mod lane_copies;
mod lane_sets;
mod last;
mod machine;
mod mbarrier;
mod memory;
mod merge;
mod options;
mod order;
mod proxy;
mod reach;
mod report;
mod residency;
mod rng;
mod run;
mod schedule;
mod shadow;
mod shared;
mod spin;
mod stats;
mod step;
mod warp;
mod warp_clock;

pub use error::{RunError, Wait, WaitOn};
pub use memory::Memory;
pub use options::{Options, Progress, Timing};
pub use run::run;
pub use stats::{
    BranchStats, Bytes, RoleStats, SiteStats, Split, Stats, TileStats, Traffic, WarpStats,
};
pub use warpline_ir::Site;

//! The CPU executor: runs Warpline kernels without a GPU, with asynchronous engines and shadow
//! memory.
//!
//! [`run`] takes a [`Kernel`](warpline_ir::Kernel), a [`Launch`](warpline_ir::Launch) and a
//! [`GlobalMemory`]. Warps run in lockstep with active masks, copies and wgmmas complete as the
//! [`Timing`] determines, and every access is checked. A fault is a [`RunError`] with the source
//! lines.
//!
//! ```
//! use warpline_cpu::{GlobalMemory, Options, run};
//! use warpline_ir::{Arg, Kernel, Launch, Target, builder::*};
//!
//! let kernel = Kernel::build("double", &Target::SM_90A, |k| {
//!     let x = k.pointer::<u32>("x");
//!     k.role("all").warps(1).body(|| x.store(lane_id(), x.load(lane_id()) * 2));
//! })?;
//! let mut memory = GlobalMemory::new();
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
//! | copies and wgmmas complete | at issue | when a warp needs them | at random times, in pieces |
//! | warps | take turns | take turns | a random warp runs through its next op that another warp can observe |
//! | bounds, alignment, uninitialized reads, barrier counts, registers in flight | yes | yes | yes |
//! | races, proxy fences, init fences, lifetime of mbarriers, accesses to exited CTAs | | yes | yes |
//!
//! # Checks in `late` and `random`
//!
//! The executor checks races by happens-before, not by the observed schedule. The shadow of each byte
//! has its last accesses; barriers and waits carry vector clocks. An access that is not ordered after
//! a conflicting one is a race. The report has both source lines.
//!
//! Clocks belong to lanes. A lane is ordered after its own accesses and after its own waits.
//! `bar.warp.sync` orders each lane of its mask after the accesses and waits of all lanes of the
//! mask; a CTA, named or cluster barrier does so for all lanes of the warp. An mbarrier wait orders
//! only the lanes that run it, and does not synchronize them with each other. An arrival publishes
//! the clocks of its own lanes to the phase in which it counts. A bulk group wait covers the groups
//! of the waiting lane. An op of the whole warp (wgmma) is ordered after the clocks of all lanes.
//!
//! An asynchronous op may read generic writes, or overwrite generic reads, only after a
//! `fence.proxy.async` of each lane that made the access. The issue must be ordered after that
//! fence. Alternatively, the lane of the access runs the release half of the fence and the issuing
//! thread runs the acquire half. A fence of `.shared::cta` does not cover accesses to a peer's
//! memory. The init of an mbarrier is visible to other threads only after the initializing thread
//! runs `fence.mbarrier_init`, followed by a CTA, named or cluster barrier. `mbarrier.inval` and a
//! second init must be ordered after every wait, arrival and copy that used the mbarrier.
//!
//! A CTA exits as soon as all its warps have returned. Accesses of other CTAs to its shared memory and
//! mbarriers must, per lane, be ordered before the return of one of its threads.
//!
//! Under `random`, `elect` selects a lane from the seed and the active mask; under `eager` and `late`
//! it selects the lowest.
//!
//! A `cp.async` copy is visible to its lane after the lane's wait, to other lanes after a barrier that
//! follows the wait, and to an engine after a proxy fence of any thread in between. A release
//! publishes the earlier accesses through the word that it writes, to an acquire that reads the word,
//! if each is in the scope of the other. A relaxed access with a fence does the same.
//!
//! In global memory, two accesses to one byte by any threads of the grid are a race if one writes and
//! they are not ordered (R18.writer). Atomics, strong accesses and bulk reductions do not race with
//! each other if each is in the other's scope (R18.scope). A bulk store is complete for threads that
//! are ordered after the wait for its group. No thread of the launch may write bytes of a read-only
//! load (`ld.global.nc`), ordered or not (R18.read-only).
//!
//! # Endless loops
//!
//! In every timing, a loop with step 0 is a fault. So is a run in which all ready warps return to an
//! earlier state without a visible change, and a warp that runs 2³⁰ ops without a wait. A run executes
//! at most [`Options::max_steps`] statements, by default 2³⁶.
//!
//! # Determinism
//!
//! The result depends only on kernel, launch, timing, seed and number of SMs. Clusters run in
//! parallel, each with its own random stream. If CTAs communicate through global memory (a
//! co-resident kernel, atomics, acquire and release at GPU scope), one scheduler runs all clusters,
//! with as many resident clusters as fit the SMs. Clock registers count statements.
//!
//! # Limits
//!
//! - Proxy fences of global memory are not checked.
//! - The shadow of global memory keeps two of several unordered reads of a byte, and the last of
//!   several unordered atomics.
//! - A release fence of shared memory also covers writes to peers.
//! - Arrivals and waits at mbarriers have cluster scope, and bytes that arrive publish the complete
//!   clock of their issuer.
//! - The two branches of a divergent `if` run in sequence, so a branch that waits for the other
//!   deadlocks.
//!
//! | where | what |
//! |---|---|
//! | `run`, `schedule`, `step`, `livelock` | the launch; the scheduler; the instruction loop; livelock detection |
//! | `compile`, `facts` | a role as linear code; static properties of ops |
//! | `machine`, `access`, `sync`, `mbarrier`, `issue` | registers, memory accesses, synchronization, asynchronous ops |
//! | `engine`, `bulk_groups`, `complete` | asynchronous ops in flight and their completion |
//! | `warp`, `cluster`, `barrier`, `shared_memory`, `global_memory` | state |
//! | `clock`, `warp_clock`, `other_clusters`, `proxy_fences`, `release_acquire`, `last_uses` | happens-before |
//! | `shared_shadow`, `lane_sets` | shadow of shared memory |
//! | `global_shadow`, `cells`, `global_access`, `merge_shadows` | shadow of global memory |
//! | `report`, `error`, `stats` | results |
#![forbid(unsafe_code)]

mod access;
mod barrier;
mod bits;
mod bulk_groups;
mod cells;
mod clock;
mod cluster;
mod compile;
mod complete;
mod engine;
mod env;
mod error;
mod facts;
mod global_access;
mod global_memory;
mod global_shadow;
mod issue;
mod lane_copies;
mod lane_sets;
mod last_uses;
mod livelock;
mod machine;
mod mbarrier;
mod merge_shadows;
mod options;
mod other_clusters;
mod proxy_fences;
mod release_acquire;
mod report;
mod residency;
mod rng;
mod run;
mod schedule;
mod shared_memory;
mod shared_shadow;
mod stats;
mod step;
mod sync;
mod warp;
mod warp_clock;

pub use error::{BlockedOn, BlockedWarp, RaceKind, RunError};
pub use global_memory::GlobalMemory;
pub use options::{Options, ProgressCallback, Timing};
pub use run::run;
pub use stats::{
    BranchStats, ByteCounts, Divergence, MemoryTraffic, RoleStats, SiteStats, Stats, TileStats,
    WarpStats,
};
pub use warpline_ir::OpLocation;

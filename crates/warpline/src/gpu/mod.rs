//! Plans on a GPU: printing, compilation, caching and launches.
//!
//! [`Prepared::load`](crate::Prepared::load) loads every kernel of a plan and returns a
//! [`LoadedPlan`]. [`LoadedPlan::bind`] binds it to buffers. [`BoundPlan::launch`] enqueues it in a
//! stream without an allocation or a wait, so that a CUDA graph can capture it.
//!
//! | where | what |
//! |---|---|
//! | [`loaded_plan`] | plans with loaded kernels, and plans bound to buffers |
//! | `rebound_plan` | plans bound to other addresses again and again |
//! | `kernel` | one loaded kernel |
//! | [`footprint`] | the resources of a compiled kernel |
//! | `code` | the code of a kernel: from disk, or compiled to a cubin or as a whole program |
//! | `cache` | the open GPUs of this process and their loaded kernels |
//! | `disk` | the cubin cache on disk |
//! | `advisories` | advisories of the driver's compiler |
//! | `args` | kernel arguments and tensor maps for the driver |
//! | [`flush`] | flush of the L2 cache |
//! | [`guarantees`] | tests of the runtime's guarantees on a device |
//! | `buffers` | the tensors of a plan in device memory |
//! | `session` | timed runs of a plan |
//! | [`watch`] | runs of watchdog builds, which report hangs |

mod advisories;
mod args;
mod buffers;
mod cache;
mod code;
pub(crate) mod disk;
pub mod flush;
pub mod footprint;
pub mod guarantees;
mod kernel;
pub mod loaded_plan;
mod rebound_plan;
mod session;
pub mod watch;

pub(crate) use cache::{Gpu, lock};
pub use code::CodeOrigin;
pub use disk::{FOLDER as CACHE_FOLDER, SWITCH as CACHE_SWITCH};
pub use flush::Flush;
pub use footprint::Footprint;
pub use loaded_plan::{BoundPlan, BuildTimes, LoadOptions, LoadedPlan};
pub(crate) use rebound_plan::ReboundPlan;
pub(crate) use session::run;

//! Plans on a GPU: printed, compiled, kept, launched.
//!
//! [`Prepared::load`](crate::Prepared::load) brings every kernel of a plan
//! onto a device and gives a [`Ready`]; [`Ready::bind`] gives buffers to it,
//! and [`Launches::launch`] puts it into a stream, without an allocation or a
//! wait, so that it can be captured in a graph.
//!
//! | where | what |
//! |---|---|
//! | [`ready`] | a plan on a device, and its launches |
//! | `kernel` | one kernel on a device, ready to launch |
//! | [`footprint`] | what a kernel needs, as the driver compiled it |
//! | `code` | its code: from disk, or compiled, as a cubin or whole |
//! | `cache` | each GPU once in a process, and each kernel once on it |
//! | `disk` | cubins, from one process to the next |
//! | `advice` | what the driver's compiler remarks on |
//! | `args` | arguments and tensor maps as the driver takes them |
//! | [`flush`] | nothing of the last run left in the level-2 cache |
//! | [`promises`] | what all this promises, held against a device |
//! | `buffers` | the tensors of a plan in device memory |
//! | `session` | runs and times of a whole plan |
//! | [`watch`] | the same with watched kernels, which report a hang |

mod advice;
mod args;
mod buffers;
mod cache;
mod code;
pub(crate) mod disk;
pub mod flush;
pub mod footprint;
mod kernel;
pub mod promises;
pub mod ready;
mod session;
pub mod watch;

pub(crate) use cache::{Gpu, held};
pub use code::Origin;
pub use disk::{FOLDER as CACHE_FOLDER, SWITCH as CACHE_SWITCH};
pub use flush::Flush;
pub use footprint::Footprint;
pub use ready::{BuildTimes, Launches, LoadOptions, Ready};
pub(crate) use session::run;

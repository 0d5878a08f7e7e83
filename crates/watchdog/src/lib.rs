//! The watchdog: a pass that makes a Warpline kernel report a hang instead of hanging.
//!
//! [`watch`] returns an ordinary kernel with two additional parameters:
//!
//! | in the kernel | in the watched kernel |
//! |---|---|
//! | mbarrier wait, spin on a flag | polls until a deadline or until another warp timed out; then records the wait and exits |
//! | named barrier | an mbarrier, if every warp that uses it takes part in every phase |
//! | CTA or cluster barrier, `setmaxnreg`, group waits | the warp records the wait before it enters it |
//! | the end | the warp records that it is done |
//!
//! The host decodes the status table ([`WatchedKernel::read_hang`]) into the format of the CPU
//! executor's deadlock report. An exiting warp waits for its own copies and for the other warps of
//! its CTA. If those do not arrive because one is in a wait without a timeout, the warp traps.
//! Launch a watched kernel in a child process for that reason.
//!
//! | where | what |
//! |---|---|
//! | `watch`, `pass` | the pass over the kernel and over its statements |
//! | `named` | named barriers that are replaced by mbarriers |
//! | `watchdog`, `exit` | time limits and the abort word; the exit of a warp |
//! | `status`, `site` | the status word of a warp; the waits of a kernel |
//! | `hang` | decoding of the status table |
//! | [`hangs`] | test kernels, one for each kind of hang |

mod emit;
mod exit;
mod hang;
pub mod hangs;
mod named;
mod pass;
mod site;
mod status;
mod watch;
mod watchdog;

pub use hang::{Hang, HungWarp};
pub use watch::{TooManyWaits, WatchedKernel, watch};
pub use watchdog::TimeLimits;

//! Makes Warpline kernels that report a hang instead of hanging.
//!
//! [`watch`] is a pass over the program. Its result is an ordinary kernel,
//! with two parameters more, that the executor runs, the checker judges and
//! the printer prints:
//!
//! | in the kernel | in the watched kernel |
//! |---|---|
//! | wait for an mbarrier, spin on a flag | asks until a deadline or until another warp has given up; then notes what it waited for and leaves |
//! | named barrier | an mbarrier, if every warp that uses it takes part in each meeting |
//! | barrier of the CTA or cluster, `setmaxnreg`, group waits | the warp notes that it is in it |
//! | the end | the warp notes that it is done |
//!
//! The host reads the notes ([`Watched::hang`]) and says what each warp waits
//! for, in the words of the CPU executor. A warp that leaves waits for its own
//! copies and for the rest of its CTA; where that does not come, because a
//! warp is in a wait that cannot be given up, it traps. So a watched kernel is
//! best launched in a process of its own.
//!
//! | where | what |
//! |---|---|
//! | `watch`, `pass` | the kernel; its statements |
//! | `named` | named barriers that become mbarriers |
//! | `gear`, `leave` | limits and the abort word; how a warp leaves |
//! | `note`, `site` | what a warp says of itself; the waits of a kernel |
//! | `hang` | notes in words |
//! | [`hangs`] | wrong kernels, one for each kind of hang |

mod emit;
mod gear;
mod hang;
pub mod hangs;
mod leave;
mod named;
mod note;
mod pass;
mod site;
mod watch;

pub use gear::Limits;
pub use hang::{Hang, Wait};
pub use watch::{TooManyWaits, Watched, watch};

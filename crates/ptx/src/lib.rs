//! Prints checked Warpline kernels as PTX and reads what ptxas says of them.
//!
//! [`print()`] takes nothing but a [`Checked`](warpline_check::Checked) kernel.
//! The text is a function of the kernel and the target alone: the same bytes
//! on every run and in every checkout.
//!
//! | where | what |
//! |---|---|
//! | [`mod@print`] | the module: header, entry, roles |
//! | `flow` | statements to labels and branches |
//! | `asm` | operands, addresses and descriptors to text |
//! | `params`, `names`, `lines` | launch parameters; identifiers; `.file` and `.loc` |
//! | [`resources`] | our estimate of registers, without ptxas |
//! | [`ptxas`] | the pinned assembler and what it says |

mod asm;
mod flow;
mod lines;
mod names;
mod params;
pub mod print;
pub mod resources;

pub use print::{Ptx, PtxError, print};
pub use resources::{Estimate, RoleEstimate};
/// The pinned assembler, and what it says.
pub use warpline_ptxas as ptxas;

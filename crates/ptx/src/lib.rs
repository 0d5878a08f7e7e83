//! Prints checked Warpline kernels as PTX.
//!
//! [`print()`] accepts only a [`Checked`](warpline_check::Checked) kernel. The text depends only on
//! the kernel and the target: it has the same bytes on every run and in every checkout.
//!
//! | module | contents |
//! |---|---|
//! | [`mod@print`] | the module: header, entry, roles |
//! | `flow` | statements as labels and branches |
//! | `asm` | operands, addresses and descriptors |
//! | `params`, `names`, `lines` | launch parameters; identifiers; `.file` and `.loc` |
//! | [`resources`] | the register estimate, without ptxas |
//! | [`ptxas`] | the pinned assembler and its report |

mod asm;
mod flow;
mod lines;
mod names;
mod params;
pub mod print;
pub mod resources;

pub use print::{Ptx, PtxError, print};
pub use resources::{ResourceEstimate, RoleEstimate};
/// The pinned assembler and its report.
pub use warpline_ptxas as ptxas;

//! Each rule of the checker, broken alone: refused with its code, at its line.

mod assumptions;
mod between;
mod bytes;
mod clusters;
mod convergence;
mod counts;
mod defined;
mod early;
mod endless;
mod flight;
mod indices;
mod lanes;
mod laps;
mod legal;
mod lengths;
mod locks;
mod looks;
mod meetings;
mod messages;
mod named;
mod operands;
mod proxy;
mod published;
mod quiet;
mod read_only;
mod references;
mod registers;
mod replay;
mod roles;
mod shared;
mod stall;
mod tensor_maps;
mod values;
mod verdict;
mod wgmma;

use warpline_ir::Kernel;
use warpline_ir::builder::Builder;

/// Builds a kernel named `k`.
#[track_caller]
fn kernel(body: impl FnOnce(Builder)) -> Kernel {
    warpline_testkit::kernel::build("k", body)
}

//! Each rule of the checker alone: a kernel that breaks it is refuted with its code, at its line.

mod assumptions;
mod clusters;
mod convergence;
mod copy_bytes;
mod copy_lengths;
mod cross_cta;
mod dependent_launch;
mod endless_loops;
mod flag_deadlock;
mod flag_reads;
mod global_proxy;
mod indices;
mod initialization;
mod lanes;
mod legality;
mod locks;
mod messages;
mod named_barriers;
mod operands;
mod prologue_barrier;
mod published_stores;
mod read_only;
mod references;
mod registers;
mod replay;
mod ring_wraps;
mod roles;
mod shared_memory;
mod sync_free_loops;
mod tensor_maps;
mod trip_counts;
mod values;
mod verdict;
mod wgmma;
mod wgmma_in_flight;

use warpline_ir::Kernel;
use warpline_ir::builder::Builder;

/// Builds a kernel named `k`.
#[track_caller]
fn kernel(body: impl FnOnce(Builder)) -> Kernel {
    warpline_testkit::kernel::build("k", body)
}

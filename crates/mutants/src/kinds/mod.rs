//! The kinds of mutation, one file per group.
//!
//! A kind has a name, a description and a function that returns every edit of the kind that a
//! kernel allows, in program order.

use crate::edit::Edit;
use crate::sites::KernelSites;

mod arrivals;
mod bytes;
mod drops;
mod fences;
mod iterations;
mod order;
mod phases;
mod registers;
mod scope;
mod stages;
mod waits;

/// A kind of mutation.
#[derive(Clone, Copy)]
pub struct MutationKind {
    /// The name: `drop-wait`.
    pub name: &'static str,
    /// The change, in one sentence.
    pub description: &'static str,
    pub(crate) edits: fn(&KernelSites<'_>) -> Vec<Edit>,
}

impl std::fmt::Debug for MutationKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Defines the table of kinds: name, function, description.
macro_rules! kinds {
    ($($name:literal $group:ident::$edits:ident, $description:literal;)*) => {
        /// Every kind, in the order of the report.
        pub const ALL: &[MutationKind] = &[$(
            MutationKind { name: $name, description: $description, edits: $group::$edits },
        )*];
    };
}

kinds! {
    "drop-proxy-fence" fences::drop_proxy_fence, "a fence.proxy.async is dropped";
    "late-fence" fences::delay_proxy_fence, "a proxy fence moves after its arrival";
    "drop-init-fence" drops::init_fence, "the fence after the mbarrier inits is dropped";
    "drop-wgmma-fence" drops::wgmma_fence, "a wgmma.fence is dropped";
    "drop-wait" drops::wait, "an mbarrier wait is dropped";
    "drop-barrier" drops::thread_barrier, "a CTA barrier or a named barrier is dropped";
    "drop-warp-sync" drops::warp_sync, "a bar.warp.sync is dropped";
    "drop-cluster-sync" waits::drop_cluster_barrier, "a cluster barrier or its wait is dropped";
    "drop-group-wait" drops::group_wait, "a wait for bulk or cp.async groups is dropped";
    "drop-wgmma-wait" drops::wgmma_wait, "a wgmma wait is dropped";
    "drop-commit" drops::commit, "a commit of a bulk, cp.async or wgmma group is dropped";
    "drop-prerequisites" waits::drop_dependency_wait, "a griddepcontrol.wait is dropped";
    "loose-wait" waits::leave_one_more_group, "a group wait leaves one more group in flight";
    "other-waiter" waits::move_bulk_wait, "a bulk wait moves to another lane or warp";
    "drop-arrive" drops::arrive, "an arrival is dropped";
    "double-arrive" arrivals::double_arrival, "an arrival is doubled";
    "all-lanes-arrive" arrivals::arrive_in_all_lanes, "all lanes arrive instead of the elected one";
    "few-arrive" arrivals::arrive_in_one_warp_or_lane, "one lane or one warp arrives instead of all";
    "more-arrivals" arrivals::increment_count, "an mbarrier expects one more arrival";
    "fewer-arrivals" arrivals::decrement_count, "an mbarrier expects one fewer arrival";
    "named-threads" arrivals::change_named_count, "a named barrier counts one warp more or less";
    "wrong-bytes" bytes::change_expected_bytes, "a phase expects more or fewer transaction bytes";
    "drop-copy" bytes::drop_copy, "a copy that delivers transaction bytes is dropped";
    "flip-parity" phases::flip_wait_parity, "a wait uses the other parity";
    "flip-start" phases::flip_initial_parity, "a cursor starts with the other parity";
    "wrong-wrap" stages::change_wrap, "a cursor wraps one stage early or late";
    "wrong-stage" stages::use_next_stage, "an op uses the mbarrier or the tile of the next stage";
    "early-release" order::release_early, "an arrival moves before the wait or access that it must follow";
    "short-loop" iterations::skip_first_iteration, "a role skips the first iteration of a loop";
    "drop-tail" iterations::drop_tail_release, "the arrival after a loop is dropped";
    "skip-arrival" iterations::skip_arrival_of_empty_loop, "an arrival is skipped if its loop has no iteration";
    "skip-first" iterations::skip_first_arrival, "an arrival is skipped in the first iteration of its loop";
    "weaken-scope" scope::narrow_scope, "a release or acquire is narrowed to CTA scope";
    "weaken-order" scope::relax_order, "a release or acquire becomes relaxed";
    "drop-decrease" registers::drop_decrease, "a setmaxnreg.dec is dropped";
    "greedy-registers" registers::exceed_pool, "a register budget exceeds the registers of the CTA";
}

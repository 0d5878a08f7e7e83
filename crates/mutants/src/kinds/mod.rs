//! The kinds of mutation, one file per group.
//!
//! A kind is a name, a sentence and a function that finds every place of a
//! kernel where it can be done, in program order.

use crate::case::Case;
use crate::edit::Edit;

mod arrivals;
mod bytes;
mod drops;
mod fences;
mod order;
mod phases;
mod registers;
mod rounds;
mod scope;
mod stages;
mod waits;

/// One way to break a kernel.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Its name: `drop-wait`.
    pub name: &'static str,
    /// What is changed.
    pub about: &'static str,
    pub(crate) edits: fn(&Case<'_>) -> Vec<Edit>,
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Writes the table of kinds: name, function, what is changed.
macro_rules! kinds {
    ($($name:literal $group:ident::$edits:ident, $about:literal;)*) => {
        /// Every kind, in the order in which they are counted.
        pub const ALL: &[Kind] = &[$(
            Kind { name: $name, about: $about, edits: $group::$edits },
        )*];
    };
}

kinds! {
    "drop-proxy-fence" fences::dropped, "a fence.proxy.async is left out";
    "late-fence" fences::late, "a proxy fence comes behind the arrival it is for";
    "drop-init-fence" drops::init_fence, "the fence behind the barrier inits is left out";
    "drop-wgmma-fence" drops::wgmma_fence, "a wgmma.fence is left out";
    "drop-wait" drops::wait, "a wait for an mbarrier is left out";
    "drop-meeting" drops::meeting, "a barrier of threads is left out";
    "drop-warp-sync" drops::warp_sync, "a bar.warp.sync is left out";
    "drop-cluster-sync" waits::cluster, "a barrier of the cluster is left out, or its wait";
    "drop-group-wait" drops::group_wait, "a wait for bulk or copy groups is left out";
    "drop-wgmma-wait" drops::wgmma_wait, "a wait for products is left out";
    "drop-commit" drops::commit, "a group of copies or products is not closed";
    "drop-prerequisites" waits::prerequisites, "a griddepcontrol.wait is left out";
    "loose-wait" waits::loose, "a group wait lets one group more stay open";
    "other-waiter" waits::other, "a bulk wait moves to another lane or warp";
    "drop-arrive" drops::arrive, "an arrival is left out";
    "double-arrive" arrivals::twice, "an arrival is made twice";
    "all-lanes-arrive" arrivals::all_lanes, "all lanes arrive where one was elected";
    "few-arrive" arrivals::few, "one lane or one warp arrives for all";
    "more-arrivals" arrivals::more, "an mbarrier expects an arrival more";
    "fewer-arrivals" arrivals::fewer, "an mbarrier expects an arrival fewer";
    "named-threads" arrivals::named, "a named barrier counts a warp more or fewer";
    "wrong-bytes" bytes::expected, "a phase expects more or fewer bytes";
    "drop-copy" bytes::copies, "a copy that a phase waits for is left out";
    "flip-parity" phases::wait, "a wait asks for the other parity";
    "flip-start" phases::start, "a cursor starts with the other parity";
    "wrong-wrap" stages::wrap, "a cursor goes round a stage early or late";
    "wrong-stage" stages::index, "a barrier or tile is taken from the next stage";
    "early-release" order::release, "an arrival comes before what it releases";
    "short-loop" rounds::short, "a role leaves out the first round of a loop";
    "drop-tail" rounds::tail, "what is released behind a loop is not";
    "skip-arrival" rounds::empty, "an arrival is skipped for an empty tile";
    "skip-first" rounds::first, "an arrival is skipped in the first round of its loop";
    "weaken-scope" scope::narrow, "a release or acquire reaches the CTA alone";
    "weaken-order" scope::relax, "a release or acquire becomes relaxed";
    "drop-decrease" registers::keep, "a role keeps the registers it gave back";
    "greedy-registers" registers::greedy, "a role asks for more registers than there are";
}

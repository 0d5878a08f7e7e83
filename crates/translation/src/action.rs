//! Actions: the form in which a program and its PTX are compared. An action has a kind and named
//! facts.

use crate::value::OperandValue;
use std::fmt;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident $words:literal,)*) => {
        /// The kinds of actions.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[non_exhaustive]
        pub enum ActionKind {
            $($(#[$doc])* $name,)*
        }

        impl ActionKind {
            /// Returns the kind in words: `mbarrier.arrive`.
            pub const fn describe(self) -> &'static str {
                match self { $(ActionKind::$name => $words,)* }
            }
        }
    };
}

kinds! {
    /// The entry: threads, clusters, shared memory.
    Entry "entry",
    /// The declaration of a launch parameter.
    Parameter "parameter",
    /// A write of a program register by an arithmetic instruction.
    Set "register write",
    /// A branch.
    Branch "branch",
    /// A label.
    Label "label",
    /// `.pragma "nounroll"`.
    NoUnroll "pragma nounroll",
    /// `elect.sync`.
    Elect "elect.sync",
    /// The end of the entry.
    Return "ret",
    /// `ld.param`.
    ReadParameter "ld.param",
    /// `mbarrier.init`.
    Init "mbarrier.init",
    /// `mbarrier.inval`.
    Inval "mbarrier.inval",
    /// `mbarrier.arrive`, with bytes or without.
    Arrive "mbarrier.arrive",
    /// `mbarrier.expect_tx`.
    ExpectTx "mbarrier.expect_tx",
    /// `mbarrier.try_wait` in a loop.
    Wait "mbarrier wait loop",
    /// `mbarrier.test_wait`, or `try_wait` once.
    Test "mbarrier.test_wait",
    /// `fence`.
    Fence "fence",
    /// `bar.warp.sync`.
    WarpSync "bar.warp.sync",
    /// `barrier.cta`: all threads, or a named barrier.
    Barrier "barrier.cta",
    /// `barrier.cluster.arrive`.
    ClusterArrive "barrier.cluster.arrive",
    /// `barrier.cluster.wait`.
    ClusterWait "barrier.cluster.wait",
    /// `cp.async.bulk.commit_group`.
    BulkCommit "cp.async.bulk.commit_group",
    /// `cp.async.bulk.wait_group`.
    BulkWait "cp.async.bulk.wait_group",
    /// A bulk copy from global to shared memory.
    BulkLoad "bulk load",
    /// A bulk copy from shared to global memory.
    BulkStore "bulk store",
    /// A bulk copy from one CTA of the cluster to another.
    BulkSend "bulk copy to a peer",
    /// A bulk prefetch into the L2.
    BulkPrefetch "bulk prefetch",
    /// A TMA load of a box of a tensor.
    TensorLoad "tensor load",
    /// A TMA store of a box of a tensor.
    TensorStore "tensor store",
    /// A TMA prefetch of a box of a tensor into the L2.
    TensorPrefetch "tensor prefetch",
    /// `cp.async`.
    Copy "cp.async",
    /// `cp.async.commit_group`.
    CopyCommit "cp.async.commit_group",
    /// `cp.async.wait_group`, `wait_all`.
    CopyWait "cp.async.wait_group",
    /// `cp.async.mbarrier.arrive`.
    CopyArrive "cp.async.mbarrier.arrive",
    /// `st.async`.
    StoreAsync "st.async",
    /// `red.async`.
    ReduceAsync "red.async",
    /// `wgmma.mma_async`.
    Wgmma "wgmma.mma_async",
    /// `wgmma.fence`.
    WgmmaFence "wgmma.fence",
    /// `wgmma.commit_group`.
    WgmmaCommit "wgmma.commit_group",
    /// `wgmma.wait_group`.
    WgmmaWait "wgmma.wait_group",
    /// `mma.sync`.
    Mma "mma.sync",
    /// `setmaxnreg`.
    SetMaxRegs "setmaxnreg",
    /// `griddepcontrol.launch_dependents`.
    LaunchDependents "griddepcontrol.launch_dependents",
    /// `griddepcontrol.wait`.
    WaitPrerequisites "griddepcontrol.wait",
    /// `nanosleep`.
    Sleep "nanosleep",
    /// `exit`.
    Exit "exit",
    /// `trap`.
    Trap "trap",
    /// `ld`.
    Load "ld",
    /// `st`.
    Store "st",
    /// `atom`.
    Atomic "atom",
    /// `red`.
    Reduce "red",
    /// `ldmatrix`.
    LoadMatrix "ldmatrix",
    /// `stmatrix`.
    StoreMatrix "stmatrix",
    /// `prefetch`, `applypriority`, `discard`.
    CacheLineOp "prefetch, applypriority or discard",
    /// An instruction that the printer never writes.
    Unknown "unknown instruction",
}

impl fmt::Display for ActionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.describe())
    }
}

/// One action.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Action<'a> {
    pub(crate) kind: ActionKind,
    /// Named facts, in the same order on both sides.
    pub(crate) facts: Vec<(&'static str, OperandValue<'a>)>,
}

impl<'a> Action<'a> {
    pub(crate) fn new(kind: ActionKind) -> Self {
        Self {
            kind,
            facts: Vec::new(),
        }
    }

    /// Adds a fact.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<OperandValue<'a>>) -> Self {
        self.facts.push((name, value.into()));
        self
    }

    /// Returns whether the PTX action equals this program action.
    pub(crate) fn matches_ptx(&self, ptx: &Action<'_>) -> bool {
        self.kind == ptx.kind && self.differences(ptx).next().is_none()
    }

    /// Returns the facts on which two actions of one kind differ: name, program value, PTX value.
    pub(crate) fn differences<'s>(
        &'s self,
        ptx: &'s Action<'a>,
    ) -> impl Iterator<Item = (&'static str, &'s OperandValue<'a>, &'s OperandValue<'a>)> {
        let fact = |action: &'s Action<'a>, i: usize| action.facts.get(i);
        (0..self.facts.len().max(ptx.facts.len())).filter_map(move |i| {
            match (fact(self, i), fact(ptx, i)) {
                (Some((name, a)), Some((_, b))) if !facts_agree(name, a, b) => Some((*name, a, b)),
                (Some((name, a)), None) => Some((*name, a, &OperandValue::Absent)),
                (None, Some((name, b))) => Some((*name, &OperandValue::Absent, b)),
                _ => None,
            }
        })
    }
}

/// The fact for the operands of a register write.
pub(crate) const SOURCES: &str = "sources";

/// The fact for a branch target: the number of labels to it, negative for a backward branch.
pub(crate) const TARGET: &str = "target (labels from here)";

/// Returns whether the two sides agree on a fact.
fn facts_agree(name: &str, program: &OperandValue<'_>, ptx: &OperandValue<'_>) -> bool {
    if name != SOURCES {
        return program == ptx;
    }
    let (OperandValue::List(program), OperandValue::List(ptx)) = (program, ptx) else {
        return false;
    };
    // The operands of the op occur in order. Its instructions may use extra constants, but no extra
    // registers.
    let mut remaining = ptx.iter();
    program.iter().all(|p| remaining.any(|x| x == p))
        && ptx
            .iter()
            .all(|x| matches!(x, OperandValue::Number(_)) || program.contains(x))
}

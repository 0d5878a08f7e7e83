//! What both sides are reduced to: acts, one after the other, each a kind and named facts.

use crate::value::Value;
use std::fmt;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident $words:literal,)*) => {
        /// The kinds of act.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[non_exhaustive]
        pub enum Kind {
            $($(#[$doc])* $name,)*
        }

        impl Kind {
            /// With its article: `an arrival at an mbarrier`.
            pub const fn words(self) -> &'static str {
                match self { $(Kind::$name => $words,)* }
            }
        }
    };
}

kinds! {
    /// The entry: threads, clusters, shared memory.
    Entry "the entry",
    /// A declared launch parameter.
    Parameter "a parameter",
    /// A register of the program gets a value by arithmetic.
    Set "a write of a register",
    /// A jump.
    Branch "a branch",
    /// A place to jump to.
    Label "a label",
    /// A word to ptxas: a loop that it shall not unroll.
    NoUnroll "a word against unrolling",
    /// One lane is chosen.
    Elect "an election of a lane",
    /// The end of the entry.
    Return "the end of the entry",
    /// A launch parameter is read.
    ReadParameter "a read of a parameter",
    /// `mbarrier.init`.
    Init "the init of an mbarrier",
    /// `mbarrier.inval`.
    Inval "the end of an mbarrier",
    /// `mbarrier.arrive`, with bytes or without.
    Arrive "an arrival at an mbarrier",
    /// `mbarrier.expect_tx`.
    ExpectTx "an announcement of bytes to an mbarrier",
    /// `mbarrier.try_wait` in a loop.
    Wait "a wait for an mbarrier",
    /// `mbarrier.test_wait`, or `try_wait` once.
    Test "a test of an mbarrier",
    /// `fence`.
    Fence "a fence",
    /// `bar.warp.sync`.
    WarpSync "a meeting of a warp",
    /// `barrier.cta`: all threads, or a named barrier.
    Barrier "a barrier of threads",
    /// `barrier.cluster.arrive`.
    ClusterArrive "an arrival at the cluster's barrier",
    /// `barrier.cluster.wait`.
    ClusterWait "a wait for the cluster",
    /// `cp.async.bulk.commit_group`.
    BulkCommit "a commit of a bulk group",
    /// `cp.async.bulk.wait_group`.
    BulkWait "a wait for bulk groups",
    /// Bytes from global to shared memory.
    BulkLoad "a bulk load",
    /// Bytes from shared to global memory.
    BulkStore "a bulk store",
    /// Bytes from one CTA to another.
    BulkSend "a bulk copy to a peer",
    /// Bytes into the L2.
    BulkPrefetch "a bulk prefetch",
    /// A box of a tensor to shared memory.
    TensorLoad "a tensor load",
    /// A box of shared memory to a tensor.
    TensorStore "a tensor store",
    /// A box of a tensor into the L2.
    TensorPrefetch "a tensor prefetch",
    /// `cp.async`.
    Copy "a copy by a thread",
    /// `cp.async.commit_group`.
    CopyCommit "a commit of copies",
    /// `cp.async.wait_group`, `wait_all`.
    CopyWait "a wait for copies",
    /// `cp.async.mbarrier.arrive`.
    CopyArrive "an arrival after copies",
    /// `st.async`.
    StoreAsync "a store to a peer, some time after",
    /// `red.async`.
    ReduceAsync "a reduction in a peer, some time after",
    /// `wgmma.mma_async`.
    Wgmma "a warpgroup product",
    /// `wgmma.fence`.
    WgmmaFence "a fence of warpgroup products",
    /// `wgmma.commit_group`.
    WgmmaCommit "a commit of warpgroup products",
    /// `wgmma.wait_group`.
    WgmmaWait "a wait for warpgroup products",
    /// `mma.sync`.
    Mma "a warp's product",
    /// `setmaxnreg`.
    SetMaxRegs "a change of registers",
    /// `griddepcontrol.launch_dependents`.
    LaunchDependents "a word to dependent launches",
    /// `griddepcontrol.wait`.
    WaitPrerequisites "a wait for launches before",
    /// `nanosleep`.
    Sleep "a sleep",
    /// `exit`.
    Exit "an exit",
    /// `trap`.
    Trap "a trap",
    /// `ld`.
    Load "a load",
    /// `st`.
    Store "a store",
    /// `atom`.
    Atomic "an atomic",
    /// `red`.
    Reduce "a reduction",
    /// `ldmatrix`.
    LoadMatrix "a load of matrices",
    /// `stmatrix`.
    StoreMatrix "a store of matrices",
    /// `prefetch`, `applypriority`, `discard`.
    Line "a word about a line of memory",
    /// An instruction that no program has.
    Unknown "an instruction that no op prints",
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// One act.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Act<'a> {
    pub(crate) kind: Kind,
    /// What is known of it, by name, in the same order on both sides.
    pub(crate) facts: Vec<(&'static str, Value<'a>)>,
}

impl<'a> Act<'a> {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            kind,
            facts: Vec::new(),
        }
    }

    /// The same with one fact more.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Value<'a>>) -> Self {
        self.facts.push((name, value.into()));
        self
    }

    /// Does the PTX do what this act of the program says?
    pub(crate) fn is_done_by(&self, ptx: &Act<'_>) -> bool {
        self.kind == ptx.kind && self.differences(ptx).next().is_none()
    }

    /// The facts on which two acts of one kind differ: name, here, in the PTX.
    pub(crate) fn differences<'s>(
        &'s self,
        ptx: &'s Act<'a>,
    ) -> impl Iterator<Item = (&'static str, &'s Value<'a>, &'s Value<'a>)> {
        let at = |side: &'s Act<'a>, i: usize| side.facts.get(i);
        (0..self.facts.len().max(ptx.facts.len())).filter_map(move |i| {
            match (at(self, i), at(ptx, i)) {
                (Some((name, a)), Some((_, b))) if !agree(name, a, b) => Some((*name, a, b)),
                (Some((name, a)), None) => Some((*name, a, &Value::Nothing)),
                (None, Some((name, b))) => Some((*name, &Value::Nothing, b)),
                _ => None,
            }
        })
    }
}

/// The fact that says what a register's value is worked out from.
pub(crate) const FROM: &str = "worked out from";

/// The fact that says where a branch goes: labels from here to there, less than 0 backwards.
pub(crate) const TARGET: &str = "target, in labels from here";

/// Do the two sides say the same of a fact?
fn agree(name: &str, program: &Value<'_>, ptx: &Value<'_>) -> bool {
    if name != FROM {
        return program == ptx;
    }
    // An op names its operands. Its instructions may have constants of their
    // own, between them; but no other register.
    let (Value::List(program), Value::List(ptx)) = (program, ptx) else {
        return false;
    };
    let mut rest = ptx.iter();
    program.iter().all(|p| rest.any(|x| x == p))
        && ptx
            .iter()
            .all(|x| matches!(x, Value::Number(_)) || program.contains(x))
}

//! The rules of the protocol.

use crate::refusal::Rule;

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident $code:literal $holds:literal;)*) => {
        $($(#[$doc])* pub const $name: Rule = Rule { code: $code, holds: $holds };)*
        /// All of them.
        pub const RULES: &[Rule] = &[$($name),*];
    };
}

rules! {
    /// Arrivals per phase.
    ARRIVALS "R1.arrivals" "in every phase an mbarrier gets as many arrivals as its init says";
    /// The phase of an arrival.
    PHASE "R1.phase" "an arrival, or the bytes of a copy, belong to one phase: whoever arrives knows that the phase before is complete";
    /// Bytes per phase.
    BYTES "R2.bytes" "in every phase the copies deliver as many bytes as are expected";
    /// Parities.
    PARITY "R3.parity" "a wait for a parity neither lags nor leads by two phases, and the first wait of a producer passes";
    /// Two accesses.
    ORDER "R3.order" "of two accesses to the same shared bytes, one of them a write, one is ordered before the other";
    /// Trip counts.
    TRIPS "R4.trips" "roles agree for every trip count: whoever is waited for still comes";
    /// Generic writes, async reads.
    PROXY_WRITE "R5.write" "the writer runs fence.proxy.async between a generic write and an async access to the same bytes";
    /// Generic reads, async writes.
    PROXY_READ "R5.read" "a reader runs fence.proxy.async between its generic read and the copy that refills the bytes";
    /// Bulk groups.
    BULK "R6.bulk" "bytes that a bulk store reads are overwritten, or given up, only behind the wait of the thread that issued it";
    /// wgmma operands.
    RELEASE "R7.release" "bytes that a wgmma reads are overwritten only behind the wait that covers it";
    /// The start of peers.
    START "R8.start" "a peer is reached only after the first cluster barrier";
    /// The end of peers.
    EXIT "R8.exit" "a CTA leaves only after all that reaches into it";
    /// Scopes.
    SCOPE "R8.scope" "what generic accesses hand over to another CTA is released and acquired at the scope of the cluster";
    /// The cluster's barrier.
    AGREE "R8.agree" "all CTAs of a cluster come to its barrier equally often";
    /// Threads of a named barrier.
    COUNT "R10.count" "both sides of a named barrier name the threads that come, in whole warps";
    /// Named barriers, again.
    RECYCLE "R10.recycle" "a named barrier is used again only by who knows that its last meeting is over";
    /// Inits.
    INIT "R11.init" "an mbarrier is made once, fenced and made known before it is used";
    /// Aliases.
    ALIAS "R12.alias" "tiles that share bytes are not in use at the same time";
    /// Bounds.
    BOUNDS "R12.bounds" "an access stays inside one stage of its tile and inside its barriers";
    /// Lanes.
    LANES "R15.lanes" "lanes of one warp that pass data to each other meet in between";
    /// Lanes that wait by themselves.
    LATE "R15.late" "lanes that wait for a phase each by itself meet before one of them lets the phase after next begin";
    /// Whole warps.
    WHOLE "R15.whole" "an act of whole warps is reached by whole warps";
    /// Circles.
    CYCLE "R17.cycle" "roles do not wait for each other in a circle";
    /// Runs that fail, of kernels that the walk does not decide.
    RUN "R17.run" "no launch that the kernel takes hangs, races or leaves its bounds";
    /// Undecided: control.
    UNKNOWN "U.unknown" "what decides a synchronisation follows from launch parameters, indices, or values passed on through shared memory";
    /// Undecided: too many states.
    STATES "U.states" "the protocol comes back to a state it has been in";
}

//! Plans: communication steps among roles, before they are projected onto the roles.
//!
//! A plan without an injected bug is correct by construction. An injected bug makes one role deviate
//! from the others: it computes another count, tests another condition, or waits for less.

use serde::{Deserialize, Serialize};

/// A kernel as a list of communication steps.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FuzzPlan {
    /// The cluster size: 1, 2 or 4.
    pub cluster: u32,
    /// The number of warps of each role.
    pub warps: Vec<u32>,
    /// The steps, in program order.
    pub steps: Vec<CommStep>,
}

/// A communication step. Roles that take no part skip it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum CommStep {
    /// All roles run the body `count` times.
    Loop {
        /// The number of iterations.
        count: TripCount,
        /// The steps of an iteration.
        body: Vec<CommStep>,
    },
    /// A ring from one role to others.
    Transfer(Transfer),
    /// A word in shared memory that determines a count of another role.
    SharedWord(SharedWord),
    /// A variable set by a synchronization-free loop determines the number of arrivals.
    SyncFreeLoop(SyncFreeLoop),
    /// Generic stores, a proxy fence, and a bulk store.
    BulkExport(BulkExport),
    /// One role releases registers and another requests them.
    RegisterTransfer(RegisterTransfer),
    /// Lanes store and load at addresses that other lanes access.
    Gather(Gather),
    /// All lanes read a slot; the elected lane reads it again and releases it.
    Reread(Reread),
    /// Groups of `cp.async` copies that other lanes read.
    LaneCopies(LaneCopies),
    /// Stores to and arrivals at other CTAs of the cluster.
    RemoteStore(RemoteStore),
    /// A bulk load whose length is a launch argument or a table element.
    VariableLoad(VariableLoad),
    /// A named barrier between two roles.
    NamedHandshake(NamedHandshake),
    /// A CTA barrier.
    CtaBarrier,
    /// An mbarrier is invalidated and initialized again.
    Reinit(Reinit),
    /// A loop whose step is a launch argument.
    StridedLoop(StridedLoop),
    /// CTAs pass data through global memory, published by flags.
    FlagHandshake(FlagHandshake),
    /// Two locks in global memory.
    Locks(Locks),
    /// Two roles take turns, with the `Turn` of the builder.
    Turns(Turns),
}

/// The source of a number.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum NumberSource {
    /// A `u32` parameter; launches pass small values.
    Small,
    /// Another `u32` parameter with small values.
    Other,
    /// A `u32` parameter; launches pass values of all magnitudes.
    Wide,
    /// An `i32` parameter.
    Signed,
    /// A `u64` parameter.
    Long,
    /// An element of a table.
    Table {
        /// The element type.
        elem: TableElem,
        /// Whether the table is in shared memory.
        shared: bool,
        /// The index of the element.
        at: TableIndex,
    },
}

/// The type of a table element.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum TableElem {
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 32 bits.
    I32,
}

impl TableElem {
    /// All values.
    pub const ALL: [TableElem; 4] = [
        TableElem::U8,
        TableElem::U16,
        TableElem::U32,
        TableElem::I32,
    ];
}

/// The index of a table element.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum TableIndex {
    /// A constant.
    Fixed(u32),
    /// The iteration of the enclosing loop.
    Round,
    /// The item of the transfer.
    Item,
    /// The lane ID.
    Lane,
}

/// A conversion of the source before the formula.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Conversion {
    /// None.
    Keep,
    /// Through 8 bits.
    U8,
    /// Through 16 bits.
    U16,
    /// Through 32 bits.
    U32,
    /// Through `f32`.
    F32,
}

/// A count as a function of its source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CountFormula {
    /// `n`.
    Plain,
    /// `n / 4`.
    Quarter,
    /// `n / 4`, rounded up.
    Tiles,
    /// `2 n`.
    Twice,
    /// `4 n`.
    Four,
    /// `min(n, 3)`; for signed numbers `max(0, min(n, 3))`.
    Clamp,
    /// `n mod 5`.
    Mod,
    /// The two highest bits.
    High,
}

/// A count that all roles compute, each with its own expression.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TripCount {
    /// The source.
    pub source: NumberSource,
    /// The conversion, the same in every role.
    pub conversion: Conversion,
    /// The formula.
    pub formula: CountFormula,
    /// The expression form of each role.
    pub forms: Vec<u8>,
    /// The role with an injected bug, and the bug.
    pub bug: Option<(usize, CountBug)>,
}

/// An injected bug in a count.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum CountBug {
    /// Another conversion.
    Conversion(Conversion),
    /// Treats a signed number as unsigned.
    Unsigned,
    /// Adds one.
    More,
    /// Uses 0.
    Zero,
    /// Uses another source.
    NumberSource(NumberSource),
}

/// A uniform condition that all roles compute.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Guard {
    /// The tested number.
    pub source: NumberSource,
    /// The conversion, the same in every role.
    pub conversion: Conversion,
    /// The test.
    pub test: GuardTest,
    /// The vote that makes the condition uniform.
    pub vote: LaneVote,
    /// The expression form of each role.
    pub forms: Vec<u8>,
    /// The role with an injected bug, and the bug.
    pub bug: Option<(usize, GuardBug)>,
}

/// A test of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum GuardTest {
    /// Signed: `x >= 0`, or `x > -1`; unsigned: `x != 0`.
    NotNegative,
    /// `x > c`.
    Above(u32),
    /// `x - 5 < 3`, unsigned.
    Less,
}

/// A vote of the lanes on a condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LaneVote {
    /// No vote: the condition is uniform.
    Uniform,
    /// `all_lanes`.
    All,
    /// `any_lane`.
    Any,
    /// `lanes_agree`.
    Agree,
    /// `ballot != 0`.
    Ballot,
}

impl LaneVote {
    /// All values.
    pub const ALL: [LaneVote; 5] = [
        LaneVote::Uniform,
        LaneVote::All,
        LaneVote::Any,
        LaneVote::Agree,
        LaneVote::Ballot,
    ];
}

/// An injected bug in a condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum GuardBug {
    /// Always true.
    Always,
    /// Always false.
    Never,
    /// Another vote.
    LaneVote(LaneVote),
    /// Another conversion.
    Conversion(Conversion),
    /// Treats a signed number as unsigned.
    Unsigned,
}

/// The form of a loop over a count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LoopForm {
    /// `0..n`.
    Up,
    /// `while i != 0 { i -= 1 }`.
    Down,
    /// `0..min(n, S)`, then the rest.
    First,
    /// `0..n / 2`, then `0..n - n / 2`.
    Halves,
    /// `1..n + 1`.
    FromOne,
    /// Signed, `-1..n - 1`.
    FromMinusOne,
    /// `while i < n { i += 1 }`.
    While,
}

impl LoopForm {
    /// All values.
    pub const ALL: [LoopForm; 7] = [
        LoopForm::Up,
        LoopForm::Down,
        LoopForm::First,
        LoopForm::Halves,
        LoopForm::FromOne,
        LoopForm::FromMinusOne,
        LoopForm::While,
    ];
}

/// The way a role tracks its position in a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RingPosition {
    /// A stage and a parity that wrap.
    Cursor,
    /// A counter over all items.
    Counter,
    /// `round * n + i`: iteration of the enclosing loop, count and item.
    Product,
}

/// The way a slot is filled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum SlotFill {
    /// One lane issues a bulk load.
    Bulk,
    /// Every lane stores.
    Stores,
    /// Every lane issues `cp.async`.
    Lanes,
}

/// The way a consumer waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum WaitForm {
    /// `wait`.
    Wait,
    /// `while !try_wait {}`.
    Try,
    /// `if !test { wait }`.
    TestThenWait,
}

/// A ring of slots from one role to others.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Transfer {
    /// The producer.
    pub producer: usize,
    /// The consumers.
    pub consumers: Vec<usize>,
    /// The number of stages.
    pub stages: u32,
    /// The way the producer fills a slot.
    pub fill: SlotFill,
    /// The number of items.
    pub count: TripCount,
    /// The condition of the whole transfer, or of each item if its table index is the item.
    pub guard: Option<Guard>,
    /// The loop forms of the producer and of the consumers.
    pub loops: [LoopForm; 2],
    /// The way the producer and the consumers track their position.
    pub position: [RingPosition; 2],
    /// The way the consumers wait.
    pub wait: WaitForm,
    /// Whether the first consumer signals after its last item that it is done.
    pub tail: bool,
    /// Whether the step uses the `Ring` of the builder instead of raw mbarriers.
    pub safe: bool,
}

/// A word in shared memory that determines a count.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SharedWord {
    /// The role that writes it.
    pub writer: usize,
    /// The role that reads it and arrives that many times.
    pub reader: usize,
    /// The value.
    pub count: TripCount,
    /// The type of the load.
    pub read: TableElem,
    /// The value that a shared-memory atomic adds after the store; 0 for no atomic.
    pub add: u32,
    /// Injected bug: the writer ignores the added value.
    pub stale: bool,
}

/// A variable set in a synchronization-free loop.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SyncFreeLoop {
    /// The role with the loop; it arrives `value` times.
    pub setter: usize,
    /// The role that waits the same number of times.
    pub waiter: usize,
    /// The number of iterations.
    pub count: TripCount,
    /// The value that each iteration sets.
    pub value: u32,
    /// Injected bug: the waiter ignores that the loop may have no iteration.
    pub stale: bool,
}

/// Stores to a tile, a proxy fence, and a bulk store.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BulkExport {
    /// The role.
    pub role: usize,
    /// The number of bulk groups in flight.
    pub groups: u32,
    /// Injected bug: the fence runs only in lanes that a table selects.
    pub fence_in_branch: bool,
}

/// Register budgets that move between roles.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RegisterTransfer {
    /// The role that releases registers.
    pub giver: usize,
    /// The role that requests them and then arrives.
    pub taker: usize,
    /// Injected bug: the giver first waits for the taker.
    pub late: bool,
}

/// Stores and loads of lanes at the addresses of other lanes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Gather {
    /// The role.
    pub role: usize,
    /// Whether a table determines the addresses.
    pub unknown: bool,
    /// Whether the stores, not the loads, are permuted.
    pub scatter: bool,
    /// Injected bug: no warp barrier between the store and the load.
    pub unsynced: bool,
}

/// A slot that all lanes read, and that the releasing lane reads again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Reread {
    /// The role that writes.
    pub writer: usize,
    /// The role that reads.
    pub reader: usize,
    /// Injected bug: no warp barrier before the release.
    pub unsynced: bool,
}

/// Groups of `cp.async` copies.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LaneCopies {
    /// The role.
    pub role: usize,
    /// The number of groups.
    pub groups: u32,
    /// Injected bug: the op that only some lanes run.
    pub partial: Option<PartialGroup>,
    /// Whether a table, not the lane ID, selects these lanes.
    pub unknown: bool,
}

/// An op on `cp.async` groups that only some lanes run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum PartialGroup {
    /// The commit of the last group.
    Commit,
    /// The wait.
    Wait,
}

/// Stores to the shared memory of other CTAs of the cluster.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RemoteStore {
    /// The role.
    pub role: usize,
    /// Whether each lane stores to a different peer.
    pub lanes: bool,
    /// Whether a table determines the addresses.
    pub unknown: bool,
    /// The rank offset of the CTA whose stores are read.
    pub sender: u32,
    /// Whether mbarrier arrivals, not the cluster barrier, publish the data.
    pub arrivals: bool,
    /// The injected bug.
    pub bug: Option<RemoteBug>,
}

/// An injected bug in remote stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RemoteBug {
    /// A CTA barrier instead of a cluster barrier.
    CtaOnly,
    /// Release and acquire at CTA scope.
    CtaScope,
    /// The peer reads before it waits.
    Early,
}

/// A bulk load of variable length.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct VariableLoad {
    /// The role that issues the load.
    pub loader: usize,
    /// The role that waits and overwrites.
    pub reader: usize,
    /// The length in units of 16 bytes, minus one.
    pub source: NumberSource,
    /// The rows of the tile; a row has 64 bytes.
    pub rows: u32,
    /// The injected bug.
    pub bug: Option<LengthBug>,
}

/// An injected bug in a variable-length load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LengthBug {
    /// The length may exceed the tile.
    Unbounded,
    /// The length is not a multiple of 16 bytes.
    Unaligned,
    /// The reader does not wait.
    NoWait,
    /// The reader writes the second row before it waits.
    EarlyRow,
}

/// A named barrier between two roles.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NamedHandshake {
    /// The role that stores.
    pub from: usize,
    /// The role that reads.
    pub to: usize,
    /// Whether the first role arrives without waiting.
    pub arrive: bool,
}

/// An mbarrier that is invalidated and initialized again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Reinit {
    /// The role that arrives.
    pub arriver: usize,
    /// The role that waits and initializes the mbarrier again.
    pub waiter: usize,
    /// Injected bug: the mbarrier is invalidated while a warp may still wait.
    pub early: bool,
}

/// A synchronization-free loop whose step is a launch argument.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StridedLoop {
    /// The role.
    pub role: usize,
    /// Whether a step of 0 is excluded; if not, the loop may not end (injected bug).
    pub bounded: bool,
    /// Whether the loop is a `while`, not a `for`.
    pub spin: bool,
}

/// Data passed from CTA to CTA through global memory.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FlagHandshake {
    /// The role.
    pub role: usize,
    /// Whether a bulk store writes the data.
    pub bulk: bool,
    /// Whether the flag is loaded once and tested, not polled.
    pub once: bool,
    /// The injected bug.
    pub bug: Option<FlagBug>,
}

/// An injected bug in flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum FlagBug {
    /// Every CTA waits before it signals.
    WaitFirst,
    /// No CTA signals.
    Silent,
    /// The flag is loaded once, relaxed, and tested.
    ReadOnce,
    /// The bulk store is published after `bulk_wait_read`, not `bulk_wait`.
    ReadWait,
    /// The data is read through the read-only path.
    ReadOnly,
}

/// Two locks in global memory.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Locks {
    /// Two roles.
    pub roles: [usize; 2],
    /// Injected bug: the roles take the locks in opposite order.
    pub opposite: bool,
}

/// Two roles that take turns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Turns {
    /// Two roles.
    pub roles: [usize; 2],
    /// The number of turns.
    pub count: TripCount,
}

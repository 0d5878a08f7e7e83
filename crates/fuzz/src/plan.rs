//! The choreography: communication steps among roles, before they are projected onto roles.
//!
//! A plan without a twist is correct by construction. A *twist* makes one role deviate from the
//! others: it computes another count, tests another condition, or waits for less.

use serde::{Deserialize, Serialize};

/// A kernel before projection.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// CTAs of a cluster: 1, 2 or 4.
    pub cluster: u32,
    /// Warps of each role.
    pub warps: Vec<u32>,
    /// What the roles do together, in this order.
    pub steps: Vec<Step>,
}

/// A communication step. Roles that take no part skip it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Step {
    /// All roles run the body as often as the count says.
    Loop {
        /// How often.
        count: Count,
        /// The rounds.
        body: Vec<Step>,
    },
    /// A ring of slots from one role to another.
    Transfer(Transfer),
    /// A word in shared memory that decides a count of another role.
    Word(Word),
    /// A variable that a synchronization-free loop sets decides an arrival.
    Quiet(Quiet),
    /// Generic stores, a proxy fence, and a bulk store.
    Export(Export),
    /// One role gives registers back and another takes them.
    Registers(Registers),
    /// Lanes store and read at places that other lanes touch.
    Gather(Gather),
    /// Lanes read a slot, and one lane reads it again and releases it.
    Reread(Reread),
    /// `cp.async` copies in groups, read by other lanes.
    LaneCopies(LaneCopies),
    /// Stores and arrivals at CTAs of the cluster.
    Remote(Remote),
    /// A bulk load of a length that the launch or a table decides.
    Length(Length),
    /// A named barrier between two roles.
    Named(Named),
    /// All threads of the CTA meet.
    Meet,
    /// An mbarrier ends and is made anew.
    Reinit(Reinit),
    /// A loop that counts by a launch value.
    Stride(Stride),
    /// CTAs hand data on through global memory.
    Flags(Flags),
    /// Two locks in global memory.
    Locks(Locks),
    /// Two roles take turns (safe layer).
    Turns(Turns),
}

/// Where a number comes from.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Source {
    /// A `u32` parameter; launches pass small values.
    Small,
    /// Another such parameter.
    Other,
    /// A `u32` parameter; launches pass all magnitudes.
    Wide,
    /// An `i32` parameter.
    Signed,
    /// A `u64` parameter.
    Long,
    /// An element of a table.
    Table {
        /// Its type.
        elem: Elem,
        /// Copied to shared memory at the start?
        shared: bool,
        /// Which element.
        at: Index,
    },
}

/// Types of table elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Elem {
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 32 bits.
    I32,
}

impl Elem {
    /// All of them.
    pub const ALL: [Elem; 4] = [Elem::U8, Elem::U16, Elem::U32, Elem::I32];
}

/// Which element of a table.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Index {
    /// Always the same.
    Fixed(u32),
    /// That of the round of the loop around it.
    Round,
    /// That of the item of the transfer.
    Item,
    /// Each lane its own.
    Lane,
}

/// Conversions on the way to a count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Narrow {
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
pub enum Shape {
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
    /// `min(n, 3)`; of a signed number at least 0.
    Clamp,
    /// `n mod 5`.
    Mod,
    /// The highest bits: 0 to 3.
    High,
}

/// A count that roles agree on, each in its own writing.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Count {
    /// Where it comes from.
    pub source: Source,
    /// Conversion, the same in every role.
    pub narrow: Narrow,
    /// The function.
    pub shape: Shape,
    /// How each role writes it.
    pub forms: Vec<u8>,
    /// The role that deviates, and how.
    pub twist: Option<(usize, CountTwist)>,
}

/// How a role gets a count wrong.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum CountTwist {
    /// Another conversion.
    Narrow(Narrow),
    /// A signed number taken as unsigned.
    Unsigned,
    /// One more.
    More,
    /// None at all.
    Zero,
    /// Another parameter or element.
    Source(Source),
}

/// A uniform condition that roles agree on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Guard {
    /// What is tested.
    pub source: Source,
    /// Conversion, the same in every role.
    pub narrow: Narrow,
    /// The test.
    pub test: Test,
    /// How the lanes agree.
    pub vote: Vote,
    /// How each role writes it.
    pub forms: Vec<u8>,
    /// The role that deviates, and how.
    pub twist: Option<(usize, GuardTwist)>,
}

/// Tests of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Test {
    /// Signed: `x >= 0`, or `x > -1`; unsigned: `x != 0`.
    NotNegative,
    /// `x > c`.
    Above(u32),
    /// Is the difference `x - 5` below 3, read as unsigned?
    Less,
}

/// How lanes agree on a condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Vote {
    /// They need not: it is uniform.
    Uniform,
    /// `all_lanes`.
    All,
    /// `any_lane`.
    Any,
    /// `lanes_agree`.
    Agree,
    /// A ballot with a bit set.
    Ballot,
}

impl Vote {
    /// All of them.
    pub const ALL: [Vote; 5] = [
        Vote::Uniform,
        Vote::All,
        Vote::Any,
        Vote::Agree,
        Vote::Ballot,
    ];
}

/// How a role gets a condition wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum GuardTwist {
    /// It always holds.
    Always,
    /// It never holds.
    Never,
    /// Another vote.
    Vote(Vote),
    /// Another conversion.
    Narrow(Narrow),
    /// Signed taken as unsigned.
    Unsigned,
}

/// How a loop over a count is written.
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
    /// All of them.
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

/// How a role follows its place in a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Position {
    /// A stage and a parity that wrap.
    Cursor,
    /// A counter over all items.
    Counter,
    /// `round * n + i`.
    Product,
}

/// How a slot is filled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Fill {
    /// One lane issues a bulk load.
    Bulk,
    /// Every lane stores.
    Stores,
    /// Every lane issues `cp.async`.
    Lanes,
}

/// How a consumer waits.
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
    /// Slots.
    pub stages: u32,
    /// How the producer fills a slot.
    pub fill: Fill,
    /// Items.
    pub count: Count,
    /// A condition of the whole transfer, or of an item where its index is one.
    pub guard: Option<Guard>,
    /// The loop of the producer and of the consumers.
    pub loops: [LoopForm; 2],
    /// How the producer and the consumers follow their place.
    pub position: [Position; 2],
    /// How consumers wait.
    pub wait: WaitForm,
    /// Does the first consumer signal at `i + 1 == n` that it is done?
    pub tail: bool,
    /// The ring of the safe layer?
    pub safe: bool,
}

/// A word of shared memory that decides a count.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Word {
    /// The role that writes it.
    pub writer: usize,
    /// The role that reads it and arrives as often.
    pub reader: usize,
    /// The value.
    pub count: Count,
    /// The type it is read as.
    pub read: Elem,
    /// Added by a shared atomic after the store; 0 adds nothing.
    pub add: u32,
    /// Does the writer forget the sum?
    pub stale: bool,
}

/// A variable set in a loop without synchronization.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Quiet {
    /// The role with the loop, which arrives `value` times.
    pub setter: usize,
    /// The role that waits as often.
    pub waiter: usize,
    /// Rounds of the loop.
    pub count: Count,
    /// The value that each round sets.
    pub value: u32,
    /// Does the waiter forget that the loop may have no round?
    pub stale: bool,
}

/// Stores to a tile, a proxy fence, and a bulk store.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Export {
    /// The role.
    pub role: usize,
    /// Bulk groups in flight.
    pub groups: u32,
    /// Does the fence run only in lanes that data selects?
    pub fence_in_branch: bool,
}

/// Register counts change behind a wait.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Registers {
    /// The role that gives registers.
    pub giver: usize,
    /// The role that takes them and then arrives.
    pub taker: usize,
    /// Does the giver wait for the taker first?
    pub late: bool,
}

/// Stores and reads of lanes at each other's places.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Gather {
    /// The role.
    pub role: usize,
    /// Are the places read from a table?
    pub unknown: bool,
    /// Does a lane store where another reads, rather than the reverse?
    pub scatter: bool,
    /// Is the warp barrier missing?
    pub unsynced: bool,
}

/// A slot read by all lanes, and again by the lane that releases it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Reread {
    /// The role that writes.
    pub writer: usize,
    /// The role that reads.
    pub reader: usize,
    /// Is the warp barrier before the release missing?
    pub unsynced: bool,
}

/// Groups of `cp.async` copies.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LaneCopies {
    /// The role.
    pub role: usize,
    /// Groups.
    pub groups: u32,
    /// What only some lanes do.
    pub partial: Option<Partial>,
    /// Are these lanes selected by data, rather than by their number?
    pub unknown: bool,
}

/// Acts of `cp.async` groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Partial {
    /// The commit of the last group.
    Commit,
    /// The wait.
    Wait,
}

/// Stores into shared memory of the cluster.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Remote {
    /// The role.
    pub role: usize,
    /// Does each lane name its own peer?
    pub lanes: bool,
    /// Does a table decide where a lane stores?
    pub unknown: bool,
    /// How many ranks above its own is the CTA whose stores it reads.
    pub sender: u32,
    /// Do arrivals hand the data on, rather than the cluster's barrier?
    pub arrivals: bool,
    /// What is wrong.
    pub twist: Option<RemoteTwist>,
}

/// What can be wrong with remote stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RemoteTwist {
    /// The CTA meets, not the cluster.
    CtaOnly,
    /// Release and acquire at the scope of the CTA.
    CtaScope,
    /// The peer reads before it waits.
    Early,
}

/// A bulk load of a length that is not a constant.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Length {
    /// The role that issues the load.
    pub loader: usize,
    /// The role that waits and overwrites.
    pub reader: usize,
    /// The length in units of 16 bytes, less one.
    pub source: Source,
    /// Rows of the tile of 64 bytes each.
    pub rows: u32,
    /// What is wrong.
    pub twist: Option<LengthTwist>,
}

/// What can be wrong with a length.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LengthTwist {
    /// It may exceed the tile.
    Unbounded,
    /// It is no multiple of 16 bytes.
    Unaligned,
    /// The reader does not wait.
    NoWait,
    /// The reader writes the second row before it waits.
    EarlyRow,
}

/// A named barrier between two roles.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Named {
    /// The role that stores.
    pub from: usize,
    /// The role that reads.
    pub to: usize,
    /// Does the first role arrive without waiting?
    pub arrive: bool,
}

/// An mbarrier that ends and is made anew.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Reinit {
    /// The role that arrives.
    pub arriver: usize,
    /// The role that waits, and makes the barrier anew.
    pub waiter: usize,
    /// Is the barrier ended while a warp may still wait?
    pub early: bool,
}

/// A loop without synchronization that counts by a launch value.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Stride {
    /// The role.
    pub role: usize,
    /// Is a step of 0 excluded?
    pub bounded: bool,
    /// A `while` rather than a `for`?
    pub spin: bool,
}

/// Data handed from CTA to CTA through global memory.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Flags {
    /// The role.
    pub role: usize,
    /// Is the data written by a bulk store?
    pub bulk: bool,
    /// Is the flag read once and branched on, rather than waited for?
    pub once: bool,
    /// What is wrong.
    pub twist: Option<FlagTwist>,
}

/// What can be wrong with flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum FlagTwist {
    /// Every CTA waits before it signals.
    WaitFirst,
    /// Nobody signals.
    Silent,
    /// The flag is read once, relaxed, and branched on.
    ReadOnce,
    /// The bulk store is published after a wait for its reads alone.
    ReadWait,
    /// The data is read through the read-only path.
    ReadOnly,
}

/// Two locks in global memory.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Locks {
    /// Two roles.
    pub roles: [usize; 2],
    /// Do they take the locks in opposite order?
    pub opposite: bool,
}

/// Roles take turns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Turns {
    /// Two roles.
    pub roles: [usize; 2],
    /// How often.
    pub count: Count,
}

//! Who a thread is, and what the lanes of a warp tell each other.

use super::reg::{Reg, Value};
use super::state::{emit, here, with};
use crate::machine::{Axis, Special};
use crate::ops::special::ReadSpecial;
use crate::ops::warp::{
    Ballot, MatchAll, MatchAny, Redux, ReduxMode, Shuffle, ShuffleMode, Vote, VoteMode, WarpSync,
};
use crate::types::{Scalar, Type};
use crate::value::{Operand, RegId};

/// A 32-bit integer, which a whole warp reduces in one instruction.
pub trait Reducible: Scalar {}
impl Reducible for u32 {}
impl Reducible for i32 {}

/// Every lane of a warp.
pub const ALL_LANES: u32 = u32::MAX;

#[track_caller]
pub(super) fn special<T: Scalar>(which: Special) -> Reg<T> {
    let dst = Reg::fresh();
    emit(ReadSpecial {
        dst: dst.id(),
        which,
    });
    dst
}

macro_rules! specials {
    ($($(#[$doc:meta])* $name:ident: $t:ty = $which:expr;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name() -> Reg<$t> { special($which) }
    )*};
}
specials! {
    /// The thread's index in the CTA.
    thread_id: u32 = Special::Tid;
    /// The lane in the warp.
    lane_id: u32 = Special::LaneId;
    /// The warp's index in the CTA; the same in every lane.
    warp_id: u32 = Special::WarpId;
    /// The CTA's index (x).
    cta_id: u32 = Special::CtaId(Axis::X);
    /// The CTA's index (y).
    cta_id_y: u32 = Special::CtaId(Axis::Y);
    /// The CTA's index (z).
    cta_id_z: u32 = Special::CtaId(Axis::Z);
    /// CTAs of the grid (x).
    grid_ctas: u32 = Special::GridDim(Axis::X);
    /// The CTA's rank in its cluster.
    cluster_rank: u32 = Special::ClusterRank;
    /// The cluster's index in the grid (x).
    cluster_id: u32 = Special::ClusterId(Axis::X);
    /// Clusters of the grid (x).
    grid_clusters: u32 = Special::GridClusters(Axis::X);
    /// The SM the CTA runs on.
    sm_id: u32 = Special::SmId;
    /// The low word of the SM's cycle counter.
    clock: u32 = Special::Clock;
    /// Nanoseconds.
    global_timer: u64 = Special::GlobalTimer;
}

/// The warp's index in its role; the same in every lane.
#[track_caller]
pub fn warp_in_role() -> Reg<u32> {
    let _at = here();
    let first = with(|s| s.role.map_or(0, |r| s.roles[r.index()].first_warp));
    match first {
        0 => warp_id(),
        n => warp_id() - n,
    }
}

/// The warp's index in the CTA, which the role reads at its start: there its
/// lanes are together.
#[track_caller]
pub(super) fn warp_at_start() -> Reg<u32> {
    let frame = crate::loc::Frame::caller();
    let which = Special::WarpId;
    let read = |dst| ReadSpecial { dst, which }.into();
    let id = with(|s| Some(s.in_preamble(Type::U32, frame, read)));
    Reg::of(id.unwrap_or(RegId(0)))
}

/// The thread's index in its role.
#[track_caller]
pub fn thread_in_role() -> Reg<u32> {
    let _at = here();
    let first = with(|s| s.role.map_or(0, |r| s.roles[r.index()].first_warp));
    match first {
        0 => thread_id(),
        n => thread_id() - n * 32,
    }
}

/// Threads of the role being written.
pub fn role_threads() -> u32 {
    with(|s| s.role.map_or(0, |r| s.roles[r.index()].warps * 32))
}

#[track_caller]
fn shuffle<T: Scalar>(mode: ShuffleMode, x: Reg<T>, lane: Operand) -> Reg<T> {
    let dst = Reg::fresh();
    emit(Shuffle {
        ty: T::TYPE,
        mode,
        dst: dst.id(),
        src: x.operand(),
        lane,
        clamp: if mode == ShuffleMode::Up { 0 } else { 31 },
        mask: Operand::imm(ALL_LANES),
    });
    dst
}

/// The value of another lane.
#[track_caller]
pub fn shuffle_from<T: Scalar>(x: Reg<T>, lane: impl Value<u32>) -> Reg<T> {
    shuffle(ShuffleMode::Idx, x, lane.operand())
}

/// The value of the lane whose number differs by the bits of `mask` (a butterfly).
///
/// With masks 1 and 2 the four lanes of a quad share what they hold, with 1,
/// 2, 4, 8 and 16 the whole warp: `x.max(shuffle_xor(x, 1u32))`, and on.
#[track_caller]
pub fn shuffle_xor<T: Scalar>(x: Reg<T>, mask: impl Value<u32>) -> Reg<T> {
    shuffle(ShuffleMode::Bfly, x, mask.operand())
}

/// The value of the lane `by` below; the lowest lanes keep theirs.
#[track_caller]
pub fn shuffle_up<T: Scalar>(x: Reg<T>, by: impl Value<u32>) -> Reg<T> {
    shuffle(ShuffleMode::Up, x, by.operand())
}

/// The value of the lane `by` above; the highest lanes keep theirs.
#[track_caller]
pub fn shuffle_down<T: Scalar>(x: Reg<T>, by: impl Value<u32>) -> Reg<T> {
    shuffle(ShuffleMode::Down, x, by.operand())
}

#[track_caller]
fn vote(mode: VoteMode, x: Reg<bool>) -> Reg<bool> {
    let dst = Reg::fresh();
    emit(Vote {
        mode,
        dst: dst.id(),
        src: x.operand(),
        mask: Operand::imm(ALL_LANES),
    });
    dst
}

/// Does it hold in every lane?
#[track_caller]
pub fn all_lanes(x: Reg<bool>) -> Reg<bool> {
    vote(VoteMode::All, x)
}

/// Does it hold in any lane?
#[track_caller]
pub fn any_lane(x: Reg<bool>) -> Reg<bool> {
    vote(VoteMode::Any, x)
}

/// Do all lanes say the same, be it yes or no?
#[track_caller]
pub fn lanes_agree(x: Reg<bool>) -> Reg<bool> {
    vote(VoteMode::Uniform, x)
}

/// One bit per lane: where does it hold?
#[track_caller]
pub fn ballot(x: Reg<bool>) -> Reg<u32> {
    let dst = Reg::fresh();
    emit(Ballot {
        dst: dst.id(),
        src: x.operand(),
        mask: Operand::imm(ALL_LANES),
    });
    dst
}

/// One bit per lane: who holds the same bits as this one? (32 or 64 bits)
#[track_caller]
pub fn match_any<T: Scalar>(x: Reg<T>) -> Reg<u32> {
    let dst = Reg::fresh();
    emit(MatchAny {
        ty: T::TYPE,
        dst: dst.id(),
        src: x.operand(),
        mask: Operand::imm(ALL_LANES),
    });
    dst
}

/// Do all lanes hold the same bits? (32 or 64 bits)
#[track_caller]
pub fn match_all<T: Scalar>(x: Reg<T>) -> Reg<bool> {
    let (dst, all) = (Reg::<u32>::fresh(), Reg::fresh());
    emit(MatchAll {
        ty: T::TYPE,
        dst: dst.id(),
        all: all.id(),
        src: x.operand(),
        mask: Operand::imm(ALL_LANES),
    });
    all
}

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident = $mode:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name<T: Reducible>(x: Reg<T>) -> Reg<T> {
            let dst = Reg::fresh();
            emit(Redux {
                mode: ReduxMode::$mode,
                ty: T::TYPE,
                dst: dst.id(),
                src: x.operand(),
                mask: Operand::imm(ALL_LANES),
            });
            dst
        }
    )*};
}
reductions! {
    /// The sum of all lanes, wrapping (`redux.sync.add`).
    redux_add = Add;
    /// The least of all lanes (`redux.sync.min`).
    redux_min = Min;
    /// The greatest of all lanes (`redux.sync.max`).
    redux_max = Max;
    /// The bits set in all lanes (`redux.sync.and`).
    redux_and = And;
    /// The bits set in any lane (`redux.sync.or`).
    redux_or = Or;
    /// The bits set in an odd number of lanes (`redux.sync.xor`).
    redux_xor = Xor;
}

/// The lanes of the warp meet and see each other's memory.
#[track_caller]
pub fn warp_sync() {
    emit(WarpSync {
        mask: Operand::imm(ALL_LANES),
    });
}

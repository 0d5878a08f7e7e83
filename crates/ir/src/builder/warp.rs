//! Thread indices, and warp-level shuffles, votes and reductions.

use super::reg::{Reg, Value};
use super::state::{caller_scope, emit, with};
use crate::machine::{Axis, Special};
use crate::ops::special::ReadSpecial;
use crate::ops::warp::{
    Ballot, MatchAll, MatchAny, Redux, ReduxMode, Shuffle, ShuffleMode, Vote, VoteMode, WarpSync,
};
use crate::types::{Scalar, Type};
use crate::value::{Operand, RegId};

/// A 32-bit integer type of `redux.sync`.
pub trait Reducible: Scalar {}
impl Reducible for u32 {}
impl Reducible for i32 {}

/// The mask of all lanes of a warp.
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
    /// Returns the thread's index in the CTA.
    thread_id: u32 = Special::Tid;
    /// Returns the lane in the warp.
    lane_id: u32 = Special::LaneId;
    /// Returns the warp's index in the CTA; uniform across the warp.
    warp_id: u32 = Special::WarpId;
    /// Returns the CTA's index in the grid (`blockIdx.x`).
    cta_id: u32 = Special::CtaId(Axis::X);
    /// Returns the CTA's index in the grid (`blockIdx.y`).
    cta_id_y: u32 = Special::CtaId(Axis::Y);
    /// Returns the CTA's index in the grid (`blockIdx.z`).
    cta_id_z: u32 = Special::CtaId(Axis::Z);
    /// Returns the number of CTAs of the grid (`gridDim.x`).
    grid_ctas: u32 = Special::GridDim(Axis::X);
    /// Returns the CTA's rank in its cluster.
    cluster_rank: u32 = Special::ClusterRank;
    /// Returns the cluster's index in the grid along x.
    cluster_id: u32 = Special::ClusterId(Axis::X);
    /// Returns the number of clusters of the grid along x.
    grid_clusters: u32 = Special::GridClusters(Axis::X);
    /// Returns the index of the SM that runs the CTA (`%smid`).
    sm_id: u32 = Special::SmId;
    /// Returns the low word of the SM's cycle counter (`%clock`).
    clock: u32 = Special::Clock;
    /// Returns the global timer in nanoseconds (`%globaltimer`).
    global_timer: u64 = Special::GlobalTimer;
}

/// Returns the warp's index in its role; uniform across the warp.
#[track_caller]
pub fn warp_in_role() -> Reg<u32> {
    let _caller = caller_scope();
    let first = with(|s| s.role.map_or(0, |r| s.roles[r.index()].first_warp));
    match first {
        0 => warp_id(),
        n => warp_id() - n,
    }
}

/// Returns the warp's index in the CTA, read at the start of the role, where the warp is
/// converged.
#[track_caller]
pub(super) fn warp_id_at_role_start() -> Reg<u32> {
    let frame = crate::loc::Frame::caller();
    let which = Special::WarpId;
    let read = |dst| ReadSpecial { dst, which }.into();
    let id = with(|s| Some(s.in_preamble(Type::U32, frame, read)));
    Reg::of(id.unwrap_or(RegId(0)))
}

/// Returns the thread's index in its role.
#[track_caller]
pub fn thread_in_role() -> Reg<u32> {
    let _caller = caller_scope();
    let first = with(|s| s.role.map_or(0, |r| s.roles[r.index()].first_warp));
    match first {
        0 => thread_id(),
        n => thread_id() - n * 32,
    }
}

/// Returns the number of threads of the current role.
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

/// Returns the value of lane `lane` (`shfl.sync.idx`).
#[track_caller]
pub fn shuffle_from<T: Scalar>(x: Reg<T>, lane: impl Value<u32>) -> Reg<T> {
    shuffle(ShuffleMode::Idx, x, lane.operand())
}

/// Returns the value of lane `lane_id() ^ mask` (`shfl.sync.bfly`).
///
/// Masks 1 and 2 reduce over the four lanes of a quad; masks 1, 2, 4, 8 and 16 reduce over
/// the warp: `x.max(shuffle_xor(x, 1u32))`, and so on.
#[track_caller]
pub fn shuffle_xor<T: Scalar>(x: Reg<T>, mask: impl Value<u32>) -> Reg<T> {
    shuffle(ShuffleMode::Bfly, x, mask.operand())
}

/// Returns the value of the lane `by` below; the lowest lanes keep their own (`shfl.sync.up`).
#[track_caller]
pub fn shuffle_up<T: Scalar>(x: Reg<T>, by: impl Value<u32>) -> Reg<T> {
    shuffle(ShuffleMode::Up, x, by.operand())
}

/// Returns the value of the lane `by` above; the highest lanes keep their own
/// (`shfl.sync.down`).
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

/// Returns whether `x` is true in every lane (`vote.sync.all`).
#[track_caller]
pub fn all_lanes(x: Reg<bool>) -> Reg<bool> {
    vote(VoteMode::All, x)
}

/// Returns whether `x` is true in any lane (`vote.sync.any`).
#[track_caller]
pub fn any_lane(x: Reg<bool>) -> Reg<bool> {
    vote(VoteMode::Any, x)
}

/// Returns whether `x` is equal in all lanes (`vote.sync.uni`).
#[track_caller]
pub fn lanes_agree(x: Reg<bool>) -> Reg<bool> {
    vote(VoteMode::Uniform, x)
}

/// Returns the mask of lanes in which `x` is true (`vote.sync.ballot`).
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

/// Returns the mask of lanes that hold the same 32 or 64 bits as this lane
/// (`match.any.sync`).
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

/// Returns whether all lanes hold the same 32 or 64 bits (`match.all.sync`).
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
    /// Returns the wrapping sum over all lanes (`redux.sync.add`).
    redux_add = Add;
    /// Returns the minimum over all lanes (`redux.sync.min`).
    redux_min = Min;
    /// Returns the maximum over all lanes (`redux.sync.max`).
    redux_max = Max;
    /// Returns the bits set in all lanes (`redux.sync.and`).
    redux_and = And;
    /// Returns the bits set in any lane (`redux.sync.or`).
    redux_or = Or;
    /// Returns the bits set in an odd number of lanes (`redux.sync.xor`).
    redux_xor = Xor;
}

/// Synchronizes the lanes of the warp and orders their memory accesses (`bar.warp.sync`).
#[track_caller]
pub fn warp_sync() {
    emit(WarpSync {
        mask: Operand::imm(ALL_LANES),
    });
}

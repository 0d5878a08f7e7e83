//! Slots: one stage of a ring for one round, from acquire to commit or from wait to release.

use super::flow::{Carry, elect, elect_lane, if_};
use super::raw::{MbarrierHandle, TensorMap, fence_async};
use super::reg::{Coords, Reg, Value, Var};
use super::ring::{DeferredRelease, MulticastSet, Ring, RingSide, RingTiles};
use super::state::{ActiveThreads, caller_scope, emit, error, with};
use super::tile::{TileRef, add_constant};
use super::warp::{cluster_rank, lane_id, warp_sync};
use crate::loc::Frame;
use crate::ops::bulk::CacheHint;
use crate::ops::wgmma::WgmmaWait;
use crate::types::Element;
use crate::value::{BarId, BarRef, Operand};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Deref;

/// Type state of a [`Slot`] that a producer fills.
#[derive(Debug)]
pub struct Producing;
/// Type state of a [`Slot`] that a consumer reads.
#[derive(Debug)]
pub struct Consuming;

/// A slot that a role holds; `commit` or `release` consumes it exactly once.
#[derive(Debug)]
#[must_use = "a slot must be committed or released"]
pub struct Slot<L: RingTiles, S> {
    pub(super) ring: Ring<L>,
    pub(super) side: RingSide,
    pub(super) tiles: L::Refs,
    /// The cluster rank of the CTA that holds the slot; `None` is this CTA.
    pub(super) peer: Option<Operand>,
    pub(super) stage: Reg<u32>,
    pub(super) parity: Reg<u32>,
    /// The scope of the block that took the slot.
    pub(super) scope: u32,
    pub(super) active: ActiveThreads,
    /// The constant transaction bytes of its copies.
    pub(super) constant_bytes: Cell<u32>,
    /// The sum of the transaction bytes in registers.
    pub(super) register_bytes: Cell<Option<Reg<u32>>>,
    /// The author's line that took the slot.
    pub(super) taken_at: Option<Frame>,
    /// Whether the slot is committed, released or carried.
    pub(super) is_consumed: Cell<bool>,
    /// The number of wgmma groups committed before the slot was taken.
    pub(super) groups_before: usize,
    pub(super) state: PhantomData<fn() -> S>,
}

impl<L: RingTiles, S> Deref for Slot<L, S> {
    type Target = L::Refs;
    fn deref(&self) -> &L::Refs {
        &self.tiles
    }
}

impl<L: RingTiles, S> Drop for Slot<L, S> {
    fn drop(&mut self) {
        let (taken_at, index, side) = (self.taken_at, self.ring.index, self.side);
        with(|s| {
            let role = s.role;
            s.rings[index].record_drop(side, role);
        });
        if self.is_consumed.get() || std::thread::panicking() {
            return;
        }
        with(|s| {
            let name = &s.rings[index].name;
            let problem = match side {
                RingSide::Producer => "acquired here is never committed",
                RingSide::Consumer => "waited for here is never released",
            };
            let text = format!("a slot of ring {name} {problem}");
            if let Some(frame) = taken_at {
                s.error("slot-left", text, frame, None);
            }
        });
    }
}

impl<L: RingTiles, S> Slot<L, S> {
    /// Returns the tiles of the slot.
    pub fn tiles(&self) -> L::Refs {
        self.tiles
    }

    /// Returns the stage of the slot.
    pub fn stage(&self) -> Reg<u32> {
        self.stage
    }

    fn bar(&self, bar: BarId) -> MbarrierHandle {
        MbarrierHandle(BarRef {
            bar,
            index: self.stage_operand(),
            peer: None,
        })
    }

    fn stage_operand(&self) -> Operand {
        if self.ring.stages.max(self.ring.warps) == 1 {
            return Operand::Imm(0);
        }
        Operand::Reg(self.stage.id())
    }

    #[track_caller]
    pub(super) fn wait(&self, bar: BarId, parity: Reg<u32>) {
        let bar = self.bar(bar);
        // Other CTAs arrive here: every consumer of a multicast slot, or the remote end.
        let is_remote = with(|s| {
            let ring = &s.rings[self.ring.index];
            ring.across_cluster || ring.multicast.is_some() && self.side == RingSide::Producer
        });
        if is_remote {
            bar.wait_cluster(parity);
        } else {
            bar.wait(parity);
        }
    }

    fn multicast_set(&self) -> Option<MulticastSet> {
        with(|s| s.rings[self.ring.index].multicast)
    }

    fn has_generic_access(&self) -> bool {
        let (index, side) = (self.ring.index, self.side);
        with(|s| {
            let role = s.role;
            s.rings[index].has_generic_access(side, role)
        })
    }

    /// Emits a proxy fence if generic accesses touched a slot that the async proxy also uses.
    #[track_caller]
    fn fence_if_generic(&self, generic: bool) {
        if generic && !with(|s| s.rings[self.ring.index].generic_proxy_only) {
            fence_async();
        }
    }
}

impl<L: RingTiles> Slot<L, Producing> {
    /// Returns the full barrier of the slot (raw layer).
    pub fn full_barrier(&self) -> MbarrierHandle {
        let MbarrierHandle(bar) = self.bar(self.ring.full);
        MbarrierHandle(BarRef {
            peer: self.peer,
            ..bar
        })
    }

    /// Issues a TMA load of the box at `coords` (innermost first) into a tile of the slot.
    #[track_caller]
    pub fn load<T: Element, const R: usize>(
        &self,
        map: TensorMap,
        to: TileRef<T>,
        coords: impl Coords<R>,
    ) {
        self.load_with(map, to, coords, None, None);
    }

    /// Issues a TMA load with a multicast CTA mask and an L2 cache hint.
    ///
    /// The slot expects the bytes of the box once for each CTA in `mask`: in a multicast
    /// ring every CTA receives a box from each of them.
    #[track_caller]
    pub fn load_with<T: Element, const R: usize>(
        &self,
        map: TensorMap,
        to: TileRef<T>,
        coords: impl Coords<R>,
        mask: Option<u32>,
        hint: Option<CacheHint>,
    ) {
        let _caller = caller_scope();
        let receivers = mask.map_or(1, u32::count_ones);
        self.expect(Operand::imm(map.bytes() * receivers));
        map.load_with(
            to,
            coords,
            self.full_barrier(),
            mask.map(Operand::imm),
            hint,
        );
    }

    /// Issues this CTA's share of a multicast TMA load into a tile of the slot in every CTA
    /// of a [multicast](Ring::multicast) ring.
    ///
    /// Each CTA loads an equal part of the rows, so the box of `map` is one such part.
    #[track_caller]
    pub fn load_multicast<T: Element, const R: usize>(
        &self,
        map: TensorMap,
        to: TileRef<T>,
        coords: impl Coords<R>,
    ) {
        self.load_multicast_with(map, to, coords, None);
    }

    /// Like [`load_multicast`](Self::load_multicast), with an L2 cache hint. The rows of the
    /// tile are the tensor's second dimension.
    #[track_caller]
    pub fn load_multicast_with<T: Element, const R: usize>(
        &self,
        map: TensorMap,
        to: TileRef<T>,
        coords: impl Coords<R>,
        hint: Option<CacheHint>,
    ) {
        let _caller = caller_scope();
        let Some(multicast) = self.multicast_set() else {
            error(
                "ring-multicast",
                "load_multicast() needs a multicast ring\nhelp: declare the ring with multicast() or multicast_along()",
            );
            return;
        };
        let group = MulticastGroup::new(multicast);
        let rows = to.rows() / group.len;
        if rows * group.len != to.rows() || map.bytes() * group.len != to.bytes() {
            error(
                "multicast-part",
                format!(
                    "the box of a multicast load has {} bytes; {} CTAs load a tile of {} bytes in equal parts of whole rows, {} bytes each",
                    map.bytes(),
                    group.len,
                    to.bytes(),
                    to.bytes() / group.len
                ),
            );
            return;
        }
        self.expect(Operand::imm(to.bytes()));
        let mask = group.mask();
        for i in 0..group.len {
            if_(group.index.eq(i), || {
                let part = to.slice(i * rows..(i + 1) * rows, 0..to.cols());
                let mut dimension = 0..;
                let box_coords = coords.coords().map(|c| match dimension.next() {
                    Some(1) => add_constant(c, i * rows),
                    _ => add_constant(c, 0),
                });
                map.load_with(part, box_coords, self.full_barrier(), Some(mask), hint);
            });
        }
    }

    /// Issues a bulk copy of `bytes` from global memory to the start of a tile of the slot.
    #[track_caller]
    pub fn load_bytes<T: Element>(&self, to: TileRef<T>, from: Reg<u64>, bytes: impl Value<u32>) {
        self.load_bytes_with(to, from, bytes, None);
    }

    /// Like [`load_bytes`](Self::load_bytes), with an L2 cache hint.
    #[track_caller]
    pub fn load_bytes_with<T: Element>(
        &self,
        to: TileRef<T>,
        from: Reg<u64>,
        bytes: impl Value<u32>,
        hint: Option<CacheHint>,
    ) {
        let _caller = caller_scope();
        let bytes = bytes.operand();
        self.expect(bytes);
        match bytes {
            Operand::Imm(n) => {
                super::raw::bulk_load_with(to, from, n as u32, self.full_barrier(), None, hint)
            }
            Operand::Reg(r) => super::raw::bulk_load_with(
                to,
                from,
                Reg::<u32>::of(r),
                self.full_barrier(),
                None,
                hint,
            ),
        }
    }

    /// Adds transaction bytes to the slot: at its commit, or immediately if the copy is in a
    /// nested block, which may not run.
    #[track_caller]
    fn expect(&self, bytes: Operand) {
        let (scope, active) = with(|s| (s.blocks.last().map_or(0, |b| b.scope), Some(s.active)));
        if active == Some(ActiveThreads::Role) {
            error(
                "copy-not-elected",
                "every thread of the role would issue this bulk copy\nhelp: put it inside elect()",
            );
        }
        if scope != self.scope {
            match bytes {
                Operand::Imm(n) => self.full_barrier().expect(n as u32),
                Operand::Reg(r) => self.full_barrier().expect(Reg::<u32>::of(r)),
            }
            return;
        }
        match bytes {
            Operand::Imm(n) => self
                .constant_bytes
                .set(self.constant_bytes.get() + n as u32),
            Operand::Reg(r) => {
                let bytes = Reg::of(r);
                let sum = match self.register_bytes.get() {
                    Some(sum) => sum + bytes,
                    None => bytes,
                };
                self.register_bytes.set(Some(sum));
            }
        }
    }

    /// Returns whether `st.async` stores fill the slot.
    pub(super) fn has_async_stores(&self) -> bool {
        with(|s| s.rings[self.ring.index].async_stores)
    }

    fn has_copies(&self) -> bool {
        with(|s| {
            let role = s.role;
            s.rings[self.ring.index].has_copies(role)
        })
    }

    /// Records the kind of commit, which must be the same for all slots of the role.
    #[track_caller]
    fn record_commit(&self, after_copies: bool) {
        let is_same_kind = with(|s| {
            let role = s.role?;
            // The arriving warps: all of the role, or one in a ring per warp.
            let warps = s.roles[role.index()].warps / self.ring.warps;
            let ring = &mut s.rings[self.ring.index];
            Some(ring.record_commit(Some(role), after_copies, warps.max(1)))
        });
        if is_same_kind == Some(false) {
            error(
                "slot-commit",
                "a role mixes commit() and commit_after_copies() on one ring; the arrival count of the barrier is fixed",
            );
        }
    }

    /// Commits the slot when the `cp.async` copies of each thread
    /// ([`TileRef::copy_from`]) complete; no thread waits for them
    /// (`cp.async.mbarrier.arrive.noinc`).
    ///
    /// The arrival publishes only the copies. Commit a slot with ordinary stores by
    /// [`commit`](Self::commit) after [`copy_wait`](super::copy_wait). A consumer
    /// that reads the slot by wgmma calls [`fence_async`](super::fence_async) first.
    #[track_caller]
    pub fn commit_after_copies(self) {
        let _caller = caller_scope();
        self.is_consumed.set(true);
        self.record_commit(true);
        if self.has_generic_access() || self.peer.is_some() {
            error(
                "slot-copies",
                "a slot with ordinary stores, or in another CTA, cannot use commit_after_copies()\nhelp: call copy_wait(0) and commit()",
            );
        }
        self.full_barrier().arrive_after_copies();
    }

    /// Commits the slot: arrives on its full barrier with the expected transaction bytes.
    ///
    /// In a ring with [`async_stores`](Ring::async_stores) a commit does not arrive: the `st.async`
    /// stores complete on the full barrier, and the consumer arrives in its wait.
    #[track_caller]
    pub fn commit(self) {
        let _caller = caller_scope();
        self.is_consumed.set(true);
        self.record_commit(false);
        if self.has_async_stores() {
            if self.has_generic_access() || self.has_copies() {
                error(
                    "slot-async-stores",
                    "this slot has ordinary stores or copies, but a ring with async_stores() takes only st.async stores\nhelp: use store_async_thread_major()",
                );
            }
            return;
        }
        let full = self.full_barrier();
        let generic = self.has_generic_access() || self.has_copies();
        self.fence_if_generic(generic && self.peer.is_none());
        let arrive = || match (self.register_bytes.get(), self.constant_bytes.get()) {
            // Stores to a peer's shared memory need a release at cluster scope.
            (None, 0) if generic && self.peer.is_some() => full.arrive_cluster(),
            (None, 0) => full.arrive(),
            (None, n) => full.arrive_expect(n),
            (Some(sum), 0) => full.arrive_expect(sum),
            (Some(sum), n) => full.arrive_expect(sum + n),
        };
        if self.active == ActiveThreads::Role {
            warp_sync();
            elect_lane(arrive);
        } else {
            arrive();
        }
    }
}

impl<L: RingTiles> Slot<L, Consuming> {
    /// If the ring has `async_stores`: one thread arrives on the full barrier and expects the bytes of
    /// the slot.
    #[track_caller]
    pub(super) fn expect_async_stores(&self) {
        let bytes = with(|s| {
            let ring = &s.rings[self.ring.index];
            let tiles = ring.tiles().iter();
            let bytes: u32 = tiles.map(|t| s.tiles[t.index()].layout.stage_bytes()).sum();
            ring.async_stores.then_some(bytes)
        });
        let Some(bytes) = bytes else { return };
        let arrive = || self.bar(self.ring.full).arrive_expect(bytes);
        match self.active {
            ActiveThreads::Role => elect(arrive),
            _ => arrive(),
        }
    }

    /// Releases the slot: arrives on its empty barrier.
    #[track_caller]
    pub fn release(self) {
        let _caller = caller_scope();
        self.is_consumed.set(true);
        let generic = self.has_generic_access();
        self.fence_if_generic(generic);
        self.arrive_empty(self.stage_operand(), generic);
    }

    /// Releases the slot after the wgmmas that read it: at the next `release_after` of the
    /// accumulator, or when the accumulator is waited for.
    ///
    /// So the wgmmas of one k-tile stay in flight. In a ring of one stage the producer waits for
    /// this slot, so the call waits for all wgmmas immediately.
    #[track_caller]
    pub fn release_after(self, acc: &super::Acc) {
        let _caller = caller_scope();
        if self.ring.stages == 1 {
            emit(WgmmaWait { pending: 0 });
            return self.release();
        }
        self.is_consumed.set(true);
        let (index, id) = (self.ring.index, acc.id());
        let generic = self.has_generic_access();
        self.fence_if_generic(generic);
        let known = with(|s| {
            let groups_before = s.groups();
            let mut releases = s.rings[index].deferred_releases.iter_mut();
            let release = releases.find(|r| Some(r.role) == s.role && r.acc == id)?;
            release.has_generic_access |= generic;
            release.groups_before = groups_before;
            Some((release.stage, release.has_generic_access))
        });
        let (stage, generic) = known.unwrap_or_else(|| {
            let stage = Var::role_state(DeferredRelease::NONE);
            with(|s| {
                let (role, groups_before) = (s.role?, s.groups());
                s.rings[index].deferred_releases.push(DeferredRelease {
                    role,
                    acc: id,
                    stage,
                    has_generic_access: generic,
                    groups_before,
                });
                Some(())
            });
            (stage, generic)
        });
        // The groups that read this slot stay in flight; those of the previous slot are complete.
        let pending = with(|s| s.groups_since(self.groups_before));
        emit(WgmmaWait { pending });
        if_(stage.get().ne(DeferredRelease::NONE), || {
            self.arrive_empty(stage.get().operand(), generic);
        });
        stage.set(self.stage);
    }

    /// Arrives on the empty barrier of a stage, in this CTA or in all CTAs of the multicast.
    #[track_caller]
    fn arrive_empty(&self, stage: Operand, generic: bool) {
        arrive_empty(
            self.ring.empty,
            stage,
            self.active,
            self.multicast_set(),
            generic,
        );
    }

    /// Releases the slot of a ring [across the cluster](Ring::across_cluster) to the
    /// producers in the CTA with cluster rank `peer`.
    #[track_caller]
    pub fn release_remote(self, peer: impl Value<u32>) {
        let _caller = caller_scope();
        self.is_consumed.set(true);
        let MbarrierHandle(empty) = self.bar(self.ring.empty);
        let empty = MbarrierHandle(empty).peer(peer);
        if self.active == ActiveThreads::Role {
            warp_sync();
            elect_lane(|| empty.arrive_cluster());
        } else {
            empty.arrive_cluster();
        }
    }
}

impl<L: RingTiles> Slot<L, Consuming> {
    /// Hands the slot to the next iteration. This iteration emits the fence, because the next
    /// one does not record the reads of this one.
    #[track_caller]
    fn carry(&self) {
        self.is_consumed.set(true);
        self.fence_if_generic(self.has_generic_access());
    }
}

/// The loop variables of a slot that one iteration takes and the next releases.
#[derive(Debug)]
pub struct CarriedSlot<L> {
    ring: Ring<L>,
    taken_at: Option<Frame>,
    active: ActiveThreads,
    stage: Var<u32>,
    parity: Var<u32>,
}

/// A loop may carry a slot: one iteration takes it, the next releases it.
impl<L: RingTiles> Carry for Slot<L, Consuming> {
    type Vars = CarriedSlot<L>;

    #[track_caller]
    fn open(self) -> CarriedSlot<L> {
        self.carry();
        CarriedSlot {
            ring: self.ring,
            taken_at: self.taken_at,
            active: self.active,
            stage: Var::new(self.stage),
            parity: Var::new(self.parity),
        }
    }

    #[track_caller]
    fn load(slot: &CarriedSlot<L>) -> Self {
        let (stage, parity) = (slot.stage.get(), slot.parity.get());
        slot.ring.held_slot(
            RingSide::Consumer,
            stage,
            parity,
            slot.active,
            slot.taken_at,
        )
    }

    #[track_caller]
    fn store(slot: &CarriedSlot<L>, value: Self) {
        value.carry();
        slot.stage.set(value.stage);
        slot.parity.set(value.parity);
    }
}

/// Arrives on an empty barrier, once per warp of the role.
#[track_caller]
fn arrive_empty(
    empty: BarId,
    stage: Operand,
    active: ActiveThreads,
    multicast: Option<MulticastSet>,
    generic: bool,
) {
    let barrier = |peer| {
        MbarrierHandle(BarRef {
            bar: empty,
            index: stage,
            peer,
        })
    };
    let Some(multicast) = multicast else {
        if active == ActiveThreads::Role {
            warp_sync();
            elect_lane(|| barrier(None).arrive());
        } else {
            barrier(None).arrive();
        }
        return;
    };
    let group = MulticastGroup::new(multicast);
    let arrive = |bar: MbarrierHandle| {
        // Only generic reads need a release at cluster scope (rule R8).
        if generic {
            bar.arrive_cluster();
        } else {
            bar.arrive();
        }
    };
    if active == ActiveThreads::Role {
        warp_sync();
        let lane = lane_id();
        if_(lane.lt(group.len), || {
            arrive(barrier(Some(group.rank(lane))))
        });
    } else {
        for i in 0..group.len {
            arrive(barrier(Some(group.rank(i))));
        }
    }
}

/// The CTAs of a multicast, this CTA included.
struct MulticastGroup {
    len: u32,
    /// The distance between ranks.
    stride: u32,
    /// The first rank; `None` is 0.
    first: Option<Reg<u32>>,
    /// This CTA's index in the group.
    index: Reg<u32>,
}

impl MulticastGroup {
    #[track_caller]
    fn new(multicast: MulticastSet) -> Self {
        let (len, stride) = multicast.count_and_stride(with(|s| s.cluster));
        let rank = cluster_rank();
        let index = match multicast {
            MulticastSet::Cluster => rank,
            MulticastSet::Along(_) => rank / stride % len,
        };
        let first = (multicast != MulticastSet::Cluster).then(|| rank - index * stride);
        Self {
            len,
            stride,
            first,
            index,
        }
    }

    /// Returns the rank of the `i`-th CTA.
    #[track_caller]
    fn rank(&self, i: impl Value<u32>) -> Operand {
        match (self.first, i.operand()) {
            (None, rank) => rank,
            (Some(first), Operand::Imm(i)) => (first + i as u32 * self.stride).operand(),
            (Some(first), Operand::Reg(i)) => Reg::<u32>::of(i).mad(self.stride, first).operand(),
        }
    }

    /// Returns the CTA mask of the group.
    #[track_caller]
    fn mask(&self) -> Operand {
        let bits = (0..self.len).fold(0u32, |bits, i| bits | 1 << (i * self.stride));
        match self.first {
            None => Operand::imm(bits),
            Some(first) => (bits.reg() << first).operand(),
        }
    }
}

/// Releases the slots whose release waits for an accumulator, after its last wgmma.
#[track_caller]
pub(crate) fn release_deferred(acc: u32) {
    let releases: Vec<_> = with(|s| {
        let role = s.role;
        s.rings
            .iter()
            .flat_map(|ring| {
                ring.deferred_releases
                    .iter()
                    .filter(|r| Some(r.role) == role && r.acc == acc)
                    .map(|r| (ring.empty, ring.multicast, r.stage, r.has_generic_access))
            })
            .collect()
    });
    for (empty, multicast, stage, generic) in releases {
        if_(stage.get().ne(DeferredRelease::NONE), || {
            let stage = stage.get().operand();
            arrive_empty(empty, stage, ActiveThreads::Role, multicast, generic);
        });
        stage.set(DeferredRelease::NONE);
    }
}

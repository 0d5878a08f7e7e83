//! Slots: what a role holds of a ring between taking it and giving it on.

use super::flow::{Carry, elect, elect_lane, if_};
use super::raw::{BarHandle, Map, fence_async};
use super::reg::{Coords, Reg, Value, Var};
use super::ring::{Held, Ring, RingTiles, Side, Spread};
use super::state::{Width, emit, error, here, with};
use super::tile::{TileRef, add};
use super::warp::{cluster_rank, lane_id, warp_sync};
use crate::loc::Frame;
use crate::ops::bulk::CacheHint;
use crate::ops::wgmma::WgmmaWait;
use crate::types::Element;
use crate::value::{BarId, BarRef, Operand};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Deref;

/// A slot that a producer fills.
#[derive(Debug)]
pub struct Filling;
/// A slot that a consumer reads.
#[derive(Debug)]
pub struct Reading;

/// A slot in hand: used up exactly once, by `commit` or `release`.
#[derive(Debug)]
#[must_use = "a slot must be committed or released"]
pub struct Slot<L: RingTiles, S> {
    pub(super) ring: Ring<L>,
    pub(super) side: Side,
    pub(super) tiles: L::Refs,
    /// The CTA whose memory it lies in; `None`: this one.
    pub(super) home: Option<Operand>,
    pub(super) stage: Reg<u32>,
    pub(super) parity: Reg<u32>,
    /// The block it was taken in.
    pub(super) scope: u32,
    pub(super) width: Width,
    /// Bytes its copies bring: known ones, and those that are numbers of the launch.
    pub(super) bytes: Cell<u32>,
    pub(super) dynamic: Cell<Option<Reg<u32>>>,
    /// The author's line that took it.
    pub(super) made: Option<Frame>,
    pub(super) used: Cell<bool>,
    /// Groups of products committed before it was taken.
    pub(super) groups: usize,
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
        let (made, index, side) = (self.made, self.ring.index, self.side);
        with(|s| {
            let role = s.role;
            s.rings[index].let_go(side, role);
        });
        if self.used.get() || std::thread::panicking() {
            return;
        }
        with(|s| {
            let name = &s.rings[index].name;
            let what = match side {
                Side::Produce => "acquired here is never committed",
                Side::Consume => "waited for here is never released",
            };
            let text = format!("a slot of ring {name} {what}");
            if let Some(frame) = made {
                s.error("slot-left", text, frame, None);
            }
        });
    }
}

impl<L: RingTiles, S> Slot<L, S> {
    /// The tiles of the slot.
    pub fn tiles(&self) -> L::Refs {
        self.tiles
    }

    /// The stage of the slot.
    pub fn stage(&self) -> Reg<u32> {
        self.stage
    }

    fn bar(&self, bar: BarId) -> BarHandle {
        BarHandle(BarRef {
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
        // Arrivals of other CTAs: of all that release a multicast slot, or of the other end.
        let remote = with(|s| {
            let ring = &s.rings[self.ring.index];
            ring.across || ring.spread.is_some() && self.side == Side::Produce
        });
        if remote {
            bar.wait_cluster(parity);
        } else {
            bar.wait(parity);
        }
    }

    fn spread(&self) -> Option<Spread> {
        with(|s| s.rings[self.ring.index].spread)
    }

    fn is_generic(&self) -> bool {
        let (index, side) = (self.ring.index, self.side);
        with(|s| {
            let role = s.role;
            s.rings[index].is_generic(side, role)
        })
    }

    /// Puts the fence between proxies where threads touched a slot that others
    /// touch by copies or as an operand.
    #[track_caller]
    fn fence_if(&self, generic: bool) {
        if generic && !with(|s| s.rings[self.ring.index].by_threads) {
            fence_async();
        }
    }
}

impl<L: RingTiles> Slot<L, Filling> {
    /// The barrier that tells consumers that the slot is full (raw layer).
    pub fn full(&self) -> BarHandle {
        let BarHandle(bar) = self.bar(self.ring.full);
        BarHandle(BarRef {
            peer: self.home,
            ..bar
        })
    }

    /// Copies the box of a tensor at `coords` (innermost first) into a tile of the slot.
    #[track_caller]
    pub fn load<T: Element, const R: usize>(
        &self,
        map: Map,
        to: TileRef<T>,
        coords: impl Coords<R>,
    ) {
        self.load_with(map, to, coords, None, None);
    }

    /// As [`load`](Self::load), to the CTAs of the cluster in `mask`, with a cache hint.
    ///
    /// Every CTA of a multicast ring expects the bytes that all of them send it.
    #[track_caller]
    pub fn load_with<T: Element, const R: usize>(
        &self,
        map: Map,
        to: TileRef<T>,
        coords: impl Coords<R>,
        mask: Option<u32>,
        hint: Option<CacheHint>,
    ) {
        let _at = here();
        let receivers = mask.map_or(1, u32::count_ones);
        self.expect(Operand::imm(map.bytes() * receivers));
        map.load_with(to, coords, self.full(), mask.map(Operand::imm), hint);
    }

    /// Copies the box of a tensor at `coords` into a tile of this slot in every
    /// CTA of a [multicast](Ring::multicast) ring: each CTA brings an equal
    /// part of the rows, and `map` has boxes of such a part.
    #[track_caller]
    pub fn load_multicast<T: Element, const R: usize>(
        &self,
        map: Map,
        to: TileRef<T>,
        coords: impl Coords<R>,
    ) {
        self.load_multicast_with(map, to, coords, None);
    }

    /// As [`load_multicast`](Self::load_multicast), with a cache hint. The rows
    /// of the tile are the tensor's second dimension.
    #[track_caller]
    pub fn load_multicast_with<T: Element, const R: usize>(
        &self,
        map: Map,
        to: TileRef<T>,
        coords: impl Coords<R>,
        hint: Option<CacheHint>,
    ) {
        let _at = here();
        let Some(spread) = self.spread() else {
            error(
                "ring-multicast",
                "a copy is multicast only in a ring that says multicast() or multicast_along()",
            );
            return;
        };
        let group = Group::of(spread);
        let rows = to.rows() / group.len;
        if rows * group.len != to.rows() || map.bytes() * group.len != to.bytes() {
            error(
                "multicast-part",
                format!(
                    "{} CTAs bring a tile of {} bytes in equal parts of whole rows: a box has {} bytes, not {}",
                    group.len,
                    to.bytes(),
                    to.bytes() / group.len,
                    map.bytes()
                ),
            );
            return;
        }
        self.expect(Operand::imm(to.bytes()));
        let mask = group.mask();
        for i in 0..group.len {
            if_(group.place.eq(i), || {
                let part = to.slice(i * rows..(i + 1) * rows, 0..to.cols());
                let mut dimension = 0..;
                let at = coords.coords().map(|c| match dimension.next() {
                    Some(1) => add(c, i * rows),
                    _ => add(c, 0),
                });
                map.load_with(part, at, self.full(), Some(mask), hint);
            });
        }
    }

    /// Copies `bytes` from global memory to the start of a tile of the slot.
    #[track_caller]
    pub fn load_bytes<T: Element>(&self, to: TileRef<T>, from: Reg<u64>, bytes: impl Value<u32>) {
        self.load_bytes_with(to, from, bytes, None);
    }

    /// As [`load_bytes`](Self::load_bytes), with a cache hint.
    #[track_caller]
    pub fn load_bytes_with<T: Element>(
        &self,
        to: TileRef<T>,
        from: Reg<u64>,
        bytes: impl Value<u32>,
        hint: Option<CacheHint>,
    ) {
        let _at = here();
        let bytes = bytes.operand();
        self.expect(bytes);
        match bytes {
            Operand::Imm(n) => {
                super::raw::bulk_load_with(to, from, n as u32, self.full(), None, hint)
            }
            Operand::Reg(r) => {
                super::raw::bulk_load_with(to, from, Reg::<u32>::of(r), self.full(), None, hint)
            }
        }
    }

    /// Adds to the bytes the slot expects: with its commit, or at once where
    /// the copy is under a condition of its own.
    #[track_caller]
    fn expect(&self, bytes: Operand) {
        let (here, width) = with(|s| (s.blocks.last().map_or(0, |b| b.scope), Some(s.width)));
        if width == Some(Width::Role) {
            error(
                "copy-by-many",
                "a bulk copy is issued by one thread: put it inside elect",
            );
        }
        if here != self.scope {
            match bytes {
                Operand::Imm(n) => self.full().expect(n as u32),
                Operand::Reg(r) => self.full().expect(Reg::<u32>::of(r)),
            }
            return;
        }
        match bytes {
            Operand::Imm(n) => self.bytes.set(self.bytes.get() + n as u32),
            Operand::Reg(r) => {
                let more = Reg::of(r);
                let sum = match self.dynamic.get() {
                    Some(sum) => sum + more,
                    None => more,
                };
                self.dynamic.set(Some(sum));
            }
        }
    }

    /// Does what is posted fill it?
    pub(super) fn is_posted(&self) -> bool {
        with(|s| s.rings[self.ring.index].posted)
    }

    fn is_copied(&self) -> bool {
        with(|s| {
            let role = s.role;
            s.rings[self.ring.index].is_copied(role)
        })
    }

    /// Notes whether the slot is handed on after its copies, as the role's others are.
    #[track_caller]
    fn hands_on(&self, after_copies: bool) {
        let same = with(|s| {
            let role = s.role?;
            // Those that arrive: of the role, or of the one warp whose ring it is.
            let warps = s.roles[role.index()].warps / self.ring.warps;
            let ring = &mut s.rings[self.ring.index];
            Some(ring.hands_on(Some(role), after_copies, warps.max(1)))
        });
        if same == Some(false) {
            error(
                "slot-commit",
                "a role commits all slots of a ring, or all after their copies: the barrier expects as many arrivals each time",
            );
        }
    }

    /// Hands the slot to the consumers once the copies that each thread issued
    /// into it ([`TileRef::copy_from`]) are done; no thread waits for them.
    ///
    /// Only copies are handed on: a slot with stores of its own is committed
    /// by [`commit`](Self::commit), after [`copy_wait`](super::copy_wait). A
    /// consumer that reads the slot by wgmma runs
    /// [`fence_async`](super::fence_async) first.
    #[track_caller]
    pub fn commit_after_copies(self) {
        let _at = here();
        self.used.set(true);
        self.hands_on(true);
        if self.is_generic() || self.home.is_some() {
            error(
                "slot-copies",
                "a slot that is committed after its copies holds nothing but copies of its own CTA",
            );
        }
        self.full().arrive_after_copies();
    }

    /// Hands the slot to the consumers.
    #[track_caller]
    pub fn commit(self) {
        let _at = here();
        self.used.set(true);
        self.hands_on(false);
        if self.is_posted() {
            if self.is_generic() || self.is_copied() {
                error(
                    "slot-posted",
                    "a slot of a ring of posted slots holds nothing but what is posted",
                );
            }
            return;
        }
        let full = self.full();
        let generic = self.is_generic() || self.is_copied();
        self.fence_if(generic && self.home.is_none());
        let arrive = || match (self.dynamic.get(), self.bytes.get()) {
            // What was stored in a peer is released to it.
            (None, 0) if generic && self.home.is_some() => full.arrive_cluster(),
            (None, 0) => full.arrive(),
            (None, n) => full.arrive_expect(n),
            (Some(sum), 0) => full.arrive_expect(sum),
            (Some(sum), n) => full.arrive_expect(sum + n),
        };
        if self.width == Width::Role {
            warp_sync();
            elect_lane(arrive);
        } else {
            arrive();
        }
    }
}

impl<L: RingTiles> Slot<L, Reading> {
    /// Where slots are posted, one thread says how many bytes come.
    #[track_caller]
    pub(super) fn expect_posted(&self) {
        let bytes = with(|s| {
            let ring = &s.rings[self.ring.index];
            let tiles = ring.tiles().iter();
            let bytes: u32 = tiles.map(|t| s.tiles[t.index()].layout.stage_bytes()).sum();
            ring.posted.then_some(bytes)
        });
        let Some(bytes) = bytes else { return };
        let arrive = || self.bar(self.ring.full).arrive_expect(bytes);
        match self.width {
            Width::Role => elect(arrive),
            _ => arrive(),
        }
    }

    /// Gives the slot back to the producers.
    #[track_caller]
    pub fn release(self) {
        let _at = here();
        self.used.set(true);
        let generic = self.is_generic();
        self.fence_if(generic);
        self.give_back(self.stage_operand(), generic);
    }

    /// Gives the slot back once the wgmmas that were issued on it are done:
    /// one step later, or when the accumulator is finished. In a ring of one
    /// stage that is too late: the producer waits for this very slot, so all
    /// products are waited for at once.
    #[track_caller]
    pub fn release_after(self, acc: &super::Acc) {
        let _at = here();
        if self.ring.stages == 1 {
            emit(WgmmaWait { pending: 0 });
            return self.release();
        }
        self.used.set(true);
        let (index, id) = (self.ring.index, acc.id());
        let generic = self.is_generic();
        self.fence_if(generic);
        let known = with(|s| {
            let groups = s.groups();
            let mut held = s.rings[index].held.iter_mut();
            let held = held.find(|h| Some(h.role) == s.role && h.acc == id)?;
            held.generic |= generic;
            held.groups = groups;
            Some((held.stage, held.generic))
        });
        let (stage, generic) = known.unwrap_or_else(|| {
            let stage = Var::carried(Held::NONE);
            with(|s| {
                let (role, groups) = (s.role?, s.groups());
                s.rings[index].held.push(Held {
                    role,
                    acc: id,
                    stage,
                    generic,
                    groups,
                });
                Some(())
            });
            (stage, generic)
        });
        // The groups of this step may stay in flight; those of the step before are done.
        let pending = with(|s| s.groups_since(self.groups));
        emit(WgmmaWait { pending });
        if_(stage.get().ne(Held::NONE), || {
            self.give_back(stage.get().operand(), generic);
        });
        stage.set(self.stage);
    }

    /// Arrives on the empty barrier of a stage, here or in the whole cluster.
    #[track_caller]
    fn give_back(&self, stage: Operand, generic: bool) {
        give_back(self.ring.empty, stage, self.width, self.spread(), generic);
    }

    /// In a ring [across](Ring::across) the cluster: gives the slot back to
    /// the producers in the CTA whose rank is `peer`.
    #[track_caller]
    pub fn release_to(self, peer: impl Value<u32>) {
        let _at = here();
        self.used.set(true);
        let BarHandle(empty) = self.bar(self.ring.empty);
        let empty = BarHandle(empty).peer(peer);
        if self.width == Width::Role {
            warp_sync();
            elect_lane(|| empty.arrive_cluster());
        } else {
            empty.arrive_cluster();
        }
    }
}

impl<L: RingTiles> Slot<L, Reading> {
    /// Leaves this round: what it read is fenced here, as the round that
    /// releases the slot cannot know of it.
    #[track_caller]
    fn carry(&self) {
        self.used.set(true);
        self.fence_if(self.is_generic());
    }
}

/// A slot on its way from one round of a loop to the next.
#[derive(Debug)]
pub struct CarriedSlot<L> {
    ring: Ring<L>,
    made: Option<Frame>,
    width: Width,
    stage: Var<u32>,
    parity: Var<u32>,
}

/// A slot may be held from one round of a loop to the next: what one round
/// takes, the next one releases.
impl<L: RingTiles> Carry for Slot<L, Reading> {
    type Vars = CarriedSlot<L>;

    #[track_caller]
    fn open(self) -> CarriedSlot<L> {
        self.carry();
        CarriedSlot {
            ring: self.ring,
            made: self.made,
            width: self.width,
            stage: Var::new(self.stage),
            parity: Var::new(self.parity),
        }
    }

    #[track_caller]
    fn load(c: &CarriedSlot<L>) -> Self {
        let (stage, parity) = (c.stage.get(), c.parity.get());
        c.ring
            .in_hand(Side::Consume, stage, parity, c.width, c.made)
    }

    #[track_caller]
    fn store(c: &CarriedSlot<L>, value: Self) {
        value.carry();
        c.stage.set(value.stage);
        c.parity.set(value.parity);
    }
}

/// Arrives on an empty barrier, once per warp of the role.
#[track_caller]
fn give_back(empty: BarId, stage: Operand, width: Width, spread: Option<Spread>, generic: bool) {
    let at = |peer| {
        BarHandle(BarRef {
            bar: empty,
            index: stage,
            peer,
        })
    };
    let Some(spread) = spread else {
        if width == Width::Role {
            warp_sync();
            elect_lane(|| at(None).arrive());
        } else {
            at(None).arrive();
        }
        return;
    };
    let group = Group::of(spread);
    let arrive = |bar: BarHandle| {
        // Only generic reads need the release to reach the cluster (rule R8).
        if generic {
            bar.arrive_cluster();
        } else {
            bar.arrive();
        }
    };
    if width == Width::Role {
        warp_sync();
        let lane = lane_id();
        if_(lane.lt(group.len), || arrive(at(Some(group.rank(lane)))));
    } else {
        for i in 0..group.len {
            arrive(at(Some(group.rank(i))));
        }
    }
}

/// The CTAs of a multicast, this one among them.
struct Group {
    len: u32,
    /// Distance between ranks.
    stride: u32,
    /// The first rank; `None`: 0.
    first: Option<Reg<u32>>,
    /// This CTA's place among them.
    place: Reg<u32>,
}

impl Group {
    #[track_caller]
    fn of(spread: Spread) -> Self {
        let (len, stride) = spread.of(with(|s| s.cluster));
        let rank = cluster_rank();
        let place = match spread {
            Spread::Cluster => rank,
            Spread::Along(_) => rank / stride % len,
        };
        let first = (spread != Spread::Cluster).then(|| rank - place * stride);
        Self {
            len,
            stride,
            first,
            place,
        }
    }

    /// The rank of its `i`-th CTA.
    #[track_caller]
    fn rank(&self, i: impl Value<u32>) -> Operand {
        match (self.first, i.operand()) {
            (None, i) => i,
            (Some(first), Operand::Imm(i)) => (first + i as u32 * self.stride).operand(),
            (Some(first), Operand::Reg(i)) => Reg::<u32>::of(i).mad(self.stride, first).operand(),
        }
    }

    /// One bit for each of its ranks.
    #[track_caller]
    fn mask(&self) -> Operand {
        let bits = (0..self.len).fold(0u32, |bits, i| bits | 1 << (i * self.stride));
        match self.first {
            None => Operand::imm(bits),
            Some(first) => (bits.reg() << first).operand(),
        }
    }
}

/// Releases the slots that wait for an accumulator, after its last wgmma.
#[track_caller]
pub(crate) fn release_held(acc: u32) {
    let held: Vec<_> = with(|s| {
        let role = s.role;
        s.rings
            .iter()
            .flat_map(|r| {
                r.held
                    .iter()
                    .filter(|h| Some(h.role) == role && h.acc == acc)
                    .map(|h| (r.empty, r.spread, h.stage, h.generic))
            })
            .collect()
    });
    for (empty, spread, stage, generic) in held {
        if_(stage.get().ne(Held::NONE), || {
            let stage = stage.get().operand();
            give_back(empty, stage, Width::Role, spread, generic);
        });
        stage.set(Held::NONE);
    }
}

//! Rings: circular buffers of shared-memory slots between roles (CUTLASS pipelines).
//!
//! A ring of `S` stages has two arrays of mbarriers, `full` and `empty`. A
//! producer waits until a slot is empty, fills it and commits it. A consumer
//! waits until the slot is full, reads it and releases it. Every role keeps a
//! *cursor* (stage and parity) for every ring that it uses.
//!
//! The builder derives the arrival counts when the kernel is complete:
//!
//! | barrier | arrivals per slot |
//! |---|---|
//! | `full` | 1 for each elected producer thread; 1 for each warp of a producer role; 1 for each thread if the role uses `commit_after_copies`. Summed over all producers (`cooperative_producers`), or of one producer (`round_robin_producers`). 1 arrival of the consumer in a ring with `async_stores` |
//! | `empty` | 1 for each consumer warp, summed over all consumers (`broadcast`) or of one consumer (`round_robin`); times the CTAs of the multicast |
//!
//! In a ring [per warp](super::Builder::ring_per_warp) each end is one warp.
//!
//! In a round-robin ring a role skips slots without waiting for them. Only the
//! order of the roles keeps it from running a full round ahead, where the
//! parity that it waits for is already complete from the previous round. Take
//! slots of a round-robin ring under a [`Turn`](super::Turn):
//! `turn.hold(|| ring.wait())`.

use super::flow::select;
use super::reg::{Reg, Value, Var};
use super::slot::{Consuming, Producing, Slot};
use super::state::{ActiveThreads, ArrivalCount, BuilderState, caller_scope, error, with};
use super::tile::{Tile, TileDecl, TileRef};
use super::warp::warp_id_at_role_start;
use crate::loc::Frame;
use crate::machine::Axis;
use crate::types::Element;
use crate::value::{BarId, Operand, RoleId, TileId};
use std::cell::Cell;
use std::marker::PhantomData;

/// The builder's record of a ring.
pub(crate) struct RingState {
    pub(crate) name: String,
    pub(crate) full: BarId,
    pub(crate) empty: BarId,
    tiles: Vec<TileId>,
    /// The number of warps of a ring per warp.
    per_warp: Option<u32>,
    producers: RingEnd,
    consumers: RingEnd,
    /// The CTAs that a multicast load reaches.
    pub(super) multicast: Option<MulticastSet>,
    /// Whether producers fill slots of another CTA of the cluster.
    pub(super) across_cluster: bool,
    /// Whether `st.async` stores fill the slots; they complete on the full barrier.
    pub(super) async_stores: bool,
    /// Whether only the generic proxy accesses the slots.
    pub(super) generic_proxy_only: bool,
    pub(super) deferred_releases: Vec<DeferredRelease>,
    frame: Frame,
}

/// The roles at one end of a ring.
#[derive(Default)]
struct RingEnd {
    roles: Vec<RoleCursor>,
    /// `None` until the author selects one.
    distribution: Option<Distribution>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Distribution {
    /// Every role uses every slot.
    All,
    /// Each slot belongs to one role.
    RoundRobin,
}

/// The CTAs of the cluster that a multicast load reaches, the issuing CTA included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MulticastSet {
    /// The whole cluster.
    Cluster,
    /// The CTAs whose coordinates differ only along this axis.
    Along(Axis),
}

impl MulticastSet {
    /// Returns the number of CTAs and the distance between their ranks.
    pub(super) fn count_and_stride(self, cluster: [u32; 3]) -> (u32, u32) {
        match self {
            MulticastSet::Cluster => (cluster.iter().product(), 1),
            MulticastSet::Along(Axis::X) => (cluster[0], 1),
            MulticastSet::Along(Axis::Y) => (cluster[1], cluster[0]),
            MulticastSet::Along(Axis::Z) => (cluster[2], cluster[0] * cluster[1]),
        }
    }
}

/// The cursor of one role at one end of a ring, and its arrivals.
#[derive(Clone, Copy)]
struct RoleCursor {
    role: RoleId,
    /// Warps of the role.
    warps: u32,
    active: ActiveThreads,
    arrivals: u32,
    stage: Var<u32>,
    parity: Var<u32>,
    /// In a ring per warp: the warp's index in the CTA, and the first warp of the role.
    warp: Option<(Reg<u32>, u32)>,
    /// Whether generic accesses touched tiles of the held slots.
    has_generic_access: bool,
    /// Whether `cp.async` copies wrote tiles of the held slots.
    has_copies: bool,
    /// Whether every thread arrives after its copies; `None` before the first commit.
    after_copies: Option<bool>,
    /// The number of slots that the role holds.
    held_slots: u32,
}

/// A slot that is released when a wgmma group completes.
pub(super) struct DeferredRelease {
    pub(super) role: RoleId,
    pub(super) acc: u32,
    /// The stage of the slot, or [`NONE`](Self::NONE).
    pub(super) stage: Var<u32>,
    /// Whether generic accesses touched its tiles.
    pub(super) has_generic_access: bool,
    /// The number of wgmma groups committed before the release; no later group reads the slot.
    pub(super) groups_before: usize,
}

impl DeferredRelease {
    /// No slot is held.
    pub(super) const NONE: u32 = u32::MAX;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RingSide {
    Producer,
    Consumer,
}

impl RingState {
    fn end_mut(&mut self, side: RingSide) -> &mut RingEnd {
        match side {
            RingSide::Producer => &mut self.producers,
            RingSide::Consumer => &mut self.consumers,
        }
    }

    /// Returns the arrival counts of the full and the empty barriers.
    pub(crate) fn arrival_counts(
        &self,
        cluster: [u32; 3],
    ) -> Result<(u32, u32), (&'static str, String, Frame)> {
        let name = &self.name;
        let count = |end: &RingEnd, role_kind: &str, remedy: &str| {
            let arrivals: Vec<u32> = end.roles.iter().map(|cursor| cursor.arrivals).collect();
            match (arrivals.as_slice(), end.distribution) {
                ([], _) => Err(("ring-end", format!("ring {name} has no {role_kind}"))),
                ([n], _) => Ok(*n),
                (counts, Some(Distribution::All)) => Ok(counts.iter().sum()),
                ([n, rest @ ..], Some(Distribution::RoundRobin)) if rest.iter().all(|m| m == n) => {
                    Ok(*n)
                }
                (counts, Some(Distribution::RoundRobin)) => Err((
                    "ring-distribution",
                    format!(
                        "the {role_kind}s of the round-robin ring {name} arrive {counts:?} times per slot; the counts must be equal"
                    ),
                )),
                (counts, None) => Err((
                    "ring-distribution",
                    format!(
                        "ring {name} has {} {role_kind}s without a distribution\nhelp: call {remedy}",
                        counts.len()
                    ),
                )),
            }
        };
        let with_frame = |(code, text): (&'static str, String)| (code, text, self.frame);
        if let Some(warps) = self.per_warp {
            self.check_per_warp(warps).map_err(with_frame)?;
        }
        let full = count(
            &self.producers,
            "producer",
            "cooperative_producers() or round_robin_producers()",
        )
        .map_err(with_frame)?;
        // The consumer makes the only arrival, with the expected bytes of the slot.
        let full = if self.async_stores { 1 } else { full };
        let empty = count(&self.consumers, "consumer", "broadcast() or round_robin()")
            .map_err(with_frame)?;
        let peers = self
            .multicast
            .map_or(1, |set| set.count_and_stride(cluster).0);
        Ok((full, empty * peers))
    }
}

impl RingState {
    /// Checks that both ends of a ring per warp have one warp for each ring.
    fn check_per_warp(&self, warps: u32) -> Result<(), (&'static str, String)> {
        let name = &self.name;
        let ends = [&self.producers, &self.consumers];
        let cursors = ends.iter().flat_map(|end| &end.roles);
        if let Some(other) = cursors.map(|cursor| cursor.warps).find(|&n| n != warps) {
            let text = format!(
                "ring {name} is declared for {warps} warps, but a role that uses it has {other}"
            );
            return Err(("ring-per-warp", text));
        }
        let is_round_robin =
            (ends.iter()).any(|end| end.distribution == Some(Distribution::RoundRobin));
        if is_round_robin || self.multicast.is_some() || self.across_cluster {
            let text = format!(
                "ring {name} is per warp; a ring per warp cannot be round-robin, multicast or across the cluster"
            );
            return Err(("ring-per-warp", text));
        }
        Ok(())
    }
}

/// Declares the tiles of one slot.
#[derive(Debug)]
pub struct SlotLayout {
    ring: String,
    stages: u32,
    tile_count: Cell<u32>,
}

impl SlotLayout {
    #[track_caller]
    fn decl<T: Element>(&self, rows: u32, cols: u32) -> TileDecl<T> {
        let i = self.tile_count.replace(self.tile_count.get() + 1);
        TileDecl::new(&format!("{}.{i}", self.ring), rows, cols).stages(self.stages)
    }

    /// Declares a tile with the widest swizzle that fits its rows.
    #[track_caller]
    pub fn tile<T: Element>(&self, rows: u32, cols: u32) -> Tile<T> {
        self.decl(rows, cols).declare()
    }

    /// Declares a row-major tile without a swizzle.
    #[track_caller]
    pub fn unswizzled<T: Element>(&self, rows: u32, cols: u32) -> Tile<T> {
        self.decl(rows, cols).unswizzled().declare()
    }

    /// Declares `len` consecutive elements.
    #[track_caller]
    pub fn vector<T: Element>(&self, len: u32) -> Tile<T> {
        self.unswizzled(1, len)
    }
}

/// The tiles of one slot of a ring: a [`Tile`], or a tuple of tiles.
pub trait RingTiles: Copy {
    /// References to the tiles of one slot.
    type Refs: Copy;
    /// Returns the tiles of a stage, in this CTA or in a peer.
    fn refs(self, stage: Reg<u32>, peer: Option<Operand>) -> Self::Refs;
    /// Calls `each` for every tile.
    fn ids(self, each: &mut dyn FnMut(TileId));
}

impl<T: Element> RingTiles for Tile<T> {
    type Refs = TileRef<T>;
    #[track_caller]
    fn refs(self, stage: Reg<u32>, peer: Option<Operand>) -> TileRef<T> {
        let mut tile = self.stage(stage);
        tile.view.peer = peer;
        tile
    }
    fn ids(self, each: &mut dyn FnMut(TileId)) {
        each(self.id);
    }
}

macro_rules! ring_tuple {
    ($($t:ident $i:tt),*) => {
        impl<$($t: RingTiles),*> RingTiles for ($($t,)*) {
            type Refs = ($($t::Refs,)*);
            #[track_caller]
            fn refs(self, stage: Reg<u32>, peer: Option<Operand>) -> Self::Refs {
                ($(self.$i.refs(stage, peer),)*)
            }
            fn ids(self, each: &mut dyn FnMut(TileId)) { $(self.$i.ids(each);)* }
        }
    };
}
ring_tuple!(A 0, B 1);
ring_tuple!(A 0, B 1, C 2);
ring_tuple!(A 0, B 1, C 2, D 3);

/// A circular buffer of shared-memory slots between roles, with a full and an empty mbarrier
/// for each slot (a CUTLASS pipeline).
#[derive(Clone, Copy, Debug)]
pub struct Ring<L> {
    pub(super) index: usize,
    pub(super) stages: u32,
    /// The number of warps of a ring per warp; 1 for an ordinary ring.
    pub(super) warps: u32,
    pub(super) full: BarId,
    pub(super) empty: BarId,
    tiles: L,
}

impl<L: RingTiles> Ring<L> {
    #[track_caller]
    pub(crate) fn new(
        name: &str,
        per_warp: Option<u32>,
        stages: u32,
        tiles: impl FnOnce(&SlotLayout) -> L,
    ) -> Self {
        let _caller = caller_scope();
        if per_warp == Some(0) {
            error(
                "ring-per-warp",
                format!("ring {name} is declared for 0 warps; it needs at least 1"),
            );
        }
        let warps = per_warp.unwrap_or(1).max(1);
        let total_stages = warps.saturating_mul(stages.max(1));
        if stages == 0 {
            error(
                "ring-stages",
                format!("ring {name} has 0 stages; it needs at least 1"),
            );
        }
        let tiles = tiles(&SlotLayout {
            ring: name.to_owned(),
            stages: total_stages,
            tile_count: Cell::new(0),
        });
        let mut ids = Vec::new();
        tiles.ids(&mut |t| ids.push(t));
        let frame = Frame::caller();
        let ring = with(|s| {
            let full = s.barrier(
                format!("{name}.full"),
                total_stages,
                ArrivalCount::Manual,
                frame,
            );
            let empty = s.barrier(
                format!("{name}.empty"),
                total_stages,
                ArrivalCount::Manual,
                frame,
            );
            s.rings.push(RingState {
                name: name.to_owned(),
                full,
                empty,
                tiles: ids,
                per_warp,
                producers: RingEnd::default(),
                consumers: RingEnd::default(),
                multicast: None,
                across_cluster: false,
                async_stores: false,
                generic_proxy_only: false,
                deferred_releases: Vec::new(),
                frame: s.author(frame),
            });
            Some((s.rings.len() - 1, full, empty))
        });
        let (index, full, empty) = ring.unwrap_or((0, BarId(0), BarId(0)));
        Self {
            index,
            stages,
            warps,
            full,
            empty,
            tiles,
        }
    }

    fn set_distribution(self, side: RingSide, distribution: Distribution) -> Self {
        with(|s| s.rings[self.index].end_mut(side).distribution = Some(distribution));
        self
    }

    /// Every consumer reads every slot.
    pub fn broadcast(self) -> Self {
        self.set_distribution(RingSide::Consumer, Distribution::All)
    }

    /// One consumer reads each slot, under a [`Turn`](super::Turn); the others [`skip`](Self::skip) it.
    pub fn round_robin(self) -> Self {
        self.set_distribution(RingSide::Consumer, Distribution::RoundRobin)
    }

    /// Every producer fills part of every slot.
    pub fn cooperative_producers(self) -> Self {
        self.set_distribution(RingSide::Producer, Distribution::All)
    }

    /// One producer fills each slot, under a [`Turn`](super::Turn); the others [`skip`](Self::skip) it.
    pub fn round_robin_producers(self) -> Self {
        self.set_distribution(RingSide::Producer, Distribution::RoundRobin)
    }

    fn set_multicast(self, multicast: MulticastSet) -> Self {
        with(|s| {
            s.rings[self.index].multicast = Some(multicast);
            s.accesses_peers = true;
        });
        self
    }

    /// TMA multicast fills the slots: a slot is empty after every CTA of the cluster has
    /// released it.
    pub fn multicast(self) -> Self {
        self.set_multicast(MulticastSet::Cluster)
    }

    /// Like [`multicast`](Self::multicast), among the CTAs of the cluster whose coordinates
    /// differ only along `axis`.
    pub fn multicast_along(self, axis: Axis) -> Self {
        self.set_multicast(MulticastSet::Along(axis))
    }

    /// Slots cross CTAs of the cluster: a producer fills a slot of a peer CTA
    /// ([`acquire_remote`](Self::acquire_remote)), and the peer's consumer returns it
    /// ([`release_remote`](Slot::release_remote)).
    pub fn across_cluster(self) -> Self {
        with(|s| {
            s.rings[self.index].across_cluster = true;
            s.accesses_peers = true;
        });
        self
    }

    /// Like [`across_cluster`](Self::across_cluster), but asynchronous stores (`st.async`,
    /// [`Frag::store_async_thread_major`](super::Frag::store_async_thread_major)) fill the slots.
    ///
    /// Each store completes on the slot's full barrier, so no producer waits for its stores.
    /// The single consumer expects the bytes of a whole slot.
    ///
    /// ```
    /// use warpline_ir::{DType, Kernel, Target, TensorMapDecl, builder::*};
    ///
    /// // Two CTAs exchange accumulator tiles.
    /// Kernel::build("halves", &Target::SM_90A, |k| {
    ///     k.cluster(2, 1, 1);
    ///     let out = k.tensor_map("out", TensorMapDecl::tiled(DType::F32, [32, 64]));
    ///     let outbox = k.outbox::<f32>("out_tile", 1, 64, 32);
    ///     let parts = k.ring("parts", 1, |s| s.unswizzled::<f32>(4, 512)).async_stores();
    ///     k.role("math").warpgroups(1).body(|| {
    ///         let (tile, peer) = (Frag::zeros(64, 32), cluster_rank() ^ 1u32);
    ///         let slot = parts.acquire_remote(peer);
    ///         tile.store_async_thread_major(&slot);
    ///         slot.commit();
    ///         let slot = parts.wait();
    ///         let sum = tile.clone().zip(&tile.load_thread_major(&slot.tiles()), |x, y| x + y);
    ///         outbox.store(&sum, out, [0u32, 0u32]);
    ///         slot.release_remote(peer);
    ///     });
    /// })?;
    /// # Ok::<(), warpline_ir::BuildErrors>(())
    /// ```
    pub fn async_stores(self) -> Self {
        with(|s| s.rings[self.index].async_stores = true);
        self.across_cluster()
    }

    /// Declares that only ordinary loads and stores (the generic proxy) access the slots.
    ///
    /// Neither TMA nor wgmma accesses them, so commit and release emit no proxy fence. The
    /// checker refutes a kernel that breaks this promise (R5).
    ///
    /// ```
    /// use warpline_ir::{Kernel, Target, builder::*};
    ///
    /// // One warp feeds another.
    /// let kernel = Kernel::build("pairs", &Target::SM_90A, |k| {
    ///     let out = k.pointer::<u32>("out");
    ///     let ring = k.ring("numbers", 2, |s| s.vector::<u32>(32)).generic_proxy_only();
    ///     k.role("make").warps(1).body(|| {
    ///         steps(8u32).each(|i| {
    ///             let slot = ring.acquire();
    ///             slot.store(0u32, lane_id(), i * lane_id());
    ///             slot.commit();
    ///         });
    ///     });
    ///     k.role("store").warps(1).body(|| {
    ///         steps(8u32).each(|i| {
    ///             let slot = ring.wait();
    ///             out.store(i * 32u32 + lane_id(), slot.load(0u32, lane_id()));
    ///             slot.release();
    ///         });
    ///     });
    /// })?;
    /// # Ok::<(), warpline_ir::BuildErrors>(())
    /// ```
    pub fn generic_proxy_only(self) -> Self {
        with(|s| s.rings[self.index].generic_proxy_only = true);
        self
    }

    /// Returns the number of stages; in a ring per warp, the stages of one warp.
    pub fn stages(self) -> u32 {
        self.stages
    }

    /// Waits until the next slot is empty, and returns it to the producer.
    #[track_caller]
    pub fn acquire(self) -> Slot<L, Producing> {
        let _caller = caller_scope();
        let slot = self.next(RingSide::Producer);
        slot.wait(self.empty, slot.parity);
        slot
    }

    /// Waits until the next slot of the CTA with cluster rank `peer` is empty, and returns it.
    #[track_caller]
    pub fn acquire_remote(self, peer: impl Value<u32>) -> Slot<L, Producing> {
        let _caller = caller_scope();
        if !with(|s| s.rings[self.index].across_cluster) {
            error(
                "ring-across",
                "acquire_remote() needs a ring across the cluster\nhelp: declare the ring with across_cluster()",
            );
        }
        let mut slot = self.next(RingSide::Producer);
        slot.wait(self.empty, slot.parity);
        slot.peer = Some(peer.operand());
        slot.tiles = self.tiles.refs(slot.stage, slot.peer);
        slot
    }

    /// Waits until the next slot is full, and returns it to the consumer.
    #[track_caller]
    pub fn wait(self) -> Slot<L, Consuming> {
        let _caller = caller_scope();
        let slot = self.next(RingSide::Consumer);
        slot.expect_async_stores();
        slot.wait(self.full, slot.parity);
        slot
    }

    /// Advances the role's cursor of a round-robin ring past `n` slots of other roles.
    #[track_caller]
    pub fn skip(self, n: impl Value<u32>) {
        let _caller = caller_scope();
        let side = with(|s| {
            let role = s.role?;
            let ring = &s.rings[self.index];
            let is_round_robin = |end: &RingEnd| {
                end.distribution == Some(Distribution::RoundRobin)
                    && end.roles.iter().any(|cursor| cursor.role == role)
            };
            match (
                is_round_robin(&ring.producers),
                is_round_robin(&ring.consumers),
            ) {
                (true, false) => Some(RingSide::Producer),
                (false, true) => Some(RingSide::Consumer),
                // First use in this role: take the round-robin end.
                _ => match (ring.producers.distribution, ring.consumers.distribution) {
                    (_, Some(Distribution::RoundRobin)) => Some(RingSide::Consumer),
                    (Some(Distribution::RoundRobin), _) => Some(RingSide::Producer),
                    _ => None,
                },
            }
        });
        let Some(side) = side else {
            error(
                "ring-distribution",
                "skip() needs a round-robin ring\nhelp: declare the ring with round_robin() or round_robin_producers()",
            );
            return;
        };
        let Some(cursor) = self.cursor(side) else {
            return;
        };
        let total = cursor.stage.get() + n.reg();
        let stages = self.stages.max(1);
        cursor.stage.set(total % stages);
        cursor
            .parity
            .set(cursor.parity.get() ^ ((total / stages) & 1));
    }

    /// Returns this role's cursor, and creates it at the first use.
    #[track_caller]
    fn cursor(self, side: RingSide) -> Option<RoleCursor> {
        let frame = Frame::caller();
        let known = with(|s| {
            let Some(role) = s.role else {
                let name = &s.rings[self.index].name;
                let text = format!("ring {name} is used outside of a role body");
                s.error("ring-outside-role", text, frame, None);
                return Some(None);
            };
            let active = s.active;
            let ring = &mut s.rings[self.index];
            let name = ring.name.clone();
            let cursor = *ring.cursor_mut(side, Some(role))?;
            if cursor.active != active {
                let text = format!(
                    "role {} uses ring {name} both inside and outside of elect; its cursor would diverge",
                    s.role_name()
                );
                s.error("ring-elect", text, frame, None);
            }
            Some(Some(cursor))
        });
        if let Some(cursor) = known {
            return cursor;
        }
        let (stage, parity) = (
            Var::role_state(0u32),
            Var::role_state(if side == RingSide::Producer { 1u32 } else { 0 }),
        );
        let warp = (self.warps > 1).then(warp_id_at_role_start);
        with(|s| {
            let role = s.role?;
            let warps = s.roles[role.index()].warps;
            let per_warp = s.rings[self.index].per_warp.is_some();
            if per_warp && warps > 1 && s.active == ActiveThreads::Thread {
                let text = format!(
                    "role {} uses a ring per warp in one warp only\nhelp: use elect_lane() instead of elect()",
                    s.role_name()
                );
                s.error("ring-per-warp", text, frame, None);
            }
            let cursor = RoleCursor {
                role,
                warps,
                active: s.active,
                arrivals: match s.active {
                    ActiveThreads::Thread => 1,
                    _ if per_warp => 1,
                    _ => warps,
                },
                stage,
                parity,
                warp: warp.map(|warp| (warp, s.roles[role.index()].first_warp)),
                has_generic_access: false,
                has_copies: false,
                after_copies: None,
                held_slots: 0,
            };
            s.rings[self.index].end_mut(side).roles.push(cursor);
            Some(cursor)
        })
    }

    /// Takes the next slot of this role and advances its cursor.
    #[track_caller]
    fn next<S>(self, side: RingSide) -> Slot<L, S> {
        let frame = Frame::caller();
        let cursor = self.cursor(side);
        let (stage, parity) = match cursor {
            Some(cursor) => {
                let (stage, parity) = (cursor.stage.get(), cursor.parity.get());
                if self.stages > 1 {
                    let next = stage + 1;
                    let wrap = next.eq(self.stages);
                    cursor.stage.set(select(wrap, 0u32, next));
                    cursor.parity.set(select(wrap, parity ^ 1, parity));
                } else {
                    cursor.parity.set(parity ^ 1);
                }
                (stage, parity)
            }
            None => (0u32.reg(), 0u32.reg()),
        };
        let stage = match cursor.and_then(|cursor| cursor.warp) {
            None => stage,
            Some((warp, first)) => (warp - first) * self.stages + stage,
        };
        let taken_at = with(|s| {
            s.rings[self.index].begin_slot(side, s.role);
            Some(s.author(frame))
        });
        let active = cursor.map_or(ActiveThreads::Role, |cursor| cursor.active);
        self.held_slot(side, stage, parity, active, taken_at)
    }

    /// Creates the handle of a slot that the role holds.
    #[track_caller]
    pub(super) fn held_slot<S>(
        self,
        side: RingSide,
        stage: Reg<u32>,
        parity: Reg<u32>,
        active: ActiveThreads,
        taken_at: Option<Frame>,
    ) -> Slot<L, S> {
        let (scope, groups_before) = with(|s| {
            if let Some(cursor) = s.rings[self.index].cursor_mut(side, s.role) {
                cursor.held_slots += 1;
            }
            (s.blocks.last().map_or(0, |b| b.scope), s.groups())
        });
        Slot {
            ring: self,
            side,
            tiles: self.tiles.refs(stage, None),
            peer: None,
            stage,
            parity,
            scope,
            active,
            constant_bytes: Cell::new(0),
            register_bytes: Cell::new(None),
            taken_at,
            is_consumed: Cell::new(false),
            groups_before,
            state: PhantomData,
        }
    }
}

impl RingState {
    /// Clears the access flags when the role takes a slot while it holds no other.
    fn begin_slot(&mut self, side: RingSide, role: Option<RoleId>) {
        let cursor = self.cursor_mut(side, role);
        if let Some(cursor) = cursor.filter(|cursor| cursor.held_slots == 0) {
            (cursor.has_generic_access, cursor.has_copies) = (false, false);
        }
    }

    /// Records that the role drops a slot.
    pub(super) fn record_drop(&mut self, side: RingSide, role: Option<RoleId>) {
        if let Some(cursor) = self.cursor_mut(side, role) {
            cursor.held_slots = cursor.held_slots.saturating_sub(1);
        }
    }

    /// Returns the tiles of a slot.
    pub(super) fn tiles(&self) -> &[TileId] {
        &self.tiles
    }

    /// Returns this role's cursor, if it has one.
    fn cursor_mut(&mut self, side: RingSide, role: Option<RoleId>) -> Option<&mut RoleCursor> {
        let mut cursors = self.end_mut(side).roles.iter_mut();
        cursors.find(|cursor| Some(cursor.role) == role)
    }

    /// Returns whether `cp.async` copies wrote the producer's held slots.
    pub(super) fn has_copies(&mut self, role: Option<RoleId>) -> bool {
        self.cursor_mut(RingSide::Producer, role)
            .is_some_and(|cursor| cursor.has_copies)
    }

    /// Records how a producer of `warps` warps commits, and returns whether all its commits
    /// agree.
    pub(super) fn record_commit(
        &mut self,
        role: Option<RoleId>,
        after_copies: bool,
        warps: u32,
    ) -> bool {
        let Some(cursor) = self.cursor_mut(RingSide::Producer, role) else {
            return true;
        };
        if after_copies && cursor.active == ActiveThreads::Role {
            cursor.arrivals = 32 * warps;
        }
        *cursor.after_copies.get_or_insert(after_copies) == after_copies
    }

    /// Returns whether generic accesses touched the role's held slots.
    pub(super) fn has_generic_access(&mut self, side: RingSide, role: Option<RoleId>) -> bool {
        self.cursor_mut(side, role)
            .is_some_and(|cursor| cursor.has_generic_access)
    }
}

/// Records a generic access to a tile of a ring; commit and release then emit a proxy fence.
pub(crate) fn record_generic_access(tile: TileId) {
    with(|s: &mut BuilderState| {
        let role = s.role;
        for ring in s.rings.iter_mut().filter(|r| r.tiles.contains(&tile)) {
            for side in [RingSide::Producer, RingSide::Consumer] {
                if let Some(cursor) = ring.cursor_mut(side, role) {
                    cursor.has_generic_access = true;
                }
            }
        }
    });
}

/// Records a `cp.async` copy into a tile of a ring.
pub(crate) fn record_lane_copy(tile: TileId) {
    with(|s: &mut BuilderState| {
        let role = s.role;
        for ring in s.rings.iter_mut().filter(|r| r.tiles.contains(&tile)) {
            if let Some(cursor) = ring.cursor_mut(RingSide::Producer, role) {
                cursor.has_copies = true;
            }
        }
    });
}

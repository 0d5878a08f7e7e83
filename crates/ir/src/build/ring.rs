//! Rings: slots of shared memory that carry tiles from role to role.
//!
//! A ring of `S` stages has two arrays of mbarriers, `full` and `empty`. A
//! producer waits until a slot is empty, fills it and commits; a consumer
//! waits until it is full, reads it and releases. Which slot and which parity
//! comes next is a *cursor* that every role carries for every ring it uses.
//!
//! How often each barrier is arrived at follows from who takes part, and is
//! settled when the kernel is finished:
//!
//! | | arrivals per slot |
//! |---|---|
//! | `full` | one per producing thread, or per warp of a producing role, or per thread of one that commits after its copies; of all producers (`joint`), or of the one whose slot it is (`dealt`); one of the consumer where slots are `posted` |
//! | `empty` | one per warp of each consumer (`shared`), or of the one whose slot it is (`dealt`); from every CTA it is multicast among |
//!
//! Where there is a ring [for each warp](super::Builder::ring_per_warp), all of
//! this is of one warp at each end.
//!
//! In a dealt ring a role passes over slots that it never looks at, so nothing
//! but the order of the roles keeps it from running a whole round ahead, where
//! the parity it waits for is the one of the round before. Deal slots under a
//! [`Turn`](super::Turn): `turn.hold(|| ring.wait())`.

use super::flow::select;
use super::reg::{Reg, Value, Var};
use super::slot::{Filling, Reading, Slot};
use super::state::{Count, State, Width, error, here, with};
use super::tile::{Tile, TileDecl, TileRef};
use super::warp::warp_at_start;
use crate::loc::Frame;
use crate::machine::Axis;
use crate::types::Element;
use crate::value::{BarId, Operand, RoleId, TileId};
use std::cell::Cell;
use std::marker::PhantomData;

/// What the builder knows of a ring.
pub(crate) struct RingState {
    pub(crate) name: String,
    pub(crate) full: BarId,
    pub(crate) empty: BarId,
    tiles: Vec<TileId>,
    /// Is there one for each warp of its roles?
    per_warp: Option<u32>,
    producers: Ends,
    consumers: Ends,
    /// The CTAs that fill a slot together.
    pub(super) spread: Option<Spread>,
    /// Its slots lie in another CTA than their producers.
    pub(super) across: bool,
    /// What fills its slots completes on their barrier.
    pub(super) posted: bool,
    /// Nothing but threads touches its slots.
    pub(super) by_threads: bool,
    pub(super) held: Vec<Held>,
    frame: Frame,
}

/// The roles at one end of a ring.
#[derive(Default)]
struct Ends {
    roles: Vec<End>,
    /// Several roles share every slot, take slots in turn, or nobody said.
    discipline: Option<Discipline>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Discipline {
    Together,
    Dealt,
}

/// Which CTAs of the cluster a multicast reaches: itself, and those beside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Spread {
    /// The whole cluster.
    Cluster,
    /// Those that differ only along an axis.
    Along(Axis),
}

impl Spread {
    /// How many CTAs, and the distance between their ranks.
    pub(super) fn of(self, cluster: [u32; 3]) -> (u32, u32) {
        match self {
            Spread::Cluster => (cluster.iter().product(), 1),
            Spread::Along(Axis::X) => (cluster[0], 1),
            Spread::Along(Axis::Y) => (cluster[1], cluster[0]),
            Spread::Along(Axis::Z) => (cluster[2], cluster[0] * cluster[1]),
        }
    }
}

/// One role at one end of a ring: its cursor, and how it arrives.
#[derive(Clone, Copy)]
struct End {
    role: RoleId,
    /// Warps of the role.
    warps: u32,
    width: Width,
    arrivals: u32,
    stage: Var<u32>,
    parity: Var<u32>,
    /// Where there is a ring for each warp: the warp, and the role's first.
    own: Option<(Reg<u32>, u32)>,
    /// Tiles of the slots in hand were touched by generic accesses.
    generic: bool,
    /// Lanes have copied into tiles of the slots in hand.
    copied: bool,
    /// Is a slot handed on by every thread, after its copies? `None`: none was yet.
    after_copies: Option<bool>,
    /// Slots in hand.
    in_hand: u32,
}

/// A slot whose release waits for a wgmma group.
pub(super) struct Held {
    pub(super) role: RoleId,
    pub(super) acc: u32,
    /// Its stage, or [`NONE`](Self::NONE).
    pub(super) stage: Var<u32>,
    /// Its tiles were touched by generic accesses.
    pub(super) generic: bool,
    /// Groups committed when it was last held: none after these reads it.
    pub(super) groups: usize,
}

impl Held {
    /// No slot is held.
    pub(super) const NONE: u32 = u32::MAX;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Produce,
    Consume,
}

impl RingState {
    fn ends(&mut self, side: Side) -> &mut Ends {
        match side {
            Side::Produce => &mut self.producers,
            Side::Consume => &mut self.consumers,
        }
    }

    /// Settles the arrivals per phase of both barriers.
    pub(crate) fn settle(
        &self,
        cluster: [u32; 3],
    ) -> Result<(u32, u32), (&'static str, String, Frame)> {
        let name = &self.name;
        let count = |ends: &Ends, who: &str, together: &str| {
            let arrivals: Vec<u32> = ends.roles.iter().map(|e| e.arrivals).collect();
            match (arrivals.as_slice(), ends.discipline) {
                ([], _) => Err(("ring-end", format!("ring {name} has no {who}"))),
                ([n], _) => Ok(*n),
                (all, Some(Discipline::Together)) => Ok(all.iter().sum()),
                ([n, rest @ ..], Some(Discipline::Dealt)) if rest.iter().all(|m| m == n) => Ok(*n),
                (all, Some(Discipline::Dealt)) => Err((
                    "ring-discipline",
                    format!(
                        "the {who}s of the dealt ring {name} must arrive equally often per slot, not {all:?} times"
                    ),
                )),
                (all, None) => Err((
                    "ring-discipline",
                    format!("ring {name} has {} {who}s: say {together}", all.len()),
                )),
            }
        };
        let at = |(code, text): (&'static str, String)| (code, text, self.frame);
        if let Some(warps) = self.per_warp {
            self.settle_warps(warps).map_err(at)?;
        }
        let full =
            count(&self.producers, "producer", "joint() or dealt_producers()").map_err(at)?;
        // Bytes bring a posted slot; who waits for it says how many.
        let full = if self.posted { 1 } else { full };
        let empty = count(&self.consumers, "consumer", "shared() or dealt()").map_err(at)?;
        let peers = self.spread.map_or(1, |s| s.of(cluster).0);
        Ok((full, empty * peers))
    }
}

impl RingState {
    /// Is a ring for each warp used as such?
    fn settle_warps(&self, warps: u32) -> Result<(), (&'static str, String)> {
        let name = &self.name;
        let ends = [&self.producers, &self.consumers];
        let other = ends.iter().flat_map(|ends| &ends.roles);
        if let Some(other) = other.map(|end| end.warps).find(|&n| n != warps) {
            let text = format!(
                "there is a ring {name} for each of {warps} warps, and a role at its end has {other}"
            );
            return Err(("ring-per-warp", text));
        }
        let dealt = (ends.iter()).any(|ends| ends.discipline == Some(Discipline::Dealt));
        if dealt || self.spread.is_some() || self.across {
            let text = format!(
                "the slots of the ring {name} of each warp pass from warp to warp of a CTA: they are neither dealt nor sent to others"
            );
            return Err(("ring-per-warp", text));
        }
        Ok(())
    }
}

/// Declares the tiles of one slot.
#[derive(Debug)]
pub struct Stages {
    ring: String,
    stages: u32,
    made: Cell<u32>,
}

impl Stages {
    #[track_caller]
    fn decl<T: Element>(&self, rows: u32, cols: u32) -> TileDecl<T> {
        let i = self.made.replace(self.made.get() + 1);
        TileDecl::new(&format!("{}.{i}", self.ring), rows, cols).stages(self.stages)
    }

    /// A tile, with the widest swizzle that fits its rows.
    #[track_caller]
    pub fn tile<T: Element>(&self, rows: u32, cols: u32) -> Tile<T> {
        self.decl(rows, cols).declare()
    }

    /// A tile with plain rows.
    #[track_caller]
    pub fn plain<T: Element>(&self, rows: u32, cols: u32) -> Tile<T> {
        self.decl(rows, cols).plain().declare()
    }

    /// A row of elements.
    #[track_caller]
    pub fn vector<T: Element>(&self, len: u32) -> Tile<T> {
        self.plain(1, len)
    }
}

/// What one slot of a ring holds: a tile, or a tuple of tiles.
pub trait RingTiles: Copy {
    /// The tiles of one slot.
    type Refs: Copy;
    /// The tiles of the slot at a stage, here or in a peer.
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

/// A ring of slots between roles.
#[derive(Clone, Copy, Debug)]
pub struct Ring<L> {
    pub(super) index: usize,
    pub(super) stages: u32,
    /// How many there are, one for each warp; 1 where all warps have the same.
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
        tiles: impl FnOnce(&Stages) -> L,
    ) -> Self {
        let _at = here();
        if per_warp == Some(0) {
            error(
                "ring-per-warp",
                format!("there is a ring {name} for each of at least one warp, not 0"),
            );
        }
        let warps = per_warp.unwrap_or(1).max(1);
        let all = warps.saturating_mul(stages.max(1));
        if stages == 0 {
            error(
                "ring-stages",
                format!("ring {name} has at least one stage, not 0"),
            );
        }
        let tiles = tiles(&Stages {
            ring: name.to_owned(),
            stages: all,
            made: Cell::new(0),
        });
        let mut ids = Vec::new();
        tiles.ids(&mut |t| ids.push(t));
        let frame = Frame::caller();
        let ring = with(|s| {
            let full = s.barrier(format!("{name}.full"), all, Count::Manual, frame);
            let empty = s.barrier(format!("{name}.empty"), all, Count::Manual, frame);
            s.rings.push(RingState {
                name: name.to_owned(),
                full,
                empty,
                tiles: ids,
                per_warp,
                producers: Ends::default(),
                consumers: Ends::default(),
                spread: None,
                across: false,
                posted: false,
                by_threads: false,
                held: Vec::new(),
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

    fn declare(self, side: Side, d: Discipline) -> Self {
        with(|s| s.rings[self.index].ends(side).discipline = Some(d));
        self
    }

    /// Every consumer reads every slot.
    pub fn shared(self) -> Self {
        self.declare(Side::Consume, Discipline::Together)
    }

    /// Each slot goes to one consumer, under a [`Turn`](super::Turn); the others [`skip`](Self::skip) it.
    pub fn dealt(self) -> Self {
        self.declare(Side::Consume, Discipline::Dealt)
    }

    /// Every producer fills a part of every slot.
    pub fn joint(self) -> Self {
        self.declare(Side::Produce, Discipline::Together)
    }

    /// Each slot is filled by one producer, under a [`Turn`](super::Turn); the others [`skip`](Self::skip) it.
    pub fn dealt_producers(self) -> Self {
        self.declare(Side::Produce, Discipline::Dealt)
    }

    fn spread(self, spread: Spread) -> Self {
        with(|s| {
            s.rings[self.index].spread = Some(spread);
            s.remote = true;
        });
        self
    }

    /// Slots are filled by multicast: a slot is free once every CTA of the
    /// cluster has released it.
    pub fn multicast(self) -> Self {
        self.spread(Spread::Cluster)
    }

    /// As [`multicast`](Self::multicast), among the CTAs of the cluster that
    /// differ only along an axis.
    pub fn multicast_along(self, axis: Axis) -> Self {
        self.spread(Spread::Along(axis))
    }

    /// Slots pass from CTA to CTA of the cluster: a producer fills a slot of a
    /// peer ([`acquire_at`](Self::acquire_at)), whose consumer gives it back
    /// ([`release_to`](Slot::release_to)).
    pub fn across(self) -> Self {
        with(|s| {
            s.rings[self.index].across = true;
            s.remote = true;
        });
        self
    }

    /// As [`across`](Self::across), of slots that are [posted](super::Frag::post_lanes):
    /// each store completes on the slot's barrier, so that no producer waits for
    /// its stores to arrive. The one consumer expects the bytes of a whole slot.
    ///
    /// ```
    /// use warpline_ir::{DType, Kernel, Target, TensorMapDecl, build::*};
    ///
    /// // Two CTAs hand each other a tile of sums.
    /// Kernel::build("halves", &Target::SM_90A, |k| {
    ///     k.cluster(2, 1, 1);
    ///     let out = k.tensor_map("out", TensorMapDecl::tiled(DType::F32, [32, 64]));
    ///     let outbox = k.outbox::<f32>("both", 1, 64, 32);
    ///     let sums = k.ring("sums", 1, |s| s.plain::<f32>(4, 512)).posted();
    ///     k.role("math").warpgroups(1).body(|| {
    ///         let (own, peer) = (Frag::zeros(64, 32), cluster_rank() ^ 1u32);
    ///         let slot = sums.acquire_at(peer);
    ///         own.post_lanes(&slot);
    ///         slot.commit();
    ///         let slot = sums.wait();
    ///         let both = own.clone().zip(&own.load_lanes(&slot.tiles()), |x, y| x + y);
    ///         outbox.send(&both, out, [0u32, 0u32]);
    ///         slot.release_to(peer);
    ///     });
    /// })?;
    /// # Ok::<(), warpline_ir::BuildErrors>(())
    /// ```
    pub fn posted(self) -> Self {
        with(|s| s.rings[self.index].posted = true);
        self.across()
    }

    /// Slots are written and read by threads alone, neither by copies of the
    /// async proxy nor as operands of wgmma: so no fence between proxies is put
    /// where they are handed on. The checker refuses a ring of which that is not
    /// true (R5).
    ///
    /// ```
    /// use warpline_ir::{Kernel, Target, build::*};
    ///
    /// // One warp hands numbers to another.
    /// let kernel = Kernel::build("handed", &Target::SM_90A, |k| {
    ///     let out = k.pointer::<u32>("out");
    ///     let ring = k.ring("numbers", 2, |s| s.vector::<u32>(32)).by_threads();
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
    pub fn by_threads(self) -> Self {
        with(|s| s.rings[self.index].by_threads = true);
        self
    }

    /// Stages of the ring, of each warp where there is one for each.
    pub fn stages(self) -> u32 {
        self.stages
    }

    /// Waits until the next slot is empty.
    #[track_caller]
    pub fn acquire(self) -> Slot<L, Filling> {
        let _at = here();
        let slot = self.next(Side::Produce);
        slot.wait(self.empty, slot.parity);
        slot
    }

    /// Waits until the next slot is empty, in the CTA of the cluster whose rank is `peer`.
    #[track_caller]
    pub fn acquire_at(self, peer: impl Value<u32>) -> Slot<L, Filling> {
        let _at = here();
        if !with(|s| s.rings[self.index].across) {
            error(
                "ring-across",
                "a slot of a peer is taken only in a ring across the cluster: say across()",
            );
        }
        let mut slot = self.next(Side::Produce);
        slot.wait(self.empty, slot.parity);
        slot.home = Some(peer.operand());
        slot.tiles = self.tiles.refs(slot.stage, slot.home);
        slot
    }

    /// Waits until the next slot is full.
    #[track_caller]
    pub fn wait(self) -> Slot<L, Reading> {
        let _at = here();
        let slot = self.next(Side::Consume);
        slot.expect_posted();
        slot.wait(self.full, slot.parity);
        slot
    }

    /// As a producer or consumer of a dealt ring: passes over `n` slots that are another role's.
    #[track_caller]
    pub fn skip(self, n: impl Value<u32>) {
        let _at = here();
        let side = with(|s| {
            let role = s.role?;
            let ring = &s.rings[self.index];
            let is = |ends: &Ends| {
                ends.discipline == Some(Discipline::Dealt)
                    && ends.roles.iter().any(|e| e.role == role)
            };
            match (is(&ring.producers), is(&ring.consumers)) {
                (true, false) => Some(Side::Produce),
                (false, true) => Some(Side::Consume),
                // Not used yet in this role: the end that is dealt.
                _ => match (ring.producers.discipline, ring.consumers.discipline) {
                    (_, Some(Discipline::Dealt)) => Some(Side::Consume),
                    (Some(Discipline::Dealt), _) => Some(Side::Produce),
                    _ => None,
                },
            }
        });
        let Some(side) = side else {
            error(
                "ring-discipline",
                "slots are skipped only in a ring whose slots are dealt: say dealt() or dealt_producers()",
            );
            return;
        };
        let Some(end) = self.end(side) else { return };
        let total = end.stage.get() + n.reg();
        let stages = self.stages.max(1);
        end.stage.set(total % stages);
        end.parity.set(end.parity.get() ^ ((total / stages) & 1));
    }

    /// This role's end of the ring, made at its first use.
    #[track_caller]
    fn end(self, side: Side) -> Option<End> {
        let frame = Frame::caller();
        let known = with(|s| {
            let Some(role) = s.role else {
                let text = "rings are used inside roles".to_owned();
                s.error("ring-outside-role", text, frame, None);
                return Some(None);
            };
            let width = s.width;
            let ring = &mut s.rings[self.index];
            let name = ring.name.clone();
            let end = ring
                .ends(side)
                .roles
                .iter()
                .find(|e| e.role == role)
                .copied();
            let end = end?;
            if end.width != width {
                let text = format!(
                    "role {} uses ring {name} both with one thread and with many: its cursor would part",
                    s.role_name()
                );
                s.error("ring-width", text, frame, None);
            }
            Some(Some(end))
        });
        if let Some(end) = known {
            return end;
        }
        let (stage, parity) = (
            Var::carried(0u32),
            Var::carried(if side == Side::Produce { 1u32 } else { 0 }),
        );
        let warp = (self.warps > 1).then(warp_at_start);
        with(|s| {
            let role = s.role?;
            let warps = s.roles[role.index()].warps;
            let per_warp = s.rings[self.index].per_warp.is_some();
            if per_warp && warps > 1 && s.width == Width::Thread {
                let text = format!(
                    "role {} uses the ring of each warp in one of them: elect a lane of each",
                    s.role_name()
                );
                s.error("ring-per-warp", text, frame, None);
            }
            let end = End {
                role,
                warps,
                width: s.width,
                arrivals: match s.width {
                    Width::Thread => 1,
                    _ if per_warp => 1,
                    _ => warps,
                },
                stage,
                parity,
                own: warp.map(|warp| (warp, s.roles[role.index()].first_warp)),
                generic: false,
                copied: false,
                after_copies: None,
                in_hand: 0,
            };
            s.rings[self.index].ends(side).roles.push(end);
            Some(end)
        })
    }

    /// Takes the next slot of this role and moves its cursor on.
    #[track_caller]
    fn next<S>(self, side: Side) -> Slot<L, S> {
        let frame = Frame::caller();
        let end = self.end(side);
        let (stage, parity) = match end {
            Some(end) => {
                let (stage, parity) = (end.stage.get(), end.parity.get());
                if self.stages > 1 {
                    let next = stage + 1;
                    let wrap = next.eq(self.stages);
                    end.stage.set(select(wrap, 0u32, next));
                    end.parity.set(select(wrap, parity ^ 1, parity));
                } else {
                    end.parity.set(parity ^ 1);
                }
                (stage, parity)
            }
            None => (0u32.reg(), 0u32.reg()),
        };
        let stage = match end.and_then(|end| end.own) {
            None => stage,
            Some((warp, first)) => (warp - first) * self.stages + stage,
        };
        let made = with(|s| {
            s.rings[self.index].take(side, s.role);
            Some(s.author(frame))
        });
        let width = end.map_or(Width::Role, |e| e.width);
        self.in_hand(side, stage, parity, width, made)
    }

    /// The slot of a stage, in hand here.
    #[track_caller]
    pub(super) fn in_hand<S>(
        self,
        side: Side,
        stage: Reg<u32>,
        parity: Reg<u32>,
        width: Width,
        made: Option<Frame>,
    ) -> Slot<L, S> {
        let (scope, groups) = with(|s| {
            if let Some(e) = s.rings[self.index].end_of(side, s.role) {
                e.in_hand += 1;
            }
            (s.blocks.last().map_or(0, |b| b.scope), s.groups())
        });
        Slot {
            ring: self,
            side,
            tiles: self.tiles.refs(stage, None),
            home: None,
            stage,
            parity,
            scope,
            width,
            bytes: Cell::new(0),
            dynamic: Cell::new(None),
            made,
            used: Cell::new(false),
            groups,
            state: PhantomData,
        }
    }
}

impl RingState {
    /// Notes that the role takes another slot: in the first one in hand nothing was touched yet.
    fn take(&mut self, side: Side, role: Option<RoleId>) {
        if let Some(e) = self.end_of(side, role).filter(|e| e.in_hand == 0) {
            (e.generic, e.copied) = (false, false);
        }
    }

    /// Notes that a slot is no longer in hand.
    pub(super) fn let_go(&mut self, side: Side, role: Option<RoleId>) {
        if let Some(e) = self.end_of(side, role) {
            e.in_hand = e.in_hand.saturating_sub(1);
        }
    }

    /// The tiles of a slot.
    pub(super) fn tiles(&self) -> &[TileId] {
        &self.tiles
    }

    /// This role's end, if it has one.
    fn end_of(&mut self, side: Side, role: Option<RoleId>) -> Option<&mut End> {
        let ends = self.ends(side).roles.iter_mut();
        ends.into_iter().find(|e| Some(e.role) == role)
    }

    /// Have lanes copied into the producer's slot in hand?
    pub(super) fn is_copied(&mut self, role: Option<RoleId>) -> bool {
        self.end_of(Side::Produce, role).is_some_and(|e| e.copied)
    }

    /// Notes how a producer of `warps` warps hands its slots on; says whether
    /// that is how it did before.
    pub(super) fn hands_on(
        &mut self,
        role: Option<RoleId>,
        after_copies: bool,
        warps: u32,
    ) -> bool {
        let Some(e) = self.end_of(Side::Produce, role) else {
            return true;
        };
        if after_copies && e.width == Width::Role {
            e.arrivals = 32 * warps;
        }
        *e.after_copies.get_or_insert(after_copies) == after_copies
    }

    pub(super) fn is_generic(&mut self, side: Side, role: Option<RoleId>) -> bool {
        let ends = self.ends(side);
        ends.roles.iter().any(|e| Some(e.role) == role && e.generic)
    }
}

/// Notes a generic access to a tile of a ring, for the proxy fence at its release.
pub(crate) fn generic_use(tile: TileId) {
    with(|s: &mut State| {
        let role = s.role;
        for ring in s.rings.iter_mut().filter(|r| r.tiles.contains(&tile)) {
            for side in [Side::Produce, Side::Consume] {
                if let Some(e) = ring.end_of(side, role) {
                    e.generic = true;
                }
            }
        }
    });
}

/// Notes a copy by lanes into a tile of a ring.
pub(crate) fn copy_use(tile: TileId) {
    with(|s: &mut State| {
        let role = s.role;
        for ring in s.rings.iter_mut().filter(|r| r.tiles.contains(&tile)) {
            if let Some(e) = ring.end_of(Side::Produce, role) {
                e.copied = true;
            }
        }
    });
}

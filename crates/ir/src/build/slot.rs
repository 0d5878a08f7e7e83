//! Slots: what a role holds of a ring between taking it and giving it on.

use super::flow::{elect_lane, if_};
use super::raw::{BarHandle, Map, fence_async};
use super::reg::{Coord, Reg, Value, Var};
use super::ring::{Held, Ring, RingTiles, Side};
use super::state::{Width, error, here, with};
use super::tile::TileRef;
use super::warp::{lane_id, warp_sync};
use crate::loc::Frame;
use crate::ops::bulk::CacheHint;
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
        if self.used.get() || std::thread::panicking() {
            return;
        }
        let (made, index, side) = (self.made, self.ring.index, self.side);
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
        if self.ring.stages == 1 {
            return Operand::Imm(0);
        }
        Operand::Reg(self.stage.id())
    }

    #[track_caller]
    pub(super) fn wait(&self, bar: BarId, parity: Reg<u32>) {
        let bar = self.bar(bar);
        if self.is_multicast() && self.side == Side::Produce {
            bar.wait_cluster(parity);
        } else {
            bar.wait(parity);
        }
    }

    fn is_multicast(&self) -> bool {
        with(|s| s.rings[self.ring.index].multicast)
    }

    fn is_generic(&self) -> bool {
        let (index, side) = (self.ring.index, self.side);
        with(|s| {
            let role = s.role;
            s.rings[index].is_generic(side, role)
        })
    }
}

impl<L: RingTiles> Slot<L, Filling> {
    /// The barrier that tells consumers that the slot is full (raw layer).
    pub fn full(&self) -> BarHandle {
        self.bar(self.ring.full)
    }

    /// Copies the box of a tensor at `coords` (innermost first) into a tile of the slot.
    #[track_caller]
    pub fn load<T: Element, const R: usize>(
        &self,
        map: Map,
        to: TileRef<T>,
        coords: [impl Coord; R],
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
        coords: [impl Coord; R],
        mask: Option<u32>,
        hint: Option<CacheHint>,
    ) {
        let _at = here();
        let receivers = mask.map_or(1, u32::count_ones);
        self.expect(Operand::imm(map.bytes() * receivers));
        map.load_with(to, coords, self.full(), mask.map(Operand::imm), hint);
    }

    /// Copies `bytes` from global memory to the start of a tile of the slot.
    #[track_caller]
    pub fn load_bytes<T: Element>(&self, to: TileRef<T>, from: Reg<u64>, bytes: impl Value<u32>) {
        let _at = here();
        let bytes = bytes.operand();
        self.expect(bytes);
        let bar = self.full();
        match bytes {
            Operand::Imm(n) => super::raw::bulk_load(to, from, n as u32, bar),
            Operand::Reg(r) => super::raw::bulk_load(to, from, Reg::<u32>::of(r), bar),
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

    /// Hands the slot to the consumers.
    #[track_caller]
    pub fn commit(self) {
        let _at = here();
        self.used.set(true);
        let full = self.full();
        if self.is_generic() {
            fence_async();
        }
        let arrive = || match (self.dynamic.get(), self.bytes.get()) {
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
    /// Gives the slot back to the producers.
    #[track_caller]
    pub fn release(self) {
        let _at = here();
        self.used.set(true);
        let generic = self.is_generic();
        if generic {
            fence_async();
        }
        self.give_back(self.stage_operand(), generic);
    }

    /// Gives the slot back once the wgmmas that were issued on it are done:
    /// one step later, or when the accumulator is finished.
    #[track_caller]
    pub fn release_after(self, acc: &super::Acc) {
        let _at = here();
        self.used.set(true);
        let (index, id) = (self.ring.index, acc.id());
        let known = with(|s| {
            let held = s.rings[index]
                .held
                .iter()
                .find(|h| Some(h.role) == s.role && h.acc == id);
            held.map(|h| (h.stage, h.any))
        });
        let (stage, any) = known.unwrap_or_else(|| {
            let held = (Var::carried(0u32), Var::carried(false));
            with(|s| {
                let role = s.role?;
                s.rings[index].held.push(Held {
                    role,
                    acc: id,
                    stage: held.0,
                    any: held.1,
                });
                Some(())
            });
            held
        });
        acc.wait_pending(1);
        if_(any.get(), || {
            self.give_back(stage.get().operand(), false);
        });
        stage.set(self.stage);
        any.set(true);
    }

    /// Arrives on the empty barrier of a stage, here or in the whole cluster.
    #[track_caller]
    fn give_back(&self, stage: Operand, generic: bool) {
        give_back(
            self.ring.empty,
            stage,
            self.width,
            self.is_multicast(),
            generic,
        );
    }
}

/// Arrives on an empty barrier, once per warp of the role.
#[track_caller]
fn give_back(empty: BarId, stage: Operand, width: Width, multicast: bool, generic: bool) {
    let at = |peer| {
        BarHandle(BarRef {
            bar: empty,
            index: stage,
            peer,
        })
    };
    if !multicast {
        if width == Width::Role {
            warp_sync();
            elect_lane(|| at(None).arrive());
        } else {
            at(None).arrive();
        }
        return;
    }
    let cluster = with(|s| s.cluster.iter().product::<u32>());
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
        if_(lane.lt(cluster), || arrive(at(Some(lane.operand()))));
    } else {
        for rank in 0..cluster {
            arrive(at(Some(Operand::imm(rank))));
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
                    .map(|h| (r.empty, r.multicast, h.stage, h.any))
            })
            .collect()
    });
    for (empty, multicast, stage, any) in held {
        if_(any.get(), || {
            give_back(empty, stage.get().operand(), Width::Role, multicast, false);
        });
        any.set(false);
    }
}

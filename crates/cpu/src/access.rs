//! Memory accesses of lanes: bounds, alignment, uninitialized bytes, races, counters.

use crate::clock::Epoch;
use crate::error::RaceKind;
use crate::global_memory::Buffer;
use crate::lane_sets::LaneCode;
use crate::machine::{WarpMachine, lanes_of};
use crate::release_acquire::WordAddress;
use crate::shared_memory::MemoryUse;
use crate::shared_shadow::{Accessor, Conflict};
use crate::stats::{bank_conflicts, ideal_wavefronts, is_dense, sectors};
use std::ops::Range;
use warpline_ir::{
    Fault, FaultKind, LaneBytes, Machine, Mask, MemoryOrder, Operand, PerLane, ResolvedAddress,
    Scope, SharedAddress, WARP,
};

/// The kind of a lane access.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LaneAccess {
    Load,
    Store,
    Atomic,
}

impl LaneAccess {
    fn verb(self) -> &'static str {
        match self {
            LaneAccess::Load => "reads",
            LaneAccess::Store => "writes",
            LaneAccess::Atomic => "updates",
        }
    }
}

/// The addresses of a shared-memory access, per lane.
struct LaneAddresses {
    cta: [u32; WARP],
    byte: [u32; WARP],
    /// The common range, if all lanes are active and access consecutive bytes of this CTA.
    dense: Option<Range<u32>>,
}

impl LaneAddresses {
    fn range(&self, lane: usize, width: usize) -> Range<u32> {
        self.byte[lane]..self.byte[lane] + width as u32
    }

    /// Returns the lanes with the same address as `lane`. The ranges of one access are aligned and
    /// have one width, so they are equal or disjoint.
    fn lanes_at_same_address(&self, lanes: Mask, lane: usize) -> Mask {
        let same = |l: &usize| self.byte[*l] == self.byte[lane] && self.cta[*l] == self.cta[lane];
        lanes_of(lanes).filter(same).fold(0, |m, l| m | 1 << l)
    }

    /// Whether all addresses are distinct. A fast test: it recognizes only ascending addresses.
    fn are_distinct(&self, lanes: Mask) -> bool {
        let bytes = lanes_of(lanes).map(|l| (self.cta[l], self.byte[l]));
        self.dense.is_some() || bytes.is_sorted_by(|a, b| a < b)
    }
}

impl WarpMachine<'_, '_> {
    pub(crate) fn load_shared(
        &mut self,
        lanes: Mask,
        p: &SharedAddress,
        width: usize,
    ) -> Result<LaneBytes, Fault> {
        let to = self.resolve_lanes(lanes, p, width)?;
        self.check_access(lanes, &to, width, LaneAccess::Load)?;
        let mut out = [[0; 16]; WARP];
        if let Some(run) = &to.dense
            && let shared = &self.cluster.ctas[self.warp.cta as usize].shared
            && let Ok(bytes) = shared.get(run.start, run.len())
        {
            for (out, bytes) in out.iter_mut().zip(bytes.chunks_exact(width)) {
                out[..width].copy_from_slice(bytes);
            }
            return Ok(out);
        }
        for lane in lanes_of(lanes) {
            let shared = &self.cluster.ctas[to.cta[lane] as usize].shared;
            match shared.get(to.byte[lane], width) {
                Ok(bytes) => out[lane][..width].copy_from_slice(bytes),
                Err(gap) => return Err(self.never_written(lane, gap)),
            }
        }
        Ok(out)
    }

    pub(crate) fn store_shared(
        &mut self,
        lanes: Mask,
        p: &SharedAddress,
        width: usize,
        data: &LaneBytes,
    ) -> Result<(), Fault> {
        let to = self.resolve_lanes(lanes, p, width)?;
        self.check_access(lanes, &to, width, LaneAccess::Store)?;
        if let Some(run) = &to.dense {
            let mut bytes = [0; 16 * WARP];
            let bytes = &mut bytes[..width * WARP];
            for (to, from) in bytes.chunks_exact_mut(width).zip(data) {
                to.copy_from_slice(&from[..width]);
            }
            let shared = &mut self.cluster.ctas[self.warp.cta as usize].shared;
            shared.put(run.start, bytes);
            return Ok(());
        }
        for lane in lanes_of(lanes) {
            let shared = &mut self.cluster.ctas[to.cta[lane] as usize].shared;
            shared.put(to.byte[lane], &data[lane][..width]);
        }
        Ok(())
    }

    pub(crate) fn atomic_shared(
        &mut self,
        p: &SharedAddress,
        width: usize,
        order: MemoryOrder,
        f: &mut dyn FnMut(usize, u64) -> u64,
    ) -> Result<PerLane<u64>, Fault> {
        let lanes = self.warp.active;
        let to = self.resolve_lanes(lanes, p, width)?;
        self.check_access(lanes, &to, width, LaneAccess::Atomic)?;
        let write_only = self.env.code.sites[self.site as usize].facts.only_writes;
        let mut out = [0; WARP];
        let mut changed = false;
        for lane in lanes_of(lanes) {
            let shared = &mut self.cluster.ctas[to.cta[lane] as usize].shared;
            let old = match shared.get(to.byte[lane], width) {
                Ok(bytes) => word(bytes),
                Err(_) if write_only => 0,
                Err(gap) => return Err(self.never_written(lane, gap)),
            };
            let new = f(lane, old);
            changed |= new != old || write_only;
            shared.put(to.byte[lane], &new.to_le_bytes()[..width]);
            out[lane] = old;
        }
        self.record_atomic(changed);
        self.apply_order(order, |lane| {
            WordAddress::Shared(ResolvedAddress {
                cta: to.cta[lane],
                byte: to.byte[lane],
            })
        });
        Ok(out)
    }

    /// Records an atomic. One that changed no memory is a poll.
    fn record_atomic(&mut self, changed: bool) {
        self.cluster.progress += u64::from(changed);
        self.polled |= !changed;
    }

    /// Resolves the addresses of the lanes; checks bounds and alignment.
    fn resolve_lanes(
        &mut self,
        lanes: Mask,
        p: &SharedAddress,
        width: usize,
    ) -> Result<LaneAddresses, Fault> {
        let byte = self.get::<u32>(p.byte);
        let stage = self.get::<u32>(p.stage);
        let layout = self.env.kernel.tile(p.tile).layout;
        let end = u64::from(layout.rows * layout.row_bytes());
        let mut to = LaneAddresses {
            cta: [self.warp.cta; WARP],
            byte: [0; WARP],
            dense: None,
        };
        let mut base = (u32::MAX, 0);
        for lane in lanes_of(lanes) {
            if stage[lane] != base.0 {
                base = (stage[lane], self.stage_base(p.tile, stage[lane], lane)?);
            }
            let at = u64::from(byte[lane]) + u64::from(p.offset);
            if at + width as u64 > end {
                return Err(self.outside_tile(p.tile, at, width, lane));
            }
            to.byte[lane] = base.1 + at as u32;
            if !is_aligned(u64::from(to.byte[lane]), width) {
                return Err(self.misaligned(lane, at, width));
            }
        }
        if p.peer.is_some() {
            for lane in lanes_of(lanes) {
                to.cta[lane] = self.resolve_rank(p.peer, lane)?;
                self.check_not_exited(to.cta[lane])?;
            }
        } else if is_dense(lanes, &to.byte.map(u64::from), width) {
            to.dense = Some(to.byte[0]..to.byte[0] + (width * WARP) as u32);
        }
        Ok(to)
    }

    /// Counts an access and checks it for races.
    fn check_access(
        &mut self,
        lanes: Mask,
        to: &LaneAddresses,
        width: usize,
        kind: LaneAccess,
    ) -> Result<(), Fault> {
        self.count_shared(lanes, to, width, kind);
        if let Some((lane, byte)) = self.first_byte_in_flight(lanes, to, width, kind) {
            return Err(self.in_flight_race(lane, to.cta[lane], byte, kind));
        }
        if self.cluster.shadow.is_some() {
            self.check_order(lanes, to, width, kind)?;
        }
        Ok(())
    }

    /// Returns the first lane whose access conflicts with an asynchronous op in flight, and the byte.
    fn first_byte_in_flight(
        &self,
        lanes: Mask,
        to: &LaneAddresses,
        width: usize,
        kind: LaneAccess,
    ) -> Option<(usize, u32)> {
        let write = kind != LaneAccess::Load;
        let in_flight = |cta: u32, range: &Range<u32>| {
            let shared = &self.cluster.ctas[cta as usize].shared;
            shared.in_flight(range, MemoryUse::of(write))
        };
        if let Some(run) = &to.dense
            && in_flight(self.warp.cta, run).is_none()
        {
            return None;
        }
        lanes_of(lanes)
            .find_map(|lane| Some((lane, in_flight(to.cta[lane], &to.range(lane, width))?)))
    }

    /// Checks that every lane's access is ordered after all conflicting accesses. Lanes of one
    /// instruction do not conflict with each other.
    fn check_order(
        &mut self,
        lanes: Mask,
        to: &LaneAddresses,
        width: usize,
        kind: LaneAccess,
    ) -> Result<(), Fault> {
        let (Some(shadow), Some(clock)) = (&mut self.cluster.shadow, &self.warp.clock) else {
            return Ok(());
        };
        let is_volatile = self.env.code.sites[self.site as usize].facts.is_volatile;
        let accessor = |lane: usize| Accessor {
            clock,
            lane: lane as u8,
            atomic: kind == LaneAccess::Atomic || is_volatile,
        };
        let all_ordered = to.dense.as_ref().is_some_and(|run| {
            let write = kind != LaneAccess::Load;
            shadow.may_all_access(clock, self.warp.cta, run, write)
        });
        let lanes_to_check = if all_ordered { 0 } else { lanes };
        let found = lanes_of(lanes_to_check).find_map(|lane| {
            let range = to.range(lane, width);
            let check = match kind {
                LaneAccess::Load => shadow.check_read(&accessor(lane), to.cta[lane], &range),
                _ => shadow.check_write(&accessor(lane), to.cta[lane], &range),
            };
            check.map(|c| (lane, c))
        });
        if let Some((lane, c)) = found {
            return Err(self.race(Some(lane), kind.verb(), &c));
        }
        shadow.compact_if_large();
        let record = shadow.access_record(&accessor(0), self.site);
        let distinct = to.are_distinct(lanes);
        let mut remaining = lanes;
        while remaining != 0 {
            let lane = remaining.trailing_zeros() as usize;
            let (sharing, code) = match distinct {
                true => (1 << lane, LaneCode::lane(lane as u8)),
                false => {
                    let sharing = to.lanes_at_same_address(remaining, lane);
                    (sharing, shadow.lanes(sharing))
                }
            };
            remaining &= !sharing;
            let (cta, range) = (to.cta[lane], to.range(lane, width));
            let accessor = accessor(lane);
            match kind {
                LaneAccess::Load => shadow.record_read(&accessor, record, code, cta, &range),
                LaneAccess::Store if !is_volatile => shadow.record_write(record, code, cta, &range),
                _ => {
                    let has_seen = |m: &Epoch| clock.has_seen(accessor.lane, m);
                    shadow.record_update(&has_seen, record, code, cta, &range);
                }
            }
        }
        if self.env.code.sites[self.site as usize].facts.remote {
            self.record_remote_lanes(lanes, &to.cta);
        }
        Ok(())
    }

    /// Records accesses of lanes to other CTAs.
    fn record_remote_lanes(&mut self, lanes: Mask, ctas: &[u32; WARP]) {
        let own_cta = self.warp.cta;
        let mut remaining = lanes_of(lanes).filter(|&l| ctas[l] != own_cta);
        let Some(first) = remaining.next() else {
            return;
        };
        let mut remaining = remaining.fold(1 << first, |m: Mask, l| m | 1 << l);
        while remaining != 0 {
            let cta = ctas[remaining.trailing_zeros() as usize];
            let same = lanes_of(remaining).filter(|&l| ctas[l] == cta);
            let same = same.fold(0, |m, l| m | 1 << l);
            self.record_remote_access(cta, same);
            remaining &= !same;
        }
    }

    /// Builds the fault for a race with a completed access.
    #[cold]
    pub(crate) fn race(&mut self, lane: Option<usize>, verb: &str, c: &Conflict) -> Fault {
        self.lane = lane.map(|l| l as u32);
        self.other = Some(self.op_location(c.earlier.warp, c.earlier.site));
        self.race = Some(RaceKind::of(verb != "reads", c.wrote));
        let earlier_verb = if c.wrote { "wrote" } else { "read" };
        let byte = self.env.byte_name(c.byte);
        let (cause, help) = if c.earlier.thread == self.warp.id {
            (
                "lanes of one warp see each other's memory only after a warp-level sync",
                "call `warp_sync()` between the two accesses",
            )
        } else if lane.is_some_and(|l| self.another_lane_has_seen(l, &c.epoch)) {
            (
                "another lane of this warp waited for that access, but this lane did not",
                "call `warp_sync()` after the wait",
            )
        } else {
            (
                "nothing orders the two accesses",
                "let the other thread arrive at a barrier after its access, and let this thread \
                 wait for that barrier before its own access",
            )
        };
        self.help = Some(help);
        Fault::new(
            FaultKind::Race,
            format!("{verb} {byte}, which another thread {earlier_verb}; {cause}"),
        )
    }

    /// Whether another lane of the warp is ordered after an epoch.
    fn another_lane_has_seen(&self, lane: usize, m: &Epoch) -> bool {
        let clock = self.warp.clock.as_ref();
        let others = lanes_of(Mask::MAX).filter(|&l| l != lane);
        clock.is_some_and(|c| others.into_iter().any(|l| c.has_seen(l as u8, m)))
    }

    /// Builds the fault for a race with an asynchronous op in flight.
    #[cold]
    fn in_flight_race(&mut self, lane: usize, cta: u32, byte: u32, kind: LaneAccess) -> Fault {
        let write = kind != LaneAccess::Load;
        let text = self.in_flight_text(cta, byte, kind.verb(), write);
        self.lane_fault(lane, FaultKind::Race, text)
    }

    /// Describes the asynchronous op in flight on a byte.
    #[cold]
    pub(crate) fn in_flight_text(
        &mut self,
        cta: u32,
        byte: u32,
        verb: &str,
        write: bool,
    ) -> String {
        let engines = &self.cluster.engines;
        let at = ResolvedAddress { cta, byte };
        let in_flight = engines.in_flight_at(at, write);
        let writer = engines.in_flight_at(at, false);
        self.race = Some(RaceKind::of(write, writer.is_some()));
        self.other = in_flight.map(|(warp, site)| self.op_location(warp, site));
        self.help = Some(
            "wait for the asynchronous op before this access: mbarrier wait, bulk or copy group \
             wait, or wgmma wait",
        );
        let name = self.env.byte_name(byte);
        let engine_verb = if writer.is_some() {
            "writing"
        } else {
            "reading"
        };
        format!("{verb} {name} while an asynchronous op may still be {engine_verb} it")
    }

    #[cold]
    fn never_written(&mut self, lane: usize, byte: u32) -> Fault {
        let name = self.env.byte_name(byte);
        self.lane_fault(
            lane,
            FaultKind::NeverWritten,
            format!("reads {name}, which was never written"),
        )
    }

    #[cold]
    fn misaligned(&mut self, lane: usize, at: u64, width: usize) -> Fault {
        self.lane_fault(
            lane,
            FaultKind::Misaligned,
            format!("accesses {width} bytes at {at:#x}, which is not a multiple of {width}"),
        )
    }

    fn count_shared(&mut self, lanes: Mask, to: &LaneAddresses, width: usize, kind: LaneAccess) {
        let bytes = u64::from(lanes.count_ones()) * width as u64;
        let own_cta = to.dense.is_some() || lanes_of(lanes).all(|l| to.cta[l] == self.warp.cta);
        let b = &mut self.counters.bytes;
        *match (kind, own_cta) {
            (LaneAccess::Load, true) => &mut b.shared_load,
            (LaneAccess::Store, true) => &mut b.shared_store,
            (LaneAccess::Load, false) => &mut b.peer_load,
            (LaneAccess::Store, false) => &mut b.peer_store,
            (LaneAccess::Atomic, _) => &mut b.shared_atomic,
        } += bytes;
        self.warp.accesses += 1;
        if kind != LaneAccess::Load && lanes != 0 {
            // The stage of the first lane represents all lanes.
            let tile = self.env.code.sites[self.site as usize].facts.written_tile;
            let byte = to.byte[lanes.trailing_zeros() as usize];
            self.counters
                .add_tile_write(self.env.kernel, tile, byte, bytes);
        }
        let t = &mut self.counters.sites[self.site as usize];
        t.shared_accesses += 1;
        t.bytes += bytes;
        if own_cta {
            t.ideal_wavefronts += ideal_wavefronts(lanes, width);
        }
        if own_cta && to.dense.is_none() {
            t.bank_conflicts += bank_conflicts(lanes, &to.byte.map(u64::from), width);
        }
    }

    fn count_global(&mut self, lanes: Mask, at: &[u64; WARP], width: usize, kind: LaneAccess) {
        let bytes = u64::from(lanes.count_ones()) * width as u64;
        let b = &mut self.counters.bytes;
        *match kind {
            LaneAccess::Load => &mut b.global_load,
            LaneAccess::Store => &mut b.global_store,
            LaneAccess::Atomic => &mut b.global_atomic,
        } += bytes;
        self.warp.accesses += 1;
        let t = &mut self.counters.sites[self.site as usize];
        t.global_requests += 1;
        t.bytes += bytes;
        let (touched, least) = sectors(lanes, at, width);
        t.global_sectors += touched;
        t.ideal_sectors += least;
    }

    /// Returns the global addresses of the lanes; checks their alignment.
    fn global_addresses(
        &mut self,
        lanes: Mask,
        addr: Operand,
        offset: i32,
        width: usize,
    ) -> Result<[u64; WARP], Fault> {
        let at = self
            .get::<u64>(addr)
            .map(|a| a.wrapping_add_signed(i64::from(offset)));
        let is_misaligned = |at: u64| !is_aligned(at, width) && !self.env.memory.is_unbounded();
        match lanes_of(lanes).find(|&l| is_misaligned(at[l])) {
            Some(lane) => Err(self.misaligned(lane, at[lane], width)),
            None => Ok(at),
        }
    }

    /// Returns the buffer and offset of a lane's global access.
    fn buffer(&mut self, lane: usize, at: u64, width: usize) -> Result<(&Buffer, usize), Fault> {
        self.env.memory.find(at, width).inspect_err(|_| {
            self.lane = Some(lane as u32);
        })
    }

    /// Orders a volatile access as a relaxed access of system scope; returns its scope.
    fn order_volatile(&mut self, at: &[u64; WARP]) -> Option<Scope> {
        let is_volatile = self.env.code.sites[self.site as usize].facts.is_volatile;
        let order = MemoryOrder::relaxed(Scope::Sys);
        is_volatile.then(|| {
            self.apply_order(order, |lane| WordAddress::Global(at[lane]));
            order.scope
        })
    }

    pub(crate) fn load_global(
        &mut self,
        lanes: Mask,
        addr: Operand,
        offset: i32,
        width: usize,
    ) -> Result<LaneBytes, Fault> {
        let at = self.global_addresses(lanes, addr, offset, width)?;
        let mut out = [[0; 16]; WARP];
        if is_dense(lanes, &at, width)
            && let Ok((b, byte)) = self.env.memory.find(at[0], width * WARP)
            && b.check_written(byte, width * WARP).is_ok()
        {
            let mut run = [0; 16 * WARP];
            let run = &mut run[..width * WARP];
            b.get(byte, run);
            for (lane, bytes) in run.chunks_exact(width).enumerate() {
                out[lane][..width].copy_from_slice(bytes);
            }
        } else {
            for lane in lanes_of(lanes) {
                let (b, byte) = self.buffer(lane, at[lane], width)?;
                let found = b.check_written(byte, width);
                b.get(byte, &mut out[lane][..width]);
                found.inspect_err(|_| self.lane = Some(lane as u32))?;
            }
        }
        let scope = self.order_volatile(&at);
        self.check_global(lanes, &at, width, false, scope)?;
        self.count_global(lanes, &at, width, LaneAccess::Load);
        Ok(out)
    }

    pub(crate) fn store_global(
        &mut self,
        lanes: Mask,
        addr: Operand,
        offset: i32,
        width: usize,
        data: &LaneBytes,
    ) -> Result<(), Fault> {
        let at = self.global_addresses(lanes, addr, offset, width)?;
        if is_dense(lanes, &at, width)
            && let Ok((b, byte)) = self.env.memory.find(at[0], width * WARP)
        {
            let mut run = [0; 16 * WARP];
            let run = &mut run[..width * WARP];
            for (lane, bytes) in run.chunks_exact_mut(width).enumerate() {
                bytes.copy_from_slice(&data[lane][..width]);
            }
            b.put(byte, run);
        } else {
            for lane in lanes_of(lanes) {
                let (b, byte) = self.buffer(lane, at[lane], width)?;
                b.put(byte, &data[lane][..width]);
            }
        }
        let scope = self.order_volatile(&at);
        self.check_global(lanes, &at, width, true, scope)?;
        self.count_global(lanes, &at, width, LaneAccess::Store);
        Ok(())
    }

    pub(crate) fn atomic_global(
        &mut self,
        addr: Operand,
        offset: i32,
        width: usize,
        order: MemoryOrder,
        f: &mut dyn FnMut(usize, u64) -> u64,
    ) -> Result<PerLane<u64>, Fault> {
        let lanes = self.warp.active;
        let at = self.global_addresses(lanes, addr, offset, width)?;
        let write_only = self.env.code.sites[self.site as usize].facts.only_writes;
        let mut out = [0; WARP];
        let mut changed = false;
        for lane in lanes_of(lanes) {
            let (b, byte) = self.buffer(lane, at[lane], width)?;
            let mut bytes = [0; 8];
            let found = if write_only {
                Ok(())
            } else {
                b.check_written(byte, width)
            };
            b.get(byte, &mut bytes[..width]);
            let old = word(&bytes[..width]);
            let new = f(lane, old);
            if found.is_ok() && (new != old || write_only) {
                b.put(byte, &new.to_le_bytes()[..width]);
                changed = true;
            }
            found.inspect_err(|_| self.lane = Some(lane as u32))?;
            out[lane] = old;
        }
        self.record_atomic(changed);
        let writes = !self.env.code.sites[self.site as usize].facts.only_reads;
        self.check_global(lanes, &at, width, writes, Some(order.scope))?;
        self.apply_order(order, |lane| WordAddress::Global(at[lane]));
        self.count_global(lanes, &at, width, LaneAccess::Atomic);
        Ok(out)
    }
}

/// Whether an address is a multiple of `width`, which is a power of two.
fn is_aligned(at: u64, width: usize) -> bool {
    at & (width as u64 - 1) == 0
}

/// Decodes a little-endian word of up to 8 bytes.
fn word(bytes: &[u8]) -> u64 {
    let mut w = [0; 8];
    w[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(w)
}

//! Memory as lanes see it: bounds, alignment, written bytes, races, counters.

use crate::clock::Moment;
use crate::lane_sets::LaneCode;
use crate::machine::{Lockstep, lanes_of};
use crate::memory::Buffer;
use crate::order::Word;
use crate::shadow::{Conflict, Who};
use crate::shared::Use;
use crate::stats::{bank_conflicts, bank_turns, dense, sectors};
use std::ops::Range;
use warpline_ir::{
    Fault, FaultKind, LaneBytes, Lanes, Machine, Mask, MemoryOrder, Operand, Place, Scope,
    SharedAt, WARP,
};

/// How an access of lanes touches memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Load,
    Store,
    Atomic,
}

impl Kind {
    fn verb(self) -> &'static str {
        match self {
            Kind::Load => "reads",
            Kind::Store => "writes",
            Kind::Atomic => "updates",
        }
    }
}

/// Where each lane of a shared access goes.
struct Targets {
    cta: [u32; WARP],
    byte: [u32; WARP],
    /// All lanes take part and are neighbours in this CTA: the whole run.
    run: Option<Range<u32>>,
}

impl Targets {
    fn range(&self, lane: usize, width: usize) -> Range<u32> {
        self.byte[lane]..self.byte[lane] + width as u32
    }

    /// The lanes that go to the same bytes as a lane does. Ranges of one access
    /// are aligned and of one width, so that they are the same or apart.
    fn sharing(&self, lanes: Mask, lane: usize) -> Mask {
        let same = |l: &usize| self.byte[*l] == self.byte[lane] && self.cta[*l] == self.cta[lane];
        lanes_of(lanes).filter(same).fold(0, |m, l| m | 1 << l)
    }

    /// Does every lane go to bytes of its own? A quick yes, for bytes that rise with the lanes.
    fn are_apart(&self, lanes: Mask) -> bool {
        let bytes = lanes_of(lanes).map(|l| (self.cta[l], self.byte[l]));
        self.run.is_some() || bytes.is_sorted_by(|a, b| a < b)
    }
}

impl Lockstep<'_, '_> {
    pub(crate) fn load_shared(
        &mut self,
        lanes: Mask,
        p: &Place,
        width: usize,
    ) -> Result<LaneBytes, Fault> {
        let to = self.targets(lanes, p, width)?;
        self.judge(lanes, &to, width, Kind::Load)?;
        let mut out = [[0; 16]; WARP];
        if let Some(run) = &to.run
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
        p: &Place,
        width: usize,
        data: &LaneBytes,
    ) -> Result<(), Fault> {
        let to = self.targets(lanes, p, width)?;
        self.judge(lanes, &to, width, Kind::Store)?;
        if let Some(run) = &to.run {
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
        p: &Place,
        width: usize,
        order: MemoryOrder,
        f: &mut dyn FnMut(usize, u64) -> u64,
    ) -> Result<Lanes<u64>, Fault> {
        let lanes = self.warp.active;
        let to = self.targets(lanes, p, width)?;
        self.judge(lanes, &to, width, Kind::Atomic)?;
        let blind = self.env.code.sites[self.site as usize].facts.only_writes;
        let mut out = [0; WARP];
        let mut changed = false;
        for lane in lanes_of(lanes) {
            let shared = &mut self.cluster.ctas[to.cta[lane] as usize].shared;
            let old = match shared.get(to.byte[lane], width) {
                Ok(bytes) => word(bytes),
                Err(_) if blind => 0,
                Err(gap) => return Err(self.never_written(lane, gap)),
            };
            let new = f(lane, old);
            changed |= new != old || blind;
            shared.put(to.byte[lane], &new.to_le_bytes()[..width]);
            out[lane] = old;
        }
        self.changed(changed);
        self.order(order, |lane| {
            Word::Shared(SharedAt {
                cta: to.cta[lane],
                byte: to.byte[lane],
            })
        });
        Ok(out)
    }

    /// An atomic that changes nothing is a poll.
    fn changed(&mut self, changed: bool) {
        self.cluster.progress += u64::from(changed);
        self.polled |= !changed;
    }

    /// Where the lanes go, inside their tile and aligned.
    fn targets(&mut self, lanes: Mask, p: &Place, width: usize) -> Result<Targets, Fault> {
        let byte = self.get::<u32>(p.byte);
        let stage = self.get::<u32>(p.stage);
        let layout = self.env.kernel.tile(p.tile).layout;
        let end = u64::from(layout.rows * layout.row_bytes());
        let mut to = Targets {
            cta: [self.warp.cta; WARP],
            byte: [0; WARP],
            run: None,
        };
        let mut base = (u32::MAX, 0);
        for lane in lanes_of(lanes) {
            if stage[lane] != base.0 {
                base = (stage[lane], self.stage_base(p.tile, stage[lane], lane)?);
            }
            let at = u64::from(byte[lane]) + u64::from(p.offset);
            if at + width as u64 > end {
                return Err(self.outside(p.tile, at, width, lane));
            }
            to.byte[lane] = base.1 + at as u32;
            if !is_aligned(u64::from(to.byte[lane]), width) {
                return Err(self.misaligned(lane, at, width));
            }
        }
        if p.peer.is_some() {
            for lane in lanes_of(lanes) {
                to.cta[lane] = self.rank(p.peer, lane)?;
                self.check_here(to.cta[lane])?;
            }
        } else if dense(lanes, &to.byte.map(u64::from), width) {
            to.run = Some(to.byte[0]..to.byte[0] + (width * WARP) as u32);
        }
        Ok(to)
    }

    /// Counts an access and looks for races.
    fn judge(&mut self, lanes: Mask, to: &Targets, width: usize, kind: Kind) -> Result<(), Fault> {
        self.count_shared(lanes, to, width, kind);
        if let Some((lane, byte)) = self.meets_flight(lanes, to, width, kind) {
            return Err(self.in_flight(lane, to.cta[lane], byte, kind));
        }
        if self.cluster.shadow.is_some() {
            self.judge_order(lanes, to, width, kind)?;
        }
        Ok(())
    }

    /// The first lane and byte that share memory with work in flight.
    fn meets_flight(
        &self,
        lanes: Mask,
        to: &Targets,
        width: usize,
        kind: Kind,
    ) -> Option<(usize, u32)> {
        let write = kind != Kind::Load;
        let over = |cta: u32, range: &Range<u32>| {
            let shared = &self.cluster.ctas[cta as usize].shared;
            shared.in_flight(range, Use::of(write))
        };
        if let Some(run) = &to.run
            && over(self.warp.cta, run).is_none()
        {
            return None;
        }
        lanes_of(lanes).find_map(|lane| Some((lane, over(to.cta[lane], &to.range(lane, width))?)))
    }

    /// Is every lane's access ordered after all that it conflicts with? Lanes
    /// of one instruction do not conflict with each other.
    fn judge_order(
        &mut self,
        lanes: Mask,
        to: &Targets,
        width: usize,
        kind: Kind,
    ) -> Result<(), Fault> {
        let (Some(shadow), Some(clock)) = (&mut self.cluster.shadow, &self.warp.clock) else {
            return Ok(());
        };
        let strong = self.env.code.sites[self.site as usize].facts.strong;
        let who = |lane: usize| Who {
            clock,
            lane: lane as u8,
            atomic: kind == Kind::Atomic || strong,
        };
        let clear = to.run.as_ref().is_some_and(|run| {
            let write = kind != Kind::Load;
            shadow.is_clear(clock, self.warp.cta, run, write)
        });
        let lanes_to_judge = if clear { 0 } else { lanes };
        let found = lanes_of(lanes_to_judge).find_map(|lane| {
            let range = to.range(lane, width);
            let check = match kind {
                Kind::Load => shadow.check_read(&who(lane), to.cta[lane], &range),
                _ => shadow.check_write(&who(lane), to.cta[lane], &range),
            };
            check.map(|c| (lane, c))
        });
        if let Some((lane, c)) = found {
            return Err(self.race(Some(lane), kind.verb(), &c));
        }
        shadow.tidy();
        let record = shadow.access(&who(0), self.site);
        let apart = to.are_apart(lanes);
        let mut left = lanes;
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            let (sharing, code) = match apart {
                true => (1 << lane, LaneCode::lane(lane as u8)),
                false => {
                    let sharing = to.sharing(left, lane);
                    (sharing, shadow.lanes(sharing))
                }
            };
            left &= !sharing;
            let (cta, range) = (to.cta[lane], to.range(lane, width));
            let who = who(lane);
            match kind {
                Kind::Load => shadow.read(&who, record, code, cta, &range),
                Kind::Store if !strong => shadow.wrote(record, code, cta, &range),
                _ => {
                    let knows = |m: &Moment| clock.knows(who.lane, m);
                    shadow.updated(&knows, record, code, cta, &range);
                }
            }
        }
        if self.env.code.sites[self.site as usize].facts.remote {
            self.reach_lanes(lanes, &to.cta);
        }
        Ok(())
    }

    /// Notes that lanes reach into other CTAs.
    fn reach_lanes(&mut self, lanes: Mask, ctas: &[u32; WARP]) {
        let own = self.warp.cta;
        let mut left = lanes_of(lanes).filter(|&l| ctas[l] != own);
        let Some(first) = left.next() else { return };
        let mut left = left.fold(1 << first, |m: Mask, l| m | 1 << l);
        while left != 0 {
            let cta = ctas[left.trailing_zeros() as usize];
            let same = lanes_of(left).filter(|&l| ctas[l] == cta);
            let same = same.fold(0, |m, l| m | 1 << l);
            self.reach_into(cta, same);
            left &= !same;
        }
    }

    /// A race with an access that is over.
    #[cold]
    pub(crate) fn race(&mut self, lane: Option<usize>, verb: &str, c: &Conflict) -> Fault {
        self.lane = lane.map(|l| l as u32);
        self.other = Some(self.party(c.with.warp, c.with.site));
        let did = if c.wrote { "written" } else { "read" };
        let byte = self.env.byte_name(c.byte);
        let same = if c.with.thread == self.warp.id {
            "lanes of one warp see each other's memory only after a warp-level sync"
        } else if lane.is_some_and(|l| self.another_knows(l, &c.moment)) {
            "another lane of the warp has waited for it, and this lane has not: \
             a warp-level sync after that wait is missing"
        } else {
            "nothing orders the two"
        };
        Fault::new(
            FaultKind::Race,
            format!("{verb} {byte}, {did} before by another thread; {same}"),
        )
    }

    /// Does another lane of the warp know of a moment that a lane does not know of?
    fn another_knows(&self, lane: usize, m: &Moment) -> bool {
        let clock = self.warp.clock.as_ref();
        let others = lanes_of(Mask::MAX).filter(|&l| l != lane);
        clock.is_some_and(|c| others.into_iter().any(|l| c.knows(l as u8, m)))
    }

    /// A race with work in flight.
    #[cold]
    fn in_flight(&mut self, lane: usize, cta: u32, byte: u32, kind: Kind) -> Fault {
        let write = kind != Kind::Load;
        let text = self.flight_text(cta, byte, kind.verb(), write);
        self.fault_in(lane, FaultKind::Race, text)
    }

    /// Names the work in flight over a byte.
    #[cold]
    pub(crate) fn flight_text(&mut self, cta: u32, byte: u32, verb: &str, write: bool) -> String {
        let over = self.cluster.engines.over(SharedAt { cta, byte }, write);
        self.other = over.map(|(warp, site)| self.party(warp, site));
        let name = self.env.byte_name(byte);
        format!("{verb} {name} while an asynchronous op is at work on it")
    }

    #[cold]
    fn never_written(&mut self, lane: usize, byte: u32) -> Fault {
        let name = self.env.byte_name(byte);
        self.fault_in(
            lane,
            FaultKind::NeverWritten,
            format!("reads {name}, which was never written"),
        )
    }

    #[cold]
    fn misaligned(&mut self, lane: usize, at: u64, width: usize) -> Fault {
        self.fault_in(
            lane,
            FaultKind::Misaligned,
            format!("reaches {width} bytes at {at:#x}, which is no multiple of {width}"),
        )
    }

    fn count_shared(&mut self, lanes: Mask, to: &Targets, width: usize, kind: Kind) {
        let bytes = u64::from(lanes.count_ones()) * width as u64;
        let own = to.run.is_some() || lanes_of(lanes).all(|l| to.cta[l] == self.warp.cta);
        let b = &mut self.counters.bytes;
        *match (kind, own) {
            (Kind::Load, true) => &mut b.shared_load,
            (Kind::Store, true) => &mut b.shared_store,
            (Kind::Load, false) => &mut b.peer_load,
            (Kind::Store, false) => &mut b.peer_store,
            (Kind::Atomic, _) => &mut b.shared_atomic,
        } += bytes;
        self.warp.accesses += 1;
        if kind != Kind::Load && lanes != 0 {
            // The stage of the first lane stands for all.
            let tile = self.env.code.sites[self.site as usize].facts.writes;
            let byte = to.byte[lanes.trailing_zeros() as usize];
            self.counters.written(self.env.kernel, tile, byte, bytes);
        }
        let t = &mut self.counters.sites[self.site as usize];
        t.shared_accesses += 1;
        t.bytes += bytes;
        if own {
            t.bank_turns += bank_turns(lanes, width);
        }
        if own && to.run.is_none() {
            t.bank_conflicts += bank_conflicts(lanes, &to.byte.map(u64::from), width);
        }
    }

    fn count_global(&mut self, lanes: Mask, at: &[u64; WARP], width: usize, kind: Kind) {
        let bytes = u64::from(lanes.count_ones()) * width as u64;
        let b = &mut self.counters.bytes;
        *match kind {
            Kind::Load => &mut b.global_load,
            Kind::Store => &mut b.global_store,
            Kind::Atomic => &mut b.global_atomic,
        } += bytes;
        self.warp.accesses += 1;
        let t = &mut self.counters.sites[self.site as usize];
        t.global_requests += 1;
        t.bytes += bytes;
        let (touched, least) = sectors(lanes, at, width);
        t.global_sectors += touched;
        t.least_sectors += least;
    }

    /// The global addresses of the lanes, aligned.
    fn addresses(
        &mut self,
        lanes: Mask,
        addr: Operand,
        offset: i32,
        width: usize,
    ) -> Result<[u64; WARP], Fault> {
        let at = self
            .get::<u64>(addr)
            .map(|a| a.wrapping_add_signed(i64::from(offset)));
        let is_bad = |at: u64| !is_aligned(at, width) && !self.env.memory.is_open();
        match lanes_of(lanes).find(|&l| is_bad(at[l])) {
            Some(lane) => Err(self.misaligned(lane, at[lane], width)),
            None => Ok(at),
        }
    }

    /// The buffer and the first byte of a lane's global access.
    fn buffer(&mut self, lane: usize, at: u64, width: usize) -> Result<(&Buffer, usize), Fault> {
        self.env.memory.find(at, width).inspect_err(|_| {
            self.lane = Some(lane as u32);
        })
    }

    /// A volatile access is relaxed, of the widest scope.
    fn volatile(&mut self, at: &[u64; WARP]) -> Option<Scope> {
        let strong = self.env.code.sites[self.site as usize].facts.strong;
        let order = MemoryOrder::relaxed(Scope::Sys);
        strong.then(|| {
            self.order(order, |lane| Word::Global(at[lane]));
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
        let at = self.addresses(lanes, addr, offset, width)?;
        let mut out = [[0; 16]; WARP];
        if dense(lanes, &at, width)
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
        let scope = self.volatile(&at);
        self.judge_global(lanes, &at, width, false, scope)?;
        self.count_global(lanes, &at, width, Kind::Load);
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
        let at = self.addresses(lanes, addr, offset, width)?;
        if dense(lanes, &at, width)
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
        let scope = self.volatile(&at);
        self.judge_global(lanes, &at, width, true, scope)?;
        self.count_global(lanes, &at, width, Kind::Store);
        Ok(())
    }

    pub(crate) fn atomic_global(
        &mut self,
        addr: Operand,
        offset: i32,
        width: usize,
        order: MemoryOrder,
        f: &mut dyn FnMut(usize, u64) -> u64,
    ) -> Result<Lanes<u64>, Fault> {
        let lanes = self.warp.active;
        let at = self.addresses(lanes, addr, offset, width)?;
        let blind = self.env.code.sites[self.site as usize].facts.only_writes;
        let mut out = [0; WARP];
        let mut changed = false;
        for lane in lanes_of(lanes) {
            let (b, byte) = self.buffer(lane, at[lane], width)?;
            let mut bytes = [0; 8];
            let found = if blind {
                Ok(())
            } else {
                b.check_written(byte, width)
            };
            b.get(byte, &mut bytes[..width]);
            let old = word(&bytes[..width]);
            let new = f(lane, old);
            if found.is_ok() && (new != old || blind) {
                b.put(byte, &new.to_le_bytes()[..width]);
                changed = true;
            }
            found.inspect_err(|_| self.lane = Some(lane as u32))?;
            out[lane] = old;
        }
        self.changed(changed);
        let writes = !self.env.code.sites[self.site as usize].facts.only_reads;
        self.judge_global(lanes, &at, width, writes, Some(order.scope))?;
        self.order(order, |lane| Word::Global(at[lane]));
        self.count_global(lanes, &at, width, Kind::Atomic);
        Ok(out)
    }
}

/// Is an address a multiple of a width, which is a power of two?
fn is_aligned(at: u64, width: usize) -> bool {
    at & (width as u64 - 1) == 0
}

/// A little-endian word of up to 8 bytes.
fn word(bytes: &[u8]) -> u64 {
    let mut w = [0; 8];
    w[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(w)
}

//! `cp.async`: copies, groups, and `cp.async.mbarrier.arrive`.
//!
//! The copies of a warp are numbered in issue order; all lanes that run one instruction share its
//! number. A commit records the current number, and a wait waits until all copies of the lane below
//! that number are complete. An arrival fires per lane when all earlier copies of the lane are
//! complete.

use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::complete::AsyncFault;
use crate::lane_sets::LaneCode;
use crate::machine::{WarpMachine, lanes_of};
use crate::shared_memory::MemoryUse;
use crate::shared_shadow::Accessor;
use crate::stats::{bank_conflicts, ideal_wavefronts};
use crate::warp::Waiting;
use std::ops::Range;
use warpline_ir::job::CopyJob;
use warpline_ir::{
    BarRef, Exec, ExecStatus, Fault, FaultKind, Job, Mask, ResolvedAddress, ResolvedBarrier, Span,
    WARP,
};

/// The `cp.async` copies of one warp.
#[derive(Debug, Default)]
pub(crate) struct LaneCopies {
    /// The number of issued copies.
    issued: u32,
    /// Incomplete copies, oldest first, with their incomplete lanes.
    open: Vec<(u32, Mask)>,
    /// Groups that no wait has retired, oldest first: lanes, and copies issued before the commit.
    groups: Vec<(Mask, u32)>,
    /// Arrivals that have not fired for all lanes.
    arrivals: Vec<CopyArrival>,
}

/// Arrivals of some lanes at one mbarrier after their copies.
#[derive(Debug)]
struct CopyArrival {
    bar: ResolvedBarrier,
    /// The lanes that have not arrived.
    lanes: Mask,
    /// Each lane arrives after its copies below this number.
    end: u32,
    /// The op.
    site: u32,
    /// The clock of the lanes.
    clock: Option<Box<Clock>>,
}

impl LaneCopies {
    /// Adds a copy of some lanes; returns its number.
    pub(crate) fn issue(&mut self, lanes: Mask) -> u32 {
        self.issued += 1;
        self.open.push((self.issued - 1, lanes));
        self.issued - 1
    }

    fn commit(&mut self, lanes: Mask) {
        self.groups.push((lanes, self.issued));
    }

    /// Returns one more than the number of the last copy that a wait of a lane covers.
    fn end(&self, lane: u32, pending: Option<u32>) -> u32 {
        let Some(pending) = pending else {
            return self.issued;
        };
        let groups_of_lane = self.groups.iter().filter(|g| g.0 >> lane & 1 == 1);
        let covered = groups_of_lane
            .clone()
            .count()
            .saturating_sub(pending as usize);
        groups_of_lane.take(covered).last().map_or(0, |g| g.1)
    }

    /// Whether a copy of a lane below `end` is incomplete.
    pub(crate) fn is_open(&self, lane: u32, end: u32) -> bool {
        self.open_below(end) >> lane & 1 == 1
    }

    /// Returns the lanes with an incomplete copy below `end`.
    fn open_below(&self, end: u32) -> Mask {
        let below = self.open.iter().filter(|c| c.0 < end);
        below.fold(0, |m, c| m | c.1)
    }

    /// Returns the number of incomplete copies of a lane.
    pub(crate) fn open_count(&self, lane: u32) -> u32 {
        self.open.iter().filter(|c| c.1 >> lane & 1 == 1).count() as u32
    }

    /// Retires the groups of a lane whose copies are all below `end`.
    fn retire(&mut self, lane: u32, end: u32) {
        for g in self.groups.iter_mut().filter(|g| g.1 <= end) {
            g.0 &= !(1 << lane);
        }
        self.groups.retain(|g| g.0 != 0);
    }

    /// Completes a copy for some lanes.
    fn complete(&mut self, number: u32, lanes: Mask) {
        for c in self.open.iter_mut().filter(|c| c.0 == number) {
            c.1 &= !lanes;
        }
        self.open.retain(|c| c.1 != 0);
    }

    /// Whether an arrival at `bar` waits for a copy.
    pub(crate) fn arrival_needs(&self, bar: ResolvedBarrier, number: u32) -> bool {
        let lanes = self.open.iter().find(|c| c.0 == number).map_or(0, |c| c.1);
        let waits = |a: &CopyArrival| a.bar == bar && number < a.end && a.lanes & lanes != 0;
        self.arrivals.iter().any(waits)
    }

    /// Returns the next arrival that can fire, and its ready lanes.
    fn next_ready(&mut self) -> Option<(usize, Mask)> {
        let lanes = |a: &CopyArrival| a.lanes & !self.open_below(a.end);
        let mut all = self.arrivals.iter().map(lanes).enumerate();
        all.find(|(_, lanes)| *lanes != 0)
    }
}

/// Completes one piece of a copy: records its writes and fires arrivals.
pub(crate) fn complete_piece(
    cluster: &mut Cluster,
    job: &CopyJob,
    piece: u32,
    (number, warp, site): (u32, u32, u32),
) -> Result<(), AsyncFault> {
    let stream = cluster.threads.copy_stream(warp);
    let mut lanes = 0;
    if let Some(shadow) = &mut cluster.shadow {
        shadow.compact_if_large();
        let record = shadow.engine_record(stream, number, site, warp, false);
        for (lane, at, bytes) in job.written(piece) {
            let range = at.byte..at.byte + bytes;
            shadow.record_write(record, LaneCode::lane(lane as u8), at.cta, &range);
        }
    }
    for (lane, _, _) in job.written(piece) {
        lanes |= 1 << lane;
    }
    job.piece_writes(piece, &mut |s| cluster.unclaim(s, MemoryUse::Write));
    cluster.engines.lane_copies[warp as usize].complete(number, lanes);
    fire_arrivals(cluster, warp)
}

/// Fires the arrivals of lanes whose copies are complete.
fn fire_arrivals(cluster: &mut Cluster, warp: u32) -> Result<(), AsyncFault> {
    let stream = cluster.threads.copy_stream(warp);
    let copies = &mut cluster.engines.lane_copies[warp as usize];
    while let Some((i, lanes)) = copies.next_ready() {
        let a = &mut copies.arrivals[i];
        a.lanes &= !lanes;
        let b = &mut cluster.ctas[a.bar.cta as usize].bars[a.bar.slot as usize];
        if let Some(p) = &mut b.clocks {
            p.arrived_clock.advance_lanes(stream, lanes, a.end);
            a.clock.iter().for_each(|c| p.arrived_clock.join(c));
        }
        let mut arrived = b.check_live();
        for _ in lanes_of(lanes) {
            arrived = arrived.and_then(|()| b.arrive(1, false).map(|_| ()));
        }
        let site = a.site;
        arrived.map_err(|fault| AsyncFault { fault, warp, site })?;
        if a.lanes == 0 {
            copies.arrivals.remove(i);
        }
    }
    Ok(())
}

impl WarpMachine<'_, '_> {
    /// Issues a copy. Each lane must be ordered after all accesses to the bytes that it will write.
    pub(crate) fn issue_copy(&mut self, job: CopyJob) -> Result<(), Fault> {
        for piece in 0..job.pieces() {
            let mut spans = Vec::new();
            job.piece_writes(piece, &mut |s| spans.push(s));
            for &span in &spans {
                self.check_copy(&job, piece, span)?;
            }
        }
        for piece in 0..job.pieces() {
            job.piece_writes(piece, &mut |s| {
                if let Span::Shared(at, len) = s {
                    let shared = &mut self.cluster.ctas[at.cta as usize].shared;
                    shared.claim(&(at.byte..at.byte + len), MemoryUse::Write);
                }
            });
        }
        let number = self.cluster.engines.lane_copies[self.warp.id as usize].issued;
        self.check_copy_reads(&job, number)?;
        self.count_copy(&job);
        self.cluster.progress += 1;
        self.submitted = true;
        let engines = &mut self.cluster.engines;
        engines.add_copy(Job::Copy(job), self.warp, self.site, None);
        Ok(())
    }

    fn check_copy(&mut self, job: &CopyJob, piece: u32, span: Span) -> Result<(), Fault> {
        let Span::Shared(ResolvedAddress { cta, byte }, len) = span else {
            return Ok(());
        };
        let range: Range<u32> = byte..byte + len;
        let shared = &self.cluster.ctas[cta as usize].shared;
        if let Some(byte) = shared.in_flight(&range, MemoryUse::Write) {
            let text = self.in_flight_text(cta, byte, "writes", true);
            return Err(Fault::new(FaultKind::Race, text));
        }
        let (Some(shadow), Some(clock)) = (&self.cluster.shadow, &self.warp.clock) else {
            return Ok(());
        };
        if shadow.may_all_access(clock, cta, &range, true) {
            return Ok(());
        }
        let found = job.written(piece).find_map(|(lane, at, bytes)| {
            let accessor = Accessor {
                clock,
                lane: lane as u8,
                atomic: false,
            };
            let conflict = shadow.check_write(&accessor, at.cta, &(at.byte..at.byte + bytes))?;
            Some((lane, conflict))
        });
        match found {
            Some((lane, c)) => Err(self.race(Some(lane), "writes", &c)),
            None => Ok(()),
        }
    }

    /// Counts the traffic of a copy in both memories.
    fn count_copy(&mut self, job: &CopyJob) {
        self.warp.async_ops += 1;
        let tile = self.env.code.sites[self.site as usize].facts.written_tile;
        let (lanes, mut at, mut width) = (job.lanes(), [0; WARP], 0);
        for (lane, to, bytes) in (0..job.pieces()).flat_map(|p| job.written(p)) {
            at[lane] = u64::from(to.byte);
            width = bytes as usize;
            (self.counters).add_tile_write(self.env.kernel, tile, to.byte, bytes.into());
        }
        let (mut sectors, mut bytes) = (Vec::new(), 0);
        job.reads(&mut |s| {
            if let Span::Global(from, len @ 1..) = s {
                sectors.extend(from / 32..=(from + u64::from(len) - 1) / 32);
                bytes += u64::from(len);
            }
        });
        sectors.sort_unstable();
        sectors.dedup();
        let t = &mut self.counters.sites[self.site as usize];
        t.shared_accesses += 1;
        t.ideal_wavefronts += ideal_wavefronts(lanes, width);
        t.bank_conflicts += bank_conflicts(lanes, &at, width);
        t.global_requests += 1;
        t.global_sectors += sectors.len() as u64;
        t.ideal_sectors += bytes.div_ceil(32);
        t.bytes += bytes;
    }

    pub(crate) fn copy_commit(&mut self) -> Exec {
        self.cluster.engines.lane_copies[self.warp.id as usize].commit(self.warp.active);
        Ok(ExecStatus::Completed)
    }

    pub(crate) fn copy_wait(&mut self, pending: Option<u32>) -> Exec {
        let copies = &mut self.cluster.engines.lane_copies[self.warp.id as usize];
        let end: [u32; 32] = std::array::from_fn(|lane| copies.end(lane as u32, pending));
        for lane in lanes_of(self.warp.active) {
            let (lane, end) = (lane as u32, end[lane]);
            if copies.is_open(lane, end) {
                return self.block_on(Waiting::Copies { lane, end });
            }
        }
        let mut remaining = self.warp.active;
        while remaining != 0 {
            // Lanes with the same number acquire together.
            let number = end[remaining.trailing_zeros() as usize];
            let same_end = lanes_of(remaining).filter(|&l| end[l] == number);
            let same_end = same_end.fold(0, |m, l| m | 1 << l);
            if let (Some(c), 1..) = (&mut self.warp.clock, number) {
                c.advance_own_copies(
                    self.cluster.threads.copy_stream(self.warp.id),
                    same_end,
                    number,
                );
            }
            remaining &= !same_end;
        }
        for lane in lanes_of(self.warp.active) {
            copies.retire(lane as u32, end[lane]);
        }
        Ok(ExecStatus::Completed)
    }

    /// Lets each active lane arrive when its copies are complete. `is_counted`: the arrival count
    /// of the mbarrier includes these arrivals.
    pub(crate) fn copy_arrive(&mut self, bar: &BarRef, is_counted: bool) -> Exec {
        let active = self.warp.active;
        let mut by_bar: Vec<(ResolvedBarrier, Mask)> = Vec::new();
        for lane in lanes_of(active) {
            let at = self.live_bar(bar, lane)?;
            match by_bar.iter_mut().find(|b| b.0 == at) {
                Some(b) => b.1 |= 1 << lane,
                None => by_bar.push((at, 1 << lane)),
            }
        }
        let id = self.warp.id as usize;
        for (bar, lanes) in by_bar {
            self.record_phase_use(bar);
            if !is_counted {
                let b = &mut self.cluster.ctas[bar.cta as usize].bars[bar.slot as usize];
                b.expect_arrivals(lanes.count_ones())?;
            }
            let clock = self.warp.clock.as_ref().map(|c| {
                let mut published = Box::new(Clock::new(&self.cluster.threads));
                c.publish_acquired(lanes, &mut published);
                published
            });
            let copies = &mut self.cluster.engines.lane_copies[id];
            copies.arrivals.push(CopyArrival {
                bar,
                lanes,
                end: copies.issued,
                site: self.site,
                clock,
            });
        }
        fire_arrivals(self.cluster, self.warp.id).map_err(|f| f.fault)?;
        self.cluster.notify();
        Ok(ExecStatus::Completed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BAR: ResolvedBarrier = ResolvedBarrier { cta: 0, slot: 0 };

    #[test]
    fn a_wait_covers_all_but_the_youngest_groups_of_its_lane() {
        let mut c = LaneCopies::default();
        c.issue(0b11);
        c.commit(0b11);
        c.issue(0b01);
        c.commit(0b01);
        c.issue(0b11);
        assert_eq!([0, 1, 2].map(|n| c.end(0, Some(n))), [2, 1, 0]);
        assert_eq!([0, 1].map(|n| c.end(1, Some(n))), [1, 0]);
        assert_eq!(
            (c.end(1, None), c.open_count(0), c.open_count(1)),
            (3, 3, 2)
        );
        assert!(c.is_open(0, 1) && !c.is_open(2, 3));
        c.complete(0, 0b01);
        assert!(!c.is_open(0, 1) && c.is_open(1, 1) && c.is_open(0, 2));
        c.retire(0, 1);
        assert_eq!([0, 1].map(|n| c.end(0, Some(n))), [2, 0]);
        assert_eq!(c.end(1, Some(0)), 1);
    }

    #[test]
    fn an_empty_group_is_complete() {
        let mut c = LaneCopies::default();
        c.commit(1);
        assert_eq!(c.end(0, Some(0)), 0);
        assert!(!c.is_open(0, c.end(0, Some(0))));
    }

    #[test]
    fn an_arrival_fires_per_lane_after_its_earlier_copies() {
        let mut c = LaneCopies::default();
        let first = c.issue(0b11);
        c.arrivals.push(CopyArrival {
            bar: BAR,
            lanes: 0b111,
            end: c.issued,
            site: 0,
            clock: None,
        });
        let second = c.issue(0b11);
        assert!(c.arrival_needs(BAR, first) && !c.arrival_needs(BAR, second));
        assert_eq!(c.next_ready(), Some((0, 0b100)));
        c.complete(first, 0b10);
        assert_eq!(c.next_ready(), Some((0, 0b110)));
    }
}

//! Race checks of global memory.

use crate::env::Env;
use crate::error::RaceKind;
use crate::global_memory::split_address;
use crate::global_shadow::{
    AccessLanes, ConflictReason, GlobalConflict, GlobalRecord, PendingAccess,
};
use crate::machine::{WarpMachine, lanes_of};
use crate::stats::is_dense;
use crate::warp_clock::ALL_LANES;
use std::ops::Range;
use warpline_ir::job::CopyJob;
use warpline_ir::{Fault, FaultKind, Job, JobCompletion, Mask, Scope, Span, WARP};

/// The rule of unordered conflicting accesses.
const RULE_WRITER: &str = "R18.writer";
/// The rule of strong accesses whose scopes do not include each other.
const RULE_SCOPE: &str = "R18.scope";
/// The rule of read-only loads.
const RULE_READ_ONLY: &str = "R18.read-only";

/// Returns the usual fix of a race in global memory.
pub(crate) fn global_help(reason: ConflictReason) -> &'static str {
    match reason {
        ConflictReason::Order => {
            "order the accesses: a release after the first and an acquire before the second, or a \
             barrier between them"
        }
        ConflictReason::Scope => {
            "use a scope that includes both threads: `Scope::Cluster` or `Scope::Gpu`"
        }
        ConflictReason::ReadOnly => "use a plain load, or write the bytes in an earlier launch",
    }
}

impl WarpMachine<'_, '_> {
    /// Checks and records an in-bounds access of lanes.
    pub(crate) fn check_global(
        &mut self,
        lanes: Mask,
        at: &[u64; WARP],
        width: usize,
        writes: bool,
        scope: Option<Scope>,
    ) -> Result<(), Fault> {
        let read_only = self.env.code.sites[self.site as usize].facts.read_only;
        let (Some(global), Some(clock)) = (self.global.as_mut(), self.warp.clock.as_deref()) else {
            return Ok(());
        };
        let access = |lanes: AccessLanes, lane: u8| PendingAccess {
            record: GlobalRecord {
                cluster: self.cluster.index,
                warp: self.warp.id,
                site: self.site,
                thread: self.warp.id,
                clock: clock.now,
                scope,
                lanes,
            },
            clock: Some(clock),
            lane,
            writes,
        };
        if is_dense(lanes, at, width) && split_address(at[0]).0 == split_address(at[WARP - 1]).0 {
            let (buffer, start) = split_address(at[0]);
            let range = start..start + (width * WARP) as u64;
            if read_only {
                let record = global.intern_record(access(AccessLanes::Explicit, 0).record);
                return self.check_read_only_load(record, buffer, &range, |byte| {
                    (byte - start) as usize / width
                });
            }
            let access = access(AccessLanes::dense(start, width), ALL_LANES);
            if let Some(c) = global.check(&access, buffer, &range) {
                let lane = (c.byte - start) as usize / width;
                return Err(self.global_race(Some(lane), buffer, writes, &c));
            }
            let record = global.intern_record(access.record);
            global.record_access(&access, record, buffer, &range);
            return Ok(());
        }
        let range = |lane: usize| {
            let (buffer, start) = split_address(at[lane]);
            (buffer, start..start + width as u64)
        };
        let record = global.intern_record(access(AccessLanes::Explicit, 0).record);
        if read_only {
            return lanes_of(lanes).try_for_each(|lane| {
                let (buffer, range) = range(lane);
                self.check_read_only_load(record, buffer, &range, |_| lane)
            });
        }
        // Fast path for polling: all lanes read one word.
        let first = lanes.trailing_zeros() as usize % WARP;
        if !writes && lanes_of(lanes).all(|l| at[l] == at[first]) {
            let (buffer, range) = range(first);
            let accessor_lane = if lanes.is_power_of_two() {
                first as u8
            } else {
                ALL_LANES
            };
            let access = access(AccessLanes::Explicit, accessor_lane);
            if global.may_all_access(&access, buffer, &range) {
                global.record_access(&access, record, buffer, &range);
                return Ok(());
            }
        }
        // Lanes of one op do not conflict with each other.
        for lane in lanes_of(lanes) {
            let (buffer, range) = range(lane);
            if let Some(c) =
                global.check(&access(AccessLanes::Explicit, lane as u8), buffer, &range)
            {
                return Err(self.global_race(Some(lane), buffer, writes, &c));
            }
        }
        for lane in lanes_of(lanes) {
            let (buffer, range) = range(lane);
            global.record_access(
                &access(AccessLanes::Explicit, lane as u8),
                record,
                buffer,
                &range,
            );
        }
        Ok(())
    }

    /// Checks and records a read-only load.
    fn check_read_only_load(
        &mut self,
        record: u32,
        buffer: usize,
        range: &Range<u64>,
        lane: impl Fn(u64) -> usize,
    ) -> Result<(), Fault> {
        let Some(global) = self.global.as_mut() else {
            return Ok(());
        };
        if let Some(c) = global.check_read_only(buffer, range) {
            return Err(self.global_race(Some(lane(c.byte)), buffer, false, &c));
        }
        global.record_read_only(record, buffer, range);
        Ok(())
    }

    /// Checks and records the accesses of an asynchronous op, for a lane or the whole warp.
    pub(crate) fn check_job(&mut self, job: &Job, lane: u8) -> Result<(), Fault> {
        if self.global.is_none() {
            return Ok(());
        }
        let (id, threads) = (self.warp.id, &self.cluster.threads);
        let (reads, writes, recorded_lane) = match job.completion() {
            JobCompletion::Bytes(bar) => {
                let phase = self.cluster.ctas[bar.cta as usize].bars[bar.slot as usize].phase;
                let reads = (threads.barrier(bar.cta, bar.slot), phase);
                (reads, reads, ALL_LANES)
            }
            JobCompletion::BulkGroup { lane } => (
                (threads.bulk_reads(id), self.warp.bulk_copies),
                (threads.bulk_writes(id), self.warp.bulk_copies),
                lane as u8,
            ),
            // A prefetch has no wait; wgmmas do not access global memory.
            JobCompletion::WgmmaGroup | JobCompletion::CopyGroup { .. } | JobCompletion::None => {
                return Ok(());
            }
        };
        let mut spans = Vec::new();
        job.reads(&mut |s| spans.push((s, reads, false, None)));
        let scope = job.is_reduction().then_some(Scope::Gpu);
        job.writes(&mut |s| spans.push((s, writes, true, scope)));
        for (span, engine, writes, scope) in spans {
            if let Span::Global(addr, len) = span {
                self.check_span((addr, len), lane, recorded_lane, engine, writes, scope)?;
            }
        }
        Ok(())
    }

    /// Checks and records the reads of a `cp.async`; `number` is the copy's number.
    pub(crate) fn check_copy_reads(&mut self, job: &CopyJob, number: u32) -> Result<(), Fault> {
        if self.global.is_none() {
            return Ok(());
        }
        let stream = self.cluster.threads.copy_stream(self.warp.id);
        for (lane, addr, len) in job.read() {
            let lane = lane as u8;
            self.check_span((addr, len), lane, lane, (stream, number), false, None)?;
        }
        Ok(())
    }

    /// Checks a range against the clock of `checked_lane`, and records it for `recorded_lane` of an
    /// engine.
    fn check_span(
        &mut self,
        (addr, len): (u64, u32),
        checked_lane: u8,
        recorded_lane: u8,
        (thread, number): (u32, u32),
        writes: bool,
        scope: Option<Scope>,
    ) -> Result<(), Fault> {
        let (Some(global), Some(clock)) = (self.global.as_mut(), self.warp.clock.as_deref()) else {
            return Ok(());
        };
        // An out-of-bounds range faults at completion.
        if len == 0 || self.env.memory.find(addr, len as usize).is_err() {
            return Ok(());
        }
        let (buffer, start) = split_address(addr);
        let range = start..start + u64::from(len);
        let mut access = PendingAccess {
            record: GlobalRecord {
                cluster: self.cluster.index,
                warp: self.warp.id,
                site: self.site,
                thread,
                clock: number,
                scope,
                lanes: AccessLanes::Explicit,
            },
            clock: Some(clock),
            lane: checked_lane,
            writes,
        };
        if let Some(c) = global.check(&access, buffer, &range) {
            return Err(self.global_race(None, buffer, writes, &c));
        }
        access.lane = recorded_lane;
        let record = global.intern_record(access.record);
        global.record_access(&access, record, buffer, &range);
        Ok(())
    }

    #[cold]
    fn global_race(
        &mut self,
        lane: Option<usize>,
        buffer: usize,
        writes: bool,
        c: &GlobalConflict,
    ) -> Fault {
        self.lane = lane.map(|l| l as u32);
        self.other = Some(
            self.env
                .op_location(c.earlier.cluster, c.earlier.warp, c.earlier.site),
        );
        self.race = Some(RaceKind::of(writes, c.wrote));
        self.help = Some(global_help(c.reason));
        let here = (self.cluster.index, self.warp.id);
        global_race_fault(self.env, here, buffer, writes, c)
    }
}

/// Builds the fault for a race in global memory with an earlier access.
#[cold]
pub(crate) fn global_race_fault(
    env: &Env<'_>,
    (cluster, warp): (u64, u32),
    buffer: usize,
    writes: bool,
    c: &GlobalConflict,
) -> Fault {
    let byte = env.memory.byte_name(buffer, c.byte);
    let verb = if writes { "writes" } else { "reads" };
    let earlier_verb = if c.wrote { "wrote" } else { "read" };
    let warps = env.threads.warps_per_cta;
    let other = match c.earlier.cluster == cluster && c.earlier.warp / warps == warp / warps {
        true => "another thread",
        false => "another CTA",
    };
    let text = match c.reason {
        ConflictReason::Scope => format!(
            "{verb} {byte}, which {other} {earlier_verb}; the scope of one access does not include the other [{RULE_SCOPE}]"
        ),
        ConflictReason::Order => {
            format!(
                "{verb} {byte}, which {other} {earlier_verb}; nothing orders the two accesses [{RULE_WRITER}]"
            )
        }
        ConflictReason::ReadOnly => format!(
            "{verb} {byte}, which {other} {earlier_verb} in this launch; bytes of a read-only load \
             (`ld.global.nc`) must not be written during the launch [{RULE_READ_ONLY}]"
        ),
    };
    Fault::new(FaultKind::Race, text)
}

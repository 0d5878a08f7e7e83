//! Global memory as the grid sees it: is an access ordered after those it meets?

use crate::env::Env;
use crate::global::{Access, Conflict, Lanes, Touched, Why};
use crate::machine::{Lockstep, lanes_of};
use crate::memory::place;
use crate::stats::dense;
use crate::warp_clock::ALL_LANES;
use std::ops::Range;
use warpline_ir::job::CopyJob;
use warpline_ir::{Done, Fault, FaultKind, Job, Mask, Scope, Span, WARP};

/// The rule that a race breaks: one writer for each byte, or an order.
const WRITER: &str = "R18.writer";
/// The rule that two strong accesses break that do not reach each other.
const SCOPE: &str = "R18.scope";

impl Lockstep<'_, '_> {
    /// Judges and notes an access of lanes, which lies inside of its buffers.
    pub(crate) fn judge_global(
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
        let access = |lanes: Lanes, lane: u8| Access {
            touched: Touched {
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
        if dense(lanes, at, width) && place(at[0]).0 == place(at[WARP - 1]).0 {
            let (buffer, start) = place(at[0]);
            let range = start..start + (width * WARP) as u64;
            if read_only {
                let record = global.record(access(Lanes::Told, 0).touched);
                return self.judge_read_only(record, buffer, &range, |byte| {
                    (byte - start) as usize / width
                });
            }
            let access = access(Lanes::dense(start, width), ALL_LANES);
            if let Some(c) = global.check(&access, buffer, &range) {
                let lane = (c.byte - start) as usize / width;
                return Err(self.global_race(Some(lane), buffer, writes, &c));
            }
            let record = global.record(access.touched);
            global.note(&access, record, buffer, &range);
            return Ok(());
        }
        let range = |lane: usize| {
            let (buffer, start) = place(at[lane]);
            (buffer, start..start + width as u64)
        };
        let record = global.record(access(Lanes::Told, 0).touched);
        if read_only {
            return lanes_of(lanes).try_for_each(|lane| {
                let (buffer, range) = range(lane);
                self.judge_read_only(record, buffer, &range, |_| lane)
            });
        }
        // All lanes ask for one word, again and again.
        let first = lanes.trailing_zeros() as usize % WARP;
        if !writes && lanes_of(lanes).all(|l| at[l] == at[first]) {
            let (buffer, range) = range(first);
            let several = if lanes.is_power_of_two() {
                first as u8
            } else {
                ALL_LANES
            };
            let access = access(Lanes::Told, several);
            if global.is_clear(&access, buffer, &range) {
                global.note(&access, record, buffer, &range);
                return Ok(());
            }
        }
        // Lanes of one op do not conflict with each other.
        for lane in lanes_of(lanes) {
            let (buffer, range) = range(lane);
            if let Some(c) = global.check(&access(Lanes::Told, lane as u8), buffer, &range) {
                return Err(self.global_race(Some(lane), buffer, writes, &c));
            }
        }
        for lane in lanes_of(lanes) {
            let (buffer, range) = range(lane);
            global.note(&access(Lanes::Told, lane as u8), record, buffer, &range);
        }
        Ok(())
    }

    /// Judges and notes a read of bytes that nobody may write during the launch.
    fn judge_read_only(
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
        global.note_read_only(record, buffer, range);
        Ok(())
    }

    /// Judges and notes what an engine will touch for a lane, or for all.
    pub(crate) fn judge_job(&mut self, job: &Job, lane: u8) -> Result<(), Fault> {
        if self.global.is_none() {
            return Ok(());
        }
        let (id, threads) = (self.warp.id, &self.cluster.threads);
        let (reads, wrote, of) = match job.done() {
            Done::Bytes(bar) => {
                let phase = self.cluster.ctas[bar.cta as usize].bars[bar.slot as usize].phase;
                let reads = (threads.barrier(bar.cta, bar.slot), phase);
                (reads, reads, ALL_LANES)
            }
            Done::BulkGroup { lane } => (
                (threads.bulk(id), self.warp.copies),
                (threads.bulk_writes(id), self.warp.copies),
                lane as u8,
            ),
            // Nobody waits for a prefetch; wgmmas do not reach global memory.
            Done::WgmmaGroup | Done::CopyGroup { .. } | Done::Nobody => return Ok(()),
        };
        let mut spans = Vec::new();
        job.reads(&mut |s| spans.push((s, reads, false, None)));
        let scope = job.combines().then_some(Scope::Gpu);
        job.writes(&mut |s| spans.push((s, wrote, true, scope)));
        for (span, engine, writes, scope) in spans {
            if let Span::Global(addr, len) = span {
                self.judge_span((addr, len), lane, of, engine, writes, scope)?;
            }
        }
        Ok(())
    }

    /// Judges and notes what lanes copy by themselves; `number` is the copy's.
    pub(crate) fn judge_copy(&mut self, job: &CopyJob, number: u32) -> Result<(), Fault> {
        if self.global.is_none() {
            return Ok(());
        }
        let stream = self.cluster.threads.stream(self.warp.id);
        for (lane, addr, len) in job.read() {
            let lane = lane as u8;
            self.judge_span((addr, len), lane, lane, (stream, number), false, None)?;
        }
        Ok(())
    }

    /// Judges a run of bytes by what a lane knows, and notes it for a lane of an engine.
    fn judge_span(
        &mut self,
        (addr, len): (u64, u32),
        asks: u8,
        lane: u8,
        (thread, number): (u32, u32),
        writes: bool,
        scope: Option<Scope>,
    ) -> Result<(), Fault> {
        let (Some(global), Some(clock)) = (self.global.as_mut(), self.warp.clock.as_deref()) else {
            return Ok(());
        };
        // What lies outside is a fault when it is moved.
        if len == 0 || self.env.memory.find(addr, len as usize).is_err() {
            return Ok(());
        }
        let (buffer, start) = place(addr);
        let range = start..start + u64::from(len);
        let mut access = Access {
            touched: Touched {
                cluster: self.cluster.index,
                warp: self.warp.id,
                site: self.site,
                thread,
                clock: number,
                scope,
                lanes: Lanes::Told,
            },
            clock: Some(clock),
            lane: asks,
            writes,
        };
        if let Some(c) = global.check(&access, buffer, &range) {
            return Err(self.global_race(None, buffer, writes, &c));
        }
        access.lane = lane;
        let record = global.record(access.touched);
        global.note(&access, record, buffer, &range);
        Ok(())
    }

    #[cold]
    fn global_race(
        &mut self,
        lane: Option<usize>,
        buffer: usize,
        writes: bool,
        c: &Conflict,
    ) -> Fault {
        self.lane = lane.map(|l| l as u32);
        self.other = Some(self.env.party(c.with.cluster, c.with.warp, c.with.site));
        let here = (self.cluster.index, self.warp.id);
        race(self.env, here, buffer, writes, c)
    }
}

/// A race between a warp of a cluster and who came before it.
#[cold]
pub(crate) fn race(
    env: &Env<'_>,
    (cluster, warp): (u64, u32),
    buffer: usize,
    writes: bool,
    c: &Conflict,
) -> Fault {
    let byte = env.memory.byte_name(buffer, c.byte);
    let verb = if writes { "writes" } else { "reads" };
    let did = if c.wrote { "written" } else { "read" };
    let warps = env.threads.warps;
    let who = match c.with.cluster == cluster && c.with.warp / warps == warp / warps {
        true => "another thread",
        false => "another CTA",
    };
    let text = match c.why {
        Why::Scope => format!(
            "{verb} {byte}, {did} before by {who}; the scope of one does not reach the other ({SCOPE})"
        ),
        Why::Order => {
            format!("{verb} {byte}, {did} before by {who}; nothing orders the two ({WRITER})")
        }
        Why::ReadOnly => format!(
            "{verb} {byte}, {did} before in this launch; a read-only load (ld.global.nc) is for \
             bytes that no thread writes during the launch"
        ),
    };
    Fault::new(FaultKind::Race, text)
}

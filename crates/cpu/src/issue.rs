//! Issue of asynchronous ops.
//!
//! The issue checks races with earlier accesses and missing fences. A later access to the bytes of
//! the op is a race with an op in flight. The data moves at completion.

use crate::clock::Clock;
use crate::complete::write_usage;
use crate::lane_sets::LaneCode;
use crate::machine::{WarpMachine, lanes_of};
use crate::shared_memory::MemoryUse;
use crate::shared_shadow::{Accessor, Conflict};
use crate::warp_clock::ALL_LANES;
use std::ops::Range;
use warpline_ir::{Fault, FaultKind, Job, JobCompletion, Mask, ResolvedAddress, Span};

/// A range of shared memory that a job accesses.
struct SharedRange {
    cta: u32,
    range: Range<u32>,
    usage: MemoryUse,
    /// The issuing lane, or [`ALL_LANES`].
    lane: u8,
}

impl SharedRange {
    fn writes(&self) -> bool {
        self.usage != MemoryUse::Read
    }
}

/// Returns the issuing lane, or [`ALL_LANES`] for the whole warp.
fn issuing_lane(lanes: Mask) -> u8 {
    match lanes.is_power_of_two() {
        true => lanes.trailing_zeros() as u8,
        false => ALL_LANES,
    }
}

impl WarpMachine<'_, '_> {
    pub(crate) fn issue(&mut self, lanes: Mask, job: Job) -> Result<(), Fault> {
        if let Job::Copy(job) = job {
            return self.issue_copy(job);
        }
        let lane = issuing_lane(lanes);
        let ranges = self.shared_ranges(&job, lanes)?;
        if let JobCompletion::Bytes(bar) = job.completion() {
            self.check_bar(bar, lanes)?;
            self.record_phase_use(bar);
        }
        for r in &ranges {
            self.check_range(r, job.is_async_proxy())?;
        }
        self.check_job(&job, lane)?;
        self.record_reads(&job, &ranges);
        self.claim(&job);
        self.warp.async_ops += 1;
        self.cluster.progress += 1;
        self.submitted = true;
        match job {
            Job::Wgmma(job) => self.issue_wgmma(job),
            job => {
                let clock = self.issuer_clock(lanes, &job);
                let engines = &mut self.cluster.engines;
                engines.add_copy(job, self.warp, self.site, clock);
                Ok(())
            }
        }
    }

    /// Claims the memory of a job and counts its writes.
    fn claim(&mut self, job: &Job) {
        let tile = self.env.code.sites[self.site as usize].facts.written_tile;
        let mut claim = |span: Span, usage: MemoryUse| {
            if let Span::Shared(ResolvedAddress { cta, byte }, len) = span {
                let shared = &mut self.cluster.ctas[cta as usize].shared;
                shared.claim(&(byte..byte + len), usage);
                if usage != MemoryUse::Read {
                    (self.counters).add_tile_write(self.env.kernel, tile, byte, len.into());
                }
            }
        };
        job.reads(&mut |s| claim(s, MemoryUse::Read));
        job.writes(&mut |s| claim(s, write_usage(job)));
    }

    /// Returns the shared-memory ranges of a job; checks their bounds.
    fn shared_ranges(&mut self, job: &Job, lanes: Mask) -> Result<Vec<SharedRange>, Fault> {
        let mut ranges = Vec::new();
        let mut add = |span: Span, usage: MemoryUse, lane: u8| {
            if let Span::Shared(ResolvedAddress { cta, byte }, len) = span {
                ranges.push(SharedRange {
                    cta,
                    range: byte..byte.saturating_add(len),
                    usage,
                    lane,
                });
            }
        };
        let lane = issuing_lane(lanes);
        job.reads(&mut |s| add(s, MemoryUse::Read, lane));
        match job {
            // Each lane stores its own value.
            Job::Remote(j) => lanes_of(lanes)
                .zip(j.written())
                .for_each(|(lane, (at, len))| {
                    add(Span::Shared(at, len), write_usage(job), lane as u8)
                }),
            _ => job.writes(&mut |s| add(s, write_usage(job), lane)),
        }
        for r in &ranges {
            self.check_not_exited(r.cta)?;
            let shared = &self.cluster.ctas[r.cta as usize].shared;
            if !shared.is_in_bounds(r.range.start, r.range.len() as u32) {
                return Err(Fault::new(
                    FaultKind::OutOfBounds,
                    format!(
                        "accesses bytes {} to {}, but shared memory has {} bytes",
                        r.range.start, r.range.end, self.env.kernel.shared_bytes
                    ),
                ));
            }
        }
        Ok(ranges)
    }

    fn check_range(&mut self, r: &SharedRange, async_proxy: bool) -> Result<(), Fault> {
        let write = r.writes();
        let verb = if write { "writes" } else { "reads" };
        let shared = &self.cluster.ctas[r.cta as usize].shared;
        if let Some(byte) = shared.in_flight(&r.range, r.usage) {
            let text = self.in_flight_text(r.cta, byte, verb, write);
            return Err(Fault::new(FaultKind::Race, text));
        }
        let (Some(shadow), Some(clock)) = (&self.cluster.shadow, &self.warp.clock) else {
            return Ok(());
        };
        let accessor = Accessor {
            clock,
            lane: r.lane,
            atomic: r.usage == MemoryUse::Reduce,
        };
        let found = match write {
            true => shadow.check_write(&accessor, r.cta, &r.range),
            false => shadow.check_read(&accessor, r.cta, &r.range),
        };
        let unfenced = match async_proxy {
            true => shadow.unfenced(&accessor, r.cta, &r.range, write),
            false => None,
        };
        match (found, unfenced) {
            (Some(c), _) => Err(self.race(None, verb, &c)),
            (None, Some(c)) => Err(self.missing_fence(verb, &c)),
            (None, None) => Ok(()),
        }
    }

    #[cold]
    fn missing_fence(&mut self, verb: &str, c: &Conflict) -> Fault {
        self.other = Some(self.op_location(c.earlier.warp, c.earlier.site));
        let byte = self.env.byte_name(c.byte);
        let why = if self
            .cluster
            .threads
            .warp_of_copy_stream(c.earlier.thread)
            .is_some()
        {
            "no thread ran `fence.proxy.async` after the wait for the `cp.async` that wrote it"
        } else if c.wrote {
            "the thread that wrote it did not run `fence.proxy.async` afterwards"
        } else {
            "the thread that read it did not run `fence.proxy.async` afterwards"
        };
        self.help = Some(
            "call `fence_async()` after the generic access and before the arrival that publishes it",
        );
        let text = format!("{verb} {byte} through the async proxy; {why}");
        Fault::new(FaultKind::MissingProxyFence, text)
    }

    /// Records the reads of a job; the wait that covers the job orders them.
    fn record_reads(&mut self, job: &Job, ranges: &[SharedRange]) {
        let (Some(shadow), Some(clock)) = (&mut self.cluster.shadow, &self.warp.clock) else {
            return;
        };
        let mut reads = ranges.iter().filter(|r| !r.writes()).peekable();
        if reads.peek().is_none() {
            return;
        }
        let threads = &self.cluster.threads;
        let (thread, number, lanes) = match job.completion() {
            JobCompletion::Bytes(bar) => (
                threads.barrier(bar.cta, bar.slot),
                self.cluster.ctas[bar.cta as usize].bars[bar.slot as usize].phase,
                LaneCode::ALL,
            ),
            JobCompletion::WgmmaGroup => (
                threads.wgmma(self.warp.id),
                self.warp.wgmma.as_ref().map_or(0, |w| w.issued),
                LaneCode::ALL,
            ),
            JobCompletion::BulkGroup { lane } => (
                threads.bulk_reads(self.warp.id),
                self.warp.bulk_copies,
                LaneCode::lane(lane as u8),
            ),
            // Prefetches and `cp.async` do not read shared memory.
            JobCompletion::CopyGroup { .. } | JobCompletion::None => return,
        };
        shadow.compact_if_large();
        let record = shadow.engine_record(thread, number, self.site, self.warp.id, false);
        for r in reads {
            let accessor = Accessor {
                clock,
                lane: r.lane,
                atomic: false,
            };
            shadow.record_read(&accessor, record, lanes, r.cta, &r.range);
        }
    }

    /// Returns the clock of the issuer of a copy. Waits on the mbarrier of the copy acquire it.
    fn issuer_clock(&self, lanes: Mask, job: &Job) -> Option<Box<Clock>> {
        let JobCompletion::Bytes(_) = job.completion() else {
            return None;
        };
        let clock = self.warp.clock.as_ref()?;
        let mut published = Box::new(Clock::new(&self.cluster.threads));
        clock.publish(lanes, &mut published);
        Some(published)
    }

    fn issue_wgmma(&mut self, job: warpline_ir::job::WgmmaJob) -> Result<(), Fault> {
        let Some(w) = &mut self.warp.wgmma else {
            return Ok(());
        };
        let mut unfenced = (w.fences == 0).then_some(None);
        job.registers(&mut |r| {
            if w.is_written_after_fence(r) {
                unfenced.get_or_insert(Some(r));
            }
            w.record_use(r);
        });
        if let Some(cause) = unfenced {
            let text = match cause {
                Some(r) => {
                    format!("uses register {r}, which was write_usage after the last `wgmma.fence`")
                }
                None => "is the first wgmma of its warp, without a `wgmma.fence` before it".into(),
            };
            self.help =
                Some("call `wgmma_fence()` before the first wgmma and after register writes");
            return Err(Fault::new(FaultKind::RegisterInFlight, text));
        }
        let index = w.issued;
        w.issued += 1;
        let engines = &mut self.cluster.engines;
        match engines.add_wgmma(job, index, self.warp, self.site) {
            None => Ok(()),
            Some(other) => {
                self.other = Some(self.op_location(self.warp.id, other));
                Err(Fault::new(
                    FaultKind::Convergence,
                    "is issued while another warp of the warpgroup issues a different wgmma",
                ))
            }
        }
    }
}

//! Handing work to the engines: what must hold when a job is issued.
//!
//! Everything that came before the issue is known here, and everything after
//! it that touches the job's bytes is caught as a race with work in flight. So
//! order and fences are judged at issue, and data are moved at completion.

use crate::clock::Clock;
use crate::complete::written;
use crate::lane_sets::LaneCode;
use crate::machine::{Lockstep, lanes_of};
use crate::shadow::{Conflict, Who};
use crate::shared::Use;
use crate::warp_clock::ALL_LANES;
use std::ops::Range;
use warpline_ir::{Done, Fault, FaultKind, Job, Mask, SharedAt, Span};

/// A run of shared memory that a job touches.
struct Run {
    cta: u32,
    range: Range<u32>,
    how: Use,
    /// The lane that has it touched, or all of the warp together.
    lane: u8,
}

impl Run {
    fn writes(&self) -> bool {
        self.how != Use::Read
    }
}

/// The lane that issues a job, or the warp together.
fn issuer(lanes: Mask) -> u8 {
    match lanes.is_power_of_two() {
        true => lanes.trailing_zeros() as u8,
        false => ALL_LANES,
    }
}

impl Lockstep<'_, '_> {
    pub(crate) fn issue(&mut self, lanes: Mask, job: Job) -> Result<(), Fault> {
        if let Job::Copy(job) = job {
            return self.issue_copy(job);
        }
        let lane = issuer(lanes);
        let runs = self.runs(&job, lanes)?;
        if let Done::Bytes(bar) = job.done() {
            self.check_bar(bar, lanes)?;
            self.use_phase(bar);
        }
        for r in &runs {
            self.check_run(r, job.is_async_proxy())?;
        }
        self.judge_job(&job, lane)?;
        self.mark_reads(&job, &runs);
        self.claim(&job);
        self.warp.jobs += 1;
        self.cluster.progress += 1;
        self.submitted = true;
        match job {
            Job::Wgmma(job) => self.issue_product(job),
            job => {
                let clock = self.told(lanes, &job);
                let engines = &mut self.cluster.engines;
                engines.add_copy(job, self.warp, self.site, clock);
                Ok(())
            }
        }
    }

    /// The memory of a job is in flight from now on, and counts as written.
    fn claim(&mut self, job: &Job) {
        let tile = self.env.code.sites[self.site as usize].facts.writes;
        let mut claim = |span: Span, how: Use| {
            if let Span::Shared(SharedAt { cta, byte }, len) = span {
                let shared = &mut self.cluster.ctas[cta as usize].shared;
                shared.claim(&(byte..byte + len), how);
                if how != Use::Read {
                    (self.counters).written(self.env.kernel, tile, byte, len.into());
                }
            }
        };
        job.reads(&mut |s| claim(s, Use::Read));
        job.writes(&mut |s| claim(s, written(job)));
    }

    /// The shared memory a job touches, inside the CTAs it names.
    fn runs(&mut self, job: &Job, lanes: Mask) -> Result<Vec<Run>, Fault> {
        let mut runs = Vec::new();
        let mut add = |span: Span, how: Use, lane: u8| {
            if let Span::Shared(SharedAt { cta, byte }, len) = span {
                runs.push(Run {
                    cta,
                    range: byte..byte.saturating_add(len),
                    how,
                    lane,
                });
            }
        };
        let lane = issuer(lanes);
        job.reads(&mut |s| add(s, Use::Read, lane));
        match job {
            // Each lane sends a value of its own.
            Job::Remote(j) => lanes_of(lanes)
                .zip(j.written())
                .for_each(|(lane, (at, len))| add(Span::Shared(at, len), written(job), lane as u8)),
            _ => job.writes(&mut |s| add(s, written(job), lane)),
        }
        for r in &runs {
            self.check_here(r.cta)?;
            let shared = &self.cluster.ctas[r.cta as usize].shared;
            if !shared.holds(r.range.start, r.range.len() as u32) {
                return Err(Fault::new(
                    FaultKind::OutOfBounds,
                    format!(
                        "reaches bytes {} to {} of {} bytes of shared memory",
                        r.range.start, r.range.end, self.env.kernel.shared_bytes
                    ),
                ));
            }
        }
        Ok(runs)
    }

    fn check_run(&mut self, r: &Run, async_proxy: bool) -> Result<(), Fault> {
        let write = r.writes();
        let verb = if write { "writes" } else { "reads" };
        let shared = &self.cluster.ctas[r.cta as usize].shared;
        if let Some(byte) = shared.in_flight(&r.range, r.how) {
            let text = self.flight_text(r.cta, byte, verb, write);
            return Err(Fault::new(FaultKind::Race, text));
        }
        let (Some(shadow), Some(clock)) = (&self.cluster.shadow, &self.warp.clock) else {
            return Ok(());
        };
        let who = Who {
            clock,
            lane: r.lane,
            atomic: r.how == Use::Combine,
        };
        let found = match write {
            true => shadow.check_write(&who, r.cta, &r.range),
            false => shadow.check_read(&who, r.cta, &r.range),
        };
        let unfenced = match async_proxy {
            true => shadow.unfenced(&who, r.cta, &r.range, write),
            false => None,
        };
        match (found, unfenced) {
            (Some(c), _) => Err(self.race(None, verb, &c)),
            (None, Some(c)) => Err(self.unfenced(verb, &c)),
            (None, None) => Ok(()),
        }
    }

    #[cold]
    fn unfenced(&mut self, verb: &str, c: &Conflict) -> Fault {
        self.other = Some(self.party(c.with.warp, c.with.site));
        let byte = self.env.byte_name(c.byte);
        let why = if self.cluster.threads.streaming(c.with.thread).is_some() {
            "no thread has run fence.proxy.async since the copy that wrote it was waited for"
        } else if c.wrote {
            "the thread that wrote it has not run fence.proxy.async since"
        } else {
            "the thread that read it has not run fence.proxy.async since"
        };
        let text = format!("{verb} {byte} through the async proxy; {why}");
        Fault::new(FaultKind::MissingProxyFence, text)
    }

    /// Notes the bytes that a job reads: they stay read until the wait that covers it.
    fn mark_reads(&mut self, job: &Job, runs: &[Run]) {
        let (Some(shadow), Some(clock)) = (&mut self.cluster.shadow, &self.warp.clock) else {
            return;
        };
        let mut reads = runs.iter().filter(|r| !r.writes()).peekable();
        if reads.peek().is_none() {
            return;
        }
        let threads = &self.cluster.threads;
        let (thread, number, lanes) = match job.done() {
            Done::Bytes(bar) => (
                threads.barrier(bar.cta, bar.slot),
                self.cluster.ctas[bar.cta as usize].bars[bar.slot as usize].phase,
                LaneCode::ALL,
            ),
            Done::WgmmaGroup => (
                threads.wgmma(self.warp.id),
                self.warp.wgmma.as_ref().map_or(0, |w| w.issued),
                LaneCode::ALL,
            ),
            Done::BulkGroup { lane } => (
                threads.bulk(self.warp.id),
                self.warp.copies,
                LaneCode::lane(lane as u8),
            ),
            // Prefetches leave shared memory alone, and copies by lanes do not read it.
            Done::CopyGroup { .. } | Done::Nobody => return,
        };
        shadow.tidy();
        let record = shadow.engine(thread, number, self.site, self.warp.id, false);
        for r in reads {
            let who = Who {
                clock,
                lane: r.lane,
                atomic: false,
            };
            shadow.read(&who, record, lanes, r.cta, &r.range);
        }
    }

    /// What the issuer of a copy knows, for those who see it arrive.
    fn told(&self, lanes: Mask, job: &Job) -> Option<Box<Clock>> {
        let Done::Bytes(_) = job.done() else {
            return None;
        };
        let clock = self.warp.clock.as_ref()?;
        let mut told = Box::new(Clock::new(&self.cluster.threads));
        clock.tell(lanes, &mut told);
        Some(told)
    }

    fn issue_product(&mut self, job: warpline_ir::job::WgmmaJob) -> Result<(), Fault> {
        let Some(w) = &mut self.warp.wgmma else {
            return Ok(());
        };
        let mut unfenced = (w.fences == 0).then_some(None);
        job.registers(&mut |r| {
            if w.unfenced(r) {
                unfenced.get_or_insert(Some(r));
            }
            w.uses(r);
        });
        if let Some(which) = unfenced {
            let text = match which {
                Some(r) => format!(
                    "uses register {r}, written since the last wgmma fence: a wgmma fence is missing"
                ),
                None => "is the first of its warp with no wgmma fence before: it is missing".into(),
            };
            return Err(Fault::new(FaultKind::RegisterInFlight, text));
        }
        let index = w.issued;
        w.issued += 1;
        let engines = &mut self.cluster.engines;
        match engines.add_product(job, index, self.warp, self.site) {
            None => Ok(()),
            Some(other) => {
                self.other = Some(self.party(self.warp.id, other));
                Err(Fault::new(
                    FaultKind::Convergence,
                    "is issued where another warp of the warpgroup issues another wgmma",
                ))
            }
        }
    }
}

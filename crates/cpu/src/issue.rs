//! Handing work to the engines: what must hold when a job is issued.
//!
//! Everything that came before the issue is known here, and everything after
//! it that touches the job's bytes is caught as a race with work in flight. So
//! order and fences are judged at issue, and data are moved at completion.

use crate::clock::{ALL_LANES, Clock};
use crate::complete::written;
use crate::machine::Lockstep;
use crate::shadow::{Conflict, Who};
use crate::shared::Use;
use std::ops::Range;
use warpline_ir::{Done, Fault, FaultKind, Job, SharedAt, Span};

/// A run of shared memory that a job touches.
struct Run {
    cta: u32,
    range: Range<u32>,
    how: Use,
}

impl Run {
    fn writes(&self) -> bool {
        self.how != Use::Read
    }
}

impl Lockstep<'_, '_> {
    pub(crate) fn issue(&mut self, job: Job) -> Result<(), Fault> {
        if let Job::Copy(job) = job {
            return self.issue_copy(job);
        }
        let runs = self.runs(&job)?;
        let lane = self.issuer(&job);
        if let Done::Bytes(bar) = job.done() {
            let lane = self.warp.active.trailing_zeros() as usize;
            self.check_bar(bar, lane)?;
        }
        for r in &runs {
            self.check_run(r, lane, job.is_async_proxy())?;
        }
        self.judge_job(&job, lane)?;
        self.mark_reads(&job, &runs, lane);
        let tile = self.env.code.sites[self.site as usize].facts.writes;
        for r in &runs {
            let shared = &mut self.cluster.ctas[r.cta as usize].shared;
            shared.claim(&r.range, r.how);
            if r.writes() {
                let bytes = r.range.len() as u64;
                (self.counters).written(self.env.kernel, tile, r.range.start, bytes);
            }
        }
        self.warp.jobs += 1;
        self.cluster.progress += 1;
        self.submitted = true;
        match job {
            Job::Wgmma(job) => self.issue_product(job),
            job => {
                let clock = self.told(&job);
                let engines = &mut self.cluster.engines;
                engines.add_copy(job, self.warp, self.site, clock);
                Ok(())
            }
        }
    }

    /// The lane that issues a job, or all.
    fn issuer(&self, job: &Job) -> u8 {
        let active = self.warp.active;
        match job.done() {
            Done::BulkGroup { lane } => lane as u8,
            Done::Bytes(_) | Done::Nobody if active.is_power_of_two() => {
                active.trailing_zeros() as u8
            }
            _ => ALL_LANES,
        }
    }

    /// The shared memory a job touches, inside the CTAs it names.
    fn runs(&mut self, job: &Job) -> Result<Vec<Run>, Fault> {
        let mut runs = Vec::new();
        let mut add = |span: Span, how: Use| {
            if let Span::Shared(SharedAt { cta, byte }, len) = span {
                runs.push(Run {
                    cta,
                    range: byte..byte.saturating_add(len),
                    how,
                });
            }
        };
        job.reads(&mut |s| add(s, Use::Read));
        job.writes(&mut |s| add(s, written(job)));
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

    fn check_run(&mut self, r: &Run, lane: u8, async_proxy: bool) -> Result<(), Fault> {
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
            lane,
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
        let why = if self.cluster.threads.is_stream(c.with.thread) {
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
    fn mark_reads(&mut self, job: &Job, runs: &[Run], lane: u8) {
        let (Some(shadow), Some(clock)) = (&mut self.cluster.shadow, &self.warp.clock) else {
            return;
        };
        let threads = &self.cluster.threads;
        let (thread, number) = match job.done() {
            Done::Bytes(bar) => (
                threads.barrier(bar.cta, bar.slot),
                self.cluster.ctas[bar.cta as usize].bars[bar.slot as usize].phase,
            ),
            Done::WgmmaGroup => (
                threads.wgmma(self.warp.id),
                self.warp.wgmma.as_ref().map_or(0, |w| w.issued),
            ),
            Done::BulkGroup { .. } | Done::CopyGroup { .. } | Done::Nobody => {
                (threads.bulk(self.warp.id), self.warp.copies)
            }
        };
        shadow.tidy();
        let record = shadow.engine(thread, number, self.site, self.warp.id, false);
        let who = Who {
            clock,
            lane,
            atomic: false,
        };
        for r in runs.iter().filter(|r| !r.writes()) {
            shadow.read(&who, record, ALL_LANES, r.cta, &r.range);
        }
    }

    /// What the issuer of a copy knows, for those who see it arrive.
    fn told(&self, job: &Job) -> Option<Box<Clock>> {
        let Done::Bytes(_) = job.done() else {
            return None;
        };
        let clock = self.warp.clock.as_ref()?;
        let mut told = Box::new(Clock::new(&self.cluster.threads));
        clock.tell(self.warp.active, &mut told);
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

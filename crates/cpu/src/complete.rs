//! Completion of asynchronous ops: the memory and registers that engines access.
//!
//! A two-step copy runs its job twice. The first step keeps the data that it reads; the second step
//! writes the kept data.

use crate::clock::{Clock, Epoch};
use crate::cluster::Cluster;
use crate::compile::RoleCode;
use crate::engine::{Copy, PieceState};
use crate::env::Env;
use crate::lane_copies::complete_piece;
use crate::lane_sets::LaneCode;
use crate::last_uses::LastUse;
use crate::shared_memory::MemoryUse;
use crate::stats::Counters;
use crate::warp::{Registers, Warp};
use std::collections::VecDeque;
use warpline_ir::job::WgmmaJob;
use warpline_ir::{
    Engine, Fault, FaultKind, Job, JobCompletion, Mask, RegId, ResolvedBarrier, Span,
};

/// A fault of an asynchronous op, and the warp and op that issued it.
#[derive(Debug)]
pub(crate) struct AsyncFault {
    pub(crate) fault: Fault,
    pub(crate) warp: u32,
    pub(crate) site: u32,
}

/// Runs one step of one piece of a copy.
pub(crate) fn step_copy(
    env: &Env<'_>,
    cluster: &mut Cluster,
    copy: usize,
    piece: usize,
    counters: &mut Counters,
) -> Result<(), AsyncFault> {
    let mut c = cluster.engines.copies.remove(copy);
    let was_read = c.is_read();
    let async_fault = |fault, c: &Copy| AsyncFault {
        fault,
        warp: c.warp,
        site: c.site,
    };
    let state = std::mem::replace(&mut c.pieces[piece], PieceState::Done);
    let mut memory = EngineMemory {
        env,
        cluster,
        registers: None,
        mode: StepMode::Direct,
        arrival: match c.job.completion() {
            JobCompletion::Bytes(bar) => Some(BytesArrival {
                bar,
                warp: c.warp,
                site: c.site,
                reduces: c.job.is_reduction(),
                clock: c.clock.as_deref(),
            }),
            _ => None,
        },
    };
    let mut kept_data = VecDeque::new();
    match state {
        PieceState::Issued if c.has_two_steps() => {
            memory.mode = StepMode::Keep(&mut kept_data);
            c.job
                .complete(piece as u32, &mut memory)
                .map_err(|f| async_fault(f, &c))?;
            c.pieces[piece] = PieceState::Read(kept_data);
        }
        PieceState::Issued | PieceState::Read(_) => {
            if let PieceState::Read(k) = state {
                kept_data = k;
                memory.mode = StepMode::Replay(&mut kept_data);
            }
            let bytes = c
                .job
                .complete(piece as u32, &mut memory)
                .map_err(|f| async_fault(f, &c))?;
            *byte_counter(&c.job, counters) += u64::from(bytes);
            if let (Job::Copy(job), Some(number)) = (&c.job, c.stream_number) {
                complete_piece(cluster, job, piece as u32, (number, c.warp, c.site))?;
            }
            if let JobCompletion::Bytes(bar) = c.job.completion() {
                record_remote_arrival(cluster, bar, &c);
                let b = &mut cluster.ctas[bar.cta as usize].bars[bar.slot as usize];
                if let (Some(p), Some(clock)) = (&mut b.clocks, &c.clock) {
                    p.arrived_clock.join(clock);
                }
                b.check_live()
                    .and_then(|()| b.receive_bytes(bytes))
                    .map_err(|f| async_fault(f, &c))?;
            }
        }
        PieceState::Done => {}
    }
    finish_copy(cluster, copy, c, was_read);
    Ok(())
}

/// Records the bytes that a copy of another CTA delivered: the receiving CTA must not exit before it
/// acquires them. The scheduler checks copies of the CTA itself.
fn record_remote_arrival(cluster: &mut Cluster, bar: ResolvedBarrier, c: &Copy) {
    let phase = cluster.ctas[bar.cta as usize].bars[bar.slot as usize].phase;
    let epoch = Epoch {
        thread: cluster.threads.barrier(bar.cta, bar.slot),
        lanes: Mask::MAX,
        clock: phase,
    };
    if cluster.shadow.is_some() && c.warp / cluster.threads.warps_per_cta != bar.cta {
        let (warp, site) = (c.warp, c.site);
        let remote_uses = &mut cluster.ctas[bar.cta as usize].remote_uses;
        remote_uses.record(LastUse { epoch, warp, site });
    }
}

/// Returns how a job uses the memory that it writes.
pub(crate) fn write_usage(job: &Job) -> MemoryUse {
    if job.is_reduction() {
        MemoryUse::Reduce
    } else {
        MemoryUse::Write
    }
}

/// Returns the counter of the bytes that a job moves.
fn byte_counter<'c>(job: &Job, counters: &'c mut Counters) -> &'c mut u64 {
    let bytes = &mut counters.bytes;
    match (job, job.completion()) {
        (Job::Copy(_), _) => &mut bytes.lane_copy,
        (Job::Remote(_), _) => &mut bytes.peer_store,
        (Job::Bulk(j), _) if j.is_shared_to_shared() => &mut bytes.peer_store,
        (_, JobCompletion::Bytes(_)) => &mut bytes.bulk_load,
        _ => &mut bytes.bulk_store,
    }
}

/// Ends the claims of the completed steps of a copy, and requeues the copy if it is incomplete.
fn finish_copy(cluster: &mut Cluster, at: usize, c: Copy, was_read: bool) {
    let (read, done) = (c.is_read() && !was_read, c.is_done());
    if read {
        c.job.reads(&mut |s| cluster.unclaim(s, MemoryUse::Read));
    }
    // `cp.async` copies end their claims per piece.
    if done && c.stream_number.is_none() {
        let usage = write_usage(&c.job);
        c.job.writes(&mut |s| cluster.unclaim(s, usage));
    }
    if let Some(number) = c.group {
        cluster.engines.groups[c.warp as usize].record_progress(number, read, done);
    }
    if !done {
        cluster.engines.copies.insert(at, c);
    }
    cluster.notify();
}

/// Completes the oldest wgmma of a warpgroup, which all four warps have issued.
pub(crate) fn complete_wgmma(
    env: &Env<'_>,
    cluster: &mut Cluster,
    warps: &mut [Warp],
    group: usize,
    counters: &mut Counters,
) -> Result<(), AsyncFault> {
    let first = cluster.engines.first_warp(group) as usize;
    let wgmmas = &mut cluster.engines.wgmmas[group];
    let Some(p) = wgmmas.queue.pop_front() else {
        return Ok(());
    };
    wgmmas.done += 1;
    counters.bytes.wgmma_read += bytes_read(p.parts.iter().flatten());
    for (i, job) in p.parts.into_iter().enumerate() {
        let (Some(job), Some(warp)) = (job, warps.get_mut(first + i)) else {
            continue;
        };
        counters.wgmma_flops += job.flops();
        job.reads(&mut |s| cluster.unclaim(s, MemoryUse::Read));
        let mut memory = EngineMemory {
            env,
            cluster,
            registers: Some((&mut warp.regs, &env.code.roles[warp.role])),
            mode: StepMode::Direct,
            arrival: None,
        };
        job.complete(&mut memory).map_err(|fault| AsyncFault {
            fault,
            warp: warp.id,
            site: p.site,
        })?;
    }
    cluster.notify();
    Ok(())
}

/// Returns the shared bytes that the parts of a wgmma read; common ranges count once.
fn bytes_read<'p>(parts: impl Iterator<Item = &'p WgmmaJob>) -> u64 {
    let mut ranges = Vec::new();
    for p in parts {
        p.reads(&mut |s| {
            if let Span::Shared(at, len) = s {
                ranges.push((at.cta, at.byte, len));
            }
        });
    }
    ranges.sort_unstable();
    ranges.dedup();
    ranges.iter().map(|r| u64::from(r.2)).sum()
}

/// Which of a job's reads and writes take effect.
enum StepMode<'a> {
    /// Reads and writes take effect.
    Direct,
    /// Reads take effect and are kept; writes are skipped.
    Keep(&'a mut VecDeque<Box<[u8]>>),
    /// Reads return the kept data; writes take effect.
    Replay(&'a mut VecDeque<Box<[u8]>>),
}

/// The memory and registers that a job accesses.
struct EngineMemory<'a, 'k> {
    env: &'a Env<'k>,
    cluster: &'a mut Cluster,
    registers: Option<(&'a mut Registers, &'a RoleCode<'k>)>,
    mode: StepMode<'a>,
    arrival: Option<BytesArrival<'a>>,
}

/// The mbarrier that receives the bytes of a job, and the issuer.
#[derive(Clone, Copy)]
struct BytesArrival<'a> {
    bar: ResolvedBarrier,
    /// The issuing warp.
    warp: u32,
    /// The issuing op.
    site: u32,
    /// Whether the job reduces.
    reduces: bool,
    /// The clock of the issuer.
    clock: Option<&'a Clock>,
}

impl EngineMemory<'_, '_> {
    fn read_now(&self, span: Span, out: &mut [u8]) -> Result<(), Fault> {
        match span {
            Span::Global(addr, _) => self.env.memory.load(addr, out),
            Span::Shared(at, _) => {
                let shared = &self.cluster.ctas[at.cta as usize].shared;
                let bytes = shared.get(at.byte, out.len()).map_err(|gap| {
                    Fault::new(
                        FaultKind::NeverWritten,
                        format!("reads {}, which was never written", self.env.byte_name(gap)),
                    )
                })?;
                out.copy_from_slice(bytes);
                Ok(())
            }
        }
    }
}

impl Engine for EngineMemory<'_, '_> {
    fn read(&mut self, span: Span, out: &mut [u8]) -> Result<(), Fault> {
        match &mut self.mode {
            StepMode::Replay(kept_data) => {
                if let Some(k) = kept_data.pop_front() {
                    out.copy_from_slice(&k);
                }
                Ok(())
            }
            StepMode::Direct => self.read_now(span, out),
            StepMode::Keep(_) => {
                self.read_now(span, out)?;
                if let StepMode::Keep(kept_data) = &mut self.mode {
                    kept_data.push_back((&*out).into());
                }
                Ok(())
            }
        }
    }

    fn write(&mut self, span: Span, data: &[u8]) -> Result<(), Fault> {
        if matches!(self.mode, StepMode::Keep(_)) {
            return Ok(());
        }
        match span {
            Span::Global(addr, _) => self.env.memory.write(addr, data),
            Span::Shared(at, _) => {
                let cta = &mut self.cluster.ctas[at.cta as usize];
                cta.shared.put(at.byte, data);
                if let (Some(shadow), Some(a)) = (&mut self.cluster.shadow, self.arrival) {
                    let bar = a.bar;
                    let phase = self.cluster.ctas[bar.cta as usize].bars[bar.slot as usize].phase;
                    let thread = self.cluster.threads.barrier(bar.cta, bar.slot);
                    let record = shadow.engine_record(thread, phase, a.site, a.warp, a.reduces);
                    let range = at.byte..at.byte + data.len() as u32;
                    match a.reduces {
                        true => {
                            let has_seen = |m: &Epoch| a.clock.is_some_and(|c| c.has_seen(m));
                            shadow.record_update(&has_seen, record, LaneCode::ALL, at.cta, &range);
                        }
                        false => shadow.record_write(record, LaneCode::ALL, at.cta, &range),
                    }
                }
                Ok(())
            }
        }
    }

    fn reduce(
        &mut self,
        span: Span,
        data: &[u8],
        size: usize,
        f: &dyn Fn(&[u8], &[u8], &mut [u8]),
    ) -> Result<(), Fault> {
        if matches!(self.mode, StepMode::Keep(_)) {
            return Ok(());
        }
        let mut old = vec![0; data.len()];
        self.read_now(span, &mut old)?;
        let mut new = vec![0; data.len()];
        let pairs = old.chunks_exact(size).zip(data.chunks_exact(size));
        for ((old, data), new) in pairs.zip(new.chunks_exact_mut(size)) {
            f(old, data, new);
        }
        self.write(span, &new)
    }

    fn register(&mut self, r: RegId) -> [u32; 32] {
        self.registers
            .as_ref()
            .map_or([0; 32], |(regs, code)| *regs.get(code.register_slot(r)))
    }

    fn set_register(&mut self, r: RegId, v: &[u32; 32]) {
        if let Some((regs, code)) = &mut self.registers {
            *regs.get_mut(code.register_slot(r)) = *v;
        }
    }
}

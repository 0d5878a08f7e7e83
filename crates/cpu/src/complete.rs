//! Completion of asynchronous ops: the memory and registers that engines access.
//!
//! A two-step copy runs the job twice: the first step keeps the data that it reads, the second
//! replays the kept data and writes it.

use crate::clock::{Clock, Epoch};
use crate::cluster::Cluster;
use crate::compile::RoleCode;
use crate::engine::{Copy, PieceState};
use crate::env::Env;
use crate::lane_copies::piece_written;
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
    let failed = |fault, c: &Copy| AsyncFault {
        fault,
        warp: c.warp,
        site: c.site,
    };
    let before = std::mem::replace(&mut c.pieces[piece], PieceState::Done);
    let mut port = EngineMemory {
        env,
        cluster,
        registers: None,
        mode: Mode::Direct,
        arrival: match c.job.completion() {
            JobCompletion::Bytes(bar) => Some(Arrival {
                bar,
                warp: c.warp,
                site: c.site,
                reduces: c.job.is_reduction(),
                clock: c.clock.as_deref(),
            }),
            _ => None,
        },
    };
    let mut kept = VecDeque::new();
    match before {
        PieceState::Issued if c.two_steps() => {
            port.mode = Mode::Keep(&mut kept);
            c.job
                .complete(piece as u32, &mut port)
                .map_err(|f| failed(f, &c))?;
            c.pieces[piece] = PieceState::Read(kept);
        }
        PieceState::Issued | PieceState::Read(_) => {
            if let PieceState::Read(k) = before {
                kept = k;
                port.mode = Mode::Replay(&mut kept);
            }
            let bytes = c
                .job
                .complete(piece as u32, &mut port)
                .map_err(|f| failed(f, &c))?;
            *counter(&c.job, counters) += u64::from(bytes);
            if let (Job::Copy(job), Some(number)) = (&c.job, c.stream) {
                piece_written(cluster, job, piece as u32, (number, c.warp, c.site))?;
            }
            if let JobCompletion::Bytes(bar) = c.job.completion() {
                record_remote_arrival(cluster, bar, &c);
                let b = &mut cluster.ctas[bar.cta as usize].bars[bar.slot as usize];
                if let (Some(p), Some(clock)) = (&mut b.clocks, &c.clock) {
                    p.arrived_clock.join(clock);
                }
                b.check_live()
                    .and_then(|()| b.receive(bytes))
                    .map_err(|f| failed(f, &c))?;
            }
        }
        PieceState::Done => {}
    }
    finish_copy(cluster, copy, c, was_read);
    Ok(())
}

/// Records that another CTA's copy delivered bytes: the receiving CTA must not exit before it
/// acquires them. The scheduler checks the CTA's own copies.
fn record_remote_arrival(cluster: &mut Cluster, bar: ResolvedBarrier, c: &Copy) {
    let phase = cluster.ctas[bar.cta as usize].bars[bar.slot as usize].phase;
    let epoch = Epoch {
        thread: cluster.threads.barrier(bar.cta, bar.slot),
        lanes: Mask::MAX,
        clock: phase,
    };
    if cluster.shadow.is_some() && c.warp / cluster.threads.warps != bar.cta {
        let (warp, site) = (c.warp, c.site);
        let reached = &mut cluster.ctas[bar.cta as usize].remote_uses;
        reached.note(LastUse { epoch, warp, site });
    }
}

/// Returns how a job uses the memory that it writes.
pub(crate) fn written(job: &Job) -> MemoryUse {
    if job.is_reduction() {
        MemoryUse::Reduce
    } else {
        MemoryUse::Write
    }
}

/// Returns the counter of the bytes that a job moves.
fn counter<'c>(job: &Job, counters: &'c mut Counters) -> &'c mut u64 {
    let bytes = &mut counters.bytes;
    match (job, job.completion()) {
        (Job::Copy(_), _) => &mut bytes.lane_copy,
        (Job::Remote(_), _) => &mut bytes.peer_store,
        (Job::Bulk(j), _) if j.is_shared_to_shared() => &mut bytes.peer_store,
        (_, JobCompletion::Bytes(_)) => &mut bytes.bulk_load,
        _ => &mut bytes.bulk_store,
    }
}

/// Ends the claims that a copy no longer needs, and requeues it if it is not done.
fn finish_copy(cluster: &mut Cluster, at: usize, c: Copy, was_read: bool) {
    let (read, done) = (c.is_read() && !was_read, c.is_done());
    if read {
        c.job.reads(&mut |s| cluster.unclaim(s, MemoryUse::Read));
    }
    // `cp.async` copies end their claims per piece.
    if done && c.stream.is_none() {
        let how = written(&c.job);
        c.job.writes(&mut |s| cluster.unclaim(s, how));
    }
    if let Some(number) = c.group {
        cluster.engines.groups[c.warp as usize].advance(number, read, done);
    }
    if !done {
        cluster.engines.copies.insert(at, c);
    }
    cluster.notify();
}

/// Completes the oldest wgmma of a warpgroup; all four warps have issued it.
pub(crate) fn complete_wgmma(
    env: &Env<'_>,
    cluster: &mut Cluster,
    warps: &mut [Warp],
    group: usize,
    counters: &mut Counters,
) -> Result<(), AsyncFault> {
    let first = cluster.engines.first_warp(group) as usize;
    let products = &mut cluster.engines.wgmmas[group];
    let Some(p) = products.queue.pop_front() else {
        return Ok(());
    };
    products.done += 1;
    counters.bytes.wgmma_read += bytes_read(p.parts.iter().flatten());
    for (i, job) in p.parts.into_iter().enumerate() {
        let (Some(job), Some(warp)) = (job, warps.get_mut(first + i)) else {
            continue;
        };
        counters.wgmma_flops += job.flops();
        job.reads(&mut |s| cluster.unclaim(s, MemoryUse::Read));
        let mut port = EngineMemory {
            env,
            cluster,
            registers: Some((&mut warp.regs, &env.code.roles[warp.role])),
            mode: Mode::Direct,
            arrival: None,
        };
        job.complete(&mut port).map_err(|fault| AsyncFault {
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
    let mut runs = Vec::new();
    for p in parts {
        p.reads(&mut |s| {
            if let Span::Shared(at, len) = s {
                runs.push((at.cta, at.byte, len));
            }
        });
    }
    runs.sort_unstable();
    runs.dedup();
    runs.iter().map(|r| u64::from(r.2)).sum()
}

/// Which of a job's reads and writes take effect.
enum Mode<'a> {
    /// Both.
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
    mode: Mode<'a>,
    arrival: Option<Arrival<'a>>,
}

/// The mbarrier that receives the bytes of a job, and the issuer.
#[derive(Clone, Copy)]
struct Arrival<'a> {
    bar: ResolvedBarrier,
    /// The issuing warp and op.
    warp: u32,
    site: u32,
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
            Mode::Replay(kept) => {
                if let Some(k) = kept.pop_front() {
                    out.copy_from_slice(&k);
                }
                Ok(())
            }
            Mode::Direct => self.read_now(span, out),
            Mode::Keep(_) => {
                self.read_now(span, out)?;
                if let Mode::Keep(kept) = &mut self.mode {
                    kept.push_back((&*out).into());
                }
                Ok(())
            }
        }
    }

    fn write(&mut self, span: Span, data: &[u8]) -> Result<(), Fault> {
        if matches!(self.mode, Mode::Keep(_)) {
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
                    let record = shadow.engine(thread, phase, a.site, a.warp, a.reduces);
                    let range = at.byte..at.byte + data.len() as u32;
                    match a.reduces {
                        true => {
                            let has_seen = |m: &Epoch| a.clock.is_some_and(|c| c.has_seen(m));
                            shadow.updated(&has_seen, record, LaneCode::ALL, at.cta, &range);
                        }
                        false => shadow.wrote(record, LaneCode::ALL, at.cta, &range),
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
        if matches!(self.mode, Mode::Keep(_)) {
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
            .map_or([0; 32], |(regs, code)| *regs.get(code.slot(r)))
    }

    fn set_register(&mut self, r: RegId, v: &[u32; 32]) {
        if let Some((regs, code)) = &mut self.registers {
            *regs.get_mut(code.slot(r)) = *v;
        }
    }
}

//! Completing asynchronous work: memory and registers as engines see them.
//!
//! The first step of a copy in two steps runs the job and keeps what it reads;
//! the second runs it again on what was kept.

use crate::clock::{Clock, Moment};
use crate::cluster::Cluster;
use crate::compile::RoleCode;
use crate::engine::{Copy, Piece};
use crate::env::Env;
use crate::lane_copies::landed;
use crate::lane_sets::LaneCode;
use crate::last::Last;
use crate::shared::Use;
use crate::stats::Counters;
use crate::warp::{Registers, Warp};
use std::collections::VecDeque;
use warpline_ir::job::WgmmaJob;
use warpline_ir::{BarAt, Done, Engine, Fault, FaultKind, Job, Mask, RegId, Span};

/// A fault of work in flight, and the warp and op that issued it.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) fault: Fault,
    pub(crate) warp: u32,
    pub(crate) site: u32,
}

/// Takes one step of one piece of a copy.
pub(crate) fn step_copy(
    env: &Env<'_>,
    cluster: &mut Cluster,
    copy: usize,
    piece: usize,
    counters: &mut Counters,
) -> Result<(), Failed> {
    let mut c = cluster.engines.copies.remove(copy);
    let was_read = c.is_read();
    let failed = |fault, c: &Copy| Failed {
        fault,
        warp: c.warp,
        site: c.site,
    };
    let before = std::mem::replace(&mut c.pieces[piece], Piece::Done);
    let mut port = Port {
        env,
        cluster,
        registers: None,
        mode: Mode::Direct,
        arrival: match c.job.done() {
            Done::Bytes(bar) => Some(Arrival {
                bar,
                warp: c.warp,
                site: c.site,
                combines: c.job.combines(),
                clock: c.clock.as_deref(),
            }),
            _ => None,
        },
    };
    let mut kept = VecDeque::new();
    match before {
        Piece::Issued if c.two_steps() => {
            port.mode = Mode::Keep(&mut kept);
            c.job
                .complete(piece as u32, &mut port)
                .map_err(|f| failed(f, &c))?;
            c.pieces[piece] = Piece::Read(kept);
        }
        Piece::Issued | Piece::Read(_) => {
            if let Piece::Read(k) = before {
                kept = k;
                port.mode = Mode::Replay(&mut kept);
            }
            let bytes = c
                .job
                .complete(piece as u32, &mut port)
                .map_err(|f| failed(f, &c))?;
            *counter(&c.job, counters) += u64::from(bytes);
            if let (Job::Copy(job), Some(number)) = (&c.job, c.stream) {
                landed(cluster, job, piece as u32, (number, c.warp, c.site))?;
            }
            if let Done::Bytes(bar) = c.job.done() {
                reached(cluster, bar, &c);
                let b = &mut cluster.ctas[bar.cta as usize].bars[bar.slot as usize];
                if let (Some(p), Some(clock)) = (&mut b.passing, &c.clock) {
                    p.came.join(clock);
                }
                b.check_live()
                    .and_then(|()| b.receive(bytes))
                    .map_err(|f| failed(f, &c))?;
            }
        }
        Piece::Done => {}
    }
    finish_copy(cluster, copy, c, was_read);
    Ok(())
}

/// Bytes have come to a CTA, which must not leave before it knows; of its own
/// warps the scheduler sees to that.
fn reached(cluster: &mut Cluster, bar: BarAt, c: &Copy) {
    let phase = cluster.ctas[bar.cta as usize].bars[bar.slot as usize].phase;
    let moment = Moment {
        thread: cluster.threads.barrier(bar.cta, bar.slot),
        lanes: Mask::MAX,
        clock: phase,
    };
    if cluster.shadow.is_some() && c.warp / cluster.threads.warps != bar.cta {
        let (warp, site) = (c.warp, c.site);
        let reached = &mut cluster.ctas[bar.cta as usize].reached;
        reached.note(Last { moment, warp, site });
    }
}

/// How a job uses the memory it writes.
pub(crate) fn written(job: &Job) -> Use {
    if job.combines() {
        Use::Combine
    } else {
        Use::Write
    }
}

/// The counter of the bytes that a job moves.
fn counter<'c>(job: &Job, counters: &'c mut Counters) -> &'c mut u64 {
    let bytes = &mut counters.bytes;
    match (job, job.done()) {
        (Job::Copy(_), _) => &mut bytes.lane_copy,
        (Job::Remote(_), _) => &mut bytes.peer_store,
        (Job::Bulk(j), _) if j.is_sent() => &mut bytes.peer_store,
        (_, Done::Bytes(_)) => &mut bytes.bulk_load,
        _ => &mut bytes.bulk_store,
    }
}

/// Gives up what a copy no longer needs, and keeps it if anything is left to do.
fn finish_copy(cluster: &mut Cluster, at: usize, c: Copy, was_read: bool) {
    let (read, done) = (c.is_read() && !was_read, c.is_done());
    if read {
        c.job.reads(&mut |s| cluster.unclaim(s, Use::Read));
    }
    // What lanes copy is given up piece by piece.
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
    cluster.stir();
}

/// Completes the oldest wgmma of a warpgroup, which all four warps have issued.
pub(crate) fn step_product(
    env: &Env<'_>,
    cluster: &mut Cluster,
    warps: &mut [Warp],
    group: usize,
    counters: &mut Counters,
) -> Result<(), Failed> {
    let first = cluster.engines.first_warp(group) as usize;
    let products = &mut cluster.engines.products[group];
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
        job.reads(&mut |s| cluster.unclaim(s, Use::Read));
        let mut port = Port {
            env,
            cluster,
            registers: Some((&mut warp.regs, &env.code.roles[warp.role])),
            mode: Mode::Direct,
            arrival: None,
        };
        job.complete(&mut port).map_err(|fault| Failed {
            fault,
            warp: warp.id,
            site: p.site,
        })?;
    }
    cluster.stir();
    Ok(())
}

/// Shared bytes that the parts of a wgmma read, those that several read counted once.
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

/// Whether a job's reads and writes happen, and when.
enum Mode<'a> {
    /// Now.
    Direct,
    /// Reads happen and are kept; writes do not happen.
    Keep(&'a mut VecDeque<Box<[u8]>>),
    /// Reads give what was kept; writes happen.
    Replay(&'a mut VecDeque<Box<[u8]>>),
}

/// Memory and registers as a job sees them.
struct Port<'a, 'k> {
    env: &'a Env<'k>,
    cluster: &'a mut Cluster,
    registers: Option<(&'a mut Registers, &'a RoleCode<'k>)>,
    mode: Mode<'a>,
    arrival: Option<Arrival<'a>>,
}

/// Where what is written arrives, and who sent it.
#[derive(Clone, Copy)]
struct Arrival<'a> {
    bar: BarAt,
    /// The issuing warp and op.
    warp: u32,
    site: u32,
    combines: bool,
    /// What the issuer knew.
    clock: Option<&'a Clock>,
}

impl Port<'_, '_> {
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

impl Engine for Port<'_, '_> {
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
                    let record = shadow.engine(thread, phase, a.site, a.warp, a.combines);
                    let range = at.byte..at.byte + data.len() as u32;
                    match a.combines {
                        true => {
                            let knows = |m: &Moment| a.clock.is_some_and(|c| c.knows(m));
                            shadow.updated(&knows, record, LaneCode::ALL, at.cta, &range);
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

//! Faults and deadlocks in words, at the author's line.

use crate::compile::Inst;
use crate::env::Env;
use crate::error::{RunError, Wait, WaitOn};
use crate::schedule::Resident;
use crate::warp::{Status, Waiting, Warp};
use warpline_ir::{Fault, FaultKind, Site, Waits};

/// A fault of a warp of a cluster, in an op.
pub(crate) fn fault(
    env: &Env<'_>,
    r: &Resident,
    warp: usize,
    site: u32,
    fault: Fault,
    lane: Option<u32>,
    other: Option<Site>,
) -> Box<RunError> {
    Box::new(RunError {
        kind: fault.kind,
        text: fault.text,
        at: Some(env.party(r.cluster.index, r.warps[warp].id, site)),
        lane,
        other,
        waits: Vec::new(),
    })
}

/// Nothing can go on: what each warp waits for.
pub(crate) fn stuck<'r>(
    env: &Env<'_>,
    resident: impl Iterator<Item = &'r Resident>,
    why: String,
) -> Box<RunError> {
    let mut waits = Vec::new();
    for r in resident {
        for w in r.warps.iter().filter(|w| w.status != Status::Exited) {
            let id = r.cluster.ctas[w.cta as usize].id;
            waits.push(Wait {
                at: env.site(id, w.index, site_of(env, w)),
                on: on(env, r, w),
            });
        }
    }
    Box::new(RunError {
        kind: FaultKind::Deadlock,
        text: format!("{why}: {}", Waits(&waits).count()),
        at: None,
        lane: None,
        other: None,
        waits,
    })
}

/// The op a warp is in, or the next one it would run.
fn site_of(env: &Env<'_>, w: &Warp) -> u32 {
    let insts = &env.code.roles[w.role].insts;
    let op = |i: &Inst<'_>| match i {
        Inst::Op(_, site) => Some(*site),
        _ => None,
    };
    let (before, after) = insts.split_at(w.pc as usize);
    let next = after.iter().find_map(op);
    next.or_else(|| before.iter().rev().find_map(op))
        .unwrap_or(0)
}

fn on(env: &Env<'_>, r: &Resident, w: &Warp) -> WaitOn {
    let cta = &r.cluster.ctas[w.cta as usize];
    let Status::Waiting(waiting) = w.status else {
        return WaitOn::Poll;
    };
    match waiting {
        Waiting::Mbarrier { bar, parity } => {
            let (name, index) = env.barrier_name(bar);
            let b = &r.cluster.ctas[bar.cta as usize].bars[bar.slot as usize];
            WaitOn::Mbarrier {
                name: name.to_owned(),
                index,
                parity,
                arrivals: b.arrivals,
                bytes: b.bytes,
            }
        }
        Waiting::Named { named, .. } => WaitOn::Named {
            name: env.kernel.named[named as usize].name.clone(),
            arrived: cta.named[named as usize].arrived,
            threads: cta.named[named as usize].threads,
        },
        Waiting::Cta { .. } => WaitOn::Cta {
            arrived: cta.meeting.arrived,
            threads: cta.meeting.threads,
        },
        Waiting::Cluster { .. } => WaitOn::Cluster {
            arrived: r.cluster.meeting.arrived / 32,
            warps: r.cluster.meeting.threads / 32,
        },
        Waiting::Bulk { lane, pending, .. } => WaitOn::BulkGroup { lane, pending },
        Waiting::Copies { lane, .. } => WaitOn::Copies {
            lane,
            open: r.cluster.engines.lane_copies[w.id as usize].open_of(lane),
        },
        Waiting::Wgmma { .. } => WaitOn::Wgmma {
            issued: r.cluster.engines.products_of(w).issued(),
        },
        Waiting::Registers { count, wanted } => WaitOn::Registers {
            count,
            wanted,
            free: cta.free_registers,
        },
    }
}

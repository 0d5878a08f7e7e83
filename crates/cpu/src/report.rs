//! Reports of faults and deadlocks.

use crate::compile::Inst;
use crate::env::Env;
use crate::error::{BlockedOn, BlockedWarp, RunError};
use crate::schedule::ResidentCluster;
use crate::warp::{Status, Waiting, Warp};
use warpline_ir::{Fault, FaultKind, WaitList};

/// The cause of a deadlock in which all warps poll.
pub(crate) const LIVELOCK: &str = "all of them poll values that never change (livelock)";

/// Builds the error for a fault of an op in a warp.
pub(crate) fn fault(
    env: &Env<'_>,
    r: &ResidentCluster,
    warp: usize,
    site: u32,
    fault: Fault,
) -> Box<RunError> {
    Box::new(RunError {
        kind: fault.kind,
        text: fault.text,
        at: Some(env.op_location(r.cluster.index, r.warps[warp].id, site)),
        lane: None,
        other: None,
        race: None,
        help: None,
        waits: Vec::new(),
    })
}

/// Builds the error for a deadlock, with the wait of each warp.
pub(crate) fn deadlock<'r>(
    env: &Env<'_>,
    resident: impl Iterator<Item = &'r ResidentCluster>,
    why: String,
) -> Box<RunError> {
    let mut waits = Vec::new();
    for r in resident {
        for w in r.warps.iter().filter(|w| w.status != Status::Exited) {
            let id = r.cluster.ctas[w.cta as usize].id;
            waits.push(BlockedWarp {
                at: env.site_location(id, w.index, site_of(env, w)),
                on: blocked_on(env, r, w),
            });
        }
    }
    Box::new(RunError {
        kind: FaultKind::Deadlock,
        text: format!("{}; {why}", WaitList(&waits).count()),
        at: None,
        lane: None,
        other: None,
        race: None,
        help: None,
        waits,
    })
}

/// Returns the current op of a warp, or its next one.
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

fn blocked_on(env: &Env<'_>, r: &ResidentCluster, w: &Warp) -> BlockedOn {
    let cta = &r.cluster.ctas[w.cta as usize];
    let Status::Waiting(waiting) = w.status else {
        return BlockedOn::Poll;
    };
    match waiting {
        Waiting::Mbarrier { bar, parity } => {
            let (name, index) = env.barrier_name(bar);
            let b = &r.cluster.ctas[bar.cta as usize].bars[bar.slot as usize];
            BlockedOn::Mbarrier {
                name: name.to_owned(),
                index,
                parity,
                arrivals: b.arrivals,
                bytes: b.bytes,
            }
        }
        Waiting::Named { named, .. } => BlockedOn::Named {
            name: env.kernel.named[named as usize].name.clone(),
            arrived: cta.named[named as usize].arrived,
            threads: cta.named[named as usize].threads,
        },
        Waiting::Cta { .. } => BlockedOn::Cta {
            arrived: cta.barrier.arrived,
            threads: cta.barrier.threads,
        },
        Waiting::Cluster { .. } => BlockedOn::Cluster {
            arrived: r.cluster.barrier.arrived / 32,
            warps: r.cluster.barrier.threads / 32,
        },
        Waiting::Bulk { lane, pending, .. } => BlockedOn::BulkGroup { lane, pending },
        Waiting::Copies { lane, .. } => BlockedOn::Copies {
            lane,
            open: r.cluster.engines.lane_copies[w.id as usize].open_count(lane),
        },
        Waiting::Wgmma { .. } => BlockedOn::Wgmma {
            issued: r.cluster.engines.wgmma_queue(w).warps_issued(),
        },
        Waiting::Registers { count, wanted } => BlockedOn::Registers {
            count,
            wanted,
            free: cta.free_registers,
        },
    }
}

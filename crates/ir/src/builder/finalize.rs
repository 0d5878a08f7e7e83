//! The last pass of the builder: arrival counts, addresses, mbarrier inits, `setmaxnreg`.

use super::state::{ArrivalCount, BuilderState};
use crate::error::BuildErrors;
use crate::loc::{Frame, Loc};
use crate::machine::Special;
use crate::ops::Op;
use crate::ops::cluster::{ClusterArrive, ClusterWait};
use crate::ops::compare::{Cmp, Setp};
use crate::ops::control::{CtaSync, SetMaxRegs};
use crate::ops::mbarrier::MbarrierInit;
use crate::ops::memory::Fence;
use crate::ops::special::ReadSpecial;
use crate::program::{Block, Kernel, Stmt, StmtKind};
use crate::sync::FenceKind;
use crate::types::Type;
use crate::value::{BarId, BarRef, Operand, RegId, RoleId};

/// Converts the builder's state into a kernel, or returns all errors.
pub(crate) fn finalize(mut s: BuilderState) -> Result<Kernel, BuildErrors> {
    if !s.declare_only {
        set_arrival_counts(&mut s);
    }
    if let Some(barrier) = s.prologue_barrier
        && reaches_peers(&s)
    {
        let text = "prologue_barrier() is used in a kernel whose CTAs access each other's shared memory; such a kernel starts with a cluster barrier".to_owned();
        s.error("prologue-barrier-cluster", text, barrier.frame, None);
    }
    if s.roles.is_empty() {
        let text = "the kernel has no role".to_owned();
        s.errors.push(crate::error::BuildError {
            code: "no-role",
            text,
            at: None,
            other: None,
        });
    }
    if !s.errors.is_empty() {
        return Err(BuildErrors {
            kernel: s.name,
            errors: s.errors,
        });
    }
    let shared_bytes = assign_addresses(&mut s);
    if !s.declare_only {
        emit_setmaxnreg(&mut s);
        init_barriers(&mut s);
    }
    let mut epilogue = Block::default();
    if reaches_peers(&s) {
        // No CTA exits while a peer may still arrive at its mbarriers or write its memory.
        let loc = s.loc(Frame::caller());
        let op = |o: Op| Stmt {
            kind: StmtKind::Op(o),
            loc,
        };
        epilogue.0 = vec![
            op(ClusterArrive { release: true }.into()),
            op(ClusterWait.into()),
        ];
    }
    let prologue = s.blocks.swap_remove(0).stmts;
    Ok(Kernel {
        name: s.name,
        target: s.target,
        params: s.params,
        limits: s.limits,
        tiles: s.tiles,
        barriers: s.barriers,
        named: s.named,
        roles: s.roles,
        prologue: Block(prologue),
        epilogue,
        regs: s.regs,
        cluster: s.cluster,
        shared_bytes,
        co_resident: s.co_resident,
        locs: s.locs,
    })
}

/// Returns whether the CTAs of a cluster access each other's shared memory.
fn reaches_peers(s: &BuilderState) -> bool {
    s.cluster != [1, 1, 1] && s.accesses_peers
}

/// Sets the arrival counts of the mbarriers of rings and turns.
fn set_arrival_counts(s: &mut BuilderState) {
    let cluster = s.cluster;
    for i in 0..s.rings.len() {
        let ring = &s.rings[i];
        let (full, empty) = (ring.full, ring.empty);
        match ring.arrival_counts(cluster) {
            Ok((f, e)) => {
                s.counts[full.index()] = ArrivalCount::Fixed(f);
                s.counts[empty.index()] = ArrivalCount::Fixed(e);
            }
            Err((code, text, frame)) => s.error(code, text, frame, None),
        }
    }
    for i in 0..s.turns.len() {
        let turn = &s.turns[i];
        let (bar, frame) = (turn.bar, turn.frame);
        let warps: Vec<Option<u32>> = turn
            .roles
            .iter()
            .map(|name| s.roles.iter().find(|r| r.name == *name).map(|r| r.warps))
            .collect();
        let missing = warps.iter().position(Option::is_none);
        if let Some(i) = missing {
            let text = format!(
                "turn {} names role {}, which does not exist",
                turn.name, turn.roles[i]
            );
            s.error("turn-role", text, frame, None);
            continue;
        }
        // The previous role passes the turn to role i.
        let n = warps.len();
        let counts = (0..n)
            .map(|i| warps[(i + n - 1) % n].unwrap_or(1))
            .collect();
        s.counts[bar.index()] = ArrivalCount::Each(counts);
    }
}

/// Assigns addresses to tiles and mbarriers, and returns the bytes of shared memory.
fn assign_addresses(s: &mut BuilderState) -> u32 {
    let mut end = 0u32;
    for i in 0..s.tiles.len() {
        let t = &s.tiles[i];
        s.tiles[i].offset = match t.alias {
            Some(aliased) => s.tiles[aliased.index()].offset,
            None => {
                let at = align(end, t.layout.swizzle.align());
                end = at.saturating_add(t.bytes());
                at
            }
        };
    }
    end = align(end, 8);
    for b in &mut s.barriers {
        b.offset = end;
        end = end.saturating_add(b.len.saturating_mul(8));
    }
    end
}

/// Rounds up to a multiple; overflow saturates, so that the checker reports the size.
fn align(byte: u32, multiple: u32) -> u32 {
    byte.checked_next_multiple_of(multiple).unwrap_or(u32::MAX)
}

/// Emits the mbarrier inits in one thread, the fence, and the CTA or cluster barrier: before
/// all roles, or at the prologue barrier.
fn init_barriers(s: &mut BuilderState) {
    let mut inits: Vec<(BarRef, u32, Loc)> = Vec::new();
    for (i, b) in s.barriers.iter().enumerate() {
        for index in 0..b.len {
            let count = match &s.counts[i] {
                ArrivalCount::Fixed(n) => *n,
                ArrivalCount::Each(counts) => counts[index as usize],
                ArrivalCount::Manual => continue,
            };
            let bar = BarRef {
                bar: BarId(i as u32),
                index: Operand::imm(index),
                peer: None,
            };
            inits.push((bar, count, b.loc));
        }
    }
    let clustered = reaches_peers(s);
    if inits.is_empty() && !clustered && s.prologue_barrier.is_none() {
        return;
    }
    let frame = Frame::caller();
    let loc = inits.first().map_or_else(|| s.loc(frame), |i| i.2);
    let op = |o: Op, loc| Stmt {
        kind: StmtKind::Op(o),
        loc,
    };
    let mut inits_and_fence: Vec<Stmt> = inits
        .iter()
        .map(|&(bar, count, loc)| op(MbarrierInit { bar, count }.into(), loc))
        .collect();
    let fence = FenceKind::MbarrierInit;
    inits_and_fence.push(op(Fence { kind: fence }.into(), loc));
    let author = s.locs.author(loc).unwrap_or(frame);
    if let Some(barrier) = s.prologue_barrier {
        if !inits.is_empty() {
            insert_in_one_lane(s, barrier.role, inits_and_fence, loc, author);
        }
        for (i, role) in s.roles.iter_mut().enumerate() {
            if i != barrier.role.index() {
                role.body.0.insert(0, op(CtaSync.into(), loc));
            }
        }
        return;
    }
    if !inits.is_empty() {
        let cond = special_equals(s, Special::Tid, 0, author);
        let kind = StmtKind::If {
            cond,
            then: Block(inits_and_fence),
            other: Block::default(),
        };
        s.blocks[0].stmts.push(Stmt { kind, loc });
    }
    let barrier: Vec<Op> = if clustered {
        // The fence publishes the inits; a release would wait for all memory accesses.
        let release = inits.is_empty();
        vec![ClusterArrive { release }.into(), ClusterWait.into()]
    } else {
        vec![CtaSync.into()]
    };
    let barrier = barrier.into_iter().map(|o| op(o, loc));
    s.blocks[0].stmts.extend(barrier);
}

/// Emits a prologue predicate: a special register equals `value`.
fn special_equals(s: &mut BuilderState, which: Special, value: u32, author: Frame) -> RegId {
    let special = s.in_prologue(Type::U32, author, |dst| ReadSpecial { dst, which }.into());
    s.in_prologue(Type::Pred, author, |dst| {
        let (a, b) = (special.into(), Operand::imm(value));
        let (cmp, ty) = (Cmp::Eq, Type::U32);
        Setp { cmp, ty, dst, a, b }.into()
    })
}

/// Inserts statements at the start of a role, in an elected lane of its first warp.
fn insert_in_one_lane(
    s: &mut BuilderState,
    role: RoleId,
    stmts: Vec<Stmt>,
    loc: Loc,
    author: Frame,
) {
    let (warps, first) = {
        let r = &s.roles[role.index()];
        (r.warps, r.first_warp)
    };
    let body = Block(stmts);
    let mut kind = StmtKind::Elect { body };
    if warps > 1 {
        kind = StmtKind::If {
            cond: special_equals(s, Special::WarpId, first, author),
            then: Block(vec![Stmt { kind, loc }]),
            other: Block::default(),
        };
    }
    s.roles[role.index()].body.0.insert(0, Stmt { kind, loc });
}

/// Emits `setmaxnreg` at the start of each role with a register budget, after the prologue
/// barrier.
fn emit_setmaxnreg(s: &mut BuilderState) {
    let threads = s.roles.iter().map(|r| r.warps * 32).sum();
    let launch_registers = s.target.entry_registers(threads);
    let barrier = s.prologue_barrier;
    for (i, r) in s.roles.iter_mut().enumerate() {
        let Some(count) = r.registers else { continue };
        if count == launch_registers {
            continue;
        }
        let grow = count > launch_registers;
        let kind = StmtKind::Op(SetMaxRegs { count, grow }.into());
        // After the barrier: `setmaxnreg.inc` waits until other warpgroups have released
        // registers.
        let at = barrier
            .filter(|barrier| barrier.role.index() == i)
            .map_or(0, |barrier| barrier.index + 1);
        r.body.0.insert(at, Stmt { kind, loc: r.loc });
    }
}

//! The end of building: counts, addresses, barrier inits, register moves.

use super::state::{Count, State};
use crate::error::BuildErrors;
use crate::loc::{Frame, Loc};
use crate::machine::Special;
use crate::ops::Op;
use crate::ops::cluster::{ClusterArrive, ClusterWait};
use crate::ops::compare::{Cmp, Setp};
use crate::ops::control::{CtaSync, SetMaxRegs};
use crate::ops::mbarrier::MbarrierInit;
use crate::ops::memory::Fence as FenceOp;
use crate::ops::special::ReadSpecial;
use crate::program::{Block, Kernel, Stmt, StmtKind};
use crate::sync::Fence;
use crate::types::Type;
use crate::value::{BarId, BarRef, Operand, RegId, RoleId};

/// Turns what was written into a kernel, or returns every error.
pub(crate) fn finish(mut s: State) -> Result<Kernel, BuildErrors> {
    if !s.declare_only {
        settle_counts(&mut s);
    }
    if let Some(m) = s.meeting
        && reaches_peers(&s)
    {
        let text = "the CTAs of a cluster touch each other's shared memory, and so meet before any role begins".to_owned();
        s.error("meet-cluster", text, m.frame, None);
    }
    if s.roles.is_empty() {
        let text = "a kernel has at least one role".to_owned();
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
    let shared_bytes = place_shared(&mut s);
    if !s.declare_only {
        move_registers(&mut s);
        init_barriers(&mut s);
    }
    let mut epilogue = Block::default();
    if reaches_peers(&s) {
        // No CTA leaves while a peer may still arrive or copy into it.
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

/// Do the CTAs of a cluster touch each other's shared memory?
fn reaches_peers(s: &State) -> bool {
    s.cluster != [1, 1, 1] && s.remote
}

/// How often the barriers of rings and turns are arrived at.
fn settle_counts(s: &mut State) {
    let cluster = s.cluster;
    for i in 0..s.rings.len() {
        let ring = &s.rings[i];
        let (full, empty) = (ring.full, ring.empty);
        match ring.settle(cluster) {
            Ok((f, e)) => {
                s.counts[full.index()] = Count::Fixed(f);
                s.counts[empty.index()] = Count::Fixed(e);
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
        if let Some(m) = missing {
            let text = format!(
                "turn {} names role {}, which does not exist",
                turn.name, turn.roles[m]
            );
            s.error("turn-role", text, frame, None);
            continue;
        }
        // The turn of role i is handed over by the role before it.
        let n = warps.len();
        let counts = (0..n)
            .map(|i| warps[(i + n - 1) % n].unwrap_or(1))
            .collect();
        s.counts[bar.index()] = Count::Each(counts);
    }
}

/// Gives tiles and barriers their addresses; the sum of all bytes.
fn place_shared(s: &mut State) -> u32 {
    let mut end = 0u32;
    for i in 0..s.tiles.len() {
        let t = &s.tiles[i];
        s.tiles[i].offset = match t.alias {
            Some(of) => s.tiles[of.index()].offset,
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

/// The next multiple; far too much stays far too much, for the checker to refuse.
fn align(byte: u32, to: u32) -> u32 {
    byte.checked_next_multiple_of(to).unwrap_or(u32::MAX)
}

/// One thread initialises the barriers with known counts and makes it visible;
/// then the CTA, or the cluster, meets: before the roles begin, or where one of
/// them says so.
fn init_barriers(s: &mut State) {
    let mut inits: Vec<(BarRef, u32, Loc)> = Vec::new();
    for (i, b) in s.barriers.iter().enumerate() {
        for index in 0..b.len {
            let count = match &s.counts[i] {
                Count::Fixed(n) => *n,
                Count::Each(all) => all[index as usize],
                Count::Manual => continue,
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
    if inits.is_empty() && !clustered && s.meeting.is_none() {
        return;
    }
    let frame = Frame::caller();
    let loc = inits.first().map_or_else(|| s.loc(frame), |i| i.2);
    let op = |o: Op, loc| Stmt {
        kind: StmtKind::Op(o),
        loc,
    };
    let mut make: Vec<Stmt> = inits
        .iter()
        .map(|&(bar, count, loc)| op(MbarrierInit { bar, count }.into(), loc))
        .collect();
    let fence = Fence::MbarrierInit;
    make.push(op(FenceOp { fence }.into(), loc));
    let author = s.locs.author(loc).unwrap_or(frame);
    if let Some(meeting) = s.meeting {
        if !inits.is_empty() {
            first_lane(s, meeting.role, make, loc, author);
        }
        for (i, role) in s.roles.iter_mut().enumerate() {
            if i != meeting.role.index() {
                role.body.0.insert(0, op(CtaSync.into(), loc));
            }
        }
        return;
    }
    if !inits.is_empty() {
        let cond = is_special(s, Special::Tid, 0, author);
        let kind = StmtKind::If {
            cond,
            then: Block(make),
            other: Block::default(),
        };
        s.blocks[0].stmts.push(Stmt { kind, loc });
    }
    let meet: Vec<Op> = if clustered {
        // The fence passes the inits on; a release would wait for all of memory.
        let release = inits.is_empty();
        vec![ClusterArrive { release }.into(), ClusterWait.into()]
    } else {
        vec![CtaSync.into()]
    };
    let meet = meet.into_iter().map(|o| op(o, loc));
    s.blocks[0].stmts.extend(meet);
}

/// Whether something of a thread is a number, known in the prologue.
fn is_special(s: &mut State, which: Special, number: u32, author: Frame) -> RegId {
    let of = s.in_prologue(Type::U32, author, |dst| ReadSpecial { dst, which }.into());
    s.in_prologue(Type::Pred, author, |dst| {
        let (a, b) = (of.into(), Operand::imm(number));
        let (cmp, ty) = (Cmp::Eq, Type::U32);
        Setp { cmp, ty, dst, a, b }.into()
    })
}

/// An elected lane of a role's first warp begins with `what`.
fn first_lane(s: &mut State, role: RoleId, what: Vec<Stmt>, loc: Loc, author: Frame) {
    let (warps, first) = {
        let r = &s.roles[role.index()];
        (r.warps, r.first_warp)
    };
    let body = Block(what);
    let mut kind = StmtKind::Elect { body };
    if warps > 1 {
        kind = StmtKind::If {
            cond: is_special(s, Special::WarpId, first, author),
            then: Block(vec![Stmt { kind, loc }]),
            other: Block::default(),
        };
    }
    s.roles[role.index()].body.0.insert(0, Stmt { kind, loc });
}

/// A role that asked for registers takes or gives them at its start, behind the meeting.
fn move_registers(s: &mut State) {
    let threads = s.roles.iter().map(|r| r.warps * 32).sum();
    let entry = s.target.entry_registers(threads);
    let meeting = s.meeting;
    for (i, r) in s.roles.iter_mut().enumerate() {
        let Some(count) = r.registers else { continue };
        if count == entry {
            continue;
        }
        let grow = count > entry;
        let kind = StmtKind::Op(SetMaxRegs { count, grow }.into());
        // Behind the meeting: who takes registers waits for those who give some.
        let at = meeting
            .filter(|m| m.role.index() == i)
            .map_or(0, |m| m.at + 1);
        r.body.0.insert(at, Stmt { kind, loc: r.loc });
    }
}

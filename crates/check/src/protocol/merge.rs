//! Joins two states at the same point, which differ only in their happens-before facts.
//!
//! The joined state keeps the facts that hold in both states, and the accesses of both. A
//! conclusion from these facts holds in either state.

use super::canon::Records;
use super::know::{Know, Same, Shared};
use super::state::{Env, FIRST, State};
use rustc_hash::FxHashMap;

/// How far known phases lie behind the complete ones, at most: further back is all the same.
const FAR: u32 = 2;
/// The cluster has not met.
const NEVER: u32 = 3;

/// All who know something: warps, some of their lanes, and what is handed on at barriers.
pub(super) fn holders(st: &State) -> Vec<&Know> {
    let mut list = Vec::new();
    for w in &st.warps {
        list.push(&*w.know.all);
        list.extend(w.know.some.iter().map(|(_, know)| &**know));
    }
    for b in &st.bars {
        list.extend([&*b.came, &*b.done]);
    }
    for m in &st.meetings {
        list.extend([&*m.know, &*m.done]);
    }
    list
}

pub(super) fn holders_mut(st: &mut State) -> Vec<&mut Shared> {
    let mut list = Vec::new();
    for w in &mut st.warps {
        list.push(&mut w.know.all);
        list.extend(w.know.some.iter_mut().map(|(_, know)| know));
    }
    for b in &mut st.bars {
        list.extend([&mut b.came, &mut b.done]);
    }
    for m in &mut st.meetings {
        list.extend([&mut m.know, &mut m.done]);
    }
    list
}

/// Phases that are complete, by barrier.
pub(super) fn complete(st: &State) -> Vec<u32> {
    let bars = st.bars.iter().map(|b| b.phase);
    bars.chain(st.meetings.iter().map(|m| m.over)).collect()
}

/// How far what somebody knows of each barrier lies behind.
pub(super) fn behind<'s>(know: &'s Know, complete: &'s [u32]) -> impl Iterator<Item = u32> + 's {
    let cluster = complete.len() - 1;
    let each = know.phases.iter().zip(complete).enumerate();
    each.map(move |(i, (&known, &complete))| match known {
        0..=FIRST if i == cluster => NEVER,
        _ => (complete - known).min(FAR),
    })
}

/// The phase that lies so far behind.
fn phase(behind: u32, complete: u32) -> u32 {
    match behind {
        NEVER => FIRST,
        n => complete - n,
    }
}

/// Takes into a state what another one, at the same point, does not know or has to heed besides;
/// says whether there was anything.
pub(super) fn absorb(
    env: &Env<'_>,
    old: &mut State,
    of_old: &Records,
    new: &State,
    of_new: &Records,
) -> bool {
    let mut changed = less_phases(old, new);
    let mut known: Vec<(u64, u32)> = of_old.iter().map(|&(i, id)| (id, i)).collect();
    known.sort_unstable();
    // Records that both have, and those that are added: mine, theirs.
    let (mut same, mut added) = (Same::default(), Vec::new());
    for &(i, id) in of_new {
        let first = known.partition_point(|k| k.0 < id);
        let same_id = known[first..].iter().take_while(|k| k.0 == id);
        let settled = new.records.get(i).settled;
        let mut found = false;
        for &(_, to) in same_id {
            found = true;
            same.add(to, i);
            let r = old.records.get_mut(to);
            changed |= r.settled && !settled;
            r.settled &= settled;
        }
        if !found {
            added.push((add(env, old, new, i), i));
        }
    }
    changed |= !added.is_empty();
    for (mine, theirs) in holders_mut(old).into_iter().zip(holders(new)) {
        mine.copy(theirs, &added);
        changed |= mine.restrict(theirs, &same);
    }
    if !added.is_empty() {
        let added = added.into_iter().map(|(to, i)| (i, to)).collect();
        place(old, new, &added);
    }
    changed
}

/// Are two known to be equally far behind every barrier? Seen at a glance, mostly.
fn agree(a: &Know, of_a: &[u32], b: &Know, of_b: &[u32]) -> bool {
    let cluster = of_a.len() - 1;
    let (a, b) = (&a.phases[..], &b.phases[..]);
    let differs = |i: usize| (of_a[i] - a[i]).min(FAR) ^ (of_b[i] - b[i]).min(FAR);
    let all = (0..=cluster).map(differs).fold(0, |all, x| all | x);
    all == 0 && (a[cluster] <= FIRST) == (b[cluster] <= FIRST)
}

fn less_phases(old: &mut State, new: &State) -> bool {
    let (mine, theirs) = (complete(old), complete(new));
    let mut less: Vec<(usize, usize, u32)> = Vec::new();
    for (h, (a, b)) in holders(old).iter().zip(&holders(new)).enumerate() {
        if agree(a, &mine, b, &theirs) {
            continue;
        }
        for (i, (x, y)) in behind(a, &mine).zip(behind(b, &theirs)).enumerate() {
            if y > x {
                less.push((h, i, phase(y, mine[i])));
            }
        }
    }
    let mut list = holders_mut(old);
    for &(h, i, phase) in &less {
        list[h].phases[i] = phase;
    }
    !less.is_empty()
}

/// Adds a record of another state.
fn add(env: &Env<'_>, old: &mut State, new: &State, i: u32) -> u32 {
    use super::record::Who;
    let mut r = new.records.get(i).clone();
    let warp = r.warp as usize;
    if let Who::Load { bar, phase } = &mut r.who {
        let ago = new.bars[*bar as usize].phase - *phase;
        *phase = old.bars[*bar as usize].phase.saturating_sub(ago);
    }
    let now = old.warps[warp].epoch;
    r.epoch = match r.epoch == new.warps[warp].epoch {
        true => now,
        false => now.wrapping_sub(1),
    };
    let maker = r.warp / env.warps;
    old.records.add(r, maker)
}

/// Has records of another state waited for where they are there.
fn place(old: &mut State, new: &State, added: &FxHashMap<u32, u32>) {
    let put = |to: &mut Vec<u32>, from: &[u32]| {
        to.extend(from.iter().filter_map(|i| added.get(i)));
    };
    for (a, b) in old.warps.iter_mut().zip(&new.warps) {
        put(&mut a.apart, &b.apart);
        put(&mut a.fencing, &b.fencing);
        put(&mut a.open, &b.open);
        for (a, b) in a.bulk.iter_mut().zip(&b.bulk) {
            for (a, b) in a.1.iter_mut().zip(&b.1) {
                put(a, b);
            }
        }
        for (a, b) in a.copies.iter_mut().zip(&b.copies) {
            put(&mut a.1, &b.1);
        }
        put(&mut a.copying, &b.copying);
    }
    for (a, b) in old.products.iter_mut().zip(&new.products) {
        for (number, records) in b {
            for i in records {
                let Some(&to) = added.get(i) else { continue };
                let warp = new.records.get(*i).warp as usize;
                let ago = new.warps[warp].commits.wrapping_sub(*number);
                let number = old.warps[warp].commits.wrapping_sub(ago);
                match a.iter_mut().find(|g| g.0 == number) {
                    Some(g) => g.1.push(to),
                    None => a.push((number, vec![to])),
                }
            }
        }
    }
    for (a, b) in old.bars.iter_mut().zip(&new.bars) {
        for (i, phase) in &b.passed {
            if let Some(&to) = added.get(i) {
                let ago = i64::from(b.phase) - phase;
                a.passed.push((to, i64::from(a.phase) - ago));
            }
        }
    }
}

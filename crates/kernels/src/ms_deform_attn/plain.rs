//! The form in which every warp works out its points, gathers and adds up.

use super::gather::{Gather, Seat, Whose};
use super::line::{Held, Line};
use super::points::{Own, Raw};
use super::record::Lent;
use super::texel::{Number, Texel};
use super::walk::Item;
use warpline_ir::build::*;

/// Declares the roles.
pub(super) fn roles<E: Texel, N: Number>(k: Builder, line: &Line<E, N>) {
    let held = line.held(k);
    let role = k.role("gather").warps(line.config.warps);
    role.body(|| gather(line, held));
    if let Some(held) = held {
        k.role("hold").warps(1).body(|| line.bring(held));
    }
}

/// Gathers all queries that a CTA works on.
fn gather<E: Texel, N: Number>(line: &Line<E, N>, held: Option<Held<E>>) {
    let seat = Seat::new(&line.lanes);
    let own = Own::new(line, seat.within);
    line.each(|item| {
        let slot = held.map(|held| held.wait());
        let near = slot.as_ref().map(|slot| slot.tiles());
        let gather = Gather::new(line, seat, item, near);
        let read = |step: Reg<u32>| {
            let whose = Whose::new(line, seat, item, step);
            (whose, own.read(whose.number))
        };
        let each = |whose: Whose, raw: &Raw| {
            let made = own.records(raw);
            let lent = Lent::new(line.format(), &line.class, &line.lanes, seat.side, made);
            gather.query(whose, |point| lent.of(point));
        };
        rounds(line, item, read, each);
        if let Some(slot) = slot {
            slot.release();
        }
    });
}

/// The queries of an item, warp by warp. The last round of a batch may have
/// queries that there are none of.
fn rounds<E: Texel, N: Number>(
    line: &Line<E, N>,
    item: Item,
    read: impl Fn(Reg<u32>) -> (Whose, Raw),
    each: impl Fn(Whose, &Raw),
) {
    let step = line.lanes.queries();
    let mine = item.first + warp_in_role() * step;
    let round = line.config.round(&line.lanes);
    if !line.config.prefetch {
        steps(item.rounds).each(|i| {
            let first = mine + i * round;
            if_(first.lt(line.queries), || {
                let (whose, raw) = read(first);
                each(whose, &raw);
            });
        });
        return;
    }
    // The points of the next round are asked for before this one is gathered.
    let (whose, raw) = read(mine);
    let flag = |whose: &Whose| select(whose.there, 1u32, 0u32);
    let carried = (whose.number, flag(&whose), raw.words.clone());
    steps(item.rounds).fold(carried, |i, (number, there, words)| {
        let (next, ahead) = read(mine + (i + 1) * round);
        let there = there.ne(0u32);
        each(Whose { number, there }, &raw.with(words));
        (next.number, flag(&next), ahead.words)
    });
}

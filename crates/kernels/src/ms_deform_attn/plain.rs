//! The form in which every warp works out its points, gathers and adds up.

use super::config::Handed;
use super::gather::{Gather, Seat, Whose};
use super::line::{Held, Line};
use super::points::{Own, Raw};
use super::record::{Lent, Shelf};
use super::texel::{Number, Texel};
use super::walk::Item;
use warpline_ir::build::*;

/// Declares the roles.
pub(super) fn roles<E: Texel, N: Number>(k: Builder, line: &Line<E, N>) {
    let held = line.held(k);
    let shelves = (line.config.handed == Handed::Shared).then(|| {
        let rows = line.lanes.items() * line.config.warps;
        let shelf = line.config.shelf(&line.class, &line.lanes, rows);
        let words = shelf.words();
        (shelf, k.tile::<u32>("records", 1, words).plain().declare())
    });
    let role = k.role("gather").warps(line.config.warps);
    role.body(|| gather(line, held, shelves));
    if let Some(held) = held {
        k.role("hold").warps(1).body(|| line.bring(held));
    }
}

/// Gathers all queries that a CTA works on.
fn gather<E: Texel, N: Number>(
    line: &Line<E, N>,
    held: Option<Held<E>>,
    shelves: Option<(Shelf, Tile<u32>)>,
) {
    let seat = Seat::new(&line.lanes);
    let own = Own::new(line, seat.within);
    line.each(|item| {
        let slot = held.map(|held| held.wait());
        let near = slot.as_ref().map(|slot| slot.tiles());
        let gather = Gather::new(line, seat, item, near);
        let read = |step: Reg<u32>| {
            let (query, there) = line.query(seat.step(&line.lanes, step));
            let number = line.number(item, query, seat.head(&line.lanes, item));
            (Whose { number, there }, own.read(number))
        };
        let each = |whose: Whose, raw: &Raw| {
            let made = own.records(raw);
            match shelves {
                None => {
                    let lent = Lent::new(line.format(), &line.class, &line.lanes, seat.side, made);
                    gather.query(whose, |point| lent.of(point));
                }
                Some((shelf, tile)) => {
                    let row = warp_in_role() * line.lanes.items() + seat.item;
                    let to = tile.whole();
                    for (i, sides) in (0..).zip(&made) {
                        let (record, there) = own.place(i);
                        let put = || shelf.put(to, row, record, sides);
                        match there {
                            None => put(),
                            Some(there) => if_(there, put),
                        }
                    }
                    warp_sync();
                    let points = line.format().points;
                    gather.query(whose, |point| {
                        shelf.take(to, row, seat.side, point / points)
                    });
                    warp_sync();
                }
            }
        };
        rounds(line, item, read, each);
        if let Some(slot) = slot {
            slot.release();
        }
    });
}

/// The queries of an item, warp by warp. All parts have as many rounds, and the
/// last one queries that there are none of.
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
        steps(line.rounds).each(|i| {
            let first = mine + i * round;
            let work = || {
                let (whose, raw) = read(first);
                each(whose, &raw);
            };
            match line.config.handed {
                Handed::Shuffles => if_(first.lt(line.queries), work),
                // Lanes meet: what they do depends on no number of queries.
                Handed::Shared => work(),
            }
        });
        return;
    }
    // The points of the next round are asked for before this one is gathered.
    let (whose, raw) = read(mine);
    let flag = |whose: &Whose| select(whose.there, 1u32, 0u32);
    let carried = (whose.number, flag(&whose), raw.words.clone());
    steps(line.rounds).fold(carried, |i, (number, there, words)| {
        let (next, ahead) = read(mine + (i + 1) * round);
        let there = there.ne(0u32);
        each(Whose { number, there }, &raw.with(words));
        (next.number, flag(&next), ahead.words)
    });
}

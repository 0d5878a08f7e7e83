//! Bugs that show only in some laps of a ring, or at one of its stages: states that are taken for
//! the same must not hide them.

use crate::rules::kernel;
use warpline_ir::Kernel;
use warpline_ir::builder::*;
use warpline_testkit::verdict::breaches;

const STAGES: u32 = 3;

/// Where a role is in a ring, and whether it has gone round an odd number of times.
#[derive(Clone, Copy)]
struct Cursor {
    stage: Var<u32>,
    parity: Var<u32>,
    odd: Var<u32>,
}

impl Cursor {
    fn new(parity: u32) -> Self {
        Self {
            stage: Var::new(0u32),
            parity: Var::new(parity),
            odd: Var::new(0u32),
        }
    }

    /// Goes on by some slots.
    fn skip(self, n: Reg<u32>) {
        let total = self.stage.get() + n;
        self.stage.set(total % STAGES);
        let laps = (total / STAGES) & 1u32;
        self.parity.set(self.parity.get() ^ laps);
        self.odd.set(self.odd.get() ^ laps);
    }

    fn next(self) {
        let next = self.stage.get() + 1u32;
        let wrap = next.eq(STAGES);
        self.stage.set(select(wrap, 0u32, next));
        let turned = |x: Var<u32>| select(wrap, x.get() ^ 1u32, x.get());
        self.parity.set(turned(self.parity));
        self.odd.set(turned(self.odd));
    }
}

/// What is done wrong, and where.
#[derive(Clone, Copy, Default)]
struct Slips {
    /// A slot is not given back at the last stage if this holds.
    keeps: Option<fn(Cursor) -> Reg<u32>>,
    /// What the taker turns the parity by that it waits for.
    turns: Option<fn(Cursor) -> Reg<u32>>,
    /// What comes after each tile.
    tile: Option<fn(Cursor)>,
}

/// One role gives slots and another takes them, tile by tile.
fn ring(slips: Slips) -> Kernel {
    kernel(|k| {
        let [tiles, n] = ["tiles", "n"].map(|p| k.param::<u32>(p));
        let [full, empty] = ["full", "empty"].map(|b| k.barrier(b, STAGES).arrivals(1));
        k.role("give").warps(1).body(|| {
            elect(|| {
                let at = Cursor::new(1);
                steps(tiles).each(|_| {
                    steps(n).each(|_| {
                        empty.at(at.stage.get()).wait(at.parity.get());
                        full.at(at.stage.get()).arrive();
                        at.next();
                    });
                });
            });
        });
        k.role("take").warps(1).body(|| {
            elect(|| {
                let at = Cursor::new(0);
                steps(tiles).each(|_| {
                    steps(n).each(|_| {
                        let parity = at.parity.get();
                        let by = slips.turns.map(|turns| turns(at));
                        let parity = by.map_or(parity, |by| parity ^ by);
                        full.at(at.stage.get()).wait(parity);
                        let give = || empty.at(at.stage.get()).arrive();
                        match slips.keeps {
                            None => give(),
                            Some(keeps) => {
                                let last = at.stage.get().eq(STAGES - 1);
                                if_else(last & keeps(at).eq(1u32), || {}, give);
                            }
                        }
                        at.next();
                    });
                    slips.tile.into_iter().for_each(|f| f(at));
                });
            });
        });
    })
}

#[track_caller]
fn refused(kernel: &Kernel) {
    let found = breaches(kernel);
    let decided = |b: &warpline_testkit::verdict::Breach| b.0.starts_with('R');
    assert!(!found.is_empty() && found.iter().all(decided), "{found:?}");
}

#[track_caller]
fn passes(kernel: &Kernel) {
    assert_eq!(breaches(kernel), []);
}

#[test]
fn a_ring_passes() {
    passes(&ring(Slips::default()));
}

#[test]
fn a_slot_that_every_second_lap_keeps_is_missed() {
    refused(&ring(Slips {
        keeps: Some(|at| at.odd.get()),
        ..Slips::default()
    }));
    // Even where the parity itself tells the laps apart.
    refused(&ring(Slips {
        keeps: Some(|at| at.parity.get()),
        ..Slips::default()
    }));
}

#[test]
fn a_parity_that_is_turned_in_one_lap_is_wrong() {
    refused(&ring(Slips {
        turns: Some(|at| at.odd.get()),
        ..Slips::default()
    }));
    // By itself: it is always the same.
    refused(&ring(Slips {
        turns: Some(|at| at.parity.get()),
        ..Slips::default()
    }));
}

#[test]
fn a_parity_that_starts_again_with_a_tile_is_wrong() {
    refused(&ring(Slips {
        tile: Some(|at| {
            at.stage.set(0u32);
            at.parity.set(0u32);
        }),
        ..Slips::default()
    }));
}

/// Two roles take tiles by turns, and pass over those of the other; `after` comes after that.
fn dealt(after: impl Fn(Cursor)) -> Kernel {
    kernel(|k| {
        let [tiles, n] = ["tiles", "n"].map(|p| k.param::<u32>(p));
        let [full, empty] = ["full", "empty"].map(|b| k.barrier(b, STAGES).arrivals(1));
        let turn = k.turn("turn", ["first", "second"]);
        k.role("give").warps(1).body(|| {
            elect(|| {
                let at = Cursor::new(1);
                steps(tiles).each(|_| {
                    steps(n).each(|_| {
                        empty.at(at.stage.get()).wait(at.parity.get());
                        full.at(at.stage.get()).arrive();
                        at.next();
                    });
                });
            });
        });
        for (i, who) in (0..).zip(["first", "second"]) {
            k.role(who).warps(1).body(|| {
                let (at, now) = (Cursor::new(0), Var::new(0u32));
                steps(tiles).each(|_| {
                    let take = || {
                        turn.hold(|| {
                            steps(n).each(|_| {
                                full.at(at.stage.get()).wait(at.parity.get());
                                warp_sync();
                                elect(|| empty.at(at.stage.get()).arrive());
                                at.next();
                            });
                        });
                    };
                    let pass = || {
                        at.skip(n);
                        after(at);
                    };
                    if_else(now.get().eq(i), take, pass);
                    now.set(now.get() ^ 1u32);
                });
            });
        }
    })
}

#[test]
fn slots_are_dealt() {
    passes(&dealt(|_| {}));
}

#[test]
fn who_passes_over_slots_wrongly_at_one_stage_is_found() {
    let last = |at: Cursor| at.stage.get().eq(STAGES - 1);
    refused(&dealt(|at| {
        let by = select(last(at), 1u32, 0u32);
        at.parity.set(at.parity.get() ^ by);
    }));
    refused(&dealt(|at| if_(last(at), || at.stage.set(0u32))));
    // In every second lap only.
    refused(&dealt(|at| {
        if_(last(at), || at.parity.set(at.parity.get() ^ at.odd.get()));
    }));
    refused(&dealt(|at| {
        if_(last(at) & at.odd.get().eq(1u32), || at.stage.set(0u32));
    }));
}

/// A lap for each tile; behind it something that a launch decides, and then the taker's parity may
/// be set.
fn whole_laps(behind: Option<u32>) -> Kernel {
    kernel(|k| {
        let [tiles, n] = ["tiles", "n"].map(|p| k.param::<u32>(p));
        let [full, empty] = ["full", "empty"].map(|b| k.barrier(b, STAGES).arrivals(1));
        k.role("give").warps(1).body(|| {
            elect(|| {
                let at = Cursor::new(1);
                steps(tiles).each(|_| {
                    for _ in 0..STAGES {
                        empty.at(at.stage.get()).wait(at.parity.get());
                        full.at(at.stage.get()).arrive();
                        at.next();
                    }
                });
            });
        });
        k.role("take").warps(1).body(|| {
            let at = Cursor::new(0);
            steps(tiles).each(|_| {
                for _ in 0..STAGES {
                    full.at(at.stage.get()).wait(at.parity.get());
                    warp_sync();
                    elect(|| empty.at(at.stage.get()).arrive());
                    at.next();
                }
                steps(n).each(|_| warp_sync());
                behind.into_iter().for_each(|p| at.parity.set(p));
            });
        });
    })
}

#[test]
fn a_parity_that_is_set_to_what_is_right_behind_one_lap_is_wrong_behind_two() {
    passes(&whole_laps(None));
    refused(&whole_laps(Some(1)));
}

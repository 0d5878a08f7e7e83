//! Bugs that occur only in some passes over a ring, or only at one stage. A *lap* is one pass over
//! all stages. The identification of equal states must not hide these bugs.

use crate::rules::kernel;
use warpline_ir::Kernel;
use warpline_ir::builder::*;
use warpline_testkit::verdict::violations;

const STAGES: u32 = 3;

/// The position of a role in a ring; `odd` is the parity of its number of laps.
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

    /// Skips some slots.
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
        let flipped = |x: Var<u32>| select(wrap, x.get() ^ 1u32, x.get());
        self.parity.set(flipped(self.parity));
        self.odd.set(flipped(self.odd));
    }
}

/// The bugs of a ring.
#[derive(Clone, Copy, Default)]
struct Bugs {
    /// The slot of the last stage is not released if this is 1.
    skips_release: Option<fn(Cursor) -> Reg<u32>>,
    /// The consumer flips the parity of its wait by this.
    parity_flip: Option<fn(Cursor) -> Reg<u32>>,
    /// Runs after each tile.
    tile: Option<fn(Cursor)>,
}

/// One role fills slots and another releases them, tile by tile.
fn ring(bugs: Bugs) -> Kernel {
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
                        let by = bugs.parity_flip.map(|parity_flip| parity_flip(at));
                        let parity = by.map_or(parity, |by| parity ^ by);
                        full.at(at.stage.get()).wait(parity);
                        let give = || empty.at(at.stage.get()).arrive();
                        match bugs.skips_release {
                            None => give(),
                            Some(skips_release) => {
                                let last = at.stage.get().eq(STAGES - 1);
                                if_else(last & skips_release(at).eq(1u32), || {}, give);
                            }
                        }
                        at.next();
                    });
                    bugs.tile.into_iter().for_each(|f| f(at));
                });
            });
        });
    })
}

#[track_caller]
fn refuted(kernel: &Kernel) {
    let found = violations(kernel);
    let decided = |b: &warpline_testkit::verdict::RuleViolation| b.0.starts_with('R');
    assert!(!found.is_empty() && found.iter().all(decided), "{found:?}");
}

#[track_caller]
fn passes(kernel: &Kernel) {
    assert_eq!(violations(kernel), []);
}

#[test]
fn a_correct_ring_passes() {
    passes(&ring(Bugs::default()));
}

#[test]
fn a_slot_kept_in_every_second_lap_is_refuted() {
    refuted(&ring(Bugs {
        skips_release: Some(|at| at.odd.get()),
        ..Bugs::default()
    }));
    // Here the parity itself distinguishes the laps.
    refuted(&ring(Bugs {
        skips_release: Some(|at| at.parity.get()),
        ..Bugs::default()
    }));
}

#[test]
fn a_parity_flipped_in_every_second_lap_is_refuted() {
    refuted(&ring(Bugs {
        parity_flip: Some(|at| at.odd.get()),
        ..Bugs::default()
    }));
    // The parity flipped by itself is always 0.
    refuted(&ring(Bugs {
        parity_flip: Some(|at| at.parity.get()),
        ..Bugs::default()
    }));
}

#[test]
fn a_parity_reset_for_each_tile_is_refuted() {
    refuted(&ring(Bugs {
        tile: Some(|at| {
            at.stage.set(0u32);
            at.parity.set(0u32);
        }),
        ..Bugs::default()
    }));
}

/// Two roles take tiles in turn and skip the slots of the other role; then `after` runs.
fn round_robin(after: impl Fn(Cursor)) -> Kernel {
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
fn a_round_robin_ring_passes() {
    passes(&round_robin(|_| {}));
}

#[test]
fn a_consumer_that_skips_slots_wrongly_at_one_stage_is_refuted() {
    let last = |at: Cursor| at.stage.get().eq(STAGES - 1);
    refuted(&round_robin(|at| {
        let by = select(last(at), 1u32, 0u32);
        at.parity.set(at.parity.get() ^ by);
    }));
    refuted(&round_robin(|at| if_(last(at), || at.stage.set(0u32))));
    // These bugs occur only in every second lap.
    refuted(&round_robin(|at| {
        if_(last(at), || at.parity.set(at.parity.get() ^ at.odd.get()));
    }));
    refuted(&round_robin(|at| {
        if_(last(at) & at.odd.get().eq(1u32), || at.stage.set(0u32));
    }));
}

/// Each tile takes one lap. After it the consumer runs a loop whose count the launch decides, and
/// sets its parity to a constant if there is one.
fn whole_laps(constant_parity: Option<u32>) -> Kernel {
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
                constant_parity.into_iter().for_each(|p| at.parity.set(p));
            });
        });
    })
}

#[test]
fn a_constant_parity_that_is_right_after_one_lap_is_refuted() {
    passes(&whole_laps(None));
    refuted(&whole_laps(Some(1)));
}

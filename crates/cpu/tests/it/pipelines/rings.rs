//! Rings: every trip count and timing, one to three producers and consumers, every discipline.

use crate::pipelines::harness::{Input, run_words, seeds, timings, words};
use warpline_ir::builder::*;
use warpline_ir::{Kernel, Target};

#[derive(Clone, Copy, Debug)]
struct RingCase {
    stages: u32,
    producers: u32,
    consumers: u32,
    round_robin_producers: bool,
    round_robin_consumers: bool,
}

/// Returns the word that lane `lane` of producer `p` writes to slot `t`.
fn number(t: u32, p: u32, lane: u32) -> u32 {
    t * 1000 + p * 100 + lane
}

/// Producers write numbers; each consumer writes the sum over producers to its row of `out`.
fn sum_over_ring(l: RingCase) -> Kernel {
    Kernel::build("sum_over_ring", &Target::SM_90A, |k| {
        let (n, out) = (k.param::<u32>("n"), k.pointer::<u32>("out"));
        let mut ring = k.ring("numbers", l.stages, |s| {
            s.unswizzled::<u32>(l.producers, 32)
        });
        ring = if l.round_robin_consumers {
            ring.round_robin()
        } else {
            ring.broadcast()
        };
        ring = if l.round_robin_producers {
            ring.round_robin_producers()
        } else {
            ring.cooperative_producers()
        };
        let names = |who: &str, of| (0..of).map(|i| format!("{who}{i}")).collect::<Vec<_>>();
        let (producers, consumers) = (names("produce", l.producers), names("consume", l.consumers));
        // Roles take the slots of a round-robin ring in turn; a single role needs no turn.
        let turn = |name: &str, roles: &[String], round_robin: bool| {
            let roles: Vec<&str> = roles.iter().map(String::as_str).collect();
            (round_robin && roles.len() > 1).then(|| k.turn(name, roles))
        };
        let fill = turn("fill", &producers, l.round_robin_producers);
        let drain = turn("drain", &consumers, l.round_robin_consumers);
        let own_slot =
            |t: Reg<u32>, turn: Option<Turn>, who: usize, of: u32, take: &dyn Fn()| match turn {
                Some(_) => if_else((t % of).eq(who as u32), take, || ring.skip(1)),
                None => take(),
            };
        for (p, name) in producers.iter().enumerate() {
            k.role(name).warps(1).body(|| {
                steps(n).each(|t| {
                    own_slot(t, fill, p, l.producers, &|| {
                        let slot = match fill {
                            Some(turn) => turn.hold(|| ring.acquire()),
                            None => ring.acquire(),
                        };
                        let p = p as u32;
                        let rows = if l.round_robin_producers {
                            0..l.producers
                        } else {
                            p..p + 1
                        };
                        for row in rows {
                            slot.store(row, lane_id(), t * 1000 + row * 100 + lane_id());
                        }
                        slot.commit();
                    });
                });
            });
        }
        for (c, name) in consumers.iter().enumerate() {
            // Consumers of two warps: arrivals are per warp.
            k.role(name).warps(2).body(|| {
                steps(n).each(|t| {
                    own_slot(t, drain, c, l.consumers, &|| {
                        let slot = match drain {
                            Some(turn) => turn.hold(|| ring.wait()),
                            None => ring.wait(),
                        };
                        let mut sum = slot.load(0u32, lane_id());
                        for row in 1..l.producers {
                            sum = sum + slot.load(row, lane_id());
                        }
                        slot.release();
                        let row = if l.round_robin_consumers {
                            t
                        } else {
                            t * l.consumers + c as u32
                        };
                        let at = (row * 2 + warp_in_role()) * 32 + lane_id();
                        out.store(at, sum);
                    });
                });
            });
        }
    })
    .unwrap_or_else(|e| panic!("{l:?}: {e}"))
}

fn check(l: RingCase) {
    let kernel = sum_over_ring(l);
    let s = l.stages;
    for n in [0, 1, s - 1, s, s + 1, 2 * s + 1] {
        let rows = if l.round_robin_consumers {
            n
        } else {
            n * l.consumers
        };
        let want: Vec<u32> = (0..rows * 2 * 32)
            .map(|i| {
                let (row, lane) = (i / 64, i % 32);
                let t = if l.round_robin_consumers {
                    row
                } else {
                    row / l.consumers
                };
                (0..l.producers).map(|p| number(t, p, lane)).sum()
            })
            .collect();
        for options in timings(seeds(4)) {
            let inputs = [Input::U32(n), Input::Output(want.len() * 4)];
            let got = run_words(&kernel, 1, &inputs, &options);
            assert_eq!(
                got, want,
                "{l:?}, n = {n}, {}, seed {}",
                options.timing, options.seed
            );
        }
    }
}

#[test]
fn a_ring_is_correct_for_every_discipline_and_trip_count() {
    for stages in [1, 2, 3] {
        for producers in 1..=3 {
            for consumers in 1..=3 {
                for (round_robin_producers, round_robin_consumers) in
                    [(false, false), (true, false), (false, true), (true, true)]
                {
                    check(RingCase {
                        stages,
                        producers,
                        consumers,
                        round_robin_producers,
                        round_robin_consumers,
                    });
                }
            }
        }
    }
}

/// One producer copies its part of a slot, another computes its part.
#[test]
fn a_barrier_counts_bytes_and_arrivals() {
    let kernel = Kernel::build("joint", &Target::SM_90A, |k| {
        let (n, x) = (k.param::<u32>("n"), k.pointer::<u32>("x"));
        let out = k.pointer::<u32>("out");
        let ring = k
            .ring("pairs", 2, |s| (s.vector::<u32>(32), s.vector::<u32>(32)))
            .cooperative_producers();
        k.role("load").body(|| {
            elect(|| {
                steps(n).each(|t| {
                    let slot = ring.acquire();
                    slot.load_bytes(slot.0, x.address(t * 32), 128);
                    slot.commit();
                });
            });
        });
        k.role("compute").body(|| {
            steps(n).each(|t| {
                let slot = ring.acquire();
                slot.1.store(0u32, lane_id(), t * lane_id());
                slot.commit();
            });
        });
        k.role("add").body(|| {
            steps(n).each(|t| {
                let slot = ring.wait();
                let sum = slot.0.load(0u32, lane_id()) + slot.1.load(0u32, lane_id());
                slot.release();
                out.store(t * 32 + lane_id(), sum);
            });
        });
    })
    .expect("a valid kernel");
    for n in [0u32, 1, 2, 5] {
        let want: Vec<u32> = (0..n * 32).map(|i| i * 7 + i / 32 * (i % 32)).collect();
        for options in timings(seeds(10)) {
            let inputs = [
                Input::U32(n),
                words((0..n * 32).map(|i| i * 7)),
                Input::Output(want.len() * 4),
            ];
            assert_eq!(run_words(&kernel, 1, &inputs, &options), want);
        }
    }
}

/// The warps of two roles form pairs; each pair has its own rings and its own trip count.
#[test]
fn a_ring_per_warp_is_correct_for_different_trip_counts() {
    const WARPS: u32 = 3;
    for stages in [1, 2, 3] {
        let kernel = Kernel::build("pairs", &Target::SM_90A, |k| {
            let (n, x) = (k.param::<u32>("n"), k.pointer::<u32>("x"));
            let out = k.pointer::<u32>("out");
            let ring = |name, stages| k.ring_per_warp(name, WARPS, stages, |s| s.vector::<u32>(32));
            let (given, made) = (ring("given", stages), ring("made", 2).generic_proxy_only());
            // The warps of a pair run the same number of iterations; the next pair runs one more.
            let rounds = || n + warp_in_role();
            let row = |t: Reg<u32>| {
                let before = warp_in_role() * n + (warp_in_role() >> 1);
                (before + t) * 32
            };
            k.role("make").warps(WARPS).body(|| {
                steps(rounds()).each(|t| {
                    let from = x.address(row(t));
                    elect_lane(|| {
                        let slot = given.acquire();
                        slot.load_bytes(slot.tiles(), from, 128);
                        slot.commit();
                    });
                    let slot = made.acquire();
                    slot.store(0u32, lane_id(), t * lane_id());
                    slot.commit();
                });
            });
            k.role("add").warps(WARPS).body(|| {
                steps(rounds()).each(|t| {
                    let (a, b) = (given.wait(), made.wait());
                    let sum = a.load(0u32, lane_id()) + b.load(0u32, lane_id());
                    a.release();
                    b.release();
                    out.store(row(t) + lane_id(), sum);
                });
            });
        })
        .expect("a valid kernel");
        for n in [0, 1, stages, stages + 1, 2 * stages + 1] {
            let rounds = (0..WARPS).flat_map(|warp| 0..n + warp);
            let rows = rounds.clone().count() as u32;
            let want = rounds
                .zip(0..)
                .flat_map(|(t, row)| (0..32).map(move |lane| (row * 32 + lane) * 7 + t * lane));
            let want: Vec<u32> = want.collect();
            for options in timings(seeds(4)) {
                let inputs = [
                    Input::U32(n),
                    words((0..rows * 32).map(|i| i * 7)),
                    Input::Output(want.len() * 4),
                ];
                let got = run_words(&kernel, 1, &inputs, &options);
                assert_eq!(got, want, "{stages} stages, n = {n}, {}", options.timing);
            }
        }
    }
}

/// load → first → second → store, connected by three rings.
#[test]
fn a_pipeline_of_four_roles_is_correct() {
    let kernel = Kernel::build("four", &Target::SM_90A, |k| {
        let (n, x) = (k.param::<u32>("n"), k.pointer::<u32>("x"));
        let out = k.pointer::<u32>("out");
        let a = k.ring("a", 2, |s| s.vector::<u32>(32));
        let b = k.ring("b", 3, |s| s.vector::<u32>(32));
        let c = k.ring("c", 2, |s| s.vector::<u32>(32));
        k.role("load").body(|| {
            elect(|| {
                steps(n).each(|t| {
                    let slot = a.acquire();
                    slot.load_bytes(slot.tiles(), x.address(t * 32), 128);
                    slot.commit();
                });
            });
        });
        for (name, from, to) in [("first", a, b), ("second", b, c)] {
            k.role(name).body(|| {
                steps(n).each(|_| {
                    let (i, o) = (from.wait(), to.acquire());
                    o.store(0u32, lane_id(), i.load(0u32, lane_id()) * 3 + 1);
                    i.release();
                    o.commit();
                });
            });
        }
        k.role("store").body(|| {
            elect(|| {
                steps(n).each(|t| {
                    let slot = c.wait();
                    bulk_store(slot.tiles(), out.address(t * 32), 128);
                    bulk_commit();
                    bulk_wait_read(0);
                    slot.release();
                });
            });
        });
    })
    .expect("a valid kernel");
    for n in [0u32, 1, 2, 3, 4, 7] {
        let want: Vec<u32> = (0..n * 32).map(|x| (x * 3 + 1) * 3 + 1).collect();
        for options in timings(seeds(10)) {
            let inputs = [
                Input::U32(n),
                words(0..n * 32),
                Input::Output(want.len() * 4),
            ];
            assert_eq!(run_words(&kernel, 1, &inputs, &options), want);
        }
    }
}

/// Without a turn, a consumer that skips slots can run a round ahead. There it waits for a parity
/// that the previous round already satisfies.
#[test]
fn a_round_robin_ring_without_a_turn_is_a_fault() {
    let kernel = Kernel::build("no_turn", &Target::SM_90A, |k| {
        let (n, out) = (k.param::<u32>("n"), k.pointer::<u32>("out"));
        let ring = k.ring("numbers", 1, |s| s.vector::<u32>(32)).round_robin();
        k.role("produce").body(|| {
            steps(n).each(|t| {
                let slot = ring.acquire();
                slot.store(0u32, lane_id(), t);
                slot.commit();
            });
        });
        for c in 0..2 {
            k.role(["one", "two"][c as usize]).body(|| {
                steps(n).each(|t| {
                    let take = || {
                        let slot = ring.wait();
                        let x = slot.load(0u32, lane_id());
                        slot.release();
                        out.store(t * 32 + lane_id(), x);
                    };
                    if_else((t & 1).eq(c), take, || ring.skip(1));
                });
            });
        }
    })
    .expect("a valid kernel");
    let late = &timings(0)[1];
    let inputs = [Input::U32(4), Input::Output(512)];
    assert!(crate::pipelines::harness::run(&kernel, 1, &inputs, late).is_err());
}

//! Correct pipelines, and mutations of each.

use crate::brute::pipeline::{Act, Part, Pipeline, Ring, Role};

/// The release of the slots that a role still holds after its steps.
#[derive(Clone, Copy, PartialEq, Debug)]
enum LateRelease {
    /// At the end of the tile.
    Tile,
    /// After the last tile.
    End,
    /// Never: the role drops them.
    Never,
}

/// A correct pipeline, and the producer and consumer of each of its rings.
struct Shape {
    pipeline: Pipeline,
    ring_roles: Vec<(usize, usize)>,
}

/// Returns all pipelines; without `full`, a selection.
pub(crate) fn pipelines(full: bool) -> Vec<Pipeline> {
    let mut all = Vec::new();
    for shape in shapes(full) {
        for (ring, &(producer, consumer)) in shape.ring_roles.iter().enumerate() {
            for (name, mutate) in MUTATIONS {
                if ring > 0 && *name == UNCHANGED {
                    continue;
                }
                let mut pipeline = shape.pipeline.clone();
                let target = MutationTarget {
                    ring,
                    producer,
                    consumer,
                };
                if mutate(&mut pipeline, target) {
                    pipeline.name = format!("{}, ring {ring}: {name}", pipeline.name);
                    all.push(pipeline);
                }
            }
        }
    }
    all
}

fn shapes(full: bool) -> Vec<Shape> {
    let mut all = Vec::new();
    for stages in 1..=3 {
        for readers in 1..=2 {
            all.push(one_ring(false, stages, readers, 0, LateRelease::Tile));
        }
        for late in 1..=2 {
            for late_release in [LateRelease::Tile, LateRelease::End, LateRelease::Never] {
                if full || late < stages + 1 {
                    all.push(one_ring(false, stages, 1, late, late_release));
                }
            }
        }
    }
    let depths: &[(u8, u8)] = match full {
        true => &[(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 2), (3, 3)],
        false => &[(1, 2), (2, 3)],
    };
    for &(a, b) in depths {
        for crossed in [false, true] {
            all.push(parallel_rings(a, b, crossed));
            all.push(per_tile_and_per_step(a, b, crossed));
            if full || a == 1 {
                all.push(sequential_rings(a, b, crossed));
            }
        }
        for late in 0..=1 {
            all.push(forwarded(a, b, late, true));
            if full || a == 1 {
                all.push(forwarded(a, b, late, false));
            }
        }
    }
    for late in if full { 0..=2 } else { 2..=2 } {
        all.push(one_role_ahead(late));
    }
    for &(a, b) in &[(1, 1), (1, 2), (1, 3), (2, 3)] {
        all.push(skipped_slots(a, b));
    }
    for &(a, b) in depths {
        all.push(round_robin(a.max(b)));
    }
    for stages in 1..=if full { 3 } else { 2 } {
        for late in 0..=1 {
            for late_release in [LateRelease::Tile, LateRelease::End] {
                if late == 1 || late_release == LateRelease::Tile {
                    all.push(one_ring(true, stages, 1, late, late_release));
                }
            }
        }
    }
    all
}

/// The names of readers.
const READERS: [&str; 2] = ["reader", "other"];

fn loads(ring: usize) -> Vec<Act> {
    vec![
        Act::AwaitEmpty(ring),
        Act::Copy(ring),
        Act::Commit(ring),
        Act::Advance(ring),
    ]
}

fn writes(ring: usize) -> Vec<Act> {
    vec![
        Act::AwaitEmpty(ring),
        Act::Write(ring),
        Act::Commit(ring),
        Act::Advance(ring),
    ]
}

fn reads(ring: usize, late: u8) -> Vec<Act> {
    vec![
        Act::AwaitFull(ring),
        Act::Read(ring),
        Act::Release { ring, late },
        Act::Advance(ring),
    ]
}

fn steps(count: usize, acts: Vec<Act>) -> Part {
    Part::Steps {
        count,
        more: 0,
        later: false,
        acts,
    }
}

fn loader(rings: usize, tile: Vec<Part>) -> Role {
    Role {
        name: "loader",
        lane: true,
        parity: vec![1; rings],
        skips: false,
        tile,
        last: Vec::new(),
    }
}

fn reader(name: &'static str, rings: usize, tile: Vec<Part>) -> Role {
    Role {
        name,
        lane: false,
        parity: vec![0; rings],
        skips: false,
        tile,
        last: Vec::new(),
    }
}

fn ring(stages: u8, copied: bool) -> Ring {
    Ring {
        stages,
        full: 1,
        empty: 1,
        expects: if copied { 2 } else { 0 },
    }
}

/// One ring with one or two readers.
fn one_ring(pair: bool, stages: u8, readers: usize, late: u8, late_release: LateRelease) -> Shape {
    let read = |name| {
        let mut role = reader(name, 1, vec![steps(0, reads(0, late))]);
        match late_release {
            LateRelease::Tile => role.tile.push(Part::Once(vec![Act::Drain(0)])),
            LateRelease::End => role.last.push(Act::Drain(0)),
            LateRelease::Never => role.tile.push(Part::Once(vec![Act::Drop(0)])),
        }
        role
    };
    let mut roles = vec![loader(1, vec![steps(0, loads(0))])];
    roles.extend(READERS[..readers].iter().map(|name| read(name)));
    let ctas = 1 + u8::from(pair);
    let of = if pair { "a pair" } else { "a CTA" };
    Shape {
        pipeline: Pipeline {
            name: format!(
                "{of}, {stages} stages, {readers} readers, {late} late, released {late_release:?}"
            ),
            pair,
            counts: 1,
            plain: false,
            rings: vec![Ring {
                empty: ctas * readers as u8,
                ..ring(stages, true)
            }],
            roles,
        },
        ring_roles: vec![(0, 1)],
    }
}

fn two_rings(name: String, a: u8, b: u8, counts: usize, load: Vec<Part>, take: Vec<Part>) -> Shape {
    Shape {
        pipeline: Pipeline {
            name,
            pair: false,
            counts,
            plain: false,
            rings: vec![ring(a, true), ring(b, true)],
            roles: vec![loader(2, load), reader(READERS[0], 2, take)],
        },
        ring_roles: vec![(0, 1), (0, 1)],
    }
}

/// Two rings with a slot of each per step.
fn parallel_rings(a: u8, b: u8, crossed: bool) -> Shape {
    let name = format!("parallel rings {a} and {b}, crossed {crossed}");
    let load = vec![steps(0, [loads(0), loads(1)].concat())];
    let take = match crossed {
        false => [reads(0, 0), reads(1, 0)],
        true => [reads(1, 0), reads(0, 0)],
    };
    two_rings(name, a, b, 1, load, vec![steps(0, take.concat())])
}

/// Two rings: all steps of one ring come before all steps of the other.
fn sequential_rings(a: u8, b: u8, crossed: bool) -> Shape {
    let name = format!("sequential rings {a} and {b}, crossed {crossed}");
    let load = vec![steps(0, loads(0)), steps(1, loads(1))];
    let mut take = vec![steps(0, reads(0, 0)), steps(1, reads(1, 0))];
    if crossed {
        take.reverse();
    }
    two_rings(name, a, b, 2, load, take)
}

/// Two rings: the first has a slot per tile, the second a slot per step.
fn per_tile_and_per_step(a: u8, b: u8, crossed: bool) -> Shape {
    let name = format!("per tile {a} and per step {b}, crossed {crossed}");
    let load = vec![Part::Once(loads(0)), steps(0, loads(1))];
    let mut take = vec![Part::Once(reads(0, 0)), steps(0, reads(1, 0))];
    if crossed {
        take.reverse();
    }
    two_rings(name, a, b, 1, load, take)
}

/// A role reads one ring and writes another, per step or per tile.
fn forwarded(a: u8, b: u8, late: u8, each: bool) -> Shape {
    let (mid, end) = match each {
        true => (
            vec![steps(0, [reads(0, late), writes(1)].concat())],
            vec![steps(0, reads(1, 0))],
        ),
        false => (
            vec![steps(0, reads(0, late)), Part::Once(writes(1))],
            vec![Part::Once(reads(1, 0))],
        ),
    };
    let mut middle = reader("middle", 2, mid);
    middle.tile.push(Part::Once(vec![Act::Drain(0)]));
    middle.parity[1] = 1;
    Shape {
        pipeline: Pipeline {
            name: format!("forwarded {a} to {b}, {late} late, each {each}"),
            pair: false,
            counts: 1,
            plain: false,
            rings: vec![ring(a, true), ring(b, false)],
            roles: vec![
                loader(2, vec![steps(0, loads(0))]),
                middle,
                reader("storer", 2, end),
            ],
        },
        ring_roles: vec![(0, 1), (1, 2)],
    }
}

/// One role runs a tile ahead of the others, so the steps of that tile are decided early.
fn one_role_ahead(late: u8) -> Shape {
    let later = |acts| Part::Steps {
        count: 0,
        more: 0,
        later: true,
        acts,
    };
    let ask = vec![steps(0, vec![Act::AwaitEmpty(1)]), Part::Later(writes(1))];
    let ahead = Role {
        last: writes(1),
        parity: vec![0, 1, 0],
        ..reader("ahead", 3, ask)
    };
    let load = vec![
        later(loads(0)),
        Part::Once([reads(1, 0), writes(2)].concat()),
    ];
    let load = Role {
        parity: vec![1, 0, 1],
        ..loader(3, load)
    };
    let read = vec![
        later(reads(0, late)),
        Part::Once([vec![Act::Drain(0)], reads(2, 0)].concat()),
    ];
    Shape {
        pipeline: Pipeline {
            name: format!("one role ahead, {late} late"),
            pair: false,
            counts: 1,
            plain: false,
            rings: vec![ring(2, true), ring(1, false), ring(1, false)],
            roles: vec![ahead, load, reader(READERS[0], 3, read)],
        },
        ring_roles: vec![(1, 2)],
    }
}

/// After the last tile the roles use one slot of the second ring; its index is the number of steps
/// of the last tile.
fn skipped_slots(a: u8, b: u8) -> Shape {
    let pass = || Part::Once(vec![Act::Restart(1), Act::Pass { ring: 1, count: 0 }]);
    let mut shape = two_rings(
        format!("skipped slots {a} and {b}"),
        a,
        b,
        1,
        vec![steps(0, loads(0)), pass()],
        vec![steps(0, reads(0, 0)), pass()],
    );
    shape.pipeline.plain = true;
    shape.pipeline.roles[0].last = loads(1);
    shape.pipeline.roles[1].last = reads(1, 0);
    shape
}

/// Two readers take the slots of a tile in turn and skip the slots of the other.
fn round_robin(stages: u8) -> Shape {
    let pass = |count| Part::Once(vec![Act::Pass { ring: 0, count }]);
    let roles = vec![
        loader(1, vec![steps(0, loads(0)), steps(1, loads(0))]),
        reader(READERS[0], 1, vec![steps(0, reads(0, 0)), pass(1)]),
        reader(READERS[1], 1, vec![pass(0), steps(1, reads(0, 0))]),
    ];
    Shape {
        pipeline: Pipeline {
            name: format!("round robin {stages}"),
            pair: false,
            counts: 2,
            plain: true,
            rings: vec![ring(stages, true)],
            roles,
        },
        ring_roles: vec![(0, 1)],
    }
}

/// The target of a mutation: a ring, its producer and its consumer.
#[derive(Clone, Copy)]
struct MutationTarget {
    ring: usize,
    producer: usize,
    consumer: usize,
}

/// Changes a pipeline; returns whether the mutation applies.
type Mutation = fn(&mut Pipeline, MutationTarget) -> bool;

const UNCHANGED: &str = "unchanged";

const MUTATIONS: &[(&str, Mutation)] = &[
    (UNCHANGED, |_, _| true),
    ("full expects one arrival more", |l, target| {
        l.rings[target.ring].full += 1;
        true
    }),
    ("empty expects one arrival more", |l, target| {
        l.rings[target.ring].empty += 1;
        true
    }),
    ("empty expects one arrival fewer", |l, target| {
        l.rings[target.ring].empty -= 1;
        l.rings[target.ring].empty > 0
    }),
    ("half the bytes expected", |l, target| {
        l.rings[target.ring].expects /= 2;
        l.rings[target.ring].expects > 0
    }),
    ("more bytes expected", |l, target| {
        l.rings[target.ring].expects += 1;
        l.rings[target.ring].expects > 1
    }),
    ("the producer restarts with every tile", |l, target| {
        restarts(&mut l.roles[target.producer], target.ring)
    }),
    ("the consumer restarts with every tile", |l, target| {
        restarts(&mut l.roles[target.consumer], target.ring)
    }),
    ("both restart with every tile", |l, target| {
        restarts(&mut l.roles[target.producer], target.ring)
            && restarts(&mut l.roles[target.consumer], target.ring)
    }),
    ("the producer skips empty tiles", |l, target| {
        l.roles[target.producer].skips = true;
        true
    }),
    ("the consumer skips empty tiles", |l, target| {
        l.roles[target.consumer].skips = true;
        true
    }),
    ("all skip empty tiles", |l, _| {
        l.roles.iter_mut().for_each(|r| r.skips = true);
        true
    }),
    ("released before the read", |l, target| {
        edit(&mut l.roles[target.consumer], |acts| {
            let read = acts.iter().position(|&a| a == Act::Read(target.ring));
            if let Some(i) = read {
                acts.swap(i, i + 1);
            }
            read.is_some()
        })
    }),
    ("read after the release", |l, target| {
        insert(
            &mut l.roles[target.consumer],
            target,
            is_release,
            1,
            Act::Read(target.ring),
        )
    }),
    ("never released", |l, target| {
        remove(&mut l.roles[target.consumer], target, is_release)
    }),
    ("released twice", |l, target| {
        let release = Act::Release {
            ring: target.ring,
            late: 0,
        };
        insert(
            &mut l.roles[target.consumer],
            target,
            is_release,
            1,
            release,
        )
    }),
    ("the consumer does not wait", |l, target| {
        remove(&mut l.roles[target.consumer], target, |a| {
            matches!(a, Act::AwaitFull(_))
        })
    }),
    ("the producer does not wait", |l, target| {
        remove(&mut l.roles[target.producer], target, is_await_empty)
    }),
    ("the consumer waits twice", |l, target| {
        let again = Act::AwaitFull(target.ring);
        insert(
            &mut l.roles[target.consumer],
            target,
            |a| matches!(a, Act::Read(_)),
            0,
            again,
        )
    }),
    ("the producer waits twice", |l, target| {
        let again = Act::AwaitEmpty(target.ring);
        insert(
            &mut l.roles[target.producer],
            target,
            is_await_empty,
            0,
            again,
        )
    }),
    ("the producer starts with the other parity", |l, target| {
        l.roles[target.producer].parity[target.ring] ^= 1;
        true
    }),
    ("the consumer starts with the other parity", |l, target| {
        l.roles[target.consumer].parity[target.ring] ^= 1;
        true
    }),
    ("the producer has a step more", |l, target| {
        more(&mut l.roles[target.producer])
    }),
    ("the consumer has a step more", |l, target| {
        more(&mut l.roles[target.consumer])
    }),
    ("all have a step more", |l, _| {
        l.roles.iter_mut().all(|r| more(r) || r.name == "storer")
    }),
    ("committed before the copy", |l, target| {
        edit(&mut l.roles[target.producer], |acts| {
            let copy = acts.iter().position(|&a| a == Act::Copy(target.ring));
            if let Some(i) = copy {
                acts.swap(i, i + 1);
            }
            copy.is_some()
        })
    }),
    ("committed twice", |l, target| {
        let again = Act::Commit(target.ring);
        insert(&mut l.roles[target.producer], target, is_commit, 1, again)
    }),
    ("copied twice", |l, target| {
        let again = Act::Copy(target.ring);
        insert(
            &mut l.roles[target.producer],
            target,
            |a| matches!(a, Act::Copy(_)),
            1,
            again,
        )
    }),
    ("not committed", |l, target| {
        remove(&mut l.roles[target.producer], target, is_commit)
    }),
    ("the consumer does not advance", |l, target| {
        remove(&mut l.roles[target.consumer], target, |a| {
            matches!(a, Act::Advance(_))
        })
    }),
    ("the producer does not advance", |l, target| {
        remove(&mut l.roles[target.producer], target, |a| {
            matches!(a, Act::Advance(_))
        })
    }),
    ("the consumer waits for empty", |l, target| {
        edit(&mut l.roles[target.consumer], |acts| {
            let wait = acts.iter_mut().find(|a| **a == Act::AwaitFull(target.ring));
            wait.map(|a| *a = Act::AwaitEmpty(target.ring)).is_some()
        })
    }),
];

fn is_release(a: Act) -> bool {
    matches!(a, Act::Release { .. })
}

fn is_await_empty(a: Act) -> bool {
    matches!(a, Act::AwaitEmpty(_))
}

fn is_commit(a: Act) -> bool {
    matches!(a, Act::Commit(_))
}

/// Edits the lists of actions; returns whether any changed.
fn edit(role: &mut Role, mut how: impl FnMut(&mut Vec<Act>) -> bool) -> bool {
    role.lists().fold(false, |any, acts| any | how(acts))
}

/// Inserts an action before or after the first one that `which` selects.
fn insert(
    role: &mut Role,
    target: MutationTarget,
    which: fn(Act) -> bool,
    offset: usize,
    act: Act,
) -> bool {
    edit(role, |acts| {
        let position = acts
            .iter()
            .position(|&a| which(a) && a.ring() == target.ring);
        if let Some(i) = position {
            acts.insert(i + offset, act);
        }
        position.is_some()
    })
}

fn remove(role: &mut Role, target: MutationTarget, which: fn(Act) -> bool) -> bool {
    edit(role, |acts| {
        let before = acts.len();
        acts.retain(|&a| !(which(a) && a.ring() == target.ring));
        acts.len() < before
    })
}

fn restarts(role: &mut Role, ring: usize) -> bool {
    role.tile.push(Part::Once(vec![Act::Restart(ring)]));
    true
}

/// Adds a step to the count of each tile.
fn more(role: &mut Role) -> bool {
    role.tile.iter_mut().fold(false, |any, part| match part {
        Part::Once(_) | Part::Later(_) => any,
        Part::Steps { more, .. } => {
            *more += 1;
            true
        }
    })
}

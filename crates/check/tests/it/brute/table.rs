//! Lines that are right, and what can be wrong with each.

use crate::brute::line::{Act, Line, Part, Ring, Role};

/// When slots that are given back late are given back at last.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Rest {
    /// When the tile ends.
    Tile,
    /// When all tiles have ended.
    End,
    /// Never: they are forgotten.
    Never,
}

/// A right line, and who fills and takes each of its rings.
struct Shape {
    line: Line,
    ends: Vec<(usize, usize)>,
}

/// All lines; the smaller table leaves some out.
pub(crate) fn lines(full: bool) -> Vec<Line> {
    let mut all = Vec::new();
    for shape in shapes(full) {
        for (ring, &(fills, takes)) in shape.ends.iter().enumerate() {
            for (name, twist) in TWISTS {
                if ring > 0 && *name == AS_IT_IS {
                    continue;
                }
                let mut line = shape.line.clone();
                let at = At { ring, fills, takes };
                if twist(&mut line, at) {
                    line.name = format!("{}, ring {ring}: {name}", line.name);
                    all.push(line);
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
            all.push(one_ring(false, stages, readers, 0, Rest::Tile));
        }
        for late in 1..=2 {
            for rest in [Rest::Tile, Rest::End, Rest::Never] {
                if full || late < stages + 1 {
                    all.push(one_ring(false, stages, 1, late, rest));
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
            all.push(side_by_side(a, b, crossed));
            all.push(once_and_steps(a, b, crossed));
            if full || a == 1 {
                all.push(one_then_other(a, b, crossed));
            }
        }
        for late in 0..=1 {
            all.push(handed_on(a, b, late, true));
            if full || a == 1 {
                all.push(handed_on(a, b, late, false));
            }
        }
    }
    for late in if full { 0..=2 } else { 2..=2 } {
        all.push(told_ahead(late));
    }
    for &(a, b) in &[(1, 1), (1, 2), (1, 3), (2, 3)] {
        all.push(passed_over(a, b));
    }
    for &(a, b) in depths {
        all.push(dealt(a.max(b)));
    }
    for stages in 1..=if full { 3 } else { 2 } {
        for late in 0..=1 {
            for rest in [Rest::Tile, Rest::End] {
                if late == 1 || rest == Rest::Tile {
                    all.push(one_ring(true, stages, 1, late, rest));
                }
            }
        }
    }
    all
}

/// The name of a reader.
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

fn takes(ring: usize, late: u8) -> Vec<Act> {
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

/// One ring, and one or two that take from it.
fn one_ring(pair: bool, stages: u8, readers: usize, late: u8, rest: Rest) -> Shape {
    let read = |name| {
        let mut role = reader(name, 1, vec![steps(0, takes(0, late))]);
        match rest {
            Rest::Tile => role.tile.push(Part::Once(vec![Act::Drain(0)])),
            Rest::End => role.last.push(Act::Drain(0)),
            Rest::Never => role.tile.push(Part::Once(vec![Act::Drop(0)])),
        }
        role
    };
    let mut roles = vec![loader(1, vec![steps(0, loads(0))])];
    roles.extend(READERS[..readers].iter().map(|name| read(name)));
    let ctas = 1 + u8::from(pair);
    let of = if pair { "a pair" } else { "a CTA" };
    Shape {
        line: Line {
            name: format!(
                "{of}, {stages} stages, {readers} readers, {late} late, given back at {rest:?}"
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
        ends: vec![(0, 1)],
    }
}

fn two_rings(name: String, a: u8, b: u8, counts: usize, load: Vec<Part>, take: Vec<Part>) -> Shape {
    Shape {
        line: Line {
            name,
            pair: false,
            counts,
            plain: false,
            rings: vec![ring(a, true), ring(b, true)],
            roles: vec![loader(2, load), reader(READERS[0], 2, take)],
        },
        ends: vec![(0, 1), (0, 1)],
    }
}

/// Two rings, a slot of each in every step.
fn side_by_side(a: u8, b: u8, crossed: bool) -> Shape {
    let name = format!("side by side {a} and {b}, crossed {crossed}");
    let load = vec![steps(0, [loads(0), loads(1)].concat())];
    let take = match crossed {
        false => [takes(0, 0), takes(1, 0)],
        true => [takes(1, 0), takes(0, 0)],
    };
    two_rings(name, a, b, 1, load, vec![steps(0, take.concat())])
}

/// Two rings, all steps of the one before those of the other.
fn one_then_other(a: u8, b: u8, crossed: bool) -> Shape {
    let name = format!("one then other {a} and {b}, crossed {crossed}");
    let load = vec![steps(0, loads(0)), steps(1, loads(1))];
    let mut take = vec![steps(0, takes(0, 0)), steps(1, takes(1, 0))];
    if crossed {
        take.reverse();
    }
    two_rings(name, a, b, 2, load, take)
}

/// Two rings: a slot of the first for every tile, of the second for every step.
fn once_and_steps(a: u8, b: u8, crossed: bool) -> Shape {
    let name = format!("once {a} and steps {b}, crossed {crossed}");
    let load = vec![Part::Once(loads(0)), steps(0, loads(1))];
    let mut take = vec![Part::Once(takes(0, 0)), steps(0, takes(1, 0))];
    if crossed {
        take.reverse();
    }
    two_rings(name, a, b, 1, load, take)
}

/// What is taken from a ring is handed on in another, for every step or for every tile.
fn handed_on(a: u8, b: u8, late: u8, each: bool) -> Shape {
    let (mid, end) = match each {
        true => (
            vec![steps(0, [takes(0, late), writes(1)].concat())],
            vec![steps(0, takes(1, 0))],
        ),
        false => (
            vec![steps(0, takes(0, late)), Part::Once(writes(1))],
            vec![Part::Once(takes(1, 0))],
        ),
    };
    let mut middle = reader("middle", 2, mid);
    middle.tile.push(Part::Once(vec![Act::Drain(0)]));
    middle.parity[1] = 1;
    Shape {
        line: Line {
            name: format!("handed on {a} to {b}, {late} late, each {each}"),
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
        ends: vec![(0, 1), (1, 2)],
    }
}

/// A role that goes a tile ahead of the others decides its steps when they are past theirs.
fn told_ahead(late: u8) -> Shape {
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
        Part::Once([takes(1, 0), writes(2)].concat()),
    ];
    let load = Role {
        parity: vec![1, 0, 1],
        ..loader(3, load)
    };
    let read = vec![
        later(takes(0, late)),
        Part::Once([vec![Act::Drain(0)], takes(2, 0)].concat()),
    ];
    Shape {
        line: Line {
            name: format!("told ahead, {late} late"),
            pair: false,
            counts: 1,
            plain: false,
            rings: vec![ring(2, true), ring(1, false), ring(1, false)],
            roles: vec![ahead, load, reader(READERS[0], 3, read)],
        },
        ends: vec![(1, 2)],
    }
}

/// After the last tile a slot of the second ring is used: as many on as the last tile had steps.
fn passed_over(a: u8, b: u8) -> Shape {
    let pass = || Part::Once(vec![Act::Restart(1), Act::Pass { ring: 1, count: 0 }]);
    let mut shape = two_rings(
        format!("passed over {a} and {b}"),
        a,
        b,
        1,
        vec![steps(0, loads(0)), pass()],
        vec![steps(0, takes(0, 0)), pass()],
    );
    shape.line.plain = true;
    shape.line.roles[0].last = loads(1);
    shape.line.roles[1].last = takes(1, 0);
    shape
}

/// Two readers take tiles by turns, and pass over what is the other's.
fn dealt(stages: u8) -> Shape {
    let pass = |count| Part::Once(vec![Act::Pass { ring: 0, count }]);
    let roles = vec![
        loader(1, vec![steps(0, loads(0)), steps(1, loads(0))]),
        reader(READERS[0], 1, vec![steps(0, takes(0, 0)), pass(1)]),
        reader(READERS[1], 1, vec![pass(0), steps(1, takes(0, 0))]),
    ];
    Shape {
        line: Line {
            name: format!("dealt {stages}"),
            pair: false,
            counts: 2,
            plain: true,
            rings: vec![ring(stages, true)],
            roles,
        },
        ends: vec![(0, 1)],
    }
}

/// Where a twist is made: a ring, and the roles that fill and take from it.
#[derive(Clone, Copy)]
struct At {
    ring: usize,
    fills: usize,
    takes: usize,
}

/// Changes a line; says whether it can be so changed.
type Twist = fn(&mut Line, At) -> bool;

const AS_IT_IS: &str = "as it is";

const TWISTS: &[(&str, Twist)] = &[
    (AS_IT_IS, |_, _| true),
    ("full made for one more", |l, at| {
        l.rings[at.ring].full += 1;
        true
    }),
    ("empty made for one more", |l, at| {
        l.rings[at.ring].empty += 1;
        true
    }),
    ("empty made for one fewer", |l, at| {
        l.rings[at.ring].empty -= 1;
        l.rings[at.ring].empty > 0
    }),
    ("half the bytes expected", |l, at| {
        l.rings[at.ring].expects /= 2;
        l.rings[at.ring].expects > 0
    }),
    ("more bytes expected", |l, at| {
        l.rings[at.ring].expects += 1;
        l.rings[at.ring].expects > 1
    }),
    ("the filler starts again with every tile", |l, at| {
        restarts(&mut l.roles[at.fills], at.ring)
    }),
    ("the taker starts again with every tile", |l, at| {
        restarts(&mut l.roles[at.takes], at.ring)
    }),
    ("both start again with every tile", |l, at| {
        restarts(&mut l.roles[at.fills], at.ring) && restarts(&mut l.roles[at.takes], at.ring)
    }),
    ("the filler passes over empty tiles", |l, at| {
        l.roles[at.fills].skips = true;
        true
    }),
    ("the taker passes over empty tiles", |l, at| {
        l.roles[at.takes].skips = true;
        true
    }),
    ("all pass over empty tiles", |l, _| {
        l.roles.iter_mut().for_each(|r| r.skips = true);
        true
    }),
    ("given back before it is read", |l, at| {
        edit(&mut l.roles[at.takes], |acts| {
            let read = acts.iter().position(|&a| a == Act::Read(at.ring));
            if let Some(i) = read {
                acts.swap(i, i + 1);
            }
            read.is_some()
        })
    }),
    ("read again when given back", |l, at| {
        insert(
            &mut l.roles[at.takes],
            at,
            is_release,
            1,
            Act::Read(at.ring),
        )
    }),
    ("never given back", |l, at| {
        remove(&mut l.roles[at.takes], at, is_release)
    }),
    ("given back twice", |l, at| {
        let release = Act::Release {
            ring: at.ring,
            late: 0,
        };
        insert(&mut l.roles[at.takes], at, is_release, 1, release)
    }),
    ("the taker does not wait", |l, at| {
        remove(&mut l.roles[at.takes], at, |a| {
            matches!(a, Act::AwaitFull(_))
        })
    }),
    ("the filler does not wait", |l, at| {
        remove(&mut l.roles[at.fills], at, is_await_empty)
    }),
    ("the taker waits twice", |l, at| {
        let again = Act::AwaitFull(at.ring);
        insert(
            &mut l.roles[at.takes],
            at,
            |a| matches!(a, Act::Read(_)),
            0,
            again,
        )
    }),
    ("the filler waits twice", |l, at| {
        let again = Act::AwaitEmpty(at.ring);
        insert(&mut l.roles[at.fills], at, is_await_empty, 0, again)
    }),
    ("the filler starts with the other parity", |l, at| {
        l.roles[at.fills].parity[at.ring] ^= 1;
        true
    }),
    ("the taker starts with the other parity", |l, at| {
        l.roles[at.takes].parity[at.ring] ^= 1;
        true
    }),
    ("the filler has a step more", |l, at| {
        more(&mut l.roles[at.fills])
    }),
    ("the taker has a step more", |l, at| {
        more(&mut l.roles[at.takes])
    }),
    ("all have a step more", |l, _| {
        l.roles.iter_mut().all(|r| more(r) || r.name == "storer")
    }),
    ("committed before it is copied", |l, at| {
        edit(&mut l.roles[at.fills], |acts| {
            let copy = acts.iter().position(|&a| a == Act::Copy(at.ring));
            if let Some(i) = copy {
                acts.swap(i, i + 1);
            }
            copy.is_some()
        })
    }),
    ("committed twice", |l, at| {
        let again = Act::Commit(at.ring);
        insert(&mut l.roles[at.fills], at, is_commit, 1, again)
    }),
    ("copied twice", |l, at| {
        let again = Act::Copy(at.ring);
        insert(
            &mut l.roles[at.fills],
            at,
            |a| matches!(a, Act::Copy(_)),
            1,
            again,
        )
    }),
    ("not committed", |l, at| {
        remove(&mut l.roles[at.fills], at, is_commit)
    }),
    ("the taker stays at its slot", |l, at| {
        remove(&mut l.roles[at.takes], at, |a| matches!(a, Act::Advance(_)))
    }),
    ("the filler stays at its slot", |l, at| {
        remove(&mut l.roles[at.fills], at, |a| matches!(a, Act::Advance(_)))
    }),
    ("the taker begins when the slot is given back", |l, at| {
        edit(&mut l.roles[at.takes], |acts| {
            let wait = acts.iter_mut().find(|a| **a == Act::AwaitFull(at.ring));
            wait.map(|a| *a = Act::AwaitEmpty(at.ring)).is_some()
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

/// Edits the lists of acts; says whether any changed.
fn edit(role: &mut Role, mut how: impl FnMut(&mut Vec<Act>) -> bool) -> bool {
    role.lists().fold(false, |any, acts| any | how(acts))
}

/// Puts an act at or behind those of a kind.
fn insert(role: &mut Role, at: At, which: fn(Act) -> bool, behind: usize, act: Act) -> bool {
    edit(role, |acts| {
        let place = acts.iter().position(|&a| which(a) && a.ring() == at.ring);
        if let Some(i) = place {
            acts.insert(i + behind, act);
        }
        place.is_some()
    })
}

fn remove(role: &mut Role, at: At, which: fn(Act) -> bool) -> bool {
    edit(role, |acts| {
        let before = acts.len();
        acts.retain(|&a| !(which(a) && a.ring() == at.ring));
        acts.len() < before
    })
}

fn restarts(role: &mut Role, ring: usize) -> bool {
    role.tile.push(Part::Once(vec![Act::Restart(ring)]));
    true
}

/// One step more than the tile's count says.
fn more(role: &mut Role) -> bool {
    role.tile.iter_mut().fold(false, |any, part| match part {
        Part::Once(_) | Part::Later(_) => any,
        Part::Steps { more, .. } => {
            *more += 1;
            true
        }
    })
}

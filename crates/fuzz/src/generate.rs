//! Random plans: everything follows from one seed.

use crate::plan::*;
use crate::rng::Rng;

/// The plan of a seed; `twisted` makes one step go wrong.
pub fn plan(seed: u64, twisted: bool) -> Plan {
    let mut rng = Rng::new(seed);
    let r = &mut rng;
    if r.one_in(24) {
        return registers(r, twisted);
    }
    let cluster = if r.one_in(4) { r.pick(&[2, 2, 4]) } else { 1 };
    let roles = 2 + usize::from(r.one_in(4));
    let warps = (0..roles).map(|_| if r.one_in(8) { 2 } else { 1 });
    let mut plan = Plan {
        cluster,
        warps: warps.collect(),
        steps: Vec::new(),
    };
    let many = r.pick(&[1, 1, 1, 2, 2, 3]);
    for _ in 0..many {
        let step = match r.one_in(5) {
            true => Step::Loop {
                count: count(r, roles, false),
                body: (0..1 + r.below(2)).map(|_| step(r, &plan, true)).collect(),
            },
            false => step(r, &plan, false),
        };
        plan.steps.push(step);
    }
    if twisted {
        twist(r, &mut plan);
    }
    plan
}

/// Three warpgroups: one gives registers, another takes them.
fn registers(r: &mut Rng, twisted: bool) -> Plan {
    let [giver, taker] = two(r, 3);
    let late = twisted;
    Plan {
        cluster: 1,
        warps: vec![4; 3],
        steps: vec![Step::Registers(Registers { giver, taker, late })],
    }
}

/// Two different roles.
fn two(r: &mut Rng, roles: usize) -> [usize; 2] {
    let a = r.below(roles);
    [a, (a + 1 + r.below(roles - 1)) % roles]
}

fn step(r: &mut Rng, plan: &Plan, looped: bool) -> Step {
    let roles = plan.warps.len();
    let [a, b] = two(r, roles);
    if plan.cluster > 1 && r.one_in(2) {
        return Step::Remote(Remote {
            role: a,
            lanes: r.one_in(2),
            unknown: r.one_in(2),
            sender: r.below(4) as u32,
            arrivals: r.one_in(2),
            twist: None,
        });
    }
    match r.below(32) {
        0..=11 => Step::Transfer(transfer(r, roles, looped)),
        12 | 13 => Step::Word(word(r, roles)),
        14 | 15 => Step::Quiet(Quiet {
            setter: a,
            waiter: b,
            count: count(r, roles, looped),
            value: 1 + r.below(2) as u32,
            stale: false,
        }),
        16 | 17 => Step::Export(Export {
            role: a,
            groups: 1 + r.below(3) as u32,
            fence_in_branch: false,
        }),
        18 | 19 => Step::Gather(Gather {
            role: a,
            unknown: !r.one_in(3),
            scatter: r.one_in(2),
            unsynced: false,
        }),
        20 => Step::Reread(Reread {
            writer: a,
            reader: b,
            unsynced: false,
        }),
        21 | 22 => Step::LaneCopies(LaneCopies {
            role: a,
            groups: 1 + r.below(3) as u32,
            partial: None,
            unknown: r.one_in(2),
        }),
        23 | 24 => Step::Length(Length {
            loader: a,
            reader: b,
            source: r.pick(&[
                Source::Small,
                Source::Wide,
                table(Elem::U32, false, Index::Fixed(5)),
                table(Elem::U8, false, Index::Fixed(2)),
                table(Elem::U32, true, Index::Fixed(1)),
            ]),
            rows: 1 + r.below(2) as u32,
            twist: None,
        }),
        25 => Step::Named(Named {
            from: a,
            to: b,
            arrive: r.one_in(2),
        }),
        26 => Step::Meet,
        27 => Step::Reinit(Reinit {
            arriver: a,
            waiter: b,
            early: false,
        }),
        28 => Step::Stride(Stride {
            role: a,
            bounded: true,
            spin: r.one_in(2),
        }),
        29 if !looped => Step::Flags(Flags {
            role: a,
            bulk: r.one_in(2),
            once: r.one_in(3),
            twist: None,
        }),
        30 if !looped => Step::Locks(Locks {
            roles: [a, b],
            opposite: false,
        }),
        _ => Step::Turns(Turns {
            roles: [a, b],
            count: count(r, roles, looped),
        }),
    }
}

fn table(elem: Elem, shared: bool, at: Index) -> Source {
    Source::Table { elem, shared, at }
}

fn transfer(r: &mut Rng, roles: usize, looped: bool) -> Transfer {
    let [producer, consumer] = two(r, roles);
    let mut consumers = vec![consumer];
    if roles > 2 && r.one_in(3) {
        consumers.push(
            (0..roles)
                .find(|&c| c != producer && c != consumer)
                .unwrap_or(consumer),
        );
    }
    let safe = r.one_in(6);
    let guard = (r.one_in(3)).then(|| guard(r, roles, looped));
    let per_item = matches!(
        guard,
        Some(Guard {
            source: Source::Table {
                at: Index::Item,
                ..
            },
            ..
        })
    );
    let count = count(r, roles, looped);
    let position = |r: &mut Rng| match r.below(4) {
        0 => Position::Counter,
        // The product counts all items of all rounds, so every round has as many.
        1 if guard.is_none() && is_invariant(&count) => Position::Product,
        _ => Position::Cursor,
    };
    let position = [position(r), position(r)];
    let loops = [(); 2].map(|()| {
        if r.one_in(2) {
            LoopForm::Up
        } else {
            r.pick(&LoopForm::ALL)
        }
    });
    Transfer {
        producer,
        consumers,
        stages: 1 + r.below(3) as u32,
        fill: match safe {
            true => r.pick(&[Fill::Bulk, Fill::Stores]),
            false => r.pick(&[Fill::Bulk, Fill::Bulk, Fill::Stores, Fill::Lanes]),
        },
        count,
        guard,
        loops,
        position,
        wait: match r.below(6) {
            0 => WaitForm::Try,
            1 => WaitForm::TestThenWait,
            _ => WaitForm::Wait,
        },
        tail: !safe && !per_item && r.one_in(6),
        safe,
    }
}

/// Is it a signed number?
fn is_signed(source: Source) -> bool {
    let table = matches!(
        source,
        Source::Table {
            elem: Elem::I32,
            ..
        }
    );
    table || source == Source::Signed
}

/// Is the count the same in every round of a loop around it?
fn is_invariant(count: &Count) -> bool {
    !matches!(
        count.source,
        Source::Table {
            at: Index::Round,
            ..
        }
    )
}

fn word(r: &mut Rng, roles: usize) -> Word {
    let [writer, reader] = two(r, roles);
    let sum = r.one_in(2);
    let count = match sum {
        true => Count {
            source: Source::Small,
            narrow: Narrow::Keep,
            shape: r.pick(&[Shape::Plain, Shape::Clamp]),
            forms: forms(r, roles),
            twist: None,
        },
        false => Count {
            source: r.pick(&[Source::Wide, table(Elem::U32, false, Index::Fixed(4))]),
            narrow: Narrow::Keep,
            shape: r.pick(&[Shape::Clamp, Shape::Mod, Shape::High]),
            forms: forms(r, roles),
            twist: None,
        },
    };
    Word {
        writer,
        reader,
        count,
        read: Elem::U32,
        add: if sum { 1 + r.below(2) as u32 } else { 0 },
        stale: false,
    }
}

/// How each role writes a count.
fn forms(r: &mut Rng, roles: usize) -> Vec<u8> {
    let plain = r.one_in(2);
    let one = |r: &mut Rng| {
        let shuffled = if r.one_in(5) { 8 } else { 0 };
        let behind = if r.one_in(2) { 16 } else { 0 };
        r.below(3) as u8 | shuffled | behind
    };
    match plain {
        true => vec![r.below(3) as u8],
        false => (0..roles).map(|_| one(r)).collect(),
    }
}

/// A table that a count or a condition reads.
fn any_table(r: &mut Rng, looped: bool) -> Source {
    let at = match looped && r.one_in(2) {
        true => Index::Round,
        false => Index::Fixed(r.below(8) as u32),
    };
    table(r.pick(&Elem::ALL), r.one_in(2), at)
}

fn count(r: &mut Rng, roles: usize, looped: bool) -> Count {
    let forms = forms(r, roles);
    let (source, shape) = match r.below(12) {
        0..=4 => (
            r.pick(&[Source::Small, Source::Other]),
            r.pick(&[
                Shape::Plain,
                Shape::Plain,
                Shape::Quarter,
                Shape::Tiles,
                Shape::Twice,
                Shape::Four,
            ]),
        ),
        5 | 6 => (
            Source::Wide,
            r.pick(&[Shape::Clamp, Shape::Mod, Shape::High]),
        ),
        7 => (Source::Signed, r.pick(&[Shape::Clamp, Shape::Mod])),
        8 => (
            Source::Long,
            r.pick(&[Shape::Clamp, Shape::Mod, Shape::High]),
        ),
        _ => (any_table(r, looped), r.pick(&[Shape::Clamp, Shape::Mod])),
    };
    let wide = !matches!(source, Source::Small | Source::Other);
    let narrow = match wide && r.one_in(4) {
        true => r.pick(&[Narrow::U8, Narrow::U16, Narrow::F32]),
        false => Narrow::Keep,
    };
    Count {
        source,
        narrow,
        shape,
        forms,
        twist: None,
    }
}

fn guard(r: &mut Rng, roles: usize, looped: bool) -> Guard {
    let (source, vote) = match r.below(8) {
        0 => (Source::Wide, r.pick(&Vote::ALL)),
        1 | 2 => (
            Source::Signed,
            r.pick(&[Vote::Uniform, Vote::All, Vote::Any]),
        ),
        3 => (Source::Long, Vote::Uniform),
        4 => {
            let lanes = table(r.pick(&Elem::ALL), r.one_in(2), Index::Lane);
            let votes = [Vote::All, Vote::Any, Vote::Agree, Vote::Ballot];
            (lanes, r.pick(&votes))
        }
        5 | 6 => (table(r.pick(&Elem::ALL), false, Index::Item), Vote::Uniform),
        _ => (any_table(r, looped), Vote::Uniform),
    };
    let signed = is_signed(source);
    let test = match r.below(4) {
        0 if !signed => Test::Above(r.pick(&[0, 1, 255, 70_000])),
        1 => Test::Less,
        _ => Test::NotNegative,
    };
    Guard {
        source,
        narrow: Narrow::Keep,
        test,
        vote,
        forms: forms(r, roles),
        twist: None,
    }
}

/// Makes one step go wrong, if it is of a kind that can.
fn twist(r: &mut Rng, plan: &mut Plan) {
    let roles = plan.warps.len();
    let n = plan.steps.len();
    let mut step = &mut plan.steps[r.below(n)];
    if r.one_in(2)
        && let Step::Loop { body, .. } = step
    {
        let n = body.len();
        step = &mut body[r.below(n)];
    }
    match step {
        Step::Loop { count, .. } => twist_count(r, count, roles),
        Step::Transfer(t) => match &mut t.guard {
            Some(guard) if r.one_in(2) => {
                let role = some_role(r, t.producer, &t.consumers);
                guard.twist = Some((role, guard_twist(r, guard)));
            }
            _ => {
                let role = some_role(r, t.producer, &t.consumers);
                t.count.twist = Some((role, count_twist(r, &t.count)));
            }
        },
        Step::Word(w) if w.add > 0 => w.stale = true,
        Step::Word(w) => w.read = r.pick(&[Elem::U8, Elem::U16, Elem::I32]),
        Step::Quiet(q) => q.stale = true,
        Step::Export(e) => e.fence_in_branch = true,
        Step::Registers(g) => g.late = true,
        Step::Gather(g) => g.unsynced = true,
        Step::Reread(x) => x.unsynced = true,
        Step::LaneCopies(c) => c.partial = Some(r.pick(&[Partial::Commit, Partial::Wait])),
        Step::Remote(m) => {
            m.twist = Some(match m.arrivals {
                true => r.pick(&[RemoteTwist::CtaScope, RemoteTwist::Early]),
                false => r.pick(&[RemoteTwist::CtaOnly, RemoteTwist::Early]),
            });
        }
        Step::Length(l) => {
            l.twist = Some(r.pick(&[
                LengthTwist::Unbounded,
                LengthTwist::Unaligned,
                LengthTwist::NoWait,
                LengthTwist::EarlyRow,
            ]));
        }
        Step::Reinit(x) => x.early = true,
        Step::Stride(s) => s.bounded = false,
        Step::Flags(f) => {
            f.twist = Some(match (f.once, f.bulk) {
                (true, _) => FlagTwist::ReadOnce,
                (false, true) => r.pick(&[FlagTwist::ReadWait, FlagTwist::WaitFirst]),
                (false, false) => {
                    r.pick(&[FlagTwist::WaitFirst, FlagTwist::Silent, FlagTwist::ReadOnly])
                }
            });
        }
        Step::Locks(l) => l.opposite = true,
        Step::Turns(t) => {
            let role = r.pick(&t.roles);
            t.count.twist = Some((role, count_twist(r, &t.count)));
        }
        Step::Named(_) | Step::Meet => {}
    }
}

fn some_role(r: &mut Rng, producer: usize, consumers: &[usize]) -> usize {
    match r.one_in(2) {
        true => producer,
        false => r.pick(consumers),
    }
}

fn twist_count(r: &mut Rng, count: &mut Count, roles: usize) {
    count.twist = Some((r.below(roles), count_twist(r, count)));
}

fn count_twist(r: &mut Rng, count: &Count) -> CountTwist {
    let wide = !matches!(count.source, Source::Small | Source::Other);
    match r.below(4) {
        0 => CountTwist::More,
        1 if is_signed(count.source) => CountTwist::Unsigned,
        2 if r.one_in(2) => CountTwist::Zero,
        2 if !wide => CountTwist::Source(match count.source {
            Source::Small => Source::Other,
            _ => Source::Small,
        }),
        _ if wide => CountTwist::Narrow(r.pick(&[
            Narrow::Keep,
            Narrow::U8,
            Narrow::U16,
            Narrow::U32,
            Narrow::F32,
        ])),
        _ => CountTwist::More,
    }
}

fn guard_twist(r: &mut Rng, guard: &Guard) -> GuardTwist {
    let signed = is_signed(guard.source);
    match r.below(if signed { 4 } else { 6 }) {
        0 => GuardTwist::Always,
        1 => GuardTwist::Never,
        2 => GuardTwist::Unsigned,
        3 => GuardTwist::Narrow(r.pick(&[Narrow::U8, Narrow::U16, Narrow::U32, Narrow::F32])),
        _ if guard.vote == Vote::Uniform => GuardTwist::Vote(Vote::Agree),
        _ => GuardTwist::Vote(r.pick(&[Vote::All, Vote::Any, Vote::Agree])),
    }
}

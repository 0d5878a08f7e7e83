//! Random plans; a seed determines the plan.

use crate::plan::*;
use crate::rng::Rng;

/// Returns the plan of a seed; `has_bug` injects a bug into one step.
pub fn plan(seed: u64, has_bug: bool) -> FuzzPlan {
    let mut rng = Rng::new(seed);
    let r = &mut rng;
    if r.one_in(24) {
        return register_transfer_plan(r, has_bug);
    }
    let cluster = if r.one_in(4) { r.pick(&[2, 2, 4]) } else { 1 };
    let roles = 2 + usize::from(r.one_in(4));
    let warps = (0..roles).map(|_| if r.one_in(8) { 2 } else { 1 });
    let mut plan = FuzzPlan {
        cluster,
        warps: warps.collect(),
        steps: Vec::new(),
    };
    let step_count = r.pick(&[1, 1, 1, 2, 2, 3]);
    for _ in 0..step_count {
        let step = match r.one_in(5) {
            true => CommStep::Loop {
                count: count(r, roles, false),
                body: (0..1 + r.below(2)).map(|_| step(r, &plan, true)).collect(),
            },
            false => step(r, &plan, false),
        };
        plan.steps.push(step);
    }
    if has_bug {
        inject_bug(r, &mut plan);
    }
    plan
}

/// Returns a plan with three warpgroups: one releases registers, another requests them.
fn register_transfer_plan(r: &mut Rng, has_bug: bool) -> FuzzPlan {
    let [giver, taker] = two_roles(r, 3);
    let late = has_bug;
    FuzzPlan {
        cluster: 1,
        warps: vec![4; 3],
        steps: vec![CommStep::RegisterTransfer(RegisterTransfer {
            giver,
            taker,
            late,
        })],
    }
}

/// Returns two different roles.
fn two_roles(r: &mut Rng, roles: usize) -> [usize; 2] {
    let a = r.below(roles);
    [a, (a + 1 + r.below(roles - 1)) % roles]
}

fn step(r: &mut Rng, plan: &FuzzPlan, looped: bool) -> CommStep {
    let roles = plan.warps.len();
    let [a, b] = two_roles(r, roles);
    if plan.cluster > 1 && r.one_in(2) {
        return CommStep::RemoteStore(RemoteStore {
            role: a,
            lanes: r.one_in(2),
            unknown: r.one_in(2),
            sender: r.below(4) as u32,
            arrivals: r.one_in(2),
            bug: None,
        });
    }
    match r.below(32) {
        0..=11 => CommStep::Transfer(transfer(r, roles, looped)),
        12 | 13 => CommStep::SharedWord(shared_word(r, roles)),
        14 | 15 => CommStep::SyncFreeLoop(SyncFreeLoop {
            setter: a,
            waiter: b,
            count: count(r, roles, looped),
            value: 1 + r.below(2) as u32,
            stale: false,
        }),
        16 | 17 => CommStep::BulkExport(BulkExport {
            role: a,
            groups: 1 + r.below(3) as u32,
            fence_in_branch: false,
        }),
        18 | 19 => CommStep::Gather(Gather {
            role: a,
            unknown: !r.one_in(3),
            scatter: r.one_in(2),
            unsynced: false,
        }),
        20 => CommStep::Reread(Reread {
            writer: a,
            reader: b,
            unsynced: false,
        }),
        21 | 22 => CommStep::LaneCopies(LaneCopies {
            role: a,
            groups: 1 + r.below(3) as u32,
            partial: None,
            unknown: r.one_in(2),
        }),
        23 | 24 => CommStep::VariableLoad(VariableLoad {
            loader: a,
            reader: b,
            source: r.pick(&[
                NumberSource::Small,
                NumberSource::Wide,
                table(TableElem::U32, false, TableIndex::Fixed(5)),
                table(TableElem::U8, false, TableIndex::Fixed(2)),
                table(TableElem::U32, true, TableIndex::Fixed(1)),
            ]),
            rows: 1 + r.below(2) as u32,
            bug: None,
        }),
        25 => CommStep::NamedHandshake(NamedHandshake {
            from: a,
            to: b,
            arrive: r.one_in(2),
        }),
        26 => CommStep::CtaBarrier,
        27 => CommStep::Reinit(Reinit {
            arriver: a,
            waiter: b,
            early: false,
        }),
        28 => CommStep::StridedLoop(StridedLoop {
            role: a,
            bounded: true,
            spin: r.one_in(2),
        }),
        29 if !looped => CommStep::FlagHandshake(FlagHandshake {
            role: a,
            bulk: r.one_in(2),
            once: r.one_in(3),
            bug: None,
        }),
        30 if !looped => CommStep::Locks(Locks {
            roles: [a, b],
            opposite: false,
        }),
        _ => CommStep::Turns(Turns {
            roles: [a, b],
            count: count(r, roles, looped),
        }),
    }
}

fn table(elem: TableElem, shared: bool, at: TableIndex) -> NumberSource {
    NumberSource::Table { elem, shared, at }
}

fn transfer(r: &mut Rng, roles: usize, looped: bool) -> Transfer {
    let [producer, consumer] = two_roles(r, roles);
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
            source: NumberSource::Table {
                at: TableIndex::Item,
                ..
            },
            ..
        })
    );
    let count = count(r, roles, looped);
    let position = |r: &mut Rng| match r.below(4) {
        0 => RingPosition::Counter,
        // `Product` needs the same number of items in every iteration.
        1 if guard.is_none() && is_invariant(&count) => RingPosition::Product,
        _ => RingPosition::Cursor,
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
            true => r.pick(&[SlotFill::Bulk, SlotFill::Stores]),
            false => r.pick(&[
                SlotFill::Bulk,
                SlotFill::Bulk,
                SlotFill::Stores,
                SlotFill::Lanes,
            ]),
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

/// Returns whether the number is signed.
fn is_signed(source: NumberSource) -> bool {
    let table = matches!(
        source,
        NumberSource::Table {
            elem: TableElem::I32,
            ..
        }
    );
    table || source == NumberSource::Signed
}

/// Returns whether the count is the same in every iteration of the enclosing loop.
fn is_invariant(count: &TripCount) -> bool {
    !matches!(
        count.source,
        NumberSource::Table {
            at: TableIndex::Round,
            ..
        }
    )
}

fn shared_word(r: &mut Rng, roles: usize) -> SharedWord {
    let [writer, reader] = two_roles(r, roles);
    let sum = r.one_in(2);
    let count = match sum {
        true => TripCount {
            source: NumberSource::Small,
            conversion: Conversion::Keep,
            formula: r.pick(&[CountFormula::Plain, CountFormula::Clamp]),
            forms: forms(r, roles),
            bug: None,
        },
        false => TripCount {
            source: r.pick(&[
                NumberSource::Wide,
                table(TableElem::U32, false, TableIndex::Fixed(4)),
            ]),
            conversion: Conversion::Keep,
            formula: r.pick(&[CountFormula::Clamp, CountFormula::Mod, CountFormula::High]),
            forms: forms(r, roles),
            bug: None,
        },
    };
    SharedWord {
        writer,
        reader,
        count,
        read: TableElem::U32,
        add: if sum { 1 + r.below(2) as u32 } else { 0 },
        stale: false,
    }
}

/// Picks the expression form of a count for each role.
fn forms(r: &mut Rng, roles: usize) -> Vec<u8> {
    let same_form = r.one_in(2);
    let form = |r: &mut Rng| {
        let shuffled = if r.one_in(5) { 8 } else { 0 };
        let after_loop = if r.one_in(2) { 16 } else { 0 };
        r.below(3) as u8 | shuffled | after_loop
    };
    match same_form {
        true => vec![r.below(3) as u8],
        false => (0..roles).map(|_| form(r)).collect(),
    }
}

/// Picks a table element for a count or a condition.
fn any_table(r: &mut Rng, looped: bool) -> NumberSource {
    let at = match looped && r.one_in(2) {
        true => TableIndex::Round,
        false => TableIndex::Fixed(r.below(8) as u32),
    };
    table(r.pick(&TableElem::ALL), r.one_in(2), at)
}

fn count(r: &mut Rng, roles: usize, looped: bool) -> TripCount {
    let forms = forms(r, roles);
    let (source, formula) = match r.below(12) {
        0..=4 => (
            r.pick(&[NumberSource::Small, NumberSource::Other]),
            r.pick(&[
                CountFormula::Plain,
                CountFormula::Plain,
                CountFormula::Quarter,
                CountFormula::Tiles,
                CountFormula::Twice,
                CountFormula::Four,
            ]),
        ),
        5 | 6 => (
            NumberSource::Wide,
            r.pick(&[CountFormula::Clamp, CountFormula::Mod, CountFormula::High]),
        ),
        7 => (
            NumberSource::Signed,
            r.pick(&[CountFormula::Clamp, CountFormula::Mod]),
        ),
        8 => (
            NumberSource::Long,
            r.pick(&[CountFormula::Clamp, CountFormula::Mod, CountFormula::High]),
        ),
        _ => (
            any_table(r, looped),
            r.pick(&[CountFormula::Clamp, CountFormula::Mod]),
        ),
    };
    let wide = !matches!(source, NumberSource::Small | NumberSource::Other);
    let conversion = match wide && r.one_in(4) {
        true => r.pick(&[Conversion::U8, Conversion::U16, Conversion::F32]),
        false => Conversion::Keep,
    };
    TripCount {
        source,
        conversion,
        formula,
        forms,
        bug: None,
    }
}

fn guard(r: &mut Rng, roles: usize, looped: bool) -> Guard {
    let (source, vote) = match r.below(8) {
        0 => (NumberSource::Wide, r.pick(&LaneVote::ALL)),
        1 | 2 => (
            NumberSource::Signed,
            r.pick(&[LaneVote::Uniform, LaneVote::All, LaneVote::Any]),
        ),
        3 => (NumberSource::Long, LaneVote::Uniform),
        4 => {
            let lanes = table(r.pick(&TableElem::ALL), r.one_in(2), TableIndex::Lane);
            let votes = [
                LaneVote::All,
                LaneVote::Any,
                LaneVote::Agree,
                LaneVote::Ballot,
            ];
            (lanes, r.pick(&votes))
        }
        5 | 6 => (
            table(r.pick(&TableElem::ALL), false, TableIndex::Item),
            LaneVote::Uniform,
        ),
        _ => (any_table(r, looped), LaneVote::Uniform),
    };
    let signed = is_signed(source);
    let test = match r.below(4) {
        0 if !signed => GuardTest::Above(r.pick(&[0, 1, 255, 70_000])),
        1 => GuardTest::Less,
        _ => GuardTest::NotNegative,
    };
    Guard {
        source,
        conversion: Conversion::Keep,
        test,
        vote,
        forms: forms(r, roles),
        bug: None,
    }
}

/// Injects a bug into one step, if the step allows one.
fn inject_bug(r: &mut Rng, plan: &mut FuzzPlan) {
    let roles = plan.warps.len();
    let n = plan.steps.len();
    let mut step = &mut plan.steps[r.below(n)];
    if r.one_in(2)
        && let CommStep::Loop { body, .. } = step
    {
        let n = body.len();
        step = &mut body[r.below(n)];
    }
    match step {
        CommStep::Loop { count, .. } => inject_count_bug(r, count, roles),
        CommStep::Transfer(t) => match &mut t.guard {
            Some(guard) if r.one_in(2) => {
                let role = random_role(r, t.producer, &t.consumers);
                guard.bug = Some((role, random_guard_bug(r, guard)));
            }
            _ => {
                let role = random_role(r, t.producer, &t.consumers);
                t.count.bug = Some((role, random_count_bug(r, &t.count)));
            }
        },
        CommStep::SharedWord(w) if w.add > 0 => w.stale = true,
        CommStep::SharedWord(w) => {
            w.read = r.pick(&[TableElem::U8, TableElem::U16, TableElem::I32])
        }
        CommStep::SyncFreeLoop(q) => q.stale = true,
        CommStep::BulkExport(e) => e.fence_in_branch = true,
        CommStep::RegisterTransfer(g) => g.late = true,
        CommStep::Gather(g) => g.unsynced = true,
        CommStep::Reread(x) => x.unsynced = true,
        CommStep::LaneCopies(c) => {
            c.partial = Some(r.pick(&[PartialGroup::Commit, PartialGroup::Wait]))
        }
        CommStep::RemoteStore(m) => {
            m.bug = Some(match m.arrivals {
                true => r.pick(&[RemoteBug::CtaScope, RemoteBug::Early]),
                false => r.pick(&[RemoteBug::CtaOnly, RemoteBug::Early]),
            });
        }
        CommStep::VariableLoad(l) => {
            l.bug = Some(r.pick(&[
                LengthBug::Unbounded,
                LengthBug::Unaligned,
                LengthBug::NoWait,
                LengthBug::EarlyRow,
            ]));
        }
        CommStep::Reinit(x) => x.early = true,
        CommStep::StridedLoop(s) => s.bounded = false,
        CommStep::FlagHandshake(f) => {
            f.bug = Some(match (f.once, f.bulk) {
                (true, _) => FlagBug::ReadOnce,
                (false, true) => r.pick(&[FlagBug::ReadWait, FlagBug::WaitFirst]),
                (false, false) => r.pick(&[FlagBug::WaitFirst, FlagBug::Silent, FlagBug::ReadOnly]),
            });
        }
        CommStep::Locks(l) => l.opposite = true,
        CommStep::Turns(t) => {
            let role = r.pick(&t.roles);
            t.count.bug = Some((role, random_count_bug(r, &t.count)));
        }
        CommStep::NamedHandshake(_) | CommStep::CtaBarrier => {}
    }
}

fn random_role(r: &mut Rng, producer: usize, consumers: &[usize]) -> usize {
    match r.one_in(2) {
        true => producer,
        false => r.pick(consumers),
    }
}

fn inject_count_bug(r: &mut Rng, count: &mut TripCount, roles: usize) {
    count.bug = Some((r.below(roles), random_count_bug(r, count)));
}

fn random_count_bug(r: &mut Rng, count: &TripCount) -> CountBug {
    let wide = !matches!(count.source, NumberSource::Small | NumberSource::Other);
    match r.below(4) {
        0 => CountBug::More,
        1 if is_signed(count.source) => CountBug::Unsigned,
        2 if r.one_in(2) => CountBug::Zero,
        2 if !wide => CountBug::NumberSource(match count.source {
            NumberSource::Small => NumberSource::Other,
            _ => NumberSource::Small,
        }),
        _ if wide => CountBug::Conversion(r.pick(&[
            Conversion::Keep,
            Conversion::U8,
            Conversion::U16,
            Conversion::U32,
            Conversion::F32,
        ])),
        _ => CountBug::More,
    }
}

fn random_guard_bug(r: &mut Rng, guard: &Guard) -> GuardBug {
    let signed = is_signed(guard.source);
    match r.below(if signed { 4 } else { 6 }) {
        0 => GuardBug::Always,
        1 => GuardBug::Never,
        2 => GuardBug::Unsigned,
        3 => GuardBug::Conversion(r.pick(&[
            Conversion::U8,
            Conversion::U16,
            Conversion::U32,
            Conversion::F32,
        ])),
        _ if guard.vote == LaneVote::Uniform => GuardBug::LaneVote(LaneVote::Agree),
        _ => GuardBug::LaneVote(r.pick(&[LaneVote::All, LaneVote::Any, LaneVote::Agree])),
    }
}

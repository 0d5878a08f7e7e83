//! Causes: what a construct of a plan exercises in the checker.

use crate::differential::Subject;
use crate::plan::*;
use std::collections::BTreeSet;

impl Plan {
    /// Does a role deviate from the choreography?
    pub fn is_twisted(&self) -> bool {
        !self.twists().is_empty()
    }

    /// What the twists exercise.
    pub fn twists(&self) -> BTreeSet<&'static str> {
        let mut found = BTreeSet::new();
        self.each_step(&mut |step| {
            // The causes of a transfer depend on its loops.
            if !matches!(step, Step::Transfer(_)) {
                for count in step.counts() {
                    found.extend(count_cause(count));
                }
            }
            found.extend(step_cause(step));
        });
        found
    }

    /// What the constructs exercise, twisted or not.
    pub fn constructs(&self) -> BTreeSet<&'static str> {
        let mut found = BTreeSet::new();
        self.each_step(&mut |step| {
            for count in step.counts() {
                count_constructs(count, &mut found);
            }
            step_constructs(step, &mut found);
        });
        found
    }
}

impl Subject {
    /// The cause that a finding is filed under: its twists, else its mutations and constructs.
    pub fn cause(&self) -> String {
        let twists = self.plan.twists();
        let mut words: Vec<String> = Vec::new();
        for mutation in &self.mutations {
            words.push(format!("{}-mutation", mutation.kind.name()));
        }
        match twists.is_empty() {
            true => words.extend(self.plan.constructs().into_iter().map(str::to_owned)),
            false => words.extend(twists.into_iter().map(str::to_owned)),
        }
        words.join(" + ")
    }
}

fn count_cause(count: &Count) -> Option<&'static str> {
    let (_, twist) = count.twist?;
    Some(match twist {
        CountTwist::Narrow(Narrow::F32) => "float-conversion",
        CountTwist::Narrow(_) if count.narrow == Narrow::F32 => "float-conversion",
        CountTwist::Narrow(_) if count.source == Source::Long => "long-word",
        CountTwist::Narrow(_) => "narrow-conversion",
        CountTwist::Unsigned => "signed-load",
        CountTwist::More | CountTwist::Zero => "other-count",
        CountTwist::Source(_) => "other-source",
    })
}

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

/// Is the condition `x > -1` in some role?
fn has_negative_constant(guard: &Guard) -> bool {
    let written = guard.forms.iter().any(|f| f & 1 != 0);
    written && is_signed(guard.source) && guard.test == Test::NotNegative
}

fn guard_cause(guard: &Guard) -> Option<&'static str> {
    let (_, twist) = guard.twist?;
    let signed = is_signed(guard.source);
    Some(match twist {
        GuardTwist::Vote(_) => "vote",
        GuardTwist::Narrow(Narrow::F32) => "float-conversion",
        GuardTwist::Narrow(_) if guard.source == Source::Long => "long-word",
        GuardTwist::Narrow(_) => "narrow-conversion",
        _ if guard.test == Test::Less => "signed-difference",
        _ if has_negative_constant(guard) => "negative-constant",
        _ if signed => "signed-load",
        _ if guard.source == Source::Long => "long-word",
        _ => "other-condition",
    })
}

fn step_cause(step: &Step) -> Option<&'static str> {
    match step {
        Step::Transfer(t) => {
            let cause = t.guard.as_ref().and_then(guard_cause);
            let cause = cause.or_else(|| count_cause(&t.count))?;
            let negative = t.loops.contains(&LoopForm::FromMinusOne)
                || t.guard.as_ref().is_some_and(has_negative_constant);
            match negative && cause.starts_with("other-") {
                true => Some("negative-constant"),
                false => Some(cause),
            }
        }
        Step::Word(w) if w.stale => Some("shared-atomic"),
        Step::Word(w) if w.read != Elem::U32 => Some("narrow-word"),
        Step::Quiet(q) if q.stale => Some("quiet-loop"),
        Step::Export(e) if e.fence_in_branch => Some("branch-fence"),
        Step::Registers(r) if r.late => Some("register-wait"),
        Step::Gather(g) if g.unsynced && g.unknown => Some("unknown-index"),
        Step::Gather(g) if g.unsynced => Some("lane-index"),
        Step::Reread(r) if r.unsynced => Some("reread"),
        Step::LaneCopies(c) if c.partial.is_some() => Some("copy-groups"),
        Step::Remote(m) => match m.twist? {
            RemoteTwist::CtaScope => Some("remote-scope"),
            _ if m.lanes => Some("lane-peer"),
            _ => Some("remote-order"),
        },
        Step::Length(l) => match l.twist? {
            LengthTwist::Unbounded => Some("unbounded-length"),
            LengthTwist::Unaligned => Some("unaligned-length"),
            _ if matches!(l.source, Source::Table { .. }) => Some("unknown-length"),
            _ => Some("row-length"),
        },
        Step::Reinit(r) if r.early => Some("barrier-inval"),
        Step::Stride(s) if !s.bounded && s.spin => Some("endless-loop"),
        Step::Stride(s) if !s.bounded => Some("zero-step"),
        Step::Flags(f) => Some(match f.twist? {
            FlagTwist::WaitFirst => "flag-cycle",
            FlagTwist::Silent => "silent-flag",
            FlagTwist::ReadOnce => "flag-read-once",
            FlagTwist::ReadWait => "bulk-publish",
            FlagTwist::ReadOnly => "read-only-load",
        }),
        Step::Locks(l) if l.opposite => Some("lock-order"),
        _ => None,
    }
}

fn count_constructs(count: &Count, found: &mut BTreeSet<&'static str>) {
    let differ = count.forms.windows(2).any(|f| f[0] & 7 != f[1] & 7);
    if differ {
        found.extend(match count.shape {
            Shape::Tiles => Some("div-ceil"),
            Shape::Twice => Some("double"),
            Shape::Quarter => Some("shift-div"),
            Shape::Four => Some("shift-mul"),
            Shape::Plain => Some("plus-minus-one"),
            Shape::Clamp => Some("clamp-writings"),
            Shape::Mod => Some("mod-writings"),
            Shape::High => Some("high-writings"),
        });
    }
    if count.forms.iter().any(|f| f & 8 != 0) {
        found.insert("shuffle-broadcast");
    }
    source_constructs(count.source, found);
    found.extend(match count.narrow {
        Narrow::Keep => None,
        Narrow::F32 => Some("float-count"),
        _ => Some("narrow-count"),
    });
}

fn source_constructs(source: Source, found: &mut BTreeSet<&'static str>) {
    found.extend(match source {
        Source::Signed => Some("signed-count"),
        Source::Long => Some("long-count"),
        Source::Table { shared: true, .. } => Some("shared-table"),
        Source::Table { .. } => Some("global-table"),
        _ => None,
    });
}

fn step_constructs(step: &Step, found: &mut BTreeSet<&'static str>) {
    found.extend(match step {
        Step::Loop { .. } => Some("loop"),
        Step::Word(w) if w.add > 0 => Some("atomic-word"),
        Step::Word(_) => Some("word"),
        Step::Quiet(_) => Some("quiet"),
        Step::Export(_) => Some("export"),
        Step::Registers(_) => Some("registers"),
        Step::Gather(g) if g.unknown => Some("gather-unknown"),
        Step::Gather(_) => Some("gather"),
        Step::Reread(_) => Some("read-again"),
        Step::LaneCopies(_) => Some("lane-copies"),
        Step::Remote(m) if m.lanes => Some("remote-lanes"),
        Step::Remote(_) => Some("remote"),
        Step::Length(_) => Some("length"),
        Step::Named(_) => Some("named"),
        Step::Reinit(_) => Some("reinit"),
        Step::Stride(_) => Some("stride"),
        Step::Flags(f) if f.bulk => Some("bulk-flags"),
        Step::Flags(_) => Some("flags"),
        Step::Locks(_) => Some("locks"),
        Step::Turns(_) => Some("turns"),
        Step::Transfer(_) | Step::Meet => None,
    });
    if let Step::Transfer(t) = step {
        for form in t.loops {
            found.extend(match form {
                LoopForm::Up => None,
                LoopForm::Down => Some("count-down"),
                LoopForm::First => Some("min-rest"),
                LoopForm::Halves => Some("halves"),
                LoopForm::FromOne => Some("from-one"),
                LoopForm::FromMinusOne => Some("from-minus-one"),
                LoopForm::While => Some("while-loop"),
            });
        }
        for position in t.position {
            found.extend(match position {
                Position::Cursor => None,
                Position::Counter => Some("running-counter"),
                Position::Product => Some("running-product"),
            });
        }
        found.extend(match t.wait {
            WaitForm::Wait => None,
            WaitForm::Try => Some("try-wait"),
            WaitForm::TestThenWait => Some("test-then-wait"),
        });
        found.extend(match t.fill {
            Fill::Lanes => Some("lane-fill"),
            _ => None,
        });
        if t.tail {
            found.insert("last-item");
        }
        if t.safe {
            found.insert("safe-ring");
        }
        if let Some(guard) = &t.guard {
            source_constructs(guard.source, found);
            found.insert(match guard.vote {
                Vote::Uniform => "guard",
                _ => "vote-guard",
            });
        }
    }
}

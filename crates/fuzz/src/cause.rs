//! Names the causes of findings: injected bugs and constructs of a plan.

use crate::differential::FuzzCase;
use crate::plan::*;
use std::collections::BTreeSet;

impl FuzzPlan {
    /// Returns whether the plan has an injected bug.
    pub fn has_bug(&self) -> bool {
        !self.bugs().is_empty()
    }

    /// Returns the names of the injected bugs.
    pub fn bugs(&self) -> BTreeSet<&'static str> {
        let mut found = BTreeSet::new();
        self.each_step(&mut |step| {
            // The cause of a transfer depends on its loops too.
            if !matches!(step, CommStep::Transfer(_)) {
                for count in step.counts() {
                    found.extend(count_cause(count));
                }
            }
            found.extend(step_cause(step));
        });
        found
    }

    /// Returns the names of the constructs.
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

impl FuzzCase {
    /// Returns the cause of a finding: mutations, then injected bugs, or else constructs.
    pub fn cause(&self) -> String {
        let bugs = self.plan.bugs();
        let mut words: Vec<String> = Vec::new();
        for mutation in &self.mutations {
            words.push(format!("{}-mutation", mutation.kind.name()));
        }
        match bugs.is_empty() {
            true => words.extend(self.plan.constructs().into_iter().map(str::to_owned)),
            false => words.extend(bugs.into_iter().map(str::to_owned)),
        }
        words.join(" + ")
    }
}

fn count_cause(count: &TripCount) -> Option<&'static str> {
    let (_, bug) = count.bug?;
    Some(match bug {
        CountBug::Conversion(Conversion::F32) => "float-conversion",
        CountBug::Conversion(_) if count.conversion == Conversion::F32 => "float-conversion",
        CountBug::Conversion(_) if count.source == NumberSource::Long => "long-word",
        CountBug::Conversion(_) => "narrow-conversion",
        CountBug::Unsigned => "signed-load",
        CountBug::More | CountBug::Zero => "other-count",
        CountBug::NumberSource(_) => "other-source",
    })
}

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

/// Returns whether some role tests `x > -1`.
fn has_negative_constant(guard: &Guard) -> bool {
    let written = guard.forms.iter().any(|f| f & 1 != 0);
    written && is_signed(guard.source) && guard.test == GuardTest::NotNegative
}

fn guard_cause(guard: &Guard) -> Option<&'static str> {
    let (_, bug) = guard.bug?;
    let signed = is_signed(guard.source);
    Some(match bug {
        GuardBug::LaneVote(_) => "vote",
        GuardBug::Conversion(Conversion::F32) => "float-conversion",
        GuardBug::Conversion(_) if guard.source == NumberSource::Long => "long-word",
        GuardBug::Conversion(_) => "narrow-conversion",
        _ if guard.test == GuardTest::Less => "signed-difference",
        _ if has_negative_constant(guard) => "negative-constant",
        _ if signed => "signed-load",
        _ if guard.source == NumberSource::Long => "long-word",
        _ => "other-condition",
    })
}

fn step_cause(step: &CommStep) -> Option<&'static str> {
    match step {
        CommStep::Transfer(t) => {
            let cause = t.guard.as_ref().and_then(guard_cause);
            let cause = cause.or_else(|| count_cause(&t.count))?;
            let negative = t.loops.contains(&LoopForm::FromMinusOne)
                || t.guard.as_ref().is_some_and(has_negative_constant);
            match negative && cause.starts_with("other-") {
                true => Some("negative-constant"),
                false => Some(cause),
            }
        }
        CommStep::SharedWord(w) if w.stale => Some("shared-atomic"),
        CommStep::SharedWord(w) if w.read != TableElem::U32 => Some("narrow-word"),
        CommStep::SyncFreeLoop(q) if q.stale => Some("sync-free-loop"),
        CommStep::BulkExport(e) if e.fence_in_branch => Some("branch-fence"),
        CommStep::RegisterTransfer(r) if r.late => Some("register-wait"),
        CommStep::Gather(g) if g.unsynced && g.unknown => Some("unknown-index"),
        CommStep::Gather(g) if g.unsynced => Some("lane-index"),
        CommStep::Reread(r) if r.unsynced => Some("reread"),
        CommStep::LaneCopies(c) if c.partial.is_some() => Some("copy-groups"),
        CommStep::RemoteStore(m) => match m.bug? {
            RemoteBug::CtaScope => Some("remote-scope"),
            _ if m.lanes => Some("lane-peer"),
            _ => Some("remote-order"),
        },
        CommStep::VariableLoad(l) => match l.bug? {
            LengthBug::Unbounded => Some("unbounded-length"),
            LengthBug::Unaligned => Some("unaligned-length"),
            _ if matches!(l.source, NumberSource::Table { .. }) => Some("unknown-length"),
            _ => Some("row-length"),
        },
        CommStep::Reinit(r) if r.early => Some("barrier-inval"),
        CommStep::StridedLoop(s) if !s.bounded && s.spin => Some("endless-loop"),
        CommStep::StridedLoop(s) if !s.bounded => Some("zero-step"),
        CommStep::FlagHandshake(f) => Some(match f.bug? {
            FlagBug::WaitFirst => "flag-cycle",
            FlagBug::Silent => "unsignaled-flag",
            FlagBug::ReadOnce => "flag-read-once",
            FlagBug::ReadWait => "bulk-publish",
            FlagBug::ReadOnly => "read-only-load",
        }),
        CommStep::Locks(l) if l.opposite => Some("lock-order"),
        _ => None,
    }
}

fn count_constructs(count: &TripCount, found: &mut BTreeSet<&'static str>) {
    let differ = count.forms.windows(2).any(|f| f[0] & 7 != f[1] & 7);
    if differ {
        found.extend(match count.formula {
            CountFormula::Tiles => Some("div-ceil"),
            CountFormula::Twice => Some("double"),
            CountFormula::Quarter => Some("shift-div"),
            CountFormula::Four => Some("shift-mul"),
            CountFormula::Plain => Some("plus-minus-one"),
            CountFormula::Clamp => Some("clamp-variants"),
            CountFormula::Mod => Some("mod-variants"),
            CountFormula::High => Some("high-variants"),
        });
    }
    if count.forms.iter().any(|f| f & 8 != 0) {
        found.insert("shuffle-broadcast");
    }
    source_constructs(count.source, found);
    found.extend(match count.conversion {
        Conversion::Keep => None,
        Conversion::F32 => Some("float-count"),
        _ => Some("narrow-count"),
    });
}

fn source_constructs(source: NumberSource, found: &mut BTreeSet<&'static str>) {
    found.extend(match source {
        NumberSource::Signed => Some("signed-count"),
        NumberSource::Long => Some("long-count"),
        NumberSource::Table { shared: true, .. } => Some("shared-table"),
        NumberSource::Table { .. } => Some("global-table"),
        _ => None,
    });
}

fn step_constructs(step: &CommStep, found: &mut BTreeSet<&'static str>) {
    found.extend(match step {
        CommStep::Loop { .. } => Some("loop"),
        CommStep::SharedWord(w) if w.add > 0 => Some("atomic-word"),
        CommStep::SharedWord(_) => Some("word"),
        CommStep::SyncFreeLoop(_) => Some("sync-free"),
        CommStep::BulkExport(_) => Some("export"),
        CommStep::RegisterTransfer(_) => Some("registers"),
        CommStep::Gather(g) if g.unknown => Some("gather-unknown"),
        CommStep::Gather(_) => Some("gather"),
        CommStep::Reread(_) => Some("read-again"),
        CommStep::LaneCopies(_) => Some("lane-copies"),
        CommStep::RemoteStore(m) if m.lanes => Some("remote-lanes"),
        CommStep::RemoteStore(_) => Some("remote"),
        CommStep::VariableLoad(_) => Some("length"),
        CommStep::NamedHandshake(_) => Some("named"),
        CommStep::Reinit(_) => Some("reinit"),
        CommStep::StridedLoop(_) => Some("stride"),
        CommStep::FlagHandshake(f) if f.bulk => Some("bulk-flags"),
        CommStep::FlagHandshake(_) => Some("flags"),
        CommStep::Locks(_) => Some("locks"),
        CommStep::Turns(_) => Some("turns"),
        CommStep::Transfer(_) | CommStep::CtaBarrier => None,
    });
    if let CommStep::Transfer(t) = step {
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
                RingPosition::Cursor => None,
                RingPosition::Counter => Some("running-counter"),
                RingPosition::Product => Some("running-product"),
            });
        }
        found.extend(match t.wait {
            WaitForm::Wait => None,
            WaitForm::Try => Some("try-wait"),
            WaitForm::TestThenWait => Some("test-then-wait"),
        });
        found.extend(match t.fill {
            SlotFill::Lanes => Some("lane-fill"),
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
                LaneVote::Uniform => "guard",
                _ => "vote-guard",
            });
        }
    }
}

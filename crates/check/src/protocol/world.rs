//! One run of the search: the state of a cluster and the current warp.

use super::lanes::LaneSet;
use super::record::{Record, Who};
use super::state::{Env, FIRST, State};
use super::trace::What;
use crate::diagnostic::{Diagnostic, Label, Message, Rule, TraceEvent, role_name};
use crate::symbolic::Question;
use warpline_ir::{Fault, FaultKind, Loc};

/// The walk is over: a rule is broken, or something cannot be decided.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) diagnostic: Box<Diagnostic>,
    /// The questions about the launch that were answered on the way.
    pub(super) decisions: Vec<(Question, bool)>,
}

/// A state, and who acts on it.
pub(super) struct World<'e, 'k> {
    pub(super) env: &'e Env<'k>,
    pub(super) st: State,
    /// The warp that acts.
    pub(super) cur: usize,
    /// The statement it is at.
    pub(super) loc: Loc,
    /// Why it stopped, where only a fault can be said.
    pub(super) stop: Option<Stop>,
    /// What an op that loads has found: nothing known, or a followed word.
    pub(super) loaded: Option<(super::value::Val, warpline_ir::Type)>,
    /// The type that the op loads, if it loads one word.
    pub(super) reading: Option<warpline_ir::Type>,
    /// The op that a transfer function runs for, by its kind, and the type of its result.
    pub(super) running: Option<(u32, warpline_ir::Type)>,
    /// Does it decide what is run?
    pub(super) decides: bool,
    /// Does a stage, a parity or a place in shared memory follow from the op that runs?
    pub(super) exactly: bool,
    /// Could it compare what a `while` counts by itself?
    pub(super) counts: bool,
    /// What must be decided before it can run.
    pub(super) asked: Option<Question>,
    /// Did an address of the op follow from nothing known?
    pub(super) lost: bool,
    /// The bytes of a copy that a launch decides.
    pub(super) length: Option<crate::symbolic::Sym>,
    /// Accesses of a stretch that is run for the first time.
    pub(super) kept: Option<Vec<(super::touch::Touch, Loc)>>,
    /// Registers that the warp needs only while it runs.
    pub(super) passing: super::slots::Passing,
    /// Steps walked.
    pub(super) steps: u64,
}

impl<'e, 'k> World<'e, 'k> {
    pub(super) fn new(env: &'e Env<'k>, st: State) -> Self {
        Self {
            env,
            st,
            cur: 0,
            loc: Loc::default(),
            stop: None,
            loaded: None,
            reading: None,
            running: None,
            decides: false,
            exactly: false,
            counts: true,
            asked: None,
            lost: false,
            length: None,
            kept: None,
            passing: super::slots::Passing::default(),
            steps: 0,
        }
    }

    /// The name of a warp's role.
    pub(super) fn role_name(&self, warp: u32) -> String {
        let role = self.st.warps[warp as usize].role;
        self.env.kernel.roles[role as usize].name.clone()
    }

    /// A warp, as one reads it.
    pub(super) fn who(&self, warp: u32) -> String {
        let (cta, index) = (warp / self.env.warps, warp % self.env.warps);
        let role = self.role_name(warp);
        match self.env.ctas {
            1 => format!("{} (warp {index})", role_name(&role)),
            _ => format!("{} (warp {index}, CTA {cta})", role_name(&role)),
        }
    }

    /// A diagnostic at the statement the warp is at.
    pub(super) fn refuse_with(
        &self,
        rule: &Rule,
        text: impl Into<Message>,
        labels: Vec<Label>,
        trace: Vec<TraceEvent>,
    ) -> Stop {
        self.refuse_at(rule, self.cur as u32, self.loc, text, labels, trace)
    }

    pub(super) fn refuse_at(
        &self,
        rule: &Rule,
        warp: u32,
        loc: Loc,
        text: impl Into<Message>,
        labels: Vec<Label>,
        trace: Vec<TraceEvent>,
    ) -> Stop {
        let locs = &self.env.kernel.locs;
        let (text, who) = (text.into(), self.who(warp));
        // The warp matters only beside another warp of the same role, or in a cluster.
        let role = role_name(&self.role_name(warp));
        let subject = match self.env.ctas == 1 && !text.headline.contains(&format!("{role} (")) {
            true => &role,
            false => &who,
        };
        let diagnostic = Box::new(Diagnostic {
            rule: *rule,
            text: format!(
                "{}: {subject} {}",
                text.title.unwrap_or(rule.title),
                text.headline
            ),
            label: match text.label.is_empty() {
                true => String::new(),
                false => format!("{who} {}", text.label),
            },
            cause: text.cause,
            role: Some(self.role_name(warp)),
            at: locs.author(loc),
            stack: locs.stack(loc).to_vec(),
            undecided: rule.code.starts_with("U."),
            labels,
            help: None,
            trace,
            counterexample: None,
        });
        Stop {
            diagnostic,
            decisions: self.st.trail.decisions(),
        }
    }

    pub(super) fn refuse(&self, rule: &Rule, text: impl Into<Message>) -> Stop {
        self.refuse_with(rule, text, Vec::new(), Vec::new())
    }

    /// A diagnostic about an mbarrier, with what happened to it last.
    pub(super) fn refuse_bar(
        &self,
        rule: &Rule,
        text: impl Into<Message>,
        bar: usize,
        labels: Vec<Label>,
    ) -> Stop {
        let trace = self.bar_trace(&[bar]);
        self.refuse_with(rule, text, labels, trace)
    }

    /// A stop, as a fault that an op can hand through.
    pub(super) fn fault(&mut self, stop: Stop) -> Fault {
        let fault = Fault::new(FaultKind::Barrier, stop.diagnostic.text.clone());
        self.stop.get_or_insert(stop);
        fault
    }

    /// What a fault of an op's own comes to.
    pub(super) fn stopped(&mut self, fault: Fault) -> Stop {
        use super::rules;
        if let Some(stop) = self.stop.take() {
            return stop;
        }
        let rule = match fault.kind {
            FaultKind::Convergence => &rules::WHOLE,
            FaultKind::Barrier => &rules::INIT,
            _ => &rules::BOUNDS,
        };
        self.refuse(rule, fault.text)
    }

    /// What happened last to some mbarriers, oldest first.
    pub(super) fn bar_trace(&self, bars: &[usize]) -> Vec<TraceEvent> {
        let about = |w: &What| match w {
            What::Arrives { bar, .. } | What::Passes { bar, .. } | What::Copies { bar, .. } => {
                bars.contains(bar)
            }
            What::Decides(..) => true,
            _ => false,
        };
        self.events(|s| about(&s.what), 12)
    }

    /// What two warps did from an access on: with the bytes, with the mbarriers of their slot, or with
    /// barriers outside of rings.
    pub(super) fn race_trace(&self, r: &Record, tile: u32, byte: u32) -> Vec<TraceEvent> {
        let place = self.env.place_name(tile, byte);
        let start = self.st.trail.back().position(|s| {
            s.warp == r.warp
                && s.loc == r.loc
                && match s.what {
                    What::Touches { tile, byte, .. } | What::Copies { tile, byte, .. } => {
                        self.env.place_name(tile, byte) == place
                    }
                    _ => false,
                }
        });
        let until = start.map_or(64, |n| n + 1);
        let (mut seen, mut decided) = (0, Vec::new());
        let mut list: Vec<TraceEvent> = self
            .st
            .trail
            .back()
            .take(until)
            .filter(|s| match &s.what {
                _ if s.warp != r.warp && s.warp != self.cur as u32 => false,
                What::Touches { tile, byte, .. } | What::Copies { tile, byte, .. } => {
                    self.env.place_name(*tile, *byte) == place
                }
                What::Arrives { bar, .. } | What::Passes { bar, .. } => {
                    !self.env.guards_another_slot(*bar, tile, byte)
                }
                _ => true,
            })
            .filter(|s| is_news(s, &mut decided))
            .filter(|_| {
                seen += 1;
                seen <= 14
            })
            .map(|s| s.event(self.env))
            .collect();
        if seen > 14 || start.is_none() {
            list.push(self.access_event(r));
        }
        list.reverse();
        list
    }

    /// The event of an access.
    fn access_event(&self, r: &Record) -> TraceEvent {
        let place = self.env.place_name(r.tile, r.runs.start());
        TraceEvent {
            who: self.who(r.warp),
            what: format!("{} {place}", super::touch::verb(r.who, r.write)),
            at: self.env.kernel.locs.author(r.loc),
        }
    }

    fn events(&self, keep: impl Fn(&super::trace::Step) -> bool, most: usize) -> Vec<TraceEvent> {
        let mut decided = Vec::new();
        let mut list: Vec<TraceEvent> = self
            .st
            .trail
            .back()
            .filter(|s| keep(s) && is_news(s, &mut decided))
            .take(most)
            .map(|s| s.event(self.env))
            .collect();
        list.reverse();
        list
    }

    /// The last uses of a barrier of the CTA or cluster, oldest first.
    pub(super) fn meeting_trace(&self, at: usize) -> Vec<TraceEvent> {
        let about = |w: &What| match w {
            What::Comes { meeting, .. } | What::Leaves { meeting, .. } => *meeting == at,
            What::Decides(..) => true,
            _ => false,
        };
        self.events(|s| about(&s.what), 12)
    }

    /// The warps of a CTA.
    pub(super) fn warps_of(&self, cta: u32) -> std::ops::Range<usize> {
        let each = self.env.warps as usize;
        cta as usize * each..(cta as usize + 1) * each
    }

    /// A record of an engine is known to some lanes.
    pub(super) fn learn(&mut self, lanes: LaneSet, records: &[u32]) {
        let know = &mut self.st.warps[self.cur].know;
        know.learn(lanes, |know| records.iter().for_each(|&i| know.add(i)));
    }

    /// Notes that the warp reaches into another CTA.
    pub(super) fn reach(&mut self, lanes: LaneSet, cta: u32) -> Result<(), Stop> {
        let own = self.st.warps[self.cur].cta;
        if cta == own {
            return Ok(());
        }
        let meeting = self.env.first_meeting() + self.env.cluster_meeting();
        if self.st.warps[self.cur].know.phases(lanes, meeting) <= FIRST {
            let text = Message::new(format!(
                "accesses CTA {cta} before the first cluster barrier"
            ))
            .label(format!("reaches into CTA {cta} here"))
            .cause(format!("CTA {cta} may not have started yet"));
            return Err(self.refuse(&super::rules::START, text));
        }
        // A reach into that CTA stands for those before that its lanes know of or made.
        let me = self.cur as u32;
        let own = self.st.records.made_in(cta, u32::MAX, me);
        let know = &self.st.warps[self.cur].know;
        let list = own.filter(|(i, r)| {
            r.who == Who::Reach && (r.lanes & !lanes == 0 || know.seen(lanes, *i))
        });
        for i in list.map(|(i, _)| i).collect::<Vec<_>>() {
            self.st.records.get_mut(i).live = false;
        }
        self.note(Who::Reach, lanes, cta);
        Ok(())
    }
}

/// Is a step, seen from the newest back, more than an older decision about the same trip count?
fn is_news(step: &super::trace::Step, decided: &mut Vec<crate::symbolic::TermId>) -> bool {
    match step.what {
        What::Decides(Question::RunsMoreThan { of, .. }, ..) => {
            let is_new = !decided.contains(&of);
            decided.push(of);
            is_new
        }
        _ => true,
    }
}

//! One walk: the state of a cluster and the warp that runs now.

use super::lanes::LaneSet;
use super::record::{Record, Who};
use super::state::{Env, FIRST, State};
use super::trace::What;
use crate::refusal::{Event, Refusal, Rule, Side};
use crate::symbolic::Question;
use warpline_ir::{Fault, FaultKind, Loc};

/// The walk is over: a rule is broken, or something cannot be decided.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) refusal: Box<Refusal>,
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
            1 => format!("{role} (warp {index})"),
            _ => format!("{role} (warp {index}, CTA {cta})"),
        }
    }

    /// A refusal at the statement the warp is at.
    pub(super) fn refuse_with(
        &self,
        rule: &Rule,
        text: String,
        others: Vec<Side>,
        trace: Vec<Event>,
    ) -> Stop {
        self.refuse_at(rule, self.cur as u32, self.loc, text, others, trace)
    }

    pub(super) fn refuse_at(
        &self,
        rule: &Rule,
        warp: u32,
        loc: Loc,
        text: String,
        others: Vec<Side>,
        trace: Vec<Event>,
    ) -> Stop {
        let locs = &self.env.kernel.locs;
        let refusal = Box::new(Refusal {
            rule: *rule,
            text: format!("{} {text}", self.who(warp)),
            role: Some(self.role_name(warp)),
            at: locs.author(loc),
            stack: locs.stack(loc).to_vec(),
            undecided: rule.code.starts_with("U."),
            others,
            help: None,
            trace,
            witness: None,
        });
        Stop {
            refusal,
            decisions: self.st.trail.decisions(),
        }
    }

    pub(super) fn refuse(&self, rule: &Rule, text: String) -> Stop {
        self.refuse_with(rule, text, Vec::new(), Vec::new())
    }

    /// A refusal about an mbarrier, with what happened to it last.
    pub(super) fn refuse_bar(
        &self,
        rule: &Rule,
        text: String,
        bar: usize,
        others: Vec<Side>,
    ) -> Stop {
        let trace = self.bar_trace(&[bar]);
        self.refuse_with(rule, text, others, trace)
    }

    /// A stop, as a fault that an op can hand through.
    pub(super) fn fault(&mut self, stop: Stop) -> Fault {
        let fault = Fault::new(FaultKind::Barrier, stop.refusal.text.clone());
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
    pub(super) fn bar_trace(&self, bars: &[usize]) -> Vec<Event> {
        let about = |w: &What| match w {
            What::Arrives { bar, .. } | What::Passes { bar, .. } | What::Copies { bar, .. } => {
                bars.contains(bar)
            }
            What::Decides(..) => true,
            _ => false,
        };
        self.events(|s| about(&s.what), 12)
    }

    /// What two warps did from an access on.
    pub(super) fn race_trace(&self, r: &Record, tile: u32, byte: u32) -> Vec<Event> {
        let place = self.env.place_name(tile, byte);
        let start = self.st.trail.back().position(|s| {
            s.warp == r.warp
                && s.loc == r.loc
                && matches!(s.what, What::Touches { .. } | What::Copies { .. })
        });
        let until = start.map_or(64, |n| n + 1);
        let mut seen = 0;
        let mut list: Vec<Event> = self
            .st
            .trail
            .back()
            .take(until)
            .filter(|s| match &s.what {
                What::Touches { tile, byte, .. } | What::Copies { tile, byte, .. } => {
                    self.env.place_name(*tile, *byte) == place
                }
                _ => s.warp == r.warp || s.warp == self.cur as u32,
            })
            .filter(|_| {
                seen += 1;
                seen <= 14
            })
            .map(|s| s.event(self.env))
            .collect();
        if seen > 14
            && let Some(n) = start
        {
            list.extend(self.st.trail.back().nth(n).map(|s| s.event(self.env)));
        }
        list.reverse();
        list
    }

    fn events(&self, keep: impl Fn(&super::trace::Step) -> bool, most: usize) -> Vec<Event> {
        let mut list: Vec<Event> = self
            .st
            .trail
            .back()
            .filter(|s| keep(s))
            .take(most)
            .map(|s| s.event(self.env))
            .collect();
        list.reverse();
        list
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
            let text = format!(
                "reaches into CTA {cta}, which may not have started: no cluster barrier lies before"
            );
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

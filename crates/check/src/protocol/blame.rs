//! Moves a refutation to its cause, if the failing statement is only the symptom.
//!
//! A slot that is released twice fails later, at a wait or an arrival of another warp. The trace
//! contains the second release.

use super::code::Code;
use super::rules;
use super::state::as_told;
use super::trace::{Step, What};
use super::world::{Stop, World};
use crate::diagnostic::{Label, Message, Rule};
use crate::facts::Facts;
use warpline_ir::{Op, SyncOp};

impl World<'_, '_> {
    /// The diagnostic of a warp's second arrival for one phase of an mbarrier, if a warp made one:
    /// in a phase that takes several arrivals.
    pub(super) fn second_arrival(&self, bar: usize, phase: u32) -> Option<Stop> {
        let arrivals: Vec<&Step> = self.arrivals(bar, phase).collect();
        let newest_first = arrivals.iter().enumerate();
        let (second, first) = { newest_first }.find_map(|(i, second)| {
            let mut before = arrivals[i + 1..].iter();
            let first = before.find(|first| first.warp == second.warp)?;
            Some((*second, *first))
        })?;
        let text = Message::new(format!(
            "arrives twice at {} in phase {}",
            self.env.bar_name(bar),
            as_told(i64::from(phase))
        ))
        .label("makes the second arrival here")
        .cause("the phase counts one arrival of this warp, so the second one completes the phase too early or belongs to the next phase");
        let sides = vec![
            self.side(
                first,
                &format!("{} makes the first arrival here", self.who(first.warp)),
            ),
            self.made_here(bar),
        ];
        Some(self.refuse_arrival(&rules::ARRIVALS, second, text, bar, sides))
    }

    /// The diagnostic of the arrival that lets a phase of an mbarrier begin too early, while the
    /// warp that acts is yet to see `phase`, the next for it: if the same warp completed both.
    pub(super) fn early_arrival(&self, bar: usize, phase: i64) -> Option<Stop> {
        let phase = u32::try_from(phase).ok()?;
        let second = self.arrivals(bar, phase + 1).last()?;
        let first = self.arrivals(bar, phase).find(|s| s.warp == second.warp)?;
        let (name, waiter) = (self.env.bar_name(bar), self.who(self.cur as u32));
        let (told, next) = (as_told(phase.into()), as_told(i64::from(phase) + 1));
        let text = Message::new(format!(
            "arrives at {name} for phase {next} before {waiter} has observed the end of phase {told}"
        ))
        .label(format!("arrives for phase {next} here"))
        .cause(format!(
            "a wait tests only the parity: once phase {next} completes, the wait for phase {told} waits for the wrong phase"
        ));
        let waits = Label {
            text: format!("{waiter} waits for phase {told} here"),
            role: Some(self.role_name(self.cur as u32)),
            at: self.env.kernel.locs.author(self.loc),
        };
        let sides = vec![
            self.side(
                first,
                &format!("{} arrives for phase {told} here", self.who(first.warp)),
            ),
            waits,
        ];
        Some(self.refuse_arrival(&rules::PARITY, second, text, bar, sides))
    }

    /// The diagnostic of a warp that comes to a named barrier as one too many: those who come are
    /// not a multiple of the threads that are named.
    pub(super) fn uncounted(&self, meeting: usize, threads: u32) -> Option<Stop> {
        let named = meeting % (self.env.kernel.named.len() + 1);
        let comes = |op: &Op| {
            Facts::of(op).syncs.iter().any(|s| match s {
                SyncOp::NamedSync { bar, .. }
                | SyncOp::NamedReduce { bar, .. }
                | SyncOp::NamedArrive { bar, .. } => bar.index() == named,
                _ => false,
            })
        };
        let acts = |c: &Code<'_>| matches!(c, Code::Act(a) if comes(a.op));
        let programs = self.env.programs.iter().zip(&self.env.kernel.roles);
        let users = programs.filter(|(p, _)| p.code.iter().any(acts));
        let all: u32 = users.map(|(_, role)| 32 * role.warps).sum();
        if all.is_multiple_of(threads) {
            return None;
        }
        let text = Message::new(format!(
            "arrives at {}, which {threads} other threads have already completed",
            self.env.meeting_name(meeting)
        ))
        .label("arrives here")
        .cause(format!(
            "the roles that use the barrier have {all} threads, and the barrier counts {threads}"
        ));
        let last = Label {
            text: "the previous arrival".to_owned(),
            role: None,
            at: self.env.kernel.locs.author(self.st.meetings[meeting].last),
        };
        let mut stop = self.refuse_with(&rules::COUNT, text, vec![last], Vec::new());
        stop.diagnostic.help = Some(format!(
            "pass {all} threads to the barrier, or let only {threads} threads use it"
        ));
        Some(stop)
    }

    /// A diagnostic at an arrival that is one too many.
    fn refuse_arrival(
        &self,
        rule: &Rule,
        arrival: &Step,
        text: Message,
        bar: usize,
        others: Vec<Label>,
    ) -> Stop {
        let trace = self.bar_trace(&[bar]);
        let mut stop = self.refuse_at(rule, arrival.warp, arrival.loc, text, others, trace);
        let help = "arrive once for each phase that was waited for: release a slot once each time it is acquired";
        stop.diagnostic.help = Some(help.to_owned());
        stop
    }

    /// Arrivals at an mbarrier for one phase, newest first.
    fn arrivals(&self, bar: usize, phase: u32) -> impl Iterator<Item = &Step> {
        self.st.trail.back().filter(move |s| {
            matches!(s.what, What::Arrives { bar: b, phase: p, times, .. }
                if b == bar && p == phase && times > 0)
        })
    }

    fn side(&self, step: &Step, text: &str) -> Label {
        Label {
            text: text.to_owned(),
            role: Some(self.role_name(step.warp)),
            at: self.env.kernel.locs.author(step.loc),
        }
    }
}

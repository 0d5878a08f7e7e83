//! Deadlocks: the warps that wait for each other, and the cause.
//!
//! For each blocked wait, the analysis finds the warps that could still provide the missing
//! arrivals or bytes. These warps are blocked too, so the analysis continues with their waits. It
//! ends at
//!
//! - a wait that no warp can complete any more, which is the cause. If a warp that should have
//!   arrived has ended or is past the statement, the roles disagree on trip counts (R4). Otherwise
//!   the barrier counts more than ever arrives (R1, R2, R10);
//! - or a cycle (R17). If no warp of the cycle has made progress yet, the first wait of one of them
//!   has the wrong parity (R3).

use super::code::Code;
use super::rules;
use super::state::{Frame, Rounds, Status, as_told};
use super::trace::What;
use super::world::{Stop, World};
use crate::diagnostic::{Label, Message, Rule};
use crate::facts::Facts;
use warpline_ir::{BarRef, Completion, Loc, SyncOp};

/// What a wait lacks.
#[derive(Clone, Copy)]
enum Lack {
    /// Arrivals at an mbarrier.
    Arrivals(usize),
    /// Bytes that an mbarrier expects.
    Bytes(usize),
    /// Warps at a named barrier.
    Named(usize),
    /// All other warps at the barrier of the CTA or cluster.
    All(usize),
    /// Warps of the warpgroup that have yet to issue a product.
    Products,
    /// Registers that other warps of the CTA have yet to give back.
    Registers,
}

/// Where a warp stands to something that it brings at times.
#[derive(Clone, Copy, PartialEq)]
enum Stand {
    Came,
    /// It could still come.
    Ahead,
    /// It has ended, or is past the statement.
    Left(Loc),
}

/// Why nobody goes on.
struct Cause {
    warp: usize,
    rule: &'static Rule,
    why: &'static str,
}

impl World<'_, '_> {
    /// Nobody can go on.
    pub(super) fn deadlock(&mut self) -> Stop {
        let is_stuck = |w: &usize| self.st.warps[*w].status != Status::Done;
        let stuck: Vec<usize> = (0..self.st.warps.len()).filter(is_stuck).collect();
        let Cause { warp, rule, why } = self.cause(&stuck);
        let mut others = self.missing(warp, rule);
        for &w in stuck.iter().filter(|&&w| w != warp) {
            let side = Label {
                text: format!("{} {} here", self.who(w as u32), self.awaits(w, "waits")),
                role: Some(self.role_name(w as u32)),
                at: self.env.kernel.locs.author(self.at(w)),
            };
            let same = |o: &Label| o.at == side.at && o.role == side.role;
            if !others.iter().any(same) {
                others.push(side);
            }
        }
        let mut bars: Vec<usize> = stuck.iter().filter_map(|&w| self.bar_of(w)).collect();
        bars.dedup();
        let lacks = match self.st.warps[warp].status {
            Status::Bar { bar, .. } => self.lacks(bar),
            Status::Meeting { meeting, .. } => self.absent(meeting),
            _ => "the wait has no end".to_owned(),
        };
        let text = Message::new(self.awaits(warp, "waits forever"))
            .label("waits forever here")
            .cause(format!("{lacks}{why}"));
        let trace = self.bar_trace(&bars);
        self.refuse_at(rule, warp as u32, self.at(warp), text, others, trace)
    }

    fn at(&self, w: usize) -> Loc {
        let w = &self.st.warps[w];
        self.env.programs[w.role as usize].locs[w.pc as usize]
    }

    /// The mbarrier that a warp waits for.
    fn bar_of(&self, w: usize) -> Option<usize> {
        match self.st.warps[w].status {
            Status::Bar { bar, .. } => Some(bar),
            _ => None,
        }
    }

    /// Those who should have brought what a wait lacks, and what counts it.
    fn missing(&self, warp: usize, rule: &Rule) -> Vec<Label> {
        let mut sides = Vec::new();
        let lack = self.lack(warp);
        if rule.code == rules::TRIPS.code {
            let left = (0..self.st.warps.len()).find_map(|w| match self.stand(w, lack) {
                Some(Stand::Left(loc)) => Some((w as u32, loc)),
                _ => None,
            });
            sides.extend(left.map(|(w, loc)| Label {
                text: format!("{} does not reach this statement again", self.who(w)),
                role: Some(self.role_name(w)),
                at: self.env.kernel.locs.author(loc),
            }));
        }
        if let (Some(bar), "R1.arrivals" | "R2.bytes") = (self.bar_of(warp), rule.code) {
            sides.extend(self.last_at(bar).map(|(w, loc)| Label {
                text: format!("{} makes the last arrival here", self.who(w)),
                role: Some(self.role_name(w)),
                at: self.env.kernel.locs.author(loc),
            }));
            sides.push(self.made_here(bar));
        }
        sides
    }

    /// Why a set of warps, all of them waiting, does not go on.
    fn cause(&self, stuck: &[usize]) -> Cause {
        let roots = stuck.iter().filter(|&&w| self.awaited(w).is_empty());
        let root = roots
            .map(|&warp| (warp, self.broken(warp)))
            .min_by_key(|(_, rule)| match rule.code {
                "R2.bytes" => 0,
                "R1.arrivals" => 1,
                "R10.count" => 2,
                "R8.agree" => 3,
                "R4.trips" => 4,
                _ => 5,
            });
        if let Some((warp, rule)) = root {
            return Cause {
                warp,
                rule,
                why: "",
            };
        }
        let circle = self.circle(stuck[0]);
        let begun = |s: &super::trace::Step| {
            let acts = matches!(
                s.what,
                What::Arrives { .. } | What::Copies { .. } | What::Passes { .. }
            );
            acts && circle.contains(&(s.warp as usize))
        };
        let bars = circle.iter().all(|&w| self.bar_of(w).is_some());
        let warp = circle.iter().copied().min().unwrap_or(stuck[0]);
        match bars && !self.st.trail.back().any(begun) {
            true => Cause {
                warp,
                rule: &rules::PARITY,
                why: "; no role has made progress yet, so the first wait of one of them must pass: a wait with parity 1 passes on a fresh mbarrier",
            },
            false => Cause {
                warp,
                rule: &rules::CYCLE,
                why: "; every role that could complete it waits for this role in turn",
            },
        }
    }

    /// Warps that wait for each other in a circle: one that a warp's wait leads to.
    fn circle(&self, from: usize) -> Vec<usize> {
        let mut way = vec![from];
        loop {
            let Some(&next) = self.awaited(way[way.len() - 1]).first() else {
                return way;
            };
            if let Some(start) = way.iter().position(|&w| w == next) {
                return way.split_off(start);
            }
            way.push(next);
        }
    }

    fn lack(&self, w: usize) -> Lack {
        match self.st.warps[w].status {
            Status::Bar { bar, .. } if self.st.bars[bar].arrivals > 0 => Lack::Arrivals(bar),
            Status::Bar { bar, .. } => Lack::Bytes(bar),
            Status::Meeting { meeting, .. } => {
                let each = self.env.kernel.named.len() + 1;
                match meeting == self.env.cluster_meeting() || meeting % each + 1 == each {
                    true => Lack::All(meeting),
                    false => Lack::Named(meeting),
                }
            }
            Status::Registers => Lack::Registers,
            _ => Lack::Products,
        }
    }

    /// Those who could still bring what a wait lacks: they wait as well.
    fn awaited(&self, w: usize) -> Vec<usize> {
        let lack = self.lack(w);
        let live = |v: usize| self.st.warps[v].status != Status::Done;
        let comes = |v: &usize| match lack {
            // Too many bytes have come: more will not help.
            Lack::Bytes(bar) if self.st.bars[bar].bytes < 0 => false,
            Lack::Arrivals(_) | Lack::Bytes(_) | Lack::Named(_) => {
                self.stand(*v, lack) == Some(Stand::Ahead)
            }
            Lack::All(meeting) => {
                let v = &self.st.warps[*v];
                let cluster = meeting == self.env.cluster_meeting();
                let there = matches!(v.status, Status::Meeting { meeting: m, .. } if m == meeting)
                    || cluster && v.at_cluster.is_some();
                v.status != Status::Done && !there && (cluster || v.cta == self.st.warps[w].cta)
            }
            Lack::Registers => {
                let (v, w) = (&self.st.warps[*v], &self.st.warps[w]);
                v.cta == w.cta && v.status != Status::Registers
            }
            Lack::Products => {
                let (v, w) = (&self.st.warps[*v], &self.st.warps[w]);
                (v.cta, v.index / 4) == (w.cta, w.index / 4) && v.commits < w.commits
            }
        };
        let all = 0..self.st.warps.len();
        all.filter(|&v| live(v)).filter(comes).collect()
    }

    /// The rule that a wait breaks that nobody brings anything to any more.
    fn broken(&self, w: usize) -> &'static Rule {
        let lack = self.lack(w);
        let left =
            (0..self.st.warps.len()).any(|v| matches!(self.stand(v, lack), Some(Stand::Left(_))));
        // The count of arrivals is right if it completed an earlier phase; a decision about the launch
        // shows that a trip count matters.
        let array = |bar: usize| self.env.array_of(bar);
        let is_sign = |s: &super::trace::Step| match (&s.what, lack) {
            (What::Decides(..), _) => true,
            (What::Passes { bar, phase }, Lack::Arrivals(lacking) | Lack::Bytes(lacking)) => {
                *phase >= 0 && array(*bar) == array(lacking)
            }
            _ => false,
        };
        let trips = left && self.st.trail.back().any(is_sign);
        match lack {
            Lack::Bytes(bar) if self.st.bars[bar].bytes < 0 => &rules::BYTES,
            _ if trips => &rules::TRIPS,
            Lack::Bytes(_) => &rules::BYTES,
            Lack::Arrivals(_) => &rules::ARRIVALS,
            Lack::Named(_) => &rules::COUNT,
            Lack::All(meeting) if meeting == self.env.cluster_meeting() => &rules::AGREE,
            Lack::All(_) | Lack::Products | Lack::Registers => &rules::CYCLE,
        }
    }

    /// Where a warp stands to what a wait lacks; nothing if it never brings that.
    fn stand(&self, w: usize, lack: Lack) -> Option<Stand> {
        let warp = &self.st.warps[w];
        let program = &self.env.programs[warp.role as usize];
        let brings = |pc: &usize| match &program.code[*pc] {
            Code::Act(a) => self.brings(w, &Facts::of(a.op), lack),
            _ => false,
        };
        let places: Vec<usize> = (0..program.code.len()).filter(brings).collect();
        let last = *places.last()?;
        let brought = |now: bool| {
            self.st
                .trail
                .back()
                .any(|s| s.warp as usize == w && self.is_brought(&s.what, lack, now))
        };
        if brought(true) {
            return Some(Stand::Came);
        }
        let left = Some(Stand::Left(program.locs[last]));
        if warp.status == Status::Done {
            return left;
        }
        let here = warp.pc as usize;
        let loops = self.loops(w);
        let mut idle = false;
        for pc in places {
            let mut around = loops.iter().filter(|l| (l.0..l.1).contains(&pc)).peekable();
            let inside = around.peek().is_some();
            let first = !around.any(|l| l.2);
            // What a round has done, the next will do; what it has not, the next will not.
            if pc > here && first || inside && brought(false) {
                return Some(Stand::Ahead);
            }
            idle |= inside;
        }
        match idle {
            true => None,
            false => left,
        }
    }

    /// The loops around a warp: first step, end, and whether a round is over.
    fn loops(&self, w: usize) -> Vec<(usize, usize, bool)> {
        let warp = &self.st.warps[w];
        let code = &self.env.programs[warp.role as usize].code;
        let of = |f: &Frame| {
            let Frame::Loop { end, rounds, .. } = f else {
                return None;
            };
            let starts = |c: &Code<'_>| matches!(c, Code::For { end: e, .. } | Code::While { end: e, .. } if e == end);
            let over = match rounds {
                Rounds::Term { round, .. } | Rounds::While { round, .. } => *round > 0,
                Rounds::Known | Rounds::Once => false,
            };
            Some((code.iter().position(starts)?, *end as usize, over))
        };
        warp.frames.iter().filter_map(of).collect()
    }

    /// Does an op of a warp bring what is lacking?
    fn brings(&self, w: usize, facts: &Facts, lack: Lack) -> bool {
        let cta = self.st.warps[w].cta;
        // An mbarrier of the array; a peer's only if it reaches for peers.
        let is = |at: &BarRef, bar: usize, far: bool| {
            at.bar.index() == self.env.array_of(bar)
                && (far || at.peer.is_some() || bar as u32 / self.env.bars == cta)
        };
        match lack {
            Lack::Arrivals(bar) => facts.syncs.iter().any(|s| match s {
                SyncOp::Arrive { bar: at, .. } | SyncOp::CopyArrive { bar: at, .. } => {
                    is(at, bar, false)
                }
                _ => false,
            }),
            Lack::Bytes(bar) => facts.touches.iter().any(|t| match &t.completion {
                Completion::Bytes(at) => is(at, bar, t.multicast.is_some()),
                _ => false,
            }),
            Lack::Named(meeting) => facts.syncs.iter().any(|s| match s {
                SyncOp::NamedSync { bar, .. }
                | SyncOp::NamedReduce { bar, .. }
                | SyncOp::NamedArrive { bar, .. } => {
                    self.env.named_meeting(cta, bar.index()) == meeting
                }
                _ => false,
            }),
            Lack::All(_) | Lack::Products | Lack::Registers => false,
        }
    }

    /// Did a step bring what is lacking: now, or in another phase?
    fn is_brought(&self, what: &What, lack: Lack, now: bool) -> bool {
        let same = |at: usize, phase: u32, bar: usize| match now {
            true => at == bar && phase == self.st.bars[bar].phase,
            false => self.env.array_of(at) == self.env.array_of(bar),
        };
        match (what, lack) {
            // Bytes may be expected without an arrival.
            (What::Arrives { times: 0, .. }, _) => false,
            (What::Arrives { bar, phase, .. }, Lack::Arrivals(of)) => same(*bar, *phase, of),
            (What::Copies { bar, phase, .. }, Lack::Bytes(of)) => same(*bar, *phase, of),
            (What::Comes { meeting, number }, Lack::Named(of)) => {
                *meeting == of && (!now || *number == self.st.meetings[of].over)
            }
            _ => false,
        }
    }

    /// What the current phase of an mbarrier lacks, as a sentence.
    fn lacks(&self, bar: usize) -> String {
        let b = &self.st.bars[bar];
        let (name, phase) = (self.env.bar_name(bar), as_told(i64::from(b.phase)));
        let arrivals = match (b.arrivals, b.count) {
            (0, _) => None,
            (1, 1) => Some("never receives its arrival".to_owned()),
            (n, count) if n == count => Some(format!("receives none of its {count} arrivals")),
            (n, count) => Some(format!("receives only {} of {count} arrivals", count - n)),
        };
        let of = format!("phase {phase} of {name}");
        match (arrivals, b.bytes, b.terms.is_empty()) {
            (None, n, true) if n > 0 => format!("{of} still expects {n} bytes"),
            (None, n, true) if n < 0 => {
                format!(
                    "the copies of {of} deliver {} bytes more than it expects",
                    -n
                )
            }
            (None, _, _) => format!("{of} expects another number of bytes than its copies deliver"),
            (Some(came), 0, true) => format!("{of} {came}"),
            (Some(came), n, true) if n > 0 => {
                format!("{of} {came}, and still expects {n} bytes")
            }
            (Some(came), n, true) => format!(
                "{of} {came}, and its copies deliver {} bytes more than it expects",
                -n
            ),
            (Some(came), _, false) => {
                format!("{of} {came}, and expects another number of bytes than its copies deliver")
            }
        }
    }

    /// The threads that have arrived at a barrier, as a sentence.
    fn absent(&self, meeting: usize) -> String {
        let m = &self.st.meetings[meeting];
        match meeting == self.env.cluster_meeting() {
            true => "not all CTAs of the cluster arrive".to_owned(),
            false => format!("only {} of {} threads arrive", m.came, m.expected),
        }
    }

    fn awaits(&self, w: usize, waits: &str) -> String {
        match self.st.warps[w].status {
            Status::Bar { bar, phase } => {
                let (name, phase) = (self.env.bar_name(bar), as_told(phase));
                match self.env.ring_slot(bar) {
                    Some((slot, true)) => {
                        format!("{waits} for {slot} to be filled ({name}, phase {phase})")
                    }
                    Some((slot, false)) => {
                        format!("{waits} for {slot} to be released ({name}, phase {phase})")
                    }
                    None => format!("{waits} on {name} (phase {phase})"),
                }
            }
            Status::Meeting { meeting, .. } => {
                format!("{waits} at {}", self.env.meeting_name(meeting))
            }
            Status::Products => {
                format!("{waits} for a wgmma that not all warps of its warpgroup issue")
            }
            Status::Registers => {
                format!("{waits} for registers (`setmaxnreg.inc`) that no role gives back first")
            }
            _ => format!("{waits} for a decision"),
        }
    }
}

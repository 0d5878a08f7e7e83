//! The end of a walk: everybody has ended, or nobody can go on.

use super::code::Code;
use super::record::{Record, Who};
use super::rules;
use super::state::{Status, as_told};
use super::term::{Arg, Node, Question};
use super::world::{Stop, World};
use crate::facts::Facts;
use crate::refusal::{Rule, Side};
use warpline_ir::{BarId, Completion, Loc, Sync};

impl World<'_, '_> {
    /// Judges a walk in which no warp can go on.
    pub(super) fn finish(&mut self) -> Result<(), Stop> {
        let stuck = |s: &Status| *s != Status::Done;
        match self.st.warps.iter().position(|w| stuck(&w.status)) {
            Some(_) => Err(self.deadlock()),
            None => self.leave(),
        }
    }

    /// Has somebody waited for an access that is not over when its statement is: of a bulk
    /// store the lane that issued it, of all else the CTA whose memory it is?
    pub(super) fn is_waited_for(&self, i: u32) -> bool {
        let r = self.st.records.get(i);
        let known = |w: usize| {
            let w = &self.st.warps[w];
            w.know.all.seen.has(i)
                || w.know.some.as_ref().is_some_and(|(_, k)| k.seen.has(i))
                || w.apart.contains(&i)
        };
        match r.who {
            Who::Store => known(r.warp as usize),
            _ => self.warps_of(r.cta).any(known),
        }
    }

    /// All warps have ended: does anything still reach into shared memory?
    fn leave(&mut self) -> Result<(), Stop> {
        let late = |(i, r): (u32, &Record)| {
            let rule = match r.who {
                _ if r.settled => return None,
                Who::Store => &rules::BULK,
                Who::Load { .. } | Who::Copy | Who::Product => &rules::ORDER,
                Who::Reach | Who::Lanes if r.warp / self.env.warps != r.cta => &rules::EXIT,
                _ => return None,
            };
            (!self.is_waited_for(i)).then_some((i, rule))
        };
        let found = self.st.records.live().find_map(late);
        if let Some((i, rule)) = found {
            let r = self.st.records.get(i).clone();
            let what = match rule.code {
                "R6.bulk" => "ends while its bulk store still reads shared memory: no wait for it lies before the end".to_owned(),
                "R8.exit" => format!("reaches into CTA {}, which may have left by then: nothing orders that before its end", r.cta),
                _ => format!(
                    "{} {}, and nobody waits for that before the CTA ends",
                    super::touch::verb(r.who, r.write),
                    self.env.place_name(r.tile, r.runs.start())
                ),
            };
            let trace = self.race_trace(&r, r.tile, r.runs.start());
            return Err(self.refuse_at(rule, r.warp, r.loc, what, Vec::new(), trace));
        }
        let partly = (0..self.st.bars.len()).find(|&b| {
            let b = &self.st.bars[b];
            b.count != 0 && (b.arrivals != b.count || b.bytes != 0 || !b.terms.is_empty())
        });
        match partly {
            None => Ok(()),
            Some(bar) => {
                let b = &self.st.bars[bar];
                let (warp, loc) = self.last_at(bar).unwrap_or((0, b.made));
                let text = format!(
                    "leaves {} with {} arrivals and {} bytes missing in phase {} when all have ended",
                    self.env.bar_name(bar),
                    b.arrivals,
                    b.bytes,
                    as_told(i64::from(b.phase))
                );
                let rule = match b.arrivals == b.count {
                    true => &rules::BYTES,
                    false => &rules::ARRIVALS,
                };
                let side = self.made_here(bar);
                let trace = self.bar_trace(&[bar]);
                Err(self.refuse_at(rule, warp, loc, text, vec![side], trace))
            }
        }
    }

    /// Who arrived last at an mbarrier.
    fn last_at(&self, bar: usize) -> Option<(u32, Loc)> {
        use super::trace::What;
        let mut back = self.st.trail.back();
        let step = back.find(|s| {
            matches!(s.what, What::Arrives { bar: b, .. } | What::Copies { bar: b, .. } if b == bar)
        })?;
        Some((step.warp, step.loc))
    }

    /// The arrays of mbarriers that a warp may still arrive at.
    fn still_arrives(&self, warp: usize) -> Vec<BarId> {
        let w = &self.st.warps[warp];
        if w.status == Status::Done {
            return Vec::new();
        }
        self.arrives(w.role as usize)
    }

    fn arrives(&self, role: usize) -> Vec<BarId> {
        let mut bars = Vec::new();
        for c in &self.env.programs[role].code {
            let Code::Act(a) = c else { continue };
            let facts = Facts::of(a.op);
            for s in &facts.syncs {
                if let Sync::Arrive { bar, .. } | Sync::CopyArrive { bar, .. } = s {
                    bars.push(bar.bar);
                }
            }
            for t in &facts.touches {
                if let Completion::Bytes(bar) = t.completion {
                    bars.push(bar.bar);
                }
            }
        }
        bars
    }

    /// Nobody can go on.
    fn deadlock(&mut self) -> Stop {
        let stuck: Vec<usize> = (0..self.st.warps.len())
            .filter(|&w| self.st.warps[w].status != Status::Done)
            .collect();
        let (first, rule) = stuck
            .iter()
            .map(|&w| (w, self.explains(w)))
            .min_by_key(|(_, rule)| match rule.code {
                "R2.bytes" => 0,
                "R1.arrivals" => 1,
                "R10.count" => 2,
                "R8.agree" => 3,
                "R4.trips" => 4,
                _ => 5,
            })
            .unwrap_or((0, &rules::CYCLE));
        let at = |w: usize| {
            let w = &self.st.warps[w];
            self.env.programs[w.role as usize].locs[w.pc as usize]
        };
        let mut others: Vec<Side> = Vec::new();
        let mut bars = Vec::new();
        for &w in &stuck {
            if let Status::Bar { bar, .. } = self.st.warps[w].status {
                bars.push(bar);
            }
            let side = Side {
                text: format!("{} {}", self.who(w as u32), self.awaits(w)),
                role: Some(self.role_name(w as u32)),
                at: self.env.kernel.locs.author(at(w)),
            };
            let known = others
                .iter()
                .any(|o| o.at == side.at && o.role == side.role);
            if w != first && !known {
                others.push(side);
            }
        }
        bars.dedup();
        let detail = match self.st.warps[first].status {
            Status::Bar { bar, .. } => self.lacks(bar),
            _ => String::new(),
        };
        let text = format!("{} for ever{detail}", self.awaits(first));
        if let Status::Bar { bar, .. } = self.st.warps[first].status
            && matches!(rule.code, "R1.arrivals" | "R2.bytes")
        {
            others.insert(0, self.made_here(bar));
            if let Some((w, loc)) = self.last_at(bar) {
                others.insert(
                    0,
                    Side {
                        text: format!("{} arrives last", self.who(w)),
                        role: Some(self.role_name(w)),
                        at: self.env.kernel.locs.author(loc),
                    },
                );
            }
        }
        let trace = self.bar_trace(&bars);
        self.refuse_at(rule, first as u32, at(first), text, others, trace)
    }

    fn lacks(&self, bar: usize) -> String {
        let b = &self.st.bars[bar];
        let bytes = match (b.bytes, b.terms.is_empty()) {
            (0, true) => String::new(),
            (n, true) if n > 0 => format!(" and {n} more bytes"),
            (n, true) => format!(" and {} bytes fewer than came", -n),
            _ => " and bytes that are not the ones expected".to_owned(),
        };
        format!(
            ": phase {} has {} of {} arrivals{bytes} to come",
            as_told(i64::from(b.phase)),
            b.arrivals,
            b.count
        )
    }

    fn awaits(&self, w: usize) -> String {
        match self.st.warps[w].status {
            Status::Bar { bar, phase } => {
                let phase = as_told(phase);
                format!("waits for {}, phase {phase}", self.env.bar_name(bar))
            }
            Status::Meeting { meeting, .. } => {
                format!("waits at {}", self.env.meeting_name(meeting))
            }
            Status::Products => {
                "waits for a wgmma that not all warps of its warpgroup issue".to_owned()
            }
            _ => "does not go on".to_owned(),
        }
    }

    /// The rule that explains why a warp waits for ever.
    fn explains(&self, w: usize) -> &'static Rule {
        match self.st.warps[w].status {
            Status::Bar { bar, .. } => {
                let b = &self.st.bars[bar];
                if b.arrivals == 0 {
                    return &rules::BYTES;
                }
                let array = BarId(self.env.array_of(bar) as u32);
                let come = (0..self.st.warps.len()).any(|w| self.still_arrives(w).contains(&array));
                let ever = (0..self.env.programs.len()).any(|r| self.arrives(r).contains(&array));
                match (come, ever) {
                    (true, _) if b.arrivals != b.count => &rules::ARRIVALS,
                    (true, _) => &rules::CYCLE,
                    (false, true) if b.arrivals != b.count => &rules::ARRIVALS,
                    (false, true) => &rules::TRIPS,
                    (false, false) => &rules::ARRIVALS,
                }
            }
            Status::Meeting { meeting, .. } if meeting == self.env.cluster_meeting() => {
                &rules::AGREE
            }
            Status::Meeting { .. } => {
                let ended = self.st.warps.iter().any(|w| w.status == Status::Done);
                let others = self
                    .st
                    .warps
                    .iter()
                    .any(|w| !matches!(w.status, Status::Done | Status::Meeting { .. }));
                match (others, ended) {
                    (true, _) => &rules::CYCLE,
                    (false, true) => &rules::TRIPS,
                    (false, false) => &rules::COUNT,
                }
            }
            _ => &rules::CYCLE,
        }
    }

    /// A decision, in words.
    pub(super) fn decision(&self, q: Question, yes: bool) -> String {
        match q {
            Question::More { of, than } => {
                let count = match self.env.terms.node(of) {
                    Node::Loop { count, .. } => self.name(Arg::Sym(super::term::Sym {
                        term: count,
                        off: 0,
                    })),
                    _ => "a loop".to_owned(),
                };
                match yes {
                    true => format!("{count} is more than {than}"),
                    false => format!("{count} is {than}"),
                }
            }
            Question::Is(term) => {
                let not = if yes { "" } else { "not " };
                match self.env.terms.node(term) {
                    Node::Less(a, b) => match yes {
                        true => format!("{} < {}", self.name(a), self.name(b)),
                        false => format!("{} >= {}", self.name(a), self.name(b)),
                    },
                    Node::Equal(a, b) => match yes {
                        true => format!("{} == {}", self.name(a), self.name(b)),
                        false => format!("{} != {}", self.name(a), self.name(b)),
                    },
                    _ => format!("a condition does {not}hold"),
                }
            }
        }
    }

    /// An operand, as an author would write it.
    fn name(&self, a: Arg) -> String {
        let (term, off) = match a {
            Arg::Num(x) => return x.to_string(),
            Arg::Sym(s) => (s.term, s.off),
            Arg::Pred { .. } => return "a condition".to_owned(),
        };
        let base = match self.env.terms.node(term) {
            Node::Param(p, _) => self.env.kernel.params[p as usize].name.clone(),
            Node::Special(name, _) => name,
            Node::Fresh(n, _) => format!("value {n}"),
            Node::Op(_, shape, args) => {
                let list: Vec<String> = args.iter().map(|&a| self.name(a)).collect();
                use super::term::Shape;
                match (shape, &list[..]) {
                    (Shape::Add, [a, b]) => format!("({a} + {b})"),
                    (Shape::Mul, [a, b]) => format!("{a}*{b}"),
                    (Shape::Div, [a, b]) => format!("{a}/{b}"),
                    (Shape::Rem, [a, b]) => format!("{a}%{b}"),
                    (Shape::Min, [a, b]) => format!("min({a}, {b})"),
                    (Shape::Max, [a, b]) => format!("max({a}, {b})"),
                    _ => format!("f({})", list.join(", ")),
                }
            }
            Node::Rounds(a, b, _) => {
                format!("the rounds from {} to {}", self.name(a), self.name(b))
            }
            Node::Loop { count, .. } => self.name(Arg::Sym(super::term::Sym {
                term: count,
                off: 0,
            })),
            Node::Counter { round, .. } => format!("round {round}"),
            _ => "a value".to_owned(),
        };
        match off {
            0 => base,
            n if n > 0 => format!("{base} + {n}"),
            n => format!("{base} - {}", -n),
        }
    }
}

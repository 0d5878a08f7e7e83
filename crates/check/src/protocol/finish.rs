//! The end of a walk: everybody has ended, or nobody can go on; and decisions, in words.

use super::record::{Record, Who};
use super::rules;
use super::state::{Status, as_told};
use super::world::{Stop, World};
use crate::symbolic::{Arg, Node, Question, Sym, TermId};
use warpline_ir::Loc;

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
                || w.know.some.iter().any(|(_, k)| k.seen.has(i))
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
    pub(super) fn last_at(&self, bar: usize) -> Option<(u32, Loc)> {
        use super::trace::What;
        let mut back = self.st.trail.back();
        let step = back.find(|s| {
            matches!(s.what, What::Arrives { bar: b, .. } | What::Copies { bar: b, .. } if b == bar)
        })?;
        Some((step.warp, step.loc))
    }

    /// A decision, in words.
    pub(super) fn decision(&self, q: Question, yes: bool) -> String {
        match q {
            Question::More { of, than } => match (yes, than) {
                (true, _) => format!("{} > {than}", self.term(of)),
                (false, _) => format!("{} == {than}", self.term(of)),
            },
            Question::Leaves {
                term,
                modulus,
                residue,
            } => {
                let is = if yes { "==" } else { "!=" };
                format!("{} % {modulus} {is} {residue}", self.term(term))
            }
            Question::Is(term) => match (self.env.terms.node(term), yes) {
                (Node::Less(t, k), true) => format!("{} < {k}", self.term(t)),
                (Node::Less(t, k), false) => format!("{} >= {k}", self.term(t)),
                (Node::Equal(t, k), true) => format!("{} == {k}", self.term(t)),
                (Node::Equal(t, k), false) => format!("{} != {k}", self.term(t)),
                (_, true) => "a condition holds".to_owned(),
                (_, false) => "a condition does not hold".to_owned(),
            },
        }
    }

    fn term(&self, term: TermId) -> String {
        self.name(Arg::Sym(Sym { term, off: 0 }))
    }

    /// An operand, as an author would write it.
    pub(super) fn name(&self, a: Arg) -> String {
        let (term, off) = match a {
            Arg::Num(x) => return x.to_string(),
            Arg::Sym(s) => (s.term, s.off),
            Arg::Pred { .. } => return "a condition".to_owned(),
        };
        let sym = |s: Sym| match s.off {
            0 => self.name(Arg::Sym(s)),
            _ => format!("({})", self.name(Arg::Sym(s))),
        };
        let base = match self.env.terms.node(term) {
            Node::Param(p) => self.env.kernel.params[p as usize].name.clone(),
            Node::Special(name) => name.to_string(),
            Node::Fresh(n) => format!("value {n}"),
            Node::Sum(list) => {
                let mut text = String::new();
                for &(t, k) in list.iter() {
                    let (sign, k) = match (text.is_empty(), k < 0) {
                        (true, false) => ("", k),
                        (true, true) => ("-", -k),
                        (false, false) => (" + ", k),
                        (false, true) => (" - ", -k),
                    };
                    text.push_str(sign);
                    if k != 1 {
                        text.push_str(&format!("{k} * "));
                    }
                    text.push_str(&self.term(t));
                }
                text
            }
            Node::Product(list) => {
                let list: Vec<String> = list.iter().map(|&t| self.term(t)).collect();
                list.join(" * ")
            }
            Node::Div(s, k) => format!("{} / {k}", sym(s)),
            Node::Rem(s, k) => format!("{} % {k}", sym(s)),
            Node::Quotient(a, b) => format!("{} / {}", self.name(a), self.name(b)),
            Node::Remainder(a, b) => format!("{} % {}", self.name(a), self.name(b)),
            Node::Least(a, b) => format!("min({}, {})", self.name(a), self.name(b)),
            Node::Greatest(a, b) => format!("max({}, {})", self.name(a), self.name(b)),
            Node::Wrap(s, ty) => format!("{} as {ty}", sym(s)),
            Node::Global(at, _) => format!("*({})", self.name(at)),
            Node::Copied(_, at, _) => format!("the copied word at byte {}", self.name(at)),
            Node::Function(_, args, _) => {
                let list: Vec<String> = args.iter().map(|&a| self.name(a)).collect();
                format!("f({})", list.join(", "))
            }
            Node::Iterations(a, b, _) => {
                format!("the iterations of {}..{}", self.name(a), self.name(b))
            }
            Node::Loop { count, .. } => self.term(count),
            Node::Counter { .. } => "the loop's counter".to_owned(),
            _ => "a value".to_owned(),
        };
        match off {
            0 => base,
            n if n > 0 => format!("{base} + {n}"),
            n => format!("{base} - {}", -n),
        }
    }
}

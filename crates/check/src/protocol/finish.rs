//! The end of a run, in which all warps have ended or no warp can continue; decisions in words.

use super::record::{Record, Who};
use super::rules;
use super::state::{Status, as_told};
use super::world::{Stop, World};
use crate::diagnostic::Message;
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
            let place = self.env.place_name(r.tile, r.runs.start());
            let verb = super::touch::verb(r.who, r.write);
            let (message, help) = match rule.code {
                "R6.bulk" => (
                    Message::new(format!("exits while a bulk store that it issued may still read {place}"))
                        .title("exit during a bulk store")
                        .label("issues the bulk store here")
                        .cause("the exit of the CTA frees its shared memory, and no `bulk_wait_read` of the issuing thread precedes the exit"),
                    Some("call `bulk_wait_read(0)` in the thread that issued the store, before it exits"),
                ),
                "R8.exit" => (
                    Message::new(format!("accesses CTA {}, which may have exited by then", r.cta))
                        .label(format!("reaches into CTA {} here", r.cta))
                        .cause(format!("no cluster barrier orders the access before the exit of CTA {}", r.cta)),
                    None,
                ),
                _ => (
                    Message::new(format!("{verb} {place}, and no thread waits for it before the CTA exits"))
                        .title("exit during an asynchronous operation")
                        .label(format!("{verb} {place} here"))
                        .cause("the exit of the CTA frees its shared memory while the operation may still run"),
                    Some("wait for the operation before the kernel ends"),
                ),
            };
            let trace = self.race_trace(&r, r.tile, r.runs.start());
            let mut stop = self.refuse_at(rule, r.warp, r.loc, message, Vec::new(), trace);
            stop.diagnostic.help = help.map(str::to_owned);
            return Err(stop);
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
                let arrivals = match b.arrivals == b.count {
                    true => None,
                    false => Some(format!("lacks {} of {} arrivals", b.arrivals, b.count)),
                };
                let bytes = match b.bytes {
                    0 if b.terms.is_empty() => None,
                    0 => Some("expects another number of bytes than its copies deliver".into()),
                    n if n < 0 => Some(format!("receives {} bytes more than it expects", -n)),
                    n => Some(format!("lacks {n} bytes")),
                };
                let faults: Vec<String> = [arrivals, bytes].into_iter().flatten().collect();
                let text = Message::new(format!(
                    "leaves {} incomplete at the end of the kernel: phase {} {}",
                    self.env.bar_name(bar),
                    as_told(i64::from(b.phase)),
                    faults.join(" and ")
                ))
                .label("arrives last here");
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
            Question::RunsMoreThan { of, than } => {
                let iterations = match than {
                    1 => "iteration",
                    _ => "iterations",
                };
                match (self.loop_name(of), yes, than) {
                    (Some(name), true, 0) => format!("{name} runs at least once"),
                    (Some(name), false, 0) => format!("{name} does not run"),
                    (Some(name), true, _) => format!("{name} runs more than {than} {iterations}"),
                    (Some(name), false, _) => format!("{name} runs exactly {than} {iterations}"),
                    (None, true, _) => format!("`{}` > {than}", self.term(of)),
                    (None, false, _) => format!("`{}` == {than}", self.term(of)),
                }
            }
            Question::HasResidue {
                term,
                modulus,
                residue,
            } => {
                let is = if yes { "==" } else { "!=" };
                format!("`{}` % {modulus} {is} {residue}", self.term(term))
            }
            Question::Holds(term) => match (self.env.terms.node(term), yes) {
                (Node::Less(t, k), true) => format!("`{}` < {k}", self.term(t)),
                (Node::Less(t, k), false) => format!("`{}` >= {k}", self.term(t)),
                (Node::Equal(t, k), true) => format!("`{}` == {k}", self.term(t)),
                (Node::Equal(t, k), false) => format!("`{}` != {k}", self.term(t)),
                (_, true) => "the condition of the branch here is true".to_owned(),
                (_, false) => "the condition of the branch here is false".to_owned(),
            },
        }
    }

    /// The loop that a term counts: ``the loop `0..tiles` ``.
    fn loop_name(&self, term: TermId) -> Option<String> {
        match self.env.terms.node(term) {
            Node::Loop { count, .. } => Some(match self.env.terms.node(count) {
                Node::Iterations(..) => self.loop_name(count)?,
                _ => format!("the loop `0..{}`", self.term(count)),
            }),
            Node::Iterations(a, b, _) => {
                Some(format!("the loop `{}..{}`", self.name(a), self.name(b)))
            }
            _ => None,
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
            Node::Special(name) => special_name(&name),
            Node::Fresh(n) => format!("unknown value {n}"),
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
            Node::Min(a, b) => format!("min({}, {})", self.name(a), self.name(b)),
            Node::Max(a, b) => format!("max({}, {})", self.name(a), self.name(b)),
            Node::Wrap(s, ty) => format!("{} as {ty}", sym(s)),
            Node::Global(at, _) => format!("*({})", self.name(at)),
            Node::Copied(_, at, _) => format!("the copied word at byte {}", self.name(at)),
            Node::Function(_, args, _) => {
                let list: Vec<String> = args.iter().map(|&a| self.name(a)).collect();
                format!("f({})", list.join(", "))
            }
            Node::Iterations(a, b, _) => {
                format!("trip count of {}..{}", self.name(a), self.name(b))
            }
            Node::Loop { count, .. } => self.term(count),
            Node::Counter { .. } => "the loop counter".to_owned(),
            _ => "a value".to_owned(),
        };
        match off {
            0 => base,
            n if n > 0 => format!("{base} + {n}"),
            n => format!("{base} - {}", -n),
        }
    }
}

/// A grid index or extent, as the builder names it.
fn special_name(name: &str) -> String {
    let Some((what, axis)) = name.split_once('.') else {
        return name.to_owned();
    };
    let function = match what {
        "cta" => "cta_id",
        "grid" => "grid_ctas",
        "cluster" => "cluster_id",
        "clusters" => "grid_clusters",
        _ => return name.to_owned(),
    };
    match axis {
        "0" => format!("{function}()"),
        "1" => format!("{function}_along(Axis::Y)"),
        _ => format!("{function}_along(Axis::Z)"),
    }
}

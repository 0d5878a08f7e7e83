//! The two lists of acts, held against each other from first to last.
//!
//! The printer writes statements in program order, so that both lists are the
//! same, act by act. Where they differ, the comparison looks for the nearest
//! place from which they agree again, and goes on there: one lost line is one
//! difference.

use crate::act::{Act, TARGET};
use crate::mismatch::Mismatch;
use crate::program::Meant;
use crate::ptx::Said;
use warpline_ir::Kernel;

/// How far a comparison looks for the place where both sides agree again.
const WINDOW: usize = 12;
/// How many acts must agree there.
const SURE: usize = 3;
/// How many differences are enough.
const MOST: usize = 16;

/// Everything on which the two sides differ, up to a number of differences.
pub(crate) fn compare(kernel: &Kernel, meant: &[Meant<'_>], said: &[Said<'_>]) -> Vec<Mismatch> {
    let mut sides = Sides {
        kernel,
        meant,
        said,
        found: Vec::new(),
    };
    let (mut i, mut j) = (0, 0);
    while (i < meant.len() || j < said.len()) && sides.found.len() < MOST {
        (i, j) = sides.step(i, j);
    }
    // A label too many or too few moves the targets of all branches over it.
    let (echoes, mut found): (Vec<_>, _) = sides.found.into_iter().partition(|(_, echo)| *echo);
    found.extend(echoes);
    found.into_iter().map(|(mismatch, _)| mismatch).collect()
}

struct Sides<'s, 'a> {
    kernel: &'s Kernel,
    meant: &'s [Meant<'a>],
    said: &'s [Said<'a>],
    /// What differs; and is it but the target of a branch?
    found: Vec<(Mismatch, bool)>,
}

impl<'a> Sides<'_, 'a> {
    /// Compares from a place in each list on; gives the places to go on from.
    fn step(&mut self, i: usize, j: usize) -> (usize, usize) {
        if self.agree(i, j) {
            return (i + 1, j + 1);
        }
        if self.agree(i, j + 1) && self.agree(i + 1, j) {
            let (first, second) = (&self.meant[i].act, &self.meant[i + 1].act);
            let text = match first.kind == second.kind {
                true => format!(
                    "{} comes before the one that the program has first",
                    first.kind
                ),
                false => format!(
                    "{} comes before {}, and in the program after it",
                    second.kind, first.kind
                ),
            };
            self.differ(Some(i + 1), Some(j), text);
            return (i + 2, j + 2);
        }
        let same_kind = |a: usize, b: usize| {
            let (meant, said) = (self.meant.get(i + a), self.said.get(j + b));
            meant
                .zip(said)
                .is_some_and(|(m, s)| m.act.kind == s.act.kind)
        };
        // The nearest place where both agree again. The same act with another
        // fact comes before a line too few or one too many.
        let other_fact = same_kind(0, 0).then_some((1, 1));
        let apart = (1..=2 * WINDOW).flat_map(|sum| (0..=sum).map(move |a| (a, sum - a)));
        let found = other_fact
            .into_iter()
            .chain(apart)
            .filter(|&(a, b)| a <= WINDOW && b <= WINDOW)
            .find(|&(a, b)| self.go_on(i + a, j + b));
        let (lost, extra) = match found {
            None => (1.min(self.meant.len() - i), 1.min(self.said.len() - j)),
            Some(found) => found,
        };
        let paired = (0..lost.min(extra))
            .take_while(|&n| same_kind(n, n))
            .count();
        for n in 0..paired {
            self.facts(i + n, j + n);
        }
        for n in paired..lost {
            let kind = self.meant[i + n].act.kind;
            let text = format!("{kind} stands in the program and not in the PTX");
            self.differ(Some(i + n), None, text);
        }
        for n in paired..extra {
            let kind = self.said[j + n].act.kind;
            let text = format!("{kind} stands in the PTX and not in the program");
            self.differ(None, Some(j + n), text);
        }
        (i + lost, j + extra)
    }

    fn agree(&self, i: usize, j: usize) -> bool {
        let both = self.meant.get(i).zip(self.said.get(j));
        both.is_some_and(|(m, s)| m.act.is_done_by(&s.act))
    }

    /// Do both agree for a while from here on, or end here?
    fn go_on(&self, i: usize, j: usize) -> bool {
        let left = self.meant.len().saturating_sub(i);
        if i >= self.meant.len() || j >= self.said.len() {
            return i == self.meant.len() && j == self.said.len();
        }
        (0..SURE.min(left)).all(|n| self.agree(i + n, j + n))
    }

    /// One act, with another fact.
    fn facts(&mut self, i: usize, j: usize) {
        let (meant, said): (&Act<'a>, &Act<'a>) = (&self.meant[i].act, &self.said[j].act);
        if meant.kind != said.kind {
            return;
        }
        let target = |(name, _, _): (&str, _, _)| name == TARGET;
        let echo = meant.differences(said).all(target);
        let all: Vec<_> = meant
            .differences(said)
            .map(|(name, program, ptx)| {
                format!("{name} is {program} in the program and {ptx} in the PTX")
            })
            .collect();
        if !all.is_empty() {
            let text = format!("{}: {}", meant.kind, all.join(", "));
            self.push(Some(i), Some(j), text, echo);
        }
    }

    fn differ(&mut self, i: Option<usize>, j: Option<usize>, text: String) {
        self.push(i, j, text, false);
    }

    fn push(&mut self, i: Option<usize>, j: Option<usize>, text: String, echo: bool) {
        let meant = i.map(|i| &self.meant[i]);
        let locs = &self.kernel.locs;
        let mismatch = Mismatch {
            text,
            at: meant.and_then(|m| locs.author(m.at?)),
            role: meant
                .and_then(|m| self.kernel.roles.get(m.role?.index()))
                .map(|r| r.name.clone()),
            line: j.map(|j| self.said[j].line.shown()),
        };
        self.found.push((mismatch, echo));
    }
}

//! Comparison of the two action lists.
//!
//! The printer writes statements in program order, so both lists must be equal. At a difference,
//! the comparison continues at the nearest position from which the lists agree again. So one lost
//! line is one difference.

use crate::action::{Action, TARGET};
use crate::mismatch::Mismatch;
use crate::program::ProgramAction;
use crate::ptx::PtxAction;
use warpline_ir::Kernel;

/// The maximum distance to the position where both sides agree again.
const WINDOW: usize = 12;
/// The number of consecutive actions that must agree there.
const RESYNC_ACTIONS: usize = 3;
/// The maximum number of reported differences.
const MAX_MISMATCHES: usize = 16;

/// Returns the differences between the two sides, up to [`MAX_MISMATCHES`].
pub(crate) fn compare(
    kernel: &Kernel,
    program: &[ProgramAction<'_>],
    ptx: &[PtxAction<'_>],
) -> Vec<Mismatch> {
    let mut comparison = Comparison {
        kernel,
        program,
        ptx,
        found: Vec::new(),
    };
    let (mut i, mut j) = (0, 0);
    while (i < program.len() || j < ptx.len()) && comparison.found.len() < MAX_MISMATCHES {
        (i, j) = comparison.step(i, j);
    }
    // An extra or missing label shifts the targets of all branches across it, so mismatches of
    // targets alone come last.
    let (shifted, mut found): (Vec<_>, _) = comparison
        .found
        .into_iter()
        .partition(|(_, target_only)| *target_only);
    found.extend(shifted);
    found.into_iter().map(|(mismatch, _)| mismatch).collect()
}

struct Comparison<'s, 'a> {
    kernel: &'s Kernel,
    program: &'s [ProgramAction<'a>],
    ptx: &'s [PtxAction<'a>],
    /// The mismatches, and whether each is only a branch target.
    found: Vec<(Mismatch, bool)>,
}

impl<'a> Comparison<'_, 'a> {
    /// Compares at one position of each list; returns the next positions.
    fn step(&mut self, i: usize, j: usize) -> (usize, usize) {
        if self.agree(i, j) {
            return (i + 1, j + 1);
        }
        if self.agree(i, j + 1) && self.agree(i + 1, j) {
            let (first, second) = (&self.program[i].action, &self.program[i + 1].action);
            let text = match first.kind == second.kind {
                true => format!(
                    "two {} actions are in the wrong order in the PTX",
                    first.kind
                ),
                false => format!(
                    "{} is before {} in the PTX but after it in the program",
                    second.kind, first.kind
                ),
            };
            self.report(Some(i + 1), Some(j), text);
            return (i + 2, j + 2);
        }
        let same_kind = |a: usize, b: usize| {
            let (program, ptx) = (self.program.get(i + a), self.ptx.get(j + b));
            program
                .zip(ptx)
                .is_some_and(|(program, ptx)| program.action.kind == ptx.action.kind)
        };
        // Find the nearest position where both sides agree again. A changed fact has precedence over
        // a missing or extra line.
        let changed_fact = same_kind(0, 0).then_some((1, 1));
        let offsets = (1..=2 * WINDOW).flat_map(|sum| (0..=sum).map(move |a| (a, sum - a)));
        let found = changed_fact
            .into_iter()
            .chain(offsets)
            .filter(|&(a, b)| a <= WINDOW && b <= WINDOW)
            .find(|&(a, b)| self.resyncs(i + a, j + b));
        let (lost, extra) = match found {
            None => (1.min(self.program.len() - i), 1.min(self.ptx.len() - j)),
            Some(found) => found,
        };
        let paired = (0..lost.min(extra))
            .take_while(|&n| same_kind(n, n))
            .count();
        for n in 0..paired {
            self.report_facts(i + n, j + n);
        }
        for n in paired..lost {
            let kind = self.program[i + n].action.kind;
            let text = format!("{kind} is in the program but not in the PTX");
            self.report(Some(i + n), None, text);
        }
        for n in paired..extra {
            let kind = self.ptx[j + n].action.kind;
            let text = format!("{kind} is in the PTX but not in the program");
            self.report(None, Some(j + n), text);
        }
        (i + lost, j + extra)
    }

    fn agree(&self, i: usize, j: usize) -> bool {
        let pair = self.program.get(i).zip(self.ptx.get(j));
        pair.is_some_and(|(program, ptx)| program.action.matches_ptx(&ptx.action))
    }

    /// Returns whether both sides agree from these positions on, or end there.
    fn resyncs(&self, i: usize, j: usize) -> bool {
        let remaining = self.program.len().saturating_sub(i);
        if i >= self.program.len() || j >= self.ptx.len() {
            return i == self.program.len() && j == self.ptx.len();
        }
        (0..RESYNC_ACTIONS.min(remaining)).all(|n| self.agree(i + n, j + n))
    }

    /// Reports the facts on which two actions of one kind differ.
    fn report_facts(&mut self, i: usize, j: usize) {
        let (program, ptx): (&Action<'a>, &Action<'a>) =
            (&self.program[i].action, &self.ptx[j].action);
        if program.kind != ptx.kind {
            return;
        }
        let is_target = |(name, _, _): (&str, _, _)| name == TARGET;
        let target_only = program.differences(ptx).all(is_target);
        let texts: Vec<_> = program
            .differences(ptx)
            .map(|(name, program, ptx)| {
                format!("{name} is {program} in the program but {ptx} in the PTX")
            })
            .collect();
        if !texts.is_empty() {
            let text = format!("{}: {}", program.kind, texts.join(", "));
            self.push(Some(i), Some(j), text, target_only);
        }
    }

    fn report(&mut self, i: Option<usize>, j: Option<usize>, text: String) {
        self.push(i, j, text, false);
    }

    fn push(&mut self, i: Option<usize>, j: Option<usize>, text: String, target_only: bool) {
        let program = i.map(|i| &self.program[i]);
        let locs = &self.kernel.locs;
        let mismatch = Mismatch {
            text,
            at: program.and_then(|p| locs.author(p.at?)),
            role: program
                .and_then(|p| self.kernel.roles.get(p.role?.index()))
                .map(|r| r.name.clone()),
            line: j.map(|j| self.ptx[j].line.to_ptx_line()),
        };
        self.found.push((mismatch, target_only));
    }
}

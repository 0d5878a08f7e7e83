//! Loops of different roles that correspond, because they use the same mbarriers.
//!
//! Roles that pass tiles to each other loop over the same count. One role may run several loops
//! over a count, and another role only the second of them; the mbarriers inside show which loops
//! correspond. Among loops of one nesting depth, the mbarrier arrays that one loop uses form a
//! *group*. A loop belongs to the group of its arrays, or to group 0 if it uses none.

use super::code::{Code, Program};
use crate::facts::Facts;
use std::collections::BTreeMap;
use warpline_ir::{BarRef, Completion, Kernel, Operand, RegId, SyncOp};

/// The groups of a kernel.
#[derive(Default)]
pub(super) struct Groups {
    /// By nesting depth and array: an array of the same group.
    with: Vec<Vec<usize>>,
    /// By role and first step of a loop.
    loops: Vec<BTreeMap<u32, u32>>,
    /// By register: an array of the barriers that it names.
    numbers: Vec<Option<usize>>,
}

impl Groups {
    pub(super) fn of(kernel: &Kernel, programs: &[Program<'_>]) -> Self {
        let mut with: Vec<Vec<usize>> = Vec::new();
        let mut found: Vec<BTreeMap<u32, (usize, usize)>> = vec![BTreeMap::new(); programs.len()];
        for (role, p) in programs.iter().enumerate() {
            let mut around: Vec<u32> = Vec::new();
            for (pc, code) in (0..).zip(&p.code) {
                match code {
                    Code::For { .. } | Code::While { .. } => around.push(pc),
                    Code::ForNext { .. } | Code::WhileNext { .. } => {
                        around.pop();
                    }
                    Code::Act(a) => {
                        let bars = Facts::of(a.op).barriers();
                        let loops = around
                            .iter()
                            .filter(|&&pc| !is_counted(&p.code[pc as usize]));
                        for (depth, first) in loops.enumerate() {
                            if with.len() <= depth {
                                with.push((0..kernel.barriers.len()).collect());
                            }
                            for bar in &bars {
                                let array = bar.bar.index();
                                let other = found[role].entry(*first).or_insert((depth, array));
                                join(&mut with[depth], array, other.1);
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        let loops = found.into_iter().map(|loops| {
            let of = |(pc, (depth, array)): (u32, (usize, usize))| {
                (pc, root(&with[depth], array) as u32 + 1)
            };
            loops.into_iter().map(of).collect()
        });
        Self {
            loops: loops.collect(),
            numbers: numbers(kernel, programs),
            with,
        }
    }

    /// The group of the loop that starts at a step.
    pub(super) fn of_loop(&self, role: u32, pc: u32) -> u32 {
        self.loops[role as usize].get(&pc).copied().unwrap_or(0)
    }

    /// The group, inside so many loops, of the barriers that a register names, itself or through
    /// others.
    pub(super) fn of_number(&self, r: RegId, depth: u32) -> u32 {
        let (Some(array), Some(with)) = (self.numbers[r.index()], self.with.get(depth as usize))
        else {
            return 0;
        };
        root(with, array) as u32 + 1
    }
}

/// Does the program alone say how often a loop runs?
fn is_counted(code: &Code<'_>) -> bool {
    match code {
        Code::For { from, to, step, .. } => {
            [from, to, step].into_iter().all(|o| o.as_imm().is_some())
        }
        _ => false,
    }
}

fn root(with: &[usize], mut i: usize) -> usize {
    while with[i] != i {
        i = with[i];
    }
    i
}

fn join(with: &mut [usize], a: usize, b: usize) {
    let (a, b) = (root(with, a), root(with, b));
    let (least, most) = (a.min(b), a.max(b));
    with[most] = least;
}

/// By register: the first array of the barriers whose index or parity follows from it.
fn numbers(kernel: &Kernel, programs: &[Program<'_>]) -> Vec<Option<usize>> {
    const NONE: usize = usize::MAX;
    let mut of = vec![NONE; kernel.regs.len()];
    let acts = || {
        let steps = programs.iter().flat_map(|p| &p.code);
        steps.filter_map(|c| match c {
            Code::Act(a) => Some(a),
            _ => None,
        })
    };
    let name = |of: &mut Vec<usize>, o: Operand, bar: &BarRef| {
        if let Operand::Reg(r) = o {
            let g = &mut of[r.index()];
            *g = (*g).min(bar.bar.index());
        }
    };
    for a in acts() {
        let facts = Facts::of(a.op);
        for s in &facts.syncs {
            if let SyncOp::Wait { bar, parity, .. } | SyncOp::Test { bar, parity, .. } = s {
                name(&mut of, *parity, bar);
            }
        }
        for bar in facts.barriers() {
            name(&mut of, bar.index, &bar);
        }
        for t in &facts.touches {
            if let Completion::Bytes(bar) = t.completion {
                name(&mut of, bar.index, &bar);
            }
        }
    }
    loop {
        let before = of.clone();
        for a in acts().filter(|a| a.pure) {
            let least = a.defs.iter().map(|r| of[r.index()]).min().unwrap_or(NONE);
            for r in a.args.iter().filter_map(|o| o.as_reg()) {
                let g = &mut of[r.index()];
                *g = (*g).min(least);
            }
        }
        if of == before {
            break;
        }
    }
    of.into_iter().map(|g| (g != NONE).then_some(g)).collect()
}

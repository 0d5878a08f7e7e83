//! Explores all interleavings, state by state.

use super::code::{Inst, is_visible};
use super::env::LaunchEnv;
use super::machine::{WarpMachine, lanes_of};
use super::state::State;
use super::sync::{complete_cluster_phase, complete_in_flight, release_cta_barrier};
use crate::launch::FuzzLaunchValues;
use crate::plan::FuzzPlan;
use rustc_hash::FxHashMap;
use warpline_ir::{ExecStatus, Fault, FaultKind, Kernel, Machine, Operand, RegId};

/// The maximum number of statements that a warp runs between two visible ops.
const MAX_REGION: usize = 20_000;

/// The result of an exploration.
#[derive(Clone, PartialEq, Debug)]
pub enum Exploration {
    /// No interleaving fails; the number of states.
    NoFault(usize),
    /// An interleaving fails: the kind of fault, and its description.
    Fault(String, String),
    /// The kernel has more states than the limit.
    TooLarge,
    /// The machine does not support the kernel.
    Unsupported,
}

/// Explores all interleavings of a kernel for one launch, up to `limit` states.
pub fn explore(
    plan: &FuzzPlan,
    kernel: &Kernel,
    values: &FuzzLaunchValues,
    limit: usize,
) -> Exploration {
    let mut states = 0;
    for elects_highest in [false, true] {
        let Some((env, first)) = LaunchEnv::new(plan, kernel, values, elects_highest) else {
            return Exploration::Unsupported;
        };
        match (Search { env, limit }).run(first) {
            Exploration::NoFault(n) => states += n,
            other => return other,
        }
    }
    Exploration::NoFault(states)
}

struct Search<'k> {
    env: LaunchEnv<'k>,
    limit: usize,
}

impl Search<'_> {
    fn run(&self, mut first: State) -> Exploration {
        for w in 0..first.warps.len() {
            if let Err(f) = self.advance(&mut first, w) {
                return fault(&f);
            }
        }
        let mut known: FxHashMap<u64, usize> = FxHashMap::default();
        let mut predecessors: Vec<Vec<usize>> = vec![Vec::new()];
        let mut ends = Vec::new();
        known.insert(first.key(), 0);
        let mut open = vec![(0, first)];
        while let Some((id, state)) = open.pop() {
            if state.is_over() {
                ends.push(id);
                continue;
            }
            let next = match self.successors(&state) {
                Ok(next) => next,
                Err(f) => return fault(&f),
            };
            if next.is_empty() {
                return Exploration::Fault(
                    "Deadlock".to_owned(),
                    "no warp can make progress".to_owned(),
                );
            }
            for state in next {
                let key = state.key();
                let fresh = known.len();
                let at = *known.entry(key).or_insert(fresh);
                if at == fresh {
                    predecessors.push(Vec::new());
                    open.push((at, state));
                }
                predecessors[at].push(id);
            }
            if known.len() > self.limit {
                return Exploration::TooLarge;
            }
        }
        // A state that reaches no end is a livelock.
        let mut reaches_end = vec![false; known.len()];
        while let Some(id) = ends.pop() {
            if !std::mem::replace(&mut reaches_end[id], true) {
                ends.extend(&predecessors[id]);
            }
        }
        match reaches_end.iter().all(|&e| e) {
            true => Exploration::NoFault(known.len()),
            false => Exploration::Fault(
                "Deadlock".to_owned(),
                "no warp can make progress".to_owned(),
            ),
        }
    }

    /// Returns the states after one step of a warp or an engine.
    fn successors(&self, state: &State) -> Result<Vec<State>, Fault> {
        let mut all = Vec::new();
        for id in 0..state.in_flight.len() {
            if state.in_flight[id].is_some() {
                let mut next = state.clone();
                if complete_in_flight(&self.env, &mut next, id)? {
                    all.push(next);
                }
            }
        }
        for w in 0..state.warps.len() {
            if state.warps[w].done {
                continue;
            }
            let mut next = state.clone();
            if self.step(&mut next, w)? {
                all.push(next);
            }
        }
        Ok(all)
    }

    /// Runs the next visible op of a warp and the statements after it; returns whether the state changed.
    fn step(&self, state: &mut State, w: usize) -> Result<bool, Fault> {
        let before = (state.warps[w].barrier, state.warps[w].pc);
        let role = state.warps[w].role;
        if let Some(Inst::Op(op)) = self.env.code[role].get(state.warps[w].pc) {
            let mut machine = WarpMachine {
                env: &self.env,
                st: state,
                warp: w,
            };
            match op.exec(&mut machine)? {
                ExecStatus::Completed => state.warps[w].pc += 1,
                ExecStatus::Blocked => return Ok(state.warps[w].barrier != before.0),
            }
        }
        self.advance(state, w)?;
        Ok(true)
    }

    /// Runs a warp up to its next visible op.
    fn advance(&self, state: &mut State, w: usize) -> Result<(), Fault> {
        let code = &self.env.code[state.warps[w].role];
        for _ in 0..MAX_REGION {
            let Some(inst) = code.get(state.warps[w].pc) else {
                let cta = state.warps[w].cta;
                state.warps[w].done = true;
                release_cta_barrier(&self.env, state, cta);
                complete_cluster_phase(&self.env, state);
                return Ok(());
            };
            if let Inst::Op(op) = inst {
                if is_visible(op) {
                    return Ok(());
                }
                let mut machine = WarpMachine {
                    env: &self.env,
                    st: state,
                    warp: w,
                };
                if op.exec(&mut machine)? == ExecStatus::Completed {
                    state.warps[w].pc += 1;
                }
                continue;
            }
            self.run_control_flow(state, w, inst);
        }
        Err(Fault::new(FaultKind::Deadlock, "a loop does not end"))
    }

    /// Runs a control-flow instruction.
    fn run_control_flow(&self, state: &mut State, w: usize, inst: &Inst<'_>) {
        let set_lanes = |state: &mut State, r: RegId| {
            let mut machine = WarpMachine {
                env: &self.env,
                st: state,
                warp: w,
            };
            machine.pred(Operand::Reg(r))
        };
        let words = |state: &mut State, o: Operand| {
            let mut machine = WarpMachine {
                env: &self.env,
                st: state,
                warp: w,
            };
            machine.get::<u32>(o)
        };
        let active = state.warps[w].active;
        let mut next_pc = state.warps[w].pc + 1;
        match *inst {
            Inst::Op(_) => {}
            Inst::If { cond, other } => {
                let then = set_lanes(state, cond) & active;
                let warp = &mut state.warps[w];
                warp.frames.push((active, then));
                warp.active = then;
                if then == 0 {
                    next_pc = other;
                }
            }
            Inst::Else { end } => {
                let warp = &mut state.warps[w];
                if let Some(&(all, then)) = warp.frames.last() {
                    warp.active = all & !then;
                    if warp.active == 0 {
                        next_pc = end;
                    }
                }
            }
            Inst::End => {
                let warp = &mut state.warps[w];
                if let Some((all, _)) = warp.frames.pop() {
                    warp.active = all;
                }
            }
            Inst::Elect => {
                let lane = match self.env.elects_highest {
                    true => 31 - active.leading_zeros(),
                    false => active.trailing_zeros(),
                };
                let warp = &mut state.warps[w];
                warp.frames.push((active, 0));
                warp.active = 1 << lane;
            }
            Inst::For { var, from } => {
                let from = words(state, from);
                let warp = &mut state.warps[w];
                warp.frames.push((active, 0));
                for lane in lanes_of(active) {
                    warp.regs[var.index()][lane] = u64::from(from[lane]);
                }
            }
            Inst::ForTest {
                var,
                to: last,
                signed,
                end,
            } => {
                let (at, last) = (words(state, Operand::Reg(var)), words(state, last));
                let below = |l: usize| match signed {
                    true => (at[l] as i32) < last[l] as i32,
                    false => at[l] < last[l],
                };
                let left = lanes_of(active)
                    .filter(|&l| below(l))
                    .fold(0, |m, l| m | 1 << l);
                state.warps[w].active = left;
                if left == 0 {
                    next_pc = end;
                }
            }
            Inst::Next { var, step, head } => {
                let step = words(state, step);
                let warp = &mut state.warps[w];
                for lane in lanes_of(active) {
                    let x = &mut warp.regs[var.index()][lane];
                    *x = u64::from((*x as u32).wrapping_add(step[lane]));
                }
                next_pc = head;
            }
            Inst::While => state.warps[w].frames.push((active, 0)),
            Inst::WhileTest { cond, end } => {
                let left = set_lanes(state, cond) & active;
                state.warps[w].active = left;
                if left == 0 {
                    next_pc = end;
                }
            }
            Inst::Jump(target) => next_pc = target,
        }
        state.warps[w].pc = next_pc;
    }
}

fn fault(fault: &Fault) -> Exploration {
    Exploration::Fault(format!("{:?}", fault.kind), fault.text.clone())
}

//! The instruction loop of a warp.

use crate::compile::Inst;
use crate::machine::{WarpMachine, lanes_of};
use crate::warp::{OpCounts, SavedMask, Status};
use warpline_ir::{ExecStatus, Fault, FaultKind, Machine, Mask, Operand, RegId};

/// The maximum steps of one turn; they bound loops without visible ops.
const TURN_STEPS: u64 = 1 << 16;

/// The reason why a warp stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// The warp waits.
    Blocked,
    /// The warp exited.
    Exited,
    /// The warp polled without success.
    Polled,
    /// The next op accesses another CTA and is deferred.
    Remote,
    /// The turn is over.
    Yield,
}

/// The limits of a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TurnLimits {
    /// The number of visible ops.
    pub(crate) visible: u32,
    /// Whether the turn ends at an asynchronous op.
    pub(crate) stop_at_async: bool,
    /// Whether the next op that accesses another CTA may run.
    pub(crate) next_remote: bool,
    /// Whether the ops after it that access another CTA may run.
    pub(crate) further_remote: bool,
}

impl WarpMachine<'_, '_> {
    /// Runs ops until the warp must stop or the turn ends.
    pub(crate) fn run(&mut self, turn: TurnLimits) -> Result<Stop, Fault> {
        let (steps, executed) = (self.now, self.warp.executed);
        let mut done = TurnCounters { steps, executed };
        let stop = self.run_counted(turn, &mut done);
        self.counters.steps += done.steps - steps;
        self.now = done.steps;
        self.warp.executed = done.executed;
        if matches!(stop, Ok(Stop::Exited)) {
            self.counters.add_warp(self.warp);
        }
        stop
    }

    fn run_counted(
        &mut self,
        mut turn: TurnLimits,
        done: &mut TurnCounters,
    ) -> Result<Stop, Fault> {
        let code = self.code;
        let sites = &self.env.code.sites[..];
        let end = done.steps + TURN_STEPS;
        loop {
            let pc = self.warp.pc as usize;
            let mut next = self.warp.pc + 1;
            done.steps += 1;
            match &code.insts[pc] {
                Inst::Op(op, site) => {
                    let facts = sites[*site as usize].facts;
                    if facts.remote
                        && !std::mem::replace(&mut turn.next_remote, turn.further_remote)
                    {
                        return Ok(Stop::Remote);
                    }
                    self.site = *site;
                    self.now = done.steps;
                    let lanes = match self.warp.active {
                        Mask::MAX => 32,
                        some => some.count_ones(),
                    };
                    let step = op.exec(self)?;
                    if let Some(f) = self.deferred.take() {
                        return Err(f);
                    }
                    if step == ExecStatus::Blocked {
                        if let Some(on) = self.waiting.take() {
                            self.warp.status = Status::Waiting(on);
                        }
                        return Ok(Stop::Blocked);
                    }
                    done.executed.ops += 1;
                    done.executed.lanes += u64::from(lanes);
                    self.warp.status = Status::Ready;
                    self.warp.pc = next;
                    if !facts.visible && !facts.polls {
                        continue;
                    }
                    if facts.exits {
                        return Ok(Stop::Exited);
                    }
                    if self.polled | facts.polls {
                        return Ok(Stop::Polled);
                    }
                    turn.visible = turn.visible.saturating_sub(1);
                    if turn.visible == 0 || turn.stop_at_async && self.submitted {
                        return Ok(Stop::Yield);
                    }
                    continue;
                }
                Inst::If {
                    cond,
                    other,
                    branch,
                } => {
                    let active = self.warp.active;
                    let then = active & self.warp.regs.pred(code.register_slot(*cond));
                    let rest = active & !then;
                    self.count_branch(*branch, then != 0 && rest != 0);
                    let later = if then == 0 { 0 } else { rest };
                    self.save(later, Some(*branch), done);
                    self.warp.active = if then == 0 { rest } else { then };
                    if then == 0 {
                        next = *other;
                    }
                }
                Inst::Else { end } => match self.warp.saved.last_mut() {
                    Some(s) if s.other != 0 => {
                        self.warp.active = std::mem::take(&mut s.other);
                    }
                    _ => next = *end,
                },
                Inst::Pop => self.restore(done),
                Inst::Push { branch } => self.save(0, Some(*branch), done),
                Inst::For { var, from, branch } => {
                    self.save(0, Some(*branch), done);
                    let from = self.get::<u32>(*from);
                    self.set(*var, &from);
                }
                Inst::Below {
                    var,
                    to,
                    signed,
                    exit,
                    branch,
                } => {
                    let below = self.lanes_below(*var, *to, *signed);
                    if !self.keep_lanes(below, *branch, done) {
                        next = *exit;
                    }
                }
                Inst::Next { var, step, head } => {
                    let step_operand = *step;
                    let step = self.get::<u32>(step_operand);
                    if let Operand::Reg(_) | Operand::Imm(0) = step_operand
                        && let Some(lane) = lanes_of(self.warp.active).find(|&l| step[l] == 0)
                    {
                        return Err(self.zero_step(*head, lane));
                    }
                    let mut v = self.get::<u32>((*var).into());
                    for (v, s) in v.iter_mut().zip(step) {
                        *v = v.wrapping_add(s);
                    }
                    self.set(*var, &v);
                    next = *head;
                }
                Inst::While { cond, exit, branch } => {
                    let on = self.warp.regs.pred(code.register_slot(*cond));
                    if !self.keep_lanes(on, *branch, done) {
                        next = *exit;
                    }
                }
                Inst::Jump(to) => next = *to,
                Inst::Elect => {
                    self.save(0, None, done);
                    self.warp.active = self.env.elected(self.warp.active);
                }
                Inst::Exit => return Ok(Stop::Exited),
            }
            if let Some(f) = self.deferred.take() {
                return Err(f);
            }
            self.warp.pc = next;
            if next <= pc as u32 && done.steps >= end {
                return Ok(Stop::Yield);
            }
        }
    }

    fn save(&mut self, other: Mask, branch: Option<u32>, done: &TurnCounters) {
        self.warp.saved.push(SavedMask {
            lanes: self.warp.active,
            other,
            branch,
            before: done.executed,
        });
    }

    fn restore(&mut self, done: &mut TurnCounters) {
        let Some(s) = self.warp.saved.pop() else {
            return;
        };
        self.warp.active = s.lanes;
        let (ops, masked) = done.executed.since(&s);
        done.executed.masked += masked;
        if let (Some(branch), 1..) = (s.branch, masked) {
            let divergence = &mut self.counters.branches[branch as usize];
            divergence.ops += ops;
            divergence.inactive_lanes += masked;
        }
    }

    /// Counts the execution of a branch.
    fn count_branch(&mut self, branch: u32, diverges: bool) {
        let divergence = &mut self.counters.branches[branch as usize];
        divergence.executions += 1;
        divergence.divergent += u64::from(diverges);
    }

    /// Keeps `lanes` in a loop; returns false and exits the loop if none of them is active.
    fn keep_lanes(&mut self, lanes: Mask, branch: u32, done: &mut TurnCounters) -> bool {
        let on = self.warp.active & lanes;
        self.count_branch(branch, on != 0 && on != self.warp.active);
        if on == 0 {
            self.restore(done);
        } else {
            self.warp.active = on;
        }
        on != 0
    }

    /// Builds the fault for a loop with step 0.
    #[cold]
    fn zero_step(&mut self, head: u32, lane: usize) -> Fault {
        if let Inst::Below { branch, .. } = &self.code.insts[head as usize] {
            self.branch = Some(*branch);
        }
        let text = "has step 0, so the loop never ends";
        self.lane_fault(lane, FaultKind::Deadlock, text.into())
    }

    fn lanes_below(&mut self, var: RegId, to: Operand, signed: bool) -> Mask {
        let (v, to) = (self.get::<u32>(var.into()), self.get::<u32>(to));
        let below = |lane: &usize| match signed {
            true => (v[*lane] as i32) < to[*lane] as i32,
            false => v[*lane] < to[*lane],
        };
        lanes_of(Mask::MAX)
            .filter(below)
            .fold(0, |m, lane| m | 1 << lane)
    }
}

/// Local copies of the counters of the warp and the scheduler during a turn.
struct TurnCounters {
    steps: u64,
    executed: OpCounts,
}

//! The inner loop: a warp runs until it must stop.

use crate::compile::Inst;
use crate::machine::{Lockstep, lanes_of};
use crate::warp::{Ran, Saved, Status};
use warpline_ir::{Fault, FaultKind, Machine, Mask, Operand, RegId, Step};

/// The most steps of one turn, so that a loop in which nothing is visible ends one too.
const TURN_STEPS: u64 = 1 << 16;

/// Why a warp stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// It waits.
    Blocked,
    /// It has run its last op.
    Exited,
    /// It has asked for something that had not changed.
    Polled,
    /// Its next op reaches into another CTA, which may wait.
    Remote,
    /// It could go on.
    Yield,
}

/// How far a warp may run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// So many ops that other warps can see.
    pub(crate) visible: u32,
    /// Until it has given work to an engine?
    pub(crate) each_job: bool,
    /// May its next op that reaches into another CTA run?
    pub(crate) remote: bool,
    /// And those after it?
    pub(crate) all_remote: bool,
}

impl Lockstep<'_, '_> {
    /// Runs ops until the warp must stop, or `turn` says that it shall.
    pub(crate) fn run(&mut self, turn: Turn) -> Result<Stop, Fault> {
        let (steps, ran) = (self.now, self.warp.ran);
        let mut done = Counted { steps, ran };
        let stop = self.run_counted(turn, &mut done);
        self.counters.steps += done.steps - steps;
        self.now = done.steps;
        self.warp.ran = done.ran;
        if matches!(stop, Ok(Stop::Exited)) {
            self.counters.leaves(self.warp);
        }
        stop
    }

    fn run_counted(&mut self, mut turn: Turn, done: &mut Counted) -> Result<Stop, Fault> {
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
                    if facts.remote && !std::mem::replace(&mut turn.remote, turn.all_remote) {
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
                    if step == Step::Blocked {
                        if let Some(on) = self.waiting.take() {
                            self.warp.status = Status::Waiting(on);
                        }
                        return Ok(Stop::Blocked);
                    }
                    done.ran.ops += 1;
                    done.ran.lanes += u64::from(lanes);
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
                    if turn.visible == 0 || turn.each_job && self.submitted {
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
                    let then = active & self.warp.regs.pred(code.slot(*cond));
                    let rest = active & !then;
                    self.came(*branch, then != 0 && rest != 0);
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
                    let below = self.below(*var, *to, *signed);
                    if !self.keep(below, *branch, done) {
                        next = *exit;
                    }
                }
                Inst::Next { var, step, head } => {
                    let by = *step;
                    let step = self.get::<u32>(by);
                    if let Operand::Reg(_) | Operand::Imm(0) = by
                        && let Some(lane) = lanes_of(self.warp.active).find(|&l| step[l] == 0)
                    {
                        return Err(self.stands_still(*head, lane));
                    }
                    let mut v = self.get::<u32>((*var).into());
                    for (v, s) in v.iter_mut().zip(step) {
                        *v = v.wrapping_add(s);
                    }
                    self.set(*var, &v);
                    next = *head;
                }
                Inst::While { cond, exit, branch } => {
                    let on = self.warp.regs.pred(code.slot(*cond));
                    if !self.keep(on, *branch, done) {
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

    fn save(&mut self, other: Mask, branch: Option<u32>, done: &Counted) {
        self.warp.saved.push(Saved {
            lanes: self.warp.active,
            other,
            branch,
            before: done.ran,
        });
    }

    fn restore(&mut self, done: &mut Counted) {
        let Some(s) = self.warp.saved.pop() else {
            return;
        };
        self.warp.active = s.lanes;
        let (ops, lost) = done.ran.since(&s);
        done.ran.lost += lost;
        if let (Some(branch), 1..) = (s.branch, lost) {
            let split = &mut self.counters.branches[branch as usize];
            split.ops += ops;
            split.lost_lanes += lost;
        }
    }

    /// Counts that the warp comes to a branch.
    fn came(&mut self, branch: u32, splits: bool) {
        let split = &mut self.counters.branches[branch as usize];
        split.runs += 1;
        split.splits += u64::from(splits);
    }

    /// Keeps some lanes in a loop; leaves it, and says so, if there are none.
    fn keep(&mut self, lanes: Mask, branch: u32, done: &mut Counted) -> bool {
        let on = self.warp.active & lanes;
        self.came(branch, on != 0 && on != self.warp.active);
        if on == 0 {
            self.restore(done);
        } else {
            self.warp.active = on;
        }
        on != 0
    }

    /// A loop counts by 0.
    #[cold]
    fn stands_still(&mut self, head: u32, lane: usize) -> Fault {
        if let Inst::Below { branch, .. } = &self.code.insts[head as usize] {
            self.branch = Some(*branch);
        }
        let text = "counts by 0: its loop never ends";
        self.fault_in(lane, FaultKind::Deadlock, text.into())
    }

    fn below(&mut self, var: RegId, to: Operand, signed: bool) -> Mask {
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

/// What a warp has run, kept out of memory while it runs.
struct Counted {
    steps: u64,
    ran: Ran,
}

//! Tests of mbarriers that act as waits.
//!
//! A loop that repeats `test_wait` or `try_wait` until it returns true is a wait. So is a test that
//! a wait for the same phase follows if the test returned false. The search treats both as waits.

use crate::facts::Facts;
use std::collections::BTreeMap;
use warpline_ir::ops::arith::Mov;
use warpline_ir::ops::mbarrier::{MbarrierTest, MbarrierWait};
use warpline_ir::{Block, Kernel, Op, Operand, RegId, Stmt, StmtKind, Type};

/// The kernel with such tests replaced by waits, if it has any.
pub(super) fn with_waits(kernel: &Kernel) -> Option<Kernel> {
    let mut found = false;
    kernel.each_stmt(&mut |_, s| {
        found |= matches!(&s.kind, StmtKind::Op(Op::MbarrierTest(_)));
    });
    if !found {
        return None;
    }
    let mut kernel = kernel.clone();
    block(&mut kernel.prologue);
    kernel.roles.iter_mut().for_each(|r| block(&mut r.body));
    block(&mut kernel.epilogue);
    Some(kernel)
}

fn block(b: &mut Block) {
    let mut i = 0;
    while i < b.0.len() {
        if let Some(test) = test_of(&b.0[i])
            && waits_next(&b.0[i + 1..], &test)
        {
            replace(&mut b.0, i, &test);
        }
        match &mut b.0[i].kind {
            StmtKind::Op(_) => {}
            StmtKind::If { then, other, .. } => {
                block(then);
                block(other);
            }
            StmtKind::For { body, .. } | StmtKind::Elect { body } => block(body),
            StmtKind::While { head, cond, body } => match spins(head, *cond, body) {
                Some((in_head, at, test)) => {
                    let list = if in_head { head } else { body };
                    replace(&mut list.0, at, &test);
                }
                None => {
                    block(head);
                    block(body);
                }
            },
        }
        i += 1;
    }
}

fn test_of(s: &Stmt) -> Option<MbarrierTest> {
    match &s.kind {
        StmtKind::Op(Op::MbarrierTest(test)) => Some(test.clone()),
        _ => None,
    }
}

/// In place of a test: a wait, and the answer yes.
fn replace(list: &mut Vec<Stmt>, at: usize, test: &MbarrierTest) {
    let loc = list[at].loc;
    let wait = MbarrierWait {
        bar: test.bar,
        parity: test.parity,
        scope: test.scope,
    };
    let yes = Mov {
        ty: Type::Pred,
        dst: test.dst,
        src: Operand::Imm(1),
    };
    list[at].kind = StmtKind::Op(Op::MbarrierWait(wait));
    let kind = StmtKind::Op(Op::Mov(yes));
    list.insert(at + 1, Stmt { kind, loc });
}

/// Registers that hold an answer; `true`: its opposite.
struct Answer(BTreeMap<RegId, bool>);

impl Answer {
    fn of(test: &MbarrierTest) -> Self {
        Self(BTreeMap::from([(test.dst, false)]))
    }

    /// Takes an op in; says whether it only computes and leaves what the test reads as it is.
    fn follow(&mut self, op: &Op, test: &MbarrierTest) -> bool {
        let facts = Facts::of(op);
        let mut read = Vec::new();
        test.bar.operands(&mut |o| read.push(o));
        read.push(test.parity);
        let changed = |r: &RegId| read.contains(&Operand::Reg(*r));
        if !facts.syncs.is_empty() || !facts.touches.is_empty() || facts.defs.iter().any(changed) {
            return false;
        }
        let (dst, not) = match op {
            Op::Mov(o) => (o.dst, o.src.as_reg().and_then(|r| self.0.get(&r).copied())),
            Op::PredNot(o) => {
                let a = o.a.as_reg().and_then(|r| self.0.get(&r));
                (o.dst, a.map(|not| !not))
            }
            _ => {
                facts.defs.iter().for_each(|r| {
                    self.0.remove(r);
                });
                return true;
            }
        };
        match not {
            Some(not) => self.0.insert(dst, not),
            None => self.0.remove(&dst),
        };
        true
    }
}

/// Do the lanes whose test returned false wait for the same phase next?
fn waits_next(next: &[Stmt], test: &MbarrierTest) -> bool {
    let mut answer = Answer::of(test);
    for s in next {
        match &s.kind {
            StmtKind::Op(op) => {
                if !answer.follow(op, test) {
                    return false;
                }
            }
            StmtKind::If { cond, then, other } => {
                let (yes, no) = match answer.0.get(cond) {
                    Some(false) => (then, other),
                    Some(true) => (other, then),
                    None => return false,
                };
                let same = |s: &Stmt| {
                    let wait = MbarrierWait {
                        bar: test.bar,
                        parity: test.parity,
                        scope: test.scope,
                    };
                    matches!(&s.kind, StmtKind::Op(Op::MbarrierWait(w)) if *w == wait)
                };
                return yes.0.is_empty() && no.0.len() == 1 && no.0.iter().all(same);
            }
            _ => return false,
        }
    }
    false
}

/// The test of a loop that runs until its answer is yes and does nothing else: is it in the head,
/// where, and which.
fn spins(head: &Block, cond: RegId, body: &Block) -> Option<(bool, usize, MbarrierTest)> {
    let find = |b: &Block| {
        let mut tests = b.0.iter().enumerate();
        tests.find_map(|(i, s)| test_of(s).map(|t| (i, t)))
    };
    let (in_head, at, test) = match (find(head), find(body)) {
        (Some((at, test)), None) => (true, at, test),
        (None, Some((at, test))) => (false, at, test),
        _ => return None,
    };
    // What runs from one test to the next.
    let (first, last) = if in_head { (head, body) } else { (body, head) };
    let mut answer = Answer::of(&test);
    let behind = first.0[at + 1..].iter();
    for s in behind.chain(&last.0).chain(&first.0[..at]) {
        let StmtKind::Op(op) = &s.kind else {
            return None;
        };
        if !answer.follow(op, &test) {
            return None;
        }
    }
    (answer.0.get(&cond) == Some(&true)).then_some((in_head, at, test))
}

//! Modular counters: registers that the program uses only modulo a number, such as `i` in
//! `(i / S) % 2`.
//!
//! Such a counter grows without bound, but the values computed from it repeat. Beyond the last
//! number that a comparison distinguishes, a smaller number with the same remainder replaces the
//! counter.
//!
//! A register is a modular counter if every use is one of these: a sum or a product with a constant
//! that gives another such counter, a select, a comparison with a constant, a remainder, or a
//! quotient that is used only in a remainder. Sums and products preserve both properties of the
//! replacement: large counters stay large, and equal remainders stay equal.

use super::slice::{Slice, lcm, modulus};
use crate::facts::Facts;
use warpline_ir::{Kernel, Op, Operand, RegId, StmtKind, Type};

/// The most that a counter is followed to.
const MOST: u64 = 1 << 12;

/// The counters of a kernel, and which of their numbers stand for all others.
pub(super) struct Fold {
    /// By register: is it one?
    counters: Vec<bool>,
    /// From here on, numbers that leave the same are the same.
    from: u64,
    period: u64,
    /// By register: is it, or a register that follows from it, compared?
    compared: Vec<bool>,
}

impl Fold {
    /// The counters of a kernel, as far as it matters.
    pub(super) fn of(kernel: &Kernel, slice: &Slice) -> Self {
        let mut fold = Self {
            counters: kernel.regs.iter().map(|r| r.ty == Type::U32).collect(),
            from: 0,
            period: 1,
            compared: vec![false; kernel.regs.len()],
        };
        let mut ops: Vec<(&Op, Facts)> = Vec::new();
        kernel.each_stmt(&mut |_, s| match &s.kind {
            StmtKind::Op(op) => ops.push((op, Facts::of(op))),
            // What a loop runs from, to and by is needed as it is.
            StmtKind::For { from, to, step, .. } => {
                for r in [from, to, step].into_iter().filter_map(|o| o.as_reg()) {
                    fold.counters[r.index()] = false;
                }
            }
            _ => {}
        });
        ops.retain(|(_, facts)| slice.keeps(facts));
        loop {
            let before = fold.size();
            for (op, facts) in &ops {
                if !fold.keeps(op, &ops) {
                    facts.uses().for_each(|r| fold.counters[r.index()] = false);
                }
            }
            if fold.size() == before {
                break;
            }
        }
        fold.measure(&ops);
        fold.find_compared(&ops);
        fold
    }

    fn find_compared(&mut self, ops: &[(&Op, Facts)]) {
        loop {
            let before = self.compared.clone();
            for (op, facts) in ops {
                let further = facts.defs.iter().any(|r| self.compared[r.index()]);
                if further || matches!(op, Op::Setp(_)) {
                    facts.uses().for_each(|r| self.compared[r.index()] = true);
                }
            }
            if self.compared == before {
                return;
            }
        }
    }

    /// Is a register followed by its remainder?
    pub(super) fn is_counter(&self, r: usize) -> bool {
        self.counters[r] && self.period > 1
    }

    fn size(&self) -> usize {
        self.counters.iter().filter(|&&c| c).count()
    }

    fn is(&self, r: RegId) -> bool {
        self.counters[r.index()]
    }

    /// Does it do to an op to know what its operands leave?
    fn keeps(&self, op: &Op, ops: &[(&Op, Facts)]) -> bool {
        // A constant that is not below zero, or another counter.
        let adds = |o: Operand| match o {
            Operand::Imm(x) => x < 1 << 31,
            Operand::Reg(r) => self.is(r),
        };
        let times = |o: Operand| matches!(o, Operand::Imm(x) if (1..1 << 31).contains(&x));
        match op {
            Op::Mov(o) => self.is(o.dst),
            Op::Select(o) => self.is(o.dst) && adds(o.a) && adds(o.b),
            Op::Add(o) => self.is(o.dst) && adds(o.a) && adds(o.b),
            // A factor that is no constant is taken by its remainder.
            Op::Mul(o) => {
                self.is(o.dst)
                    && [o.a, o.b]
                        .into_iter()
                        .all(|x| times(x) || x.as_reg().is_some())
            }
            Op::Mad(o) => {
                let factor = |x: Operand| times(x) || x.as_reg().is_some();
                o.ty == Type::U32 && self.is(o.dst) && factor(o.a) && factor(o.b) && adds(o.c)
            }
            Op::Shl(o) => self.is(o.dst) && o.b.as_imm().is_some_and(|n| n < 31),
            Op::Rem(_) | Op::And(_) => modulus(op).is_some(),
            Op::Div(_) | Op::Shr(_) => quotient(op).is_some_and(|(_, q)| reduced(q, ops)),
            Op::Setp(o) => o.ty == Type::U32 && bound(op).is_some(),
            _ => false,
        }
    }

    /// Finds the period, and where it begins.
    fn measure(&mut self, ops: &[(&Op, Facts)]) {
        let of = |list: &[RegId], f: &Facts| f.named_reads().any(|r| list.contains(&r));
        let counters: Vec<RegId> = (0..self.counters.len() as u32).map(RegId).collect();
        let counters: Vec<RegId> = counters.into_iter().filter(|&r| self.is(r)).collect();
        let (mut left, mut by) = (1, 1);
        let mut quotients = Vec::new();
        for (op, _) in ops.iter().filter(|(_, f)| of(&counters, f)) {
            self.from = self.from.max(bound(op).map_or(0, |b| b + 1));
            left = lcm(left, modulus(op).unwrap_or(1));
            if let Some((n, q)) = quotient(op) {
                by = lcm(by, n);
                quotients.push(q);
            }
        }
        for (op, _) in ops.iter().filter(|(_, f)| of(&quotients, f)) {
            left = lcm(left, modulus(op).unwrap_or(1));
        }
        self.period = left.saturating_mul(by);
        if self.period.saturating_add(self.from) > MOST {
            self.counters.fill(false);
        }
    }

    /// What the number in a register counts modulo, if that is all that counts.
    pub(super) fn period_of(&self, r: RegId) -> Option<u64> {
        let free = self.is(r) && !self.compared[r.index()];
        (free && self.period > 1).then_some(self.period)
    }

    /// The number that stands for one in a register.
    pub(super) fn number(&self, r: RegId, x: u64) -> u64 {
        match self.is(r) && x >= self.from {
            true => self.from + (x - self.from) % self.period,
            false => x,
        }
    }
}

/// The constant that something is divided by, and where the quotient goes.
fn quotient(op: &Op) -> Option<(u64, RegId)> {
    let (by, to) = match op {
        Op::Div(o) => (o.b.as_imm()?, o.dst),
        Op::Shr(o) => (1u64.checked_shl(o.b.as_imm()? as u32)?, o.dst),
        _ => return None,
    };
    (1..=MOST).contains(&by).then_some((by, to))
}

/// The constant that something is compared with.
fn bound(op: &Op) -> Option<u64> {
    match op {
        Op::Setp(o) => o.a.as_imm().or(o.b.as_imm()).filter(|&b| b < MOST),
        _ => None,
    }
}

/// Is only ever a remainder taken of a register?
fn reduced(r: RegId, ops: &[(&Op, Facts)]) -> bool {
    let mut uses = ops.iter().filter(|(_, f)| f.uses().any(|u| u == r));
    uses.all(|(op, _)| modulus(op).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_ir::builder::*;

    /// The counter of the one loop of a kernel that waits for a parity computed from it.
    fn counter(parity: impl Fn(Reg<u32>, Reg<u32>) -> Reg<u32>) -> (Fold, RegId) {
        let kernel = Kernel::build("counter", &warpline_ir::Target::SM_90A, |k| {
            let n = k.param::<u32>("n");
            let bar = k.barrier("bar", 1).arrivals(1).at(0u32);
            k.role("all").body(|| {
                steps(n).each(|i| bar.wait(parity(i, n)));
            });
        });
        let kernel = kernel.unwrap();
        let mut var = None;
        kernel.each_stmt(&mut |_, s| {
            if let StmtKind::For { var: v, .. } = &s.kind {
                var = Some(*v);
            }
        });
        let uniform = crate::uniform::Uniformity::of(&kernel);
        let slice = Slice::of(&kernel, &uniform);
        (Fold::of(&kernel, &slice), var.unwrap())
    }

    #[test]
    fn a_few_numbers_stand_for_all() {
        let (fold, i) = counter(|i, _| (i * 2 + 1) / 3 % 2);
        for x in 0..100 {
            let y = fold.number(i, x);
            assert!(y < 8, "{x}");
            assert_eq!((y * 2 + 1) / 3 % 2, (x * 2 + 1) / 3 % 2, "{x}");
        }
    }

    #[test]
    fn a_quotient_by_what_is_left_counts_twice() {
        let (fold, i) = counter(|i, _| i / 2 % 2);
        let parities = (0..8).map(|x| fold.number(i, x) / 2 % 2);
        assert!(parities.eq([0, 0, 1, 1, 0, 0, 1, 1]));
    }

    #[test]
    fn what_a_comparison_tells_apart_stays_apart() {
        let (fold, i) = counter(|i, _| select(i.lt(5u32), 1u32, i % 2));
        for x in 0..100 {
            let y = fold.number(i, x);
            assert_eq!((y < 5, y % 2), (x < 5, x % 2), "{x}");
            assert!(y < 8);
        }
    }

    #[test]
    fn a_counter_that_is_needed_whole_is_kept() {
        let (fold, i) = counter(|i, n| select(i.lt(n), 1u32, i % 2));
        assert_eq!(fold.number(i, 1000), 1000);
        let (fold, i) = counter(|i, _| (i - 1) % 2);
        assert_eq!(fold.number(i, 1000), 1000);
    }
}

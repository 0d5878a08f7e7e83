//! The part of a program that decides its protocol: synchronization, accesses to shared memory, and
//! the registers and branches that these depend on.

use crate::facts::Facts;
use crate::uniform::Uniformity;
use std::collections::HashSet;
use warpline_ir::{
    AccessKind, BarRef, Block, Completion, Kernel, MemoryAccess, MemoryAddress, MemoryRegion, Op,
    Operand, RegId, Special, Stmt, StmtKind, SyncOp, TileId, Type, Uniform,
};

/// The registers and statements that matter.
pub(super) struct Slice {
    pub(super) regs: Vec<bool>,
    /// Registers whose value must be a number: stages, parities, barriers.
    pub(super) numbers: Vec<bool>,
    /// Registers that may hold a term: all others are numbers when they are used.
    pub(super) terms: Vec<bool>,
    /// What numbers computed from a count depend on: it, modulo this. 0: all of it.
    pub(super) period: i64,
    /// Registers that are a count and a number more, of which only remainders are used: they may
    /// hold the sum of both until the count is known.
    pub(super) sums: Vec<bool>,
    /// Tiles whose words are followed: something that matters is read from them.
    pub(super) words: Vec<bool>,
    /// Registers that are only moved by constants and compared, or that a loop counts so.
    pub(super) stepped: Vec<bool>,
    /// Registers that a constant is added to or taken from, and those they are moved to.
    pub(super) moved: Vec<bool>,
    /// Registers that addresses of shared memory follow from.
    pub(super) places: Vec<bool>,
    /// Registers that decide what is run, how often, how many bytes, or which barrier: only of
    /// these is it worth to tell cases apart.
    pub(super) control: Vec<bool>,
    /// Registers that an elected lane writes.
    elected: Vec<bool>,
}

impl Slice {
    pub(super) fn of(kernel: &Kernel, uniform: &Uniformity) -> Self {
        let mut slice = Self {
            regs: vec![false; kernel.regs.len()],
            words: vec![false; kernel.tiles.len()],
            numbers: vec![false; kernel.regs.len()],
            terms: vec![true; kernel.regs.len()],
            period: 0,
            sums: vec![false; kernel.regs.len()],
            stepped: vec![false; kernel.regs.len()],
            moved: vec![false; kernel.regs.len()],
            places: vec![false; kernel.regs.len()],
            control: vec![false; kernel.regs.len()],
            elected: vec![false; kernel.regs.len()],
        };
        kernel.each_stmt(&mut |_, s| {
            if let StmtKind::Elect { body } = &s.kind {
                written(body)
                    .iter()
                    .for_each(|r| slice.elected[r.index()] = true);
            }
        });
        let mut stmts = Vec::new();
        kernel.each_stmt(&mut |_, s| stmts.push(s));
        let mut ops = Vec::new();
        for s in &stmts {
            if let StmtKind::Op(op) = &s.kind {
                let mut facts = Facts::of(op);
                // Whatever it is a copy of, the copy may be any value.
                if let Op::Opaque(_) = op {
                    facts.reads.clear();
                }
                ops.push((op, facts));
            }
        }
        for (_, facts) in &ops {
            slice.addresses(facts);
        }
        loop {
            let before = slice.size();
            for (op, facts) in &ops {
                slice.follow(op, facts, uniform);
            }
            slice.control(&kernel.prologue);
            kernel.roles.iter().for_each(|r| {
                slice.control(&r.body);
            });
            slice.control(&kernel.epilogue);
            if slice.size() == before {
                let mut counts = vec![false; kernel.regs.len()];
                let mut counters = vec![false; kernel.regs.len()];
                for s in &stmts {
                    if let StmtKind::For { var, to, .. } = &s.kind {
                        counters[var.index()] = true;
                        if let Operand::Reg(r) = to {
                            counts[r.index()] = true;
                        }
                    }
                }
                slice.find_numbers(&ops, &counts);
                slice.find_sums(&stmts, &ops, &counts);
                slice.find_terms(&ops, counters);
                slice.period = slice.find_period(&ops);
                slice.find_stepped(kernel, &stmts, &ops);
                slice.find_moved(&ops);
                slice.find_places(&ops);
                slice.find_control(&stmts, &ops);
                return slice;
            }
        }
    }

    /// Finds what must be a number, and how it depends on counts (which loops run to).
    fn find_numbers(&mut self, ops: &[(&Op, Facts)], counts: &[bool]) {
        let mut need = |o: Operand| {
            if let Operand::Reg(r) = o {
                self.numbers[r.index()] = true;
            }
        };
        let bar = |b: &BarRef, need: &mut dyn FnMut(Operand)| b.operands(need);
        for (_, facts) in ops {
            for s in &facts.syncs {
                match s {
                    SyncOp::Wait { bar: b, parity, .. } => {
                        bar(b, &mut need);
                        need(*parity);
                    }
                    SyncOp::Arrive { bar: b, count, .. } => {
                        bar(b, &mut need);
                        need(*count);
                    }
                    SyncOp::Init { bar: b, .. }
                    | SyncOp::Inval { bar: b }
                    | SyncOp::ExpectTx { bar: b, .. }
                    | SyncOp::CopyArrive { bar: b, .. }
                    | SyncOp::Test { bar: b, .. } => bar(b, &mut need),
                    _ => {}
                }
            }
            for t in &facts.touches {
                match t.memory {
                    MemoryRegion::PerLane(MemoryAddress::Shared(p), _)
                    | MemoryRegion::Shared(p, _)
                    | MemoryRegion::MatrixRows(p, _) => {
                        need(p.stage);
                        p.peer.into_iter().for_each(&mut need);
                    }
                    MemoryRegion::View(v) => v.operands(&mut need),
                    _ => {}
                }
                if let Completion::Bytes(b) = &t.completion {
                    bar(b, &mut need);
                }
            }
        }
        let is = |n: &[bool], r: &RegId| n[r.index()];
        loop {
            let before = self.numbers.iter().filter(|&&x| x).count();
            for (_, facts) in ops.iter().filter(|(_, f)| f.touches.is_empty()) {
                if facts.defs.iter().any(|r| is(&self.numbers, r)) {
                    for &(o, ty) in &facts.reads {
                        if let (Operand::Reg(r), true) = (o, ty != Type::Pred) {
                            self.numbers[r.index()] |= !counts[r.index()];
                        }
                    }
                }
            }
            if self.numbers.iter().filter(|&&x| x).count() == before {
                break;
            }
        }
    }

    /// Finds sums of a count and a number of which only remainders are used.
    fn find_sums(&mut self, stmts: &[&Stmt], ops: &[(&Op, Facts)], counts: &[bool]) {
        let is_count = |o: Operand| o.as_reg().is_some_and(|r| counts[r.index()]);
        let mut other = vec![false; self.sums.len()];
        for (op, facts) in ops {
            let sum = match op {
                Op::Add(o) if o.ty == Type::U32 && is_count(o.a) != is_count(o.b) => Some(o.dst),
                _ => None,
            };
            for r in &facts.defs {
                match sum == Some(*r) && !self.sums[r.index()] {
                    true => self.sums[r.index()] = true,
                    false => other[r.index()] = true,
                }
            }
            let numbers = facts.defs.iter().all(|r| self.numbers[r.index()]);
            let reduced = match op {
                Op::Rem(_) | Op::And(_) => modulus(op).is_some(),
                Op::Div(o) => o.b.as_imm().is_some() && self.reduced_by(o.dst, ops).is_some(),
                _ => false,
            };
            if self.keeps(facts) && !(numbers && reduced) {
                facts.uses().for_each(|r| other[r.index()] = true);
            }
        }
        for s in stmts {
            if let StmtKind::For {
                var,
                from,
                to,
                step,
                ..
            } = &s.kind
            {
                let read = [from, to, step].into_iter().filter_map(|o| o.as_reg());
                read.chain([*var]).for_each(|r| other[r.index()] = true);
            }
        }
        for ((sum, other), number) in self.sums.iter_mut().zip(other).zip(&self.numbers) {
            *sum &= !other && *number;
        }
    }

    /// Finds what may hold a term: what is no number, what a launch or memory gives, counters, and
    /// copies of them. All else that must be a number is made one where it is computed.
    fn find_terms(&mut self, ops: &[(&Op, Facts)], counters: Vec<bool>) {
        self.terms = counters;
        for (i, sum) in self.sums.iter().enumerate() {
            self.terms[i] |= sum;
        }
        for (i, number) in self.numbers.iter().enumerate() {
            self.terms[i] |= !number;
        }
        loop {
            let before = self.terms.iter().filter(|&&x| x).count();
            for (op, facts) in ops {
                let given = match op {
                    Op::ReadParam(_) | Op::Opaque(_) => true,
                    Op::ReadSpecial(s) => is_launched(s.which),
                    Op::Mov(_) | Op::Select(_) => computed_with(facts).any(|r| self.terms[r]),
                    _ => !facts.touches.is_empty(),
                };
                for r in facts.defs.iter().filter(|_| given) {
                    self.terms[r.index()] = true;
                }
            }
            if self.terms.iter().filter(|&&x| x).count() == before {
                return;
            }
        }
    }

    /// Registers computed from terms, and not reduced to what they leave when divided.
    fn unreduced(&self, ops: &[(&Op, Facts)]) -> Vec<bool> {
        let mut grows = self.terms.clone();
        loop {
            let before = grows.iter().filter(|&&x| x).count();
            for (op, facts) in ops {
                let reduced = matches!(op, Op::Rem(_) | Op::And(_));
                if !reduced && computed_with(facts).any(|r| grows[r]) {
                    facts.defs.iter().for_each(|r| grows[r.index()] = true);
                }
            }
            if grows.iter().filter(|&&x| x).count() == before {
                return grows;
            }
        }
    }

    /// The remainders that are taken, times what is divided by, if a quotient is only ever reduced
    /// again.
    fn find_period(&self, ops: &[(&Op, Facts)]) -> i64 {
        let grows = self.unreduced(ops);
        let mut period = 1;
        for (op, facts) in ops {
            if !facts.defs.iter().any(|r| self.numbers[r.index()]) {
                continue;
            }
            let constant = |o: Operand| o.as_imm();
            match op {
                Op::Rem(_) | Op::And(_) => match modulus(op) {
                    Some(n) => period = lcm(period, n),
                    None => return 0,
                },
                Op::Div(o) => match (constant(o.b), self.reduced_by(o.dst, ops)) {
                    (Some(n), Some(by)) => period = lcm(period, n.saturating_mul(by)),
                    _ => return 0,
                },
                Op::Shr(o) => match (constant(o.b), self.reduced_by(o.dst, ops)) {
                    (Some(n), Some(by)) if n < 31 => period = lcm(period, by << n),
                    _ => return 0,
                },
                // What these give depends on a sum modulo what its parts are taken modulo.
                Op::Add(_) | Op::Sub(_) | Op::Mul(_) | Op::Mad(_) | Op::Mov(_) | Op::Select(_) => {}
                _ if computed_with(facts).any(|r| grows[r]) => return 0,
                _ => {}
            }
        }
        if period < 1 << 20 { period as i64 } else { 0 }
    }

    /// What a quotient is taken modulo, if it is never used otherwise.
    fn reduced_by(&self, r: RegId, ops: &[(&Op, Facts)]) -> Option<u64> {
        let uses = ops.iter().filter(|(_, facts)| {
            let matters = facts.defs.iter().any(|d| self.numbers[d.index()])
                || !facts.touches.is_empty()
                || !facts.syncs.is_empty();
            matters && facts.named_reads().any(|u| u == r)
        });
        let mut by = 1;
        for (op, _) in uses {
            by = lcm(by, modulus(op)?);
        }
        Some(by).filter(|&by| by < 1 << 20)
    }

    /// Finds registers that are only moved by constants and compared.
    fn find_stepped(&mut self, kernel: &Kernel, stmts: &[&Stmt], ops: &[(&Op, Facts)]) {
        let narrow = |r: &warpline_ir::RegInfo| matches!(r.ty, Type::U32 | Type::I32);
        let mut stepped: Vec<bool> = kernel.regs.iter().map(narrow).collect();
        for (i, s) in stepped.iter_mut().enumerate() {
            *s &= self.regs[i] && !self.numbers[i];
        }
        for s in stmts {
            if let StmtKind::For { from, to, step, .. } = &s.kind {
                let read = [from, to, step].into_iter().filter_map(|o| o.as_reg());
                read.for_each(|r| stepped[r.index()] = false);
            }
        }
        loop {
            let before = stepped.clone();
            for (op, facts) in ops.iter().filter(|(_, f)| self.keeps(f)) {
                let constant = |o: Operand| o.as_imm().is_some();
                let fine = match op {
                    Op::Add(o) => stepped[o.dst.index()] && (constant(o.a) || constant(o.b)),
                    Op::Sub(o) => stepped[o.dst.index()] && constant(o.b),
                    Op::Mov(o) => stepped[o.dst.index()],
                    Op::Setp(_) => true,
                    _ => false,
                };
                if !fine {
                    facts.uses().for_each(|r| stepped[r.index()] = false);
                }
            }
            if stepped == before {
                break;
            }
        }
        // Only such as are compared at all are worth it.
        let mut compared = vec![false; stepped.len()];
        for (op, facts) in ops {
            if let Op::Setp(o) = op
                && self.keeps(facts)
            {
                let both = [o.a, o.b].into_iter().filter_map(|o| o.as_reg());
                // With a constant a small number is told from others as it is.
                if o.a.as_imm().is_none() && o.b.as_imm().is_none() {
                    both.for_each(|r| compared[r.index()] = true);
                } else {
                    both.for_each(|r| compared[r.index()] |= !self.is_counter(kernel, r));
                }
            }
        }
        loop {
            let before = compared.clone();
            for (op, facts) in ops {
                if matches!(op, Op::Add(_) | Op::Sub(_) | Op::Mov(_))
                    && facts.defs.iter().any(|r| compared[r.index()])
                {
                    facts.uses().for_each(|r| compared[r.index()] = true);
                }
            }
            if compared == before {
                break;
            }
        }
        self.stepped = stepped.iter().zip(compared).map(|(s, c)| *s && c).collect();
    }

    /// Finds what addresses of shared memory follow from.
    fn find_places(&mut self, ops: &[(&Op, Facts)]) {
        for (_, facts) in ops {
            for t in facts.touches.iter().filter(|t| is_shared(t)) {
                t.operands(&mut |o| {
                    o.as_reg()
                        .into_iter()
                        .for_each(|r| self.places[r.index()] = true);
                });
            }
        }
        loop {
            let before = self.places.clone();
            for (_, facts) in ops.iter().filter(|(_, f)| f.touches.is_empty()) {
                if facts.defs.iter().any(|r| self.places[r.index()]) {
                    facts.uses().for_each(|r| self.places[r.index()] = true);
                }
            }
            if self.places == before {
                return;
            }
        }
    }

    /// Finds what is moved by constants.
    fn find_moved(&mut self, ops: &[(&Op, Facts)]) {
        let constant = |o: Operand| o.as_imm().is_some();
        loop {
            let mut more = false;
            for (op, _) in ops {
                let (dst, moved) = match op {
                    Op::Add(o) => (o.dst, constant(o.a) || constant(o.b)),
                    Op::Sub(o) => (o.dst, constant(o.b)),
                    Op::Mov(o) => (o.dst, o.src.as_reg().is_some_and(|r| self.moved[r.index()])),
                    _ => continue,
                };
                if moved && !self.moved[dst.index()] {
                    self.moved[dst.index()] = true;
                    more = true;
                }
            }
            if !more {
                break;
            }
        }
    }

    /// Finds what decides what is run, how often, how many bytes, or which barrier.
    fn find_control(&mut self, stmts: &[&Stmt], ops: &[(&Op, Facts)]) {
        let mut control = self.numbers.clone();
        let mut need = |o: Operand| {
            o.as_reg()
                .into_iter()
                .for_each(|r| control[r.index()] = true);
        };
        for s in stmts {
            match &s.kind {
                StmtKind::If { cond, .. } | StmtKind::While { cond, .. } => need((*cond).into()),
                StmtKind::For { from, to, step, .. } => {
                    [*from, *to, *step].into_iter().for_each(&mut need)
                }
                _ => {}
            }
        }
        for (_, facts) in ops {
            for s in &facts.syncs {
                s.operands(&mut |o, _| need(o));
            }
            for t in &facts.touches {
                if let MemoryRegion::Shared(_, bytes) = t.memory {
                    need(bytes);
                }
            }
        }
        // A word that is followed may end up in any of them.
        let stores = |f: &Facts| {
            let words = f.touches.iter().filter(|t| t.access != AccessKind::Read);
            words.filter_map(tile_of).any(|t| self.words[t.index()])
        };
        for (op, _) in ops.iter().filter(|(_, f)| stores(f)) {
            stored(op).for_each(&mut need);
        }
        loop {
            let before = control.clone();
            for (_, facts) in ops {
                if facts.defs.iter().any(|r| control[r.index()]) {
                    facts.uses().for_each(|r| control[r.index()] = true);
                }
            }
            if control == before {
                break;
            }
        }
        self.control = control;
    }

    /// Does a loop count in a register?
    fn is_counter(&self, kernel: &Kernel, r: RegId) -> bool {
        let mut counts = false;
        kernel.each_stmt(&mut |_, s| {
            counts |= matches!(&s.kind, StmtKind::For { var, .. } if *var == r);
        });
        counts
    }

    fn size(&self) -> usize {
        let count = |v: &[bool]| v.iter().filter(|&&x| x).count();
        count(&self.regs) + count(&self.words)
    }

    fn need(&mut self, o: Operand) {
        if let Operand::Reg(r) = o {
            self.regs[r.index()] = true;
        }
    }

    /// Where an op synchronizes, and what shared memory it touches.
    fn addresses(&mut self, facts: &Facts) {
        for s in &facts.syncs {
            s.operands(&mut |o, _| self.need(o));
        }
        for t in facts.touches.iter().filter(|t| is_shared(t)) {
            t.operands(&mut |o| self.need(o));
        }
    }

    /// What a register that matters follows from.
    fn follow(&mut self, op: &Op, facts: &Facts, uniform: &Uniformity) {
        if facts.defs.iter().any(|r| self.regs[r.index()]) {
            // Values loaded from global memory are unconstrained, whatever the address: only of a
            // word that all lanes read together the address tells which word it is.
            let one = matches!(facts.defs[..], [r] if uniform.reg(r) >= Uniform::Warp
                || self.elected[r.index()]);
            let anything = matches!(op, Op::Load(_))
                && facts.touches.iter().all(|t| tile_of(t).is_none())
                && !one;
            for &(o, _) in facts.reads.iter().filter(|_| !anything) {
                self.need(o);
            }
            for t in &facts.touches {
                if let Some(tile) = tile_of(t).filter(|_| t.access != AccessKind::Write) {
                    self.words[tile.index()] = true;
                }
            }
        }
        let stores = facts
            .touches
            .iter()
            .filter(|t| t.access != AccessKind::Read);
        if stores.filter_map(tile_of).any(|t| self.words[t.index()]) {
            stored(op).for_each(|o| self.need(o));
        }
    }

    /// Conditions of statements that matter; says whether any does.
    fn control(&mut self, block: &Block) -> bool {
        let mut any = false;
        for s in &block.0 {
            any |= self.stmt(s);
        }
        any
    }

    fn stmt(&mut self, s: &Stmt) -> bool {
        match &s.kind {
            StmtKind::Op(op) => self.keeps(&Facts::of(op)),
            StmtKind::If { cond, then, other } => {
                let any = self.control(then) | self.control(other);
                if any {
                    self.need((*cond).into());
                }
                any
            }
            StmtKind::For {
                var,
                from,
                to,
                step,
                body,
                ..
            } => {
                let any = self.control(body) | self.regs[var.index()];
                if any {
                    let all = [*from, *to, *step, (*var).into()];
                    all.into_iter().for_each(|o| self.need(o));
                }
                any
            }
            StmtKind::While { head, cond, body } => {
                let any = self.control(head) | self.control(body);
                if any {
                    self.need((*cond).into());
                }
                any
            }
            StmtKind::Elect { body } => self.control(body),
        }
    }

    /// Does an op matter?
    pub(super) fn keeps(&self, facts: &Facts) -> bool {
        !facts.syncs.is_empty()
            || facts.touches.iter().any(is_shared)
            || facts.defs.iter().any(|r| self.regs[r.index()])
    }
}

/// Registers that an op computes with.
fn computed_with(facts: &Facts) -> impl Iterator<Item = usize> {
    let numbers = facts.reads.iter().filter(|(_, ty)| *ty != Type::Pred);
    numbers.filter_map(|(o, _)| match o {
        Operand::Reg(r) => Some(r.index()),
        _ => None,
    })
}

/// Does a launch decide a special register?
fn is_launched(s: Special) -> bool {
    matches!(
        s,
        Special::CtaId(_)
            | Special::GridDim(_)
            | Special::ClusterId(_)
            | Special::GridClusters(_)
            | Special::SmId
            | Special::SmCount
            | Special::Clock
            | Special::GlobalTimer
    )
}

fn is_shared(t: &MemoryAccess) -> bool {
    match t.memory {
        MemoryRegion::PerLane(MemoryAddress::Shared(_), _)
        | MemoryRegion::View(_)
        | MemoryRegion::Shared(..)
        | MemoryRegion::MatrixRows(..) => true,
        MemoryRegion::PerLane(MemoryAddress::Global { .. }, _)
        | MemoryRegion::Tensor(_)
        | MemoryRegion::Global(..)
        | MemoryRegion::Register(_) => false,
    }
}

pub(super) fn tile_of(t: &MemoryAccess) -> Option<TileId> {
    match t.memory {
        MemoryRegion::PerLane(MemoryAddress::Shared(p), _)
        | MemoryRegion::Shared(p, _)
        | MemoryRegion::MatrixRows(p, _) => Some(p.tile),
        MemoryRegion::View(v) => Some(v.tile),
        _ => None,
    }
}

/// The CTA that an access to shared memory names.
pub(super) fn peer_of(t: &MemoryAccess) -> Option<Operand> {
    match t.memory {
        MemoryRegion::PerLane(MemoryAddress::Shared(p), _)
        | MemoryRegion::Shared(p, _)
        | MemoryRegion::MatrixRows(p, _) => p.peer,
        MemoryRegion::View(v) => v.peer,
        _ => None,
    }
}

/// The words an op stores.
pub(super) fn stored(op: &Op) -> impl Iterator<Item = Operand> {
    let words: &[Operand] = match op {
        Op::Store(s) => &s.src,
        Op::StoreAsync(s) => &s.src,
        Op::Atomic(a) => &a.values,
        Op::AtomicReduce(r) => &r.values,
        _ => &[],
    };
    words.iter().copied()
}

/// Registers that statements inside a block write.
pub(super) fn written(block: &Block) -> HashSet<RegId> {
    let mut regs = HashSet::new();
    block.each(&mut |s| match &s.kind {
        StmtKind::Op(op) => regs.extend(Facts::of(op).defs),
        StmtKind::For { var, .. } => {
            regs.insert(*var);
        }
        _ => {}
    });
    regs
}

/// The constant that an op takes a remainder of.
pub(super) fn modulus(op: &Op) -> Option<u64> {
    match op {
        Op::Rem(o) => o.b.as_imm(),
        Op::And(o) => {
            let mask = o.b.as_imm().or(o.a.as_imm())?;
            (mask & mask.wrapping_add(1) == 0).then_some(mask.wrapping_add(1))
        }
        _ => None,
    }
    .filter(|&m| m > 0)
}

/// The least number that both divide; 0 if one of them is.
pub(super) fn lcm(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x.max(1)).saturating_mul(b)
}

//! The program hash: identifies a program independently of names.
//!
//! The hash covers the canonical text of a kernel. This text numbers
//! parameters, tiles, barriers and roles instead of naming them. It omits
//! source locations and declared bounds, on which no instruction depends. It
//! is also independent of two orders without meaning: the order of the
//! parameters, and the order of pure ops inside a block.
//!
//! A *pure* op only computes: it has results, its operands and results are
//! registers with a single assignment, and it neither accesses memory nor
//! synchronizes. The name of its result is a hash of the expression; the pure
//! ops of a block are sorted. All other statements keep their order, and their
//! results are numbered in that order.

use super::{Names, Printer, hash};
use crate::machine::{Effects, MemoryAccess, MemoryRegion, Special};
use crate::ops::Op;
use crate::program::{Block, Kernel, Stmt, StmtKind};
use crate::sync::SyncOp;
use crate::types::Type;
use crate::value::{BarId, NamedId, Operand, ParamId, RegId, RoleId, TileId};
use std::cell::RefCell;
use std::fmt::Write;

impl Kernel {
    /// Returns the identity of the program.
    ///
    /// Kernels with the same program hash differ at most in names,
    /// in source locations, in declared bounds, in the order of their
    /// parameters and in the order of independent pure ops inside a block.
    ///
    /// ```
    /// use warpline_ir::{Kernel, Target};
    /// use warpline_ir::builder::*;
    /// # fn main() -> Result<(), warpline_ir::BuildErrors> {
    /// let kernel = |name: &str, param: &str, by: u32| {
    ///     Kernel::build(name, &Target::SM_90A, |k| {
    ///         let out = k.pointer::<u32>(param);
    ///         k.role("all").body(|| out.store(lane_id(), lane_id() * by));
    ///     })
    /// };
    /// assert_eq!(kernel("a", "x", 2)?.program_hash(), kernel("b", "y", 2)?.program_hash());
    /// assert_ne!(kernel("a", "x", 2)?.program_hash(), kernel("a", "x", 3)?.program_hash());
    /// # Ok(())
    /// # }
    /// ```
    pub fn program_hash(&self) -> String {
        hash(&CanonicalNames::new(self).text())
    }
}

/// The canonical names of a kernel's registers, parameters, tiles, barriers and roles.
struct CanonicalNames<'a> {
    kernel: &'a Kernel,
    /// For each register: the pure op that computes it, and the index of the result.
    pure: Vec<Option<(&'a Op, usize)>>,
    names: RefCell<AssignedNames>,
}

/// The names assigned so far.
struct AssignedNames {
    regs: Vec<Option<String>>,
    next_reg: u32,
    /// The number of each parameter.
    params: Vec<Option<u32>>,
    next_param: u32,
}

/// The registers and parameters of an op, and whether it has side effects.
#[derive(Default)]
struct Uses {
    defs: Vec<RegId>,
    reads: Vec<RegId>,
    params: Vec<ParamId>,
    has_effects: bool,
}

impl Uses {
    fn of(op: &Op) -> Self {
        let mut uses = Self::default();
        op.effects(&mut uses);
        match op {
            // A clock has a different value at every program point.
            Op::ReadSpecial(read) => {
                uses.has_effects |= matches!(read.which, Special::Clock | Special::GlobalTimer);
            }
            Op::ReadParam(read) => uses.params.push(read.param),
            Op::TensorPrefetch(prefetch) => uses.params.push(prefetch.map),
            _ => {}
        }
        uses.has_effects |= uses.defs.is_empty();
        uses
    }
}

impl Effects for Uses {
    fn def(&mut self, r: RegId) {
        self.defs.push(r);
    }
    fn arg(&mut self, o: Operand, _: Type) {
        self.reads.extend(o.as_reg());
    }
    fn access(&mut self, t: &MemoryAccess) {
        self.has_effects = true;
        if let MemoryRegion::Tensor(p) = &t.memory {
            self.params.push(*p);
        }
        t.operands(&mut |o| self.reads.extend(o.as_reg()));
    }
    fn sync(&mut self, s: &SyncOp) {
        self.has_effects = true;
        s.operands(&mut |o, _| self.reads.extend(o.as_reg()));
    }
    fn whole_warp(&mut self) {
        self.has_effects = true;
    }
}

impl<'a> CanonicalNames<'a> {
    fn new(kernel: &'a Kernel) -> Self {
        let mut assigned = vec![0u32; kernel.regs.len()];
        kernel.each_stmt(&mut |_, s| match &s.kind {
            StmtKind::Op(op) => {
                Uses::of(op)
                    .defs
                    .iter()
                    .for_each(|r| assigned[r.index()] += 1);
            }
            StmtKind::For { var, .. } => assigned[var.index()] += 1,
            _ => {}
        });
        let mut pure = vec![None; kernel.regs.len()];
        kernel.each_stmt(&mut |_, s| {
            let StmtKind::Op(op) = &s.kind else { return };
            let uses = Uses::of(op);
            let mut regs = uses.defs.iter().chain(&uses.reads);
            if !uses.has_effects && regs.all(|r| assigned[r.index()] == 1) {
                for (i, r) in uses.defs.iter().enumerate() {
                    pure[r.index()] = Some((op, i));
                }
            }
        });
        Self {
            kernel,
            pure,
            names: RefCell::new(AssignedNames {
                regs: vec![None; kernel.regs.len()],
                next_reg: 0,
                params: vec![None; kernel.params.len()],
                next_param: 0,
            }),
        }
    }

    fn printer(&self) -> Printer<'_> {
        Printer {
            kernel: self.kernel,
            names: self,
        }
    }

    fn text(&self) -> String {
        let printer = self.printer();
        // The ordered statements determine the names, so all names are assigned before the
        // first pure op is printed.
        for (_, block) in printer.sections() {
            self.name_block(block);
        }
        // The results that no statement uses get the last names.
        let pure = (0..).zip(&self.pure).filter(|(_, op)| op.is_some());
        pure.for_each(|(r, _)| self.name_register(RegId(r)));

        let mut params: Vec<_> = (0..self.kernel.params.len() as u32).map(ParamId).collect();
        params.sort_by_cached_key(|&p| {
            let number = self.names.borrow().params[p.index()];
            (number.unwrap_or(u32::MAX), printer.param(p))
        });
        let params = params.into_iter().map(|p| printer.param(p));
        let declared = [printer.resources()].into_iter().chain(params);
        let mut out = String::new();
        declared
            .chain(printer.shared_memory())
            .for_each(|line| out += &format!("{line}\n"));
        for (title, block) in printer.sections() {
            out += &format!("{title} {{\n");
            self.block(&mut out, block);
            out += "}\n";
        }
        out
    }

    /// Returns whether the statement is a pure op.
    fn is_pure(&self, s: &Stmt) -> bool {
        let StmtKind::Op(op) = &s.kind else {
            return false;
        };
        let first = Uses::of(op).defs.into_iter().next();
        first.is_some_and(|r| self.pure[r.index()].is_some())
    }

    /// Names the registers and parameters of a block, in statement order.
    fn name_block(&self, block: &Block) {
        for s in block.0.iter().filter(|s| !self.is_pure(s)) {
            match &s.kind {
                StmtKind::Op(op) => {
                    let uses = Uses::of(op);
                    uses.reads.iter().for_each(|&r| self.name_register(r));
                    uses.params.iter().for_each(|&p| self.number_param(p));
                    uses.defs.iter().for_each(|&r| self.name_register(r));
                }
                StmtKind::If { cond, then, other } => {
                    self.name_register(*cond);
                    self.name_block(then);
                    self.name_block(other);
                }
                StmtKind::For {
                    var,
                    from,
                    to,
                    step,
                    body,
                    ..
                } => {
                    let bounds = [from, to, step].into_iter().filter_map(|o| o.as_reg());
                    bounds.chain([*var]).for_each(|r| self.name_register(r));
                    self.name_block(body);
                }
                StmtKind::While { head, cond, body } => {
                    self.name_block(head);
                    self.name_register(*cond);
                    self.name_block(body);
                }
                StmtKind::Elect { body } => self.name_block(body),
            }
        }
    }

    /// Numbers a parameter.
    fn number_param(&self, p: ParamId) {
        let names = &mut *self.names.borrow_mut();
        let number = &mut names.params[p.index()];
        if number.is_none() {
            *number = Some(names.next_param);
            names.next_param += 1;
        }
    }

    /// Names a register, after the registers that its expression reads.
    fn name_register(&self, r: RegId) {
        // Expressions may be deep, so the traversal uses an explicit stack.
        let mut stack = vec![(r, false)];
        while let Some((r, ready)) = stack.pop() {
            if self.names.borrow().regs[r.index()].is_some() {
                continue;
            }
            let Some((op, _)) = self.pure[r.index()] else {
                let mut names = self.names.borrow_mut();
                names.regs[r.index()] = Some(format!("%{}", names.next_reg));
                names.next_reg += 1;
                continue;
            };
            let uses = Uses::of(op);
            if !ready {
                stack.push((r, true));
                stack.extend(uses.reads.iter().rev().map(|&r| (r, false)));
                continue;
            }
            uses.params.iter().for_each(|&p| self.number_param(p));
            let types = uses.defs.iter().map(|&r| self.kernel.ty(r).to_string());
            let types: Vec<_> = types.collect();
            let (_, expression) = self.printer().op(op);
            let expression = hash(&format!("{} = {expression}", types.join(", ")));
            let mut names = self.names.borrow_mut();
            for (i, r) in uses.defs.iter().enumerate() {
                names.regs[r.index()] = Some(format!("{expression}.{i}"));
            }
        }
    }

    fn block(&self, out: &mut String, block: &Block) {
        let (pure, others): (Vec<_>, Vec<_>) = block.0.iter().partition(|s| self.is_pure(s));
        let mut lines: Vec<_> = pure.iter().map(|s| self.printer().head(&s.kind)).collect();
        lines.sort_unstable();
        lines.iter().for_each(|line| *out += &format!("{line}\n"));
        for s in others {
            let _ = writeln!(out, "{} {{", self.printer().head(&s.kind));
            let mut nested = |title: &str, block: &Block| {
                *out += title;
                self.block(out, block);
            };
            match &s.kind {
                StmtKind::Op(_) => {}
                StmtKind::If { then, other, .. } => {
                    nested("then\n", then);
                    nested("else\n", other);
                }
                StmtKind::For { body, .. } | StmtKind::Elect { body } => nested("", body),
                StmtKind::While { head, cond, body } => {
                    nested("head\n", head);
                    nested(&format!("while {}\n", self.reg(*cond)), body);
                }
            }
            *out += "}\n";
        }
    }
}

impl Names for CanonicalNames<'_> {
    fn reg(&self, r: RegId) -> String {
        let name = &self.names.borrow().regs[r.index()];
        name.clone().unwrap_or_default()
    }
    fn param(&self, p: ParamId) -> String {
        let number = self.names.borrow().params[p.index()];
        number.map_or("unused".to_owned(), |n| n.to_string())
    }
    fn tile(&self, t: TileId) -> String {
        t.to_string()
    }
    fn barrier(&self, b: BarId) -> String {
        b.to_string()
    }
    fn named(&self, n: NamedId) -> String {
        n.to_string()
    }
    fn role(&self, r: RoleId) -> String {
        r.to_string()
    }
    /// Returns the word that the hashes of the GPU ledger were recorded with; another word would
    /// invalidate them.
    fn pdl_safe(&self) -> &'static str {
        " settled"
    }
}

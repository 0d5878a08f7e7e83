//! Prints statements as labels and branches.
//!
//! Divergent lanes reconverge at the label that ends the statement. The printer writes `bra.uni`
//! only where the branch is uniform in the warp.

use crate::asm::Writer;
use warpline_check::Uniformity;
use warpline_ir::{Asm, Block, Operand, RegId, Stmt, StmtKind, Type, Uniform};

/// Prints blocks.
pub(crate) struct Flow<'a, 'k> {
    pub(crate) asm: &'a mut Writer<'k>,
    pub(crate) uniformity: &'a Uniformity,
    /// Whether the code is inside an `elect`.
    pub(crate) elected: bool,
}

impl<'k> Flow<'_, 'k> {
    /// Prints statements in order.
    pub(crate) fn block(&mut self, block: &'k Block) {
        for stmt in &block.0 {
            self.asm.set_location(stmt.loc);
            match &stmt.kind {
                StmtKind::Op(op) => op.asm(self.asm),
                StmtKind::If { cond, then, other } => self.if_else(*cond, then, other),
                StmtKind::For {
                    var,
                    from,
                    to,
                    step,
                    body,
                    unroll,
                } => {
                    self.for_loop(stmt, *var, [*from, *to, *step], body, *unroll);
                }
                StmtKind::While { head, cond, body } => self.while_loop(stmt, head, *cond, body),
                StmtKind::Elect { body } => self.elect(body),
            }
        }
    }

    /// Prints a block one indentation step deeper.
    fn nested_block(&mut self, block: &'k Block) {
        self.asm.depth += 1;
        self.block(block);
        self.asm.depth -= 1;
    }

    /// Returns `bra.uni` for a warp-uniform branch, else `bra`.
    fn branch_opcode(&self, uniform: Uniform) -> &'static str {
        if uniform >= Uniform::Warp {
            "bra.uni"
        } else {
            "bra"
        }
    }

    fn if_else(&mut self, cond: RegId, then: &'k Block, other: &'k Block) {
        let n = self.asm.next_label();
        let (p, bra) = (
            self.asm.reg(cond),
            self.branch_opcode(self.uniformity.reg(cond)),
        );
        let (otherwise, end) = (format!("$else_{n}"), format!("$end_if_{n}"));
        let first = if other.0.is_empty() { &end } else { &otherwise };
        self.asm.instruction(&format!("@!{p} {bra} {first}"));
        self.nested_block(then);
        if !other.0.is_empty() {
            self.asm.instruction(&format!("bra.uni {end}"));
            self.asm.place_label(&otherwise);
            self.nested_block(other);
        }
        self.asm.place_label(&end);
    }

    fn for_loop(
        &mut self,
        stmt: &'k Stmt,
        var: RegId,
        [from, to, step]: [Operand; 3],
        body: &'k Block,
        unroll: Option<u32>,
    ) {
        let n = self.asm.next_label();
        let (again, end) = (format!("$for_{n}"), format!("$end_for_{n}"));
        let bra = self.branch_opcode(self.uniformity.inside(stmt));
        let ty = self.asm.kernel.ty(var);
        let (i, in_range) = (self.asm.reg(var), self.asm.temp(Type::Pred));
        let from = self.asm.operand(from, ty);
        self.asm.instruction(&format!("mov.b32 {i}, {from}"));
        let limit = self.asm.operand(to, ty);
        let test = format!("setp.lt.{} {in_range}, {i}, {limit}", ty.ptx());
        self.asm.instruction(&test);
        self.asm.instruction(&format!("@!{in_range} {bra} {end}"));
        self.asm.place_label(&again);
        if unroll == Some(1) {
            self.asm.instruction(".pragma \"nounroll\"");
        }
        self.nested_block(body);
        self.asm.set_location(stmt.loc);
        let step = self.asm.operand(step, ty);
        self.asm
            .instruction(&format!("add.{} {i}, {i}, {step}", ty.ptx()));
        self.asm.instruction(&test);
        self.asm.instruction(&format!("@{in_range} {bra} {again}"));
        self.asm.place_label(&end);
    }

    fn while_loop(&mut self, stmt: &'k Stmt, head: &'k Block, cond: RegId, body: &'k Block) {
        let n = self.asm.next_label();
        let (again, end) = (format!("$while_{n}"), format!("$end_while_{n}"));
        let (p, bra) = (
            self.asm.reg(cond),
            self.branch_opcode(self.uniformity.reg(cond)),
        );
        self.asm.place_label(&again);
        self.nested_block(head);
        self.asm.set_location(stmt.loc);
        self.asm.instruction(&format!("@!{p} {bra} {end}"));
        self.nested_block(body);
        self.asm.instruction(&format!("bra.uni {again}"));
        self.asm.place_label(&end);
    }

    fn elect(&mut self, body: &'k Block) {
        // A nested elect selects the same lane, and `elect.sync` needs the whole warp.
        if self.elected {
            return self.block(body);
        }
        let n = self.asm.next_label();
        let end = format!("$end_elect_{n}");
        let leader = self.asm.temp(Type::Pred);
        self.asm
            .instruction(&format!("elect.sync _|{leader}, 0xffffffff"));
        self.asm.instruction(&format!("@!{leader} bra {end}"));
        self.elected = true;
        self.nested_block(body);
        self.elected = false;
        self.asm.place_label(&end);
    }
}

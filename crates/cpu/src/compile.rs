//! Compiles the statement tree to linear code that a warp can suspend and resume.
//!
//! Each role becomes one list of [`Inst`]: prologue, body, epilogue. Control flow uses the active
//! mask and a stack of saved masks:
//!
//! ```text
//! if c { A } else { B }      If c → L1 · A · Else → L2 · L1: B · L2: Pop
//! for v in a..b by s { A }   For v a · L1: Below v b → L2 · A · Next v s → L1 · L2:
//! while { H; c } { A }       Push · L1: H · While c → L2 · A · Jump L1 · L2:
//! elect { A }                Elect · A · Pop
//! ```
//!
//! Lanes that leave a loop early are masked off until all lanes have left it. An `if` runs `then`
//! before `else`: if `then` waits for `else`, the warp deadlocks, as it may on hardware.

use crate::facts::{EffectsCollector, Facts};
use std::collections::HashSet;
use warpline_ir::{Block, Kernel, Loc, Op, Operand, RegId, RoleId, Stmt, StmtKind, Type};

/// One instruction of a warp.
#[derive(Debug)]
pub(crate) enum Inst<'k> {
    /// An op and its site.
    Op(&'k Op, u32),
    /// Splits the mask; jumps if no lane takes `then`.
    If {
        cond: RegId,
        other: u32,
        branch: u32,
    },
    /// Activates the lanes of the other branch; jumps if there are none.
    Else { end: u32 },
    /// Restores the mask before the last split.
    Pop,
    /// Saves the mask.
    Push { branch: u32 },
    /// Saves the mask and initializes the loop variable.
    For {
        var: RegId,
        from: Operand,
        branch: u32,
    },
    /// Keeps the lanes whose loop variable is below the end; exits if there are none.
    Below {
        var: RegId,
        to: Operand,
        signed: bool,
        exit: u32,
        branch: u32,
    },
    /// Increments the loop variable and jumps back.
    Next {
        var: RegId,
        step: Operand,
        head: u32,
    },
    /// Keeps the lanes whose predicate is set; exits if there are none.
    While { cond: RegId, exit: u32, branch: u32 },
    /// Jumps.
    Jump(u32),
    /// Keeps one lane.
    Elect,
    /// Ends the role.
    Exit,
}

/// An op at its location, referenced by counters, faults and races.
#[derive(Debug)]
pub(crate) struct OpSite<'k> {
    pub(crate) op: &'k Op,
    pub(crate) role: RoleId,
    pub(crate) loc: Loc,
    pub(crate) facts: Facts,
}

/// An `if` or a loop at its location, referenced by counters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BranchSite {
    pub(crate) role: RoleId,
    pub(crate) loc: Loc,
}

/// The position of a register in the register file of a warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RegisterSlot(pub(crate) u32);

/// The code of one role.
#[derive(Debug)]
pub(crate) struct RoleCode<'k> {
    pub(crate) insts: Vec<Inst<'k>>,
    /// By register: its first 8-byte word in the register file, or its index among the predicates.
    slots: Vec<RegisterSlot>,
    /// The 8-byte words of a warp's register file.
    pub(crate) words: usize,
    /// The number of predicates of a warp.
    pub(crate) preds: usize,
    /// Whether the role runs wgmmas; only then can registers be in flight.
    pub(crate) uses_wgmma: bool,
}

/// A compiled kernel.
#[derive(Debug)]
pub(crate) struct Code<'k> {
    pub(crate) roles: Vec<RoleCode<'k>>,
    pub(crate) sites: Vec<OpSite<'k>>,
    pub(crate) branches: Vec<BranchSite>,
    /// Whether any role runs `setmaxnreg`.
    pub(crate) runs_setmaxnreg: bool,
    /// Whether the kernel uses `cp.async`.
    pub(crate) uses_cp_async: bool,
    /// Whether the kernel uses bulk groups.
    pub(crate) uses_bulk_groups: bool,
    /// Whether the kernel invalidates mbarriers.
    pub(crate) invalidates_mbarriers: bool,
    /// Whether the kernel has fences that order relaxed accesses.
    pub(crate) has_order_fences: bool,
    /// Whether CTAs communicate through global memory.
    pub(crate) communicates: bool,
    /// An undeclared object that the kernel uses; the builder never produces one.
    pub(crate) undeclared: Option<String>,
}

impl RoleCode<'_> {
    /// Returns the position of a register. Registers that the role does not use share the first
    /// words of the register file.
    #[inline]
    pub(crate) fn register_slot(&self, r: RegId) -> RegisterSlot {
        self.slots[r.index()]
    }

    /// Returns the number of registers of the kernel.
    pub(crate) fn registers(&self) -> usize {
        self.slots.len()
    }
}

/// The 8-byte words of the widest register: 32 lanes of 8 bytes.
const WIDEST_REGISTER: usize = 32;

/// Compiles a kernel.
pub(crate) fn compile(kernel: &Kernel) -> Code<'_> {
    let mut code = Code {
        roles: Vec::new(),
        sites: Vec::new(),
        branches: Vec::new(),
        runs_setmaxnreg: false,
        uses_cp_async: false,
        uses_bulk_groups: false,
        invalidates_mbarriers: false,
        has_order_fences: false,
        communicates: kernel.co_resident,
        undeclared: None,
    };
    for (i, role) in kernel.roles.iter().enumerate() {
        let mut c = Compiler {
            kernel,
            code: &mut code,
            role: RoleId(i as u32),
            insts: Vec::new(),
            used: HashSet::new(),
            uses_wgmma: false,
        };
        for b in [&kernel.prologue, &role.body, &kernel.epilogue] {
            c.block(b);
        }
        c.insts.push(Inst::Exit);
        let role_code = c.finish();
        code.roles.push(role_code);
    }
    code
}

struct Compiler<'k, 'c> {
    kernel: &'k Kernel,
    code: &'c mut Code<'k>,
    role: RoleId,
    insts: Vec<Inst<'k>>,
    used: HashSet<RegId>,
    uses_wgmma: bool,
}

impl<'k> Compiler<'k, '_> {
    fn next_index(&self) -> u32 {
        self.insts.len() as u32
    }

    fn record_operand(&mut self, o: Operand) {
        self.used.extend(o.as_reg());
    }

    /// Adds a branch site; returns its index.
    fn add_branch(&mut self, loc: Loc) -> u32 {
        let role = self.role;
        self.code.branches.push(BranchSite { role, loc });
        self.code.branches.len() as u32 - 1
    }

    fn block(&mut self, b: &'k Block) {
        for s in &b.0 {
            self.stmt(s);
        }
    }

    fn stmt(&mut self, s: &'k Stmt) {
        match &s.kind {
            StmtKind::Op(op) => self.op(op, s.loc),
            StmtKind::If { cond, then, other } => {
                self.used.insert(*cond);
                let branch = self.add_branch(s.loc);
                let split = self.insts.len();
                self.insts.push(Inst::Pop);
                self.block(then);
                let skip = self.insts.len();
                self.insts.push(Inst::Pop);
                self.insts[split] = Inst::If {
                    cond: *cond,
                    other: self.next_index(),
                    branch,
                };
                self.block(other);
                self.insts[skip] = Inst::Else {
                    end: self.next_index(),
                };
                self.insts.push(Inst::Pop);
            }
            StmtKind::For {
                var,
                from,
                to,
                step,
                body,
                ..
            } => {
                self.used.insert(*var);
                for o in [from, to, step] {
                    self.record_operand(*o);
                }
                let branch = self.add_branch(s.loc);
                self.insts.push(Inst::For {
                    var: *var,
                    from: *from,
                    branch,
                });
                let head = self.insts.len();
                self.insts.push(Inst::Pop);
                self.block(body);
                self.insts.push(Inst::Next {
                    var: *var,
                    step: *step,
                    head: head as u32,
                });
                self.insts[head] = Inst::Below {
                    var: *var,
                    to: *to,
                    signed: matches!(self.kernel.regs.get(var.index()), Some(r) if r.ty == Type::I32),
                    exit: self.next_index(),
                    branch,
                };
            }
            StmtKind::While { head, cond, body } => {
                self.used.insert(*cond);
                let branch = self.add_branch(s.loc);
                self.insts.push(Inst::Push { branch });
                let start = self.next_index();
                self.block(head);
                let test = self.insts.len();
                self.insts.push(Inst::Pop);
                self.block(body);
                self.insts.push(Inst::Jump(start));
                self.insts[test] = Inst::While {
                    cond: *cond,
                    exit: self.next_index(),
                    branch,
                };
            }
            StmtKind::Elect { body } => {
                self.insts.push(Inst::Elect);
                self.block(body);
                self.insts.push(Inst::Pop);
            }
        }
    }

    fn op(&mut self, op: &'k Op, loc: Loc) {
        let effects = EffectsCollector::of(self.kernel, op);
        self.used.extend(effects.regs);
        self.uses_wgmma |= effects.uses_wgmma;
        self.code.runs_setmaxnreg |= effects.runs_setmaxnreg;
        self.code.uses_cp_async |= effects.uses_cp_async;
        self.code.uses_bulk_groups |= effects.uses_bulk_groups;
        self.code.invalidates_mbarriers |= effects.invalidates_mbarriers;
        self.code.has_order_fences |= effects.has_order_fences;
        self.code.communicates |= effects.communicates;
        let undeclared = &mut self.code.undeclared;
        *undeclared = undeclared.take().or(effects.undeclared);
        let site = self.code.sites.len() as u32;
        self.insts.push(Inst::Op(op, site));
        self.code.sites.push(OpSite {
            op,
            role: self.role,
            loc,
            facts: effects.facts,
        });
    }

    fn finish(self) -> RoleCode<'k> {
        let regs = self.kernel.regs.len();
        if let Some(r) = self.used.iter().find(|r| r.index() >= regs) {
            self.code.undeclared = Some(format!("register {r}"));
        }
        let mut words = WIDEST_REGISTER;
        let mut preds = 1;
        let mut slots = vec![RegisterSlot(0); regs];
        for (i, info) in self.kernel.regs.iter().enumerate() {
            if !self.used.contains(&RegId(i as u32)) {
                continue;
            }
            let next = if info.ty == Type::Pred {
                &mut preds
            } else {
                &mut words
            };
            slots[i] = RegisterSlot(*next as u32);
            *next += (info.ty.bytes() * 4).max(1);
        }
        RoleCode {
            insts: self.insts,
            slots,
            // A read of the widest type stays in bounds for every register.
            words: words + WIDEST_REGISTER,
            preds,
            uses_wgmma: self.uses_wgmma,
        }
    }
}

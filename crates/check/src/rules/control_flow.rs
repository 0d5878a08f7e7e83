//! The control flow of a kernel as a tree of op indices, and the definitions of registers.

use super::OpSite;
use std::ops::Range;
use warpline_ir::{AccessKind, Block, Kernel, Loc, MemoryRegion, Operand, RegId, RoleId, StmtKind};

/// One statement; an op is its index among the ops of the kernel.
pub(crate) enum Node {
    Op(usize),
    If {
        cond: RegId,
        arms: [Vec<Node>; 2],
    },
    Elect(Vec<Node>),
    /// The index of a loop, its head and its body.
    Loop(usize, Vec<Node>, Vec<Node>),
}

/// A loop.
pub(crate) struct Loop {
    pub(super) kind: LoopKind,
    pub(super) loc: Loc,
    pub(super) role: Option<RoleId>,
    /// The ops inside the loop.
    pub(super) ops: Range<usize>,
    /// The number of conditions that enclose the loop.
    depth: usize,
}

#[derive(Clone, Copy)]
pub(crate) enum LoopKind {
    For {
        from: Operand,
        to: Operand,
        step: Operand,
    },
    While {
        cond: RegId,
    },
}

/// A condition that decides whether an op runs.
#[derive(Clone, Copy)]
pub(crate) struct Guard {
    pub(super) cond: RegId,
    /// The value of the condition for which the op runs.
    pub(super) holds: bool,
    parent: Option<usize>,
    depth: usize,
}

/// A definition of a register.
#[derive(Clone, Copy)]
pub(crate) enum Def {
    /// By the op of this index.
    Op(usize),
    /// By the loop of this index, as its counter.
    Counter(usize),
}

/// The control flow of a kernel.
pub(crate) struct Code {
    prologue: Vec<Node>,
    roles: Vec<Vec<Node>>,
    epilogue: Vec<Node>,
    pub(super) loops: Vec<Loop>,
    guards: Vec<Guard>,
    /// By op: the innermost guard.
    guard_of: Vec<Option<usize>>,
    /// By register.
    defs: Vec<Vec<Def>>,
}

impl Code {
    pub(super) fn of(kernel: &Kernel, ops: &[OpSite]) -> Self {
        let mut code = Self {
            prologue: Vec::new(),
            roles: Vec::new(),
            epilogue: Vec::new(),
            loops: Vec::new(),
            guards: Vec::new(),
            guard_of: Vec::with_capacity(ops.len()),
            defs: vec![Vec::new(); kernel.regs.len()],
        };
        code.prologue = code.block(&kernel.prologue, None, None);
        for (i, role) in kernel.roles.iter().enumerate() {
            let nodes = code.block(&role.body, Some(RoleId(i as u32)), None);
            code.roles.push(nodes);
        }
        code.epilogue = code.block(&kernel.epilogue, None, None);
        for op in ops {
            for r in &op.facts.defs {
                code.defs[r.index()].push(Def::Op(op.id));
            }
            // An asynchronous engine writes registers as well.
            for t in op
                .facts
                .touches
                .iter()
                .filter(|t| t.access != AccessKind::Read)
            {
                if let MemoryRegion::Register(r) = t.memory {
                    code.defs[r.index()].push(Def::Op(op.id));
                }
            }
        }
        code
    }

    fn block(&mut self, block: &Block, role: Option<RoleId>, guard: Option<usize>) -> Vec<Node> {
        let mut nodes = Vec::with_capacity(block.0.len());
        for s in &block.0 {
            let first = self.guard_of.len();
            let depth = guard.map_or(0, |g| self.guards[g].depth);
            nodes.push(match &s.kind {
                StmtKind::Op(_) => {
                    self.guard_of.push(guard);
                    Node::Op(first)
                }
                StmtKind::If { cond, then, other } => {
                    let arms = [(then, true), (other, false)].map(|(block, holds)| {
                        let guard = self.guard(*cond, holds, guard);
                        self.block(block, role, Some(guard))
                    });
                    Node::If { cond: *cond, arms }
                }
                StmtKind::Elect { body } => Node::Elect(self.block(body, role, guard)),
                StmtKind::For {
                    var,
                    from,
                    to,
                    step,
                    body,
                    ..
                } => {
                    let id = self.loops.len();
                    let [from, to, step] = [*from, *to, *step];
                    self.loops.push(Loop {
                        kind: LoopKind::For { from, to, step },
                        loc: s.loc,
                        role,
                        ops: first..first,
                        depth,
                    });
                    self.defs[var.index()].push(Def::Counter(id));
                    let body = self.block(body, role, guard);
                    self.loops[id].ops.end = self.guard_of.len();
                    Node::Loop(id, Vec::new(), body)
                }
                StmtKind::While { head, cond, body } => {
                    let id = self.loops.len();
                    self.loops.push(Loop {
                        kind: LoopKind::While { cond: *cond },
                        loc: s.loc,
                        role,
                        ops: first..first,
                        depth,
                    });
                    let head = self.block(head, role, guard);
                    let inside = self.guard(*cond, true, guard);
                    let body = self.block(body, role, Some(inside));
                    self.loops[id].ops.end = self.guard_of.len();
                    Node::Loop(id, head, body)
                }
            });
        }
        nodes
    }

    fn guard(&mut self, cond: RegId, holds: bool, parent: Option<usize>) -> usize {
        let depth = parent.map_or(0, |g| self.guards[g].depth) + 1;
        self.guards.push(Guard {
            cond,
            holds,
            parent,
            depth,
        });
        self.guards.len() - 1
    }

    /// Returns the statements that the threads of a role run, in order.
    pub(super) fn role(&self, role: usize) -> [&[Node]; 3] {
        [&self.prologue, &self.roles[role], &self.epilogue]
    }

    /// Returns the definitions of a register.
    pub(super) fn defs(&self, r: RegId) -> &[Def] {
        &self.defs[r.index()]
    }

    /// Returns the conditions that decide whether an op runs, innermost first.
    pub(super) fn guards(&self, op: usize) -> impl Iterator<Item = Guard> {
        let at = |g: usize| self.guards[g];
        std::iter::successors(self.guard_of[op].map(at), move |g| g.parent.map(at))
    }

    /// Returns the guards of an op that are inside the loop `around`, innermost first.
    pub(super) fn guards_in(&self, op: usize, around: &Loop) -> impl Iterator<Item = Guard> {
        let depth = around.depth;
        self.guards(op).take_while(move |g| g.depth > depth)
    }
}

//! Mutations of statements: synchronization is dropped, doubled, moved or weakened.

use crate::rng::Rng;
use serde::{Deserialize, Serialize};
use warpline_ir::{
    Block, FenceKind, Kernel, MemoryAddress, Op, Operand, RegId, Scope, Semantics, Stmt, StmtKind,
};

/// A mutation: a kind and a site.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FuzzMutation {
    /// The kind.
    pub kind: FuzzMutationKind,
    /// The index among the statements of the kernel that the kind applies to.
    pub site: usize,
}

/// The kind of a mutation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FuzzMutationKind {
    /// Drops a statement.
    Drop,
    /// Doubles a statement.
    Twice,
    /// Swaps a statement with the next one.
    Swap,
    /// Runs a statement only in lanes that a table selects.
    Branch,
    /// Changes a constant of a synchronization op.
    Constant,
    /// Weakens a scope, a memory order, a fence or a wait.
    Weaken,
}

impl FuzzMutationKind {
    /// All kinds.
    pub const ALL: [FuzzMutationKind; 6] = [
        FuzzMutationKind::Drop,
        FuzzMutationKind::Twice,
        FuzzMutationKind::Swap,
        FuzzMutationKind::Branch,
        FuzzMutationKind::Constant,
        FuzzMutationKind::Weaken,
    ];

    /// Returns the name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            FuzzMutationKind::Drop => "drop",
            FuzzMutationKind::Twice => "twice",
            FuzzMutationKind::Swap => "swap",
            FuzzMutationKind::Branch => "branch",
            FuzzMutationKind::Constant => "constant",
            FuzzMutationKind::Weaken => "weaken",
        }
    }
}

/// Returns a random mutation of a kernel, if the picked kind applies.
pub fn random(kernel: &Kernel, rng: &mut Rng) -> Option<FuzzMutation> {
    let kind = rng.pick(&FuzzMutationKind::ALL);
    let sites = count_sites(kernel, kind);
    (sites > 0).then(|| FuzzMutation {
        kind,
        site: rng.below(sites),
    })
}

/// Returns the number of statements that a kind applies to.
pub fn count_sites(kernel: &Kernel, kind: FuzzMutationKind) -> usize {
    let mut editor = Editor {
        kind,
        target: usize::MAX,
        selected: None,
        seen: 0,
    };
    editor.visit_kernel(&mut kernel.clone());
    editor.seen
}

/// Returns the mutated kernel; `None` if the site does not exist.
pub fn apply(kernel: &Kernel, mutation: FuzzMutation) -> Option<Kernel> {
    let mut changed = kernel.clone();
    let mut editor = Editor {
        kind: mutation.kind,
        target: mutation.site,
        selected: None,
        seen: 0,
    };
    editor.visit_kernel(&mut changed);
    (editor.seen > mutation.site).then_some(changed)
}

struct Editor {
    kind: FuzzMutationKind,
    /// The site to edit.
    target: usize,
    /// The data-dependent predicate of the current role.
    selected: Option<RegId>,
    /// The number of sites visited.
    seen: usize,
}

impl Editor {
    fn visit_kernel(&mut self, kernel: &mut Kernel) {
        for role in &mut kernel.roles {
            self.selected = role.body.0.iter().find_map(|s| match &s.kind {
                StmtKind::Op(Op::Setp(p)) => Some(p.dst),
                _ => None,
            });
            self.visit_block(&mut role.body);
        }
    }

    /// Counts a site, and returns whether it is the site to edit.
    fn visit_site(&mut self) -> bool {
        self.seen += 1;
        self.seen - 1 == self.target
    }

    fn visit_block(&mut self, block: &mut Block) {
        let mut i = 0;
        while i < block.0.len() {
            if self.applies(&block.0, i) && self.visit_site() {
                self.edit(&mut block.0, i);
                return;
            }
            match &mut block.0[i].kind {
                StmtKind::Op(_) => {}
                StmtKind::If { then, other, .. } => {
                    self.visit_block(then);
                    self.visit_block(other);
                }
                StmtKind::For { body, .. } | StmtKind::Elect { body } => self.visit_block(body),
                StmtKind::While { head, body, .. } => {
                    self.visit_block(head);
                    self.visit_block(body);
                }
            }
            i += 1;
        }
    }

    fn applies(&self, stmts: &[Stmt], i: usize) -> bool {
        let synchronizes = any_op(&stmts[i], &is_sync);
        match self.kind {
            FuzzMutationKind::Drop | FuzzMutationKind::Twice => synchronizes,
            FuzzMutationKind::Swap => {
                let next = stmts.get(i + 1);
                let acts = |s: &Stmt| any_op(s, &|op| is_sync(op) || is_access(op));
                (synchronizes && next.is_some_and(acts))
                    || (acts(&stmts[i]) && next.is_some_and(|s| any_op(s, &is_sync)))
            }
            FuzzMutationKind::Branch => {
                let is_sync_or_access =
                    matches!(&stmts[i].kind, StmtKind::Op(op) if is_sync(op) || is_access(op));
                is_sync_or_access && self.selected.is_some()
            }
            FuzzMutationKind::Constant => {
                matches!(&stmts[i].kind, StmtKind::Op(op) if change_constant(&mut op.clone()))
            }
            FuzzMutationKind::Weaken => {
                matches!(&stmts[i].kind, StmtKind::Op(op) if weaken(&mut op.clone()))
            }
        }
    }

    fn edit(&self, stmts: &mut Vec<Stmt>, i: usize) {
        match self.kind {
            FuzzMutationKind::Drop => {
                stmts.remove(i);
            }
            FuzzMutationKind::Twice => {
                let copy = stmts[i].clone();
                stmts.insert(i, copy);
            }
            FuzzMutationKind::Swap => stmts.swap(i, i + 1),
            FuzzMutationKind::Branch => {
                if let Some(cond) = self.selected {
                    let loc = stmts[i].loc;
                    let then = Block(vec![stmts.remove(i)]);
                    let other = Block::default();
                    let kind = StmtKind::If { cond, then, other };
                    stmts.insert(i, Stmt { kind, loc });
                }
            }
            FuzzMutationKind::Constant | FuzzMutationKind::Weaken => {
                if let StmtKind::Op(op) = &mut stmts[i].kind {
                    match self.kind {
                        FuzzMutationKind::Constant => change_constant(op),
                        _ => weaken(op),
                    };
                }
            }
        }
    }
}

/// Returns whether an op inside a statement satisfies `f`.
fn any_op(stmt: &Stmt, f: &dyn Fn(&Op) -> bool) -> bool {
    let inside = |b: &Block| b.0.iter().any(|s| any_op(s, f));
    match &stmt.kind {
        StmtKind::Op(op) => f(op),
        StmtKind::If { then, other, .. } => inside(then) || inside(other),
        StmtKind::For { body, .. } | StmtKind::Elect { body } => inside(body),
        StmtKind::While { head, body, .. } => inside(head) || inside(body),
    }
}

fn is_sync(op: &Op) -> bool {
    matches!(
        op,
        Op::WarpSync(_)
            | Op::Fence(_)
            | Op::CopyCommit(_)
            | Op::CopyWait(_)
            | Op::CopyArrive(_)
            | Op::MbarrierInit(_)
            | Op::MbarrierInval(_)
            | Op::MbarrierArrive(_)
            | Op::MbarrierExpectTx(_)
            | Op::MbarrierWait(_)
            | Op::MbarrierTest(_)
            | Op::BulkLoad(_)
            | Op::BulkStore(_)
            | Op::BulkCommit(_)
            | Op::BulkWait(_)
            | Op::ClusterArrive(_)
            | Op::ClusterWait(_)
            | Op::CtaSync(_)
            | Op::NamedSync(_)
            | Op::NamedArrive(_)
            | Op::SetMaxRegs(_)
            | Op::AtomicReduce(_)
            | Op::StrongLoad(_)
            | Op::StrongStore(_)
    )
}

fn is_access(op: &Op) -> bool {
    match op {
        Op::Load(o) => matches!(o.at, MemoryAddress::Shared(_)),
        Op::Store(o) => matches!(o.at, MemoryAddress::Shared(_)),
        Op::Atomic(_) | Op::CopyAsync(_) => true,
        _ => false,
    }
}

/// Changes a constant of a synchronization op; returns whether the op has one.
fn change_constant(op: &mut Op) -> bool {
    let add_to_constant = |o: &mut Operand, by: u64| match o {
        Operand::Imm(x) => {
            *x += by;
            true
        }
        Operand::Reg(_) => false,
    };
    match op {
        Op::MbarrierInit(o) => {
            o.count += 1;
            true
        }
        Op::MbarrierArrive(o) => match &mut o.tx {
            Some(tx) => add_to_constant(tx, 16),
            None => add_to_constant(&mut o.count, 1),
        },
        Op::MbarrierWait(o) => match &mut o.parity {
            Operand::Imm(x) => {
                *x ^= 1;
                true
            }
            Operand::Reg(_) => false,
        },
        Op::NamedSync(o) => {
            o.threads += 32;
            true
        }
        Op::NamedArrive(o) => {
            o.threads += 32;
            true
        }
        Op::BulkWait(o) => {
            o.pending += 1;
            true
        }
        Op::CopyWait(o) => match &mut o.pending {
            Some(pending) => {
                *pending += 1;
                true
            }
            None => false,
        },
        Op::BulkLoad(o) => add_to_constant(&mut o.bytes, 16),
        Op::BulkStore(o) => add_to_constant(&mut o.bytes, 16),
        _ => false,
    }
}

/// Weakens a synchronization op; returns whether the op can be weakened.
fn weaken(op: &mut Op) -> bool {
    let narrow = |scope: &mut Scope| {
        let wide = *scope != Scope::Cta;
        *scope = Scope::Cta;
        wide
    };
    let relax = |sem: &mut Semantics| {
        let strong = *sem != Semantics::Relaxed;
        *sem = Semantics::Relaxed;
        strong
    };
    match op {
        Op::MbarrierArrive(o) => narrow(&mut o.scope),
        Op::MbarrierWait(o) => narrow(&mut o.scope),
        Op::ClusterArrive(o) => std::mem::replace(&mut o.release, false),
        Op::Atomic(o) => relax(&mut o.order.sem),
        Op::AtomicReduce(o) => relax(&mut o.order.sem),
        Op::StrongLoad(o) => relax(&mut o.order.sem),
        Op::StrongStore(o) => relax(&mut o.order.sem),
        Op::BulkWait(o) => !std::mem::replace(&mut o.read, true),
        Op::Fence(o) => match o.kind {
            FenceKind::ProxyAsyncCluster | FenceKind::ProxyAsync => {
                o.kind = FenceKind::ProxyAsyncShared;
                true
            }
            FenceKind::ProxyAsyncShared => {
                o.kind = FenceKind::ProxyAsyncGlobal;
                true
            }
            _ => false,
        },
        _ => false,
    }
}

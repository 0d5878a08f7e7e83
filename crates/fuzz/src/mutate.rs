//! Mutations of a kernel's statements: synchronization left out, doubled, moved or weakened.

use crate::rng::Rng;
use serde::{Deserialize, Serialize};
use warpline_ir::{MemoryAddress, Block, FenceKind, Kernel, Op, Operand, RegId, Scope, Semantics, Stmt, StmtKind};

/// A mutation: a kind, and the site it applies to, counted over the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Mutation {
    /// What is done.
    pub kind: Kind,
    /// To which of the statements that it applies to.
    pub site: usize,
}

/// Kinds of mutation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// A statement is left out.
    Drop,
    /// A statement runs twice.
    Twice,
    /// A statement changes places with the next.
    Swap,
    /// A statement runs only in lanes that data selects.
    Branch,
    /// A constant of a synchronization is one more.
    Constant,
    /// A scope, an order or a wait covers less.
    Weaken,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 6] = [
        Kind::Drop,
        Kind::Twice,
        Kind::Swap,
        Kind::Branch,
        Kind::Constant,
        Kind::Weaken,
    ];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Drop => "drop",
            Kind::Twice => "twice",
            Kind::Swap => "swap",
            Kind::Branch => "branch",
            Kind::Constant => "constant",
            Kind::Weaken => "weaken",
        }
    }
}

/// A random mutation of a kernel, if one applies.
pub fn random(kernel: &Kernel, rng: &mut Rng) -> Option<Mutation> {
    let kind = rng.pick(&Kind::ALL);
    let sites = sites(kernel, kind);
    (sites > 0).then(|| Mutation {
        kind,
        site: rng.below(sites),
    })
}

/// How many statements a kind applies to.
pub fn sites(kernel: &Kernel, kind: Kind) -> usize {
    let mut editor = Editor {
        kind,
        left: usize::MAX,
        selected: None,
        seen: 0,
    };
    editor.all(&mut kernel.clone());
    editor.seen
}

/// The mutated kernel; `None` where the site does not exist.
pub fn apply(kernel: &Kernel, mutation: Mutation) -> Option<Kernel> {
    let mut changed = kernel.clone();
    let mut editor = Editor {
        kind: mutation.kind,
        left: mutation.site,
        selected: None,
        seen: 0,
    };
    editor.all(&mut changed);
    (editor.seen > mutation.site).then_some(changed)
}

struct Editor {
    kind: Kind,
    /// The site to edit.
    left: usize,
    /// The predicate that data decides, of the role at hand.
    selected: Option<RegId>,
    /// Sites so far.
    seen: usize,
}

impl Editor {
    fn all(&mut self, kernel: &mut Kernel) {
        for role in &mut kernel.roles {
            self.selected = role.body.0.iter().find_map(|s| match &s.kind {
                StmtKind::Op(Op::Setp(p)) => Some(p.dst),
                _ => None,
            });
            self.block(&mut role.body);
        }
    }

    /// Is this the site to edit?
    fn hit(&mut self) -> bool {
        self.seen += 1;
        self.seen - 1 == self.left
    }

    fn block(&mut self, block: &mut Block) {
        let mut i = 0;
        while i < block.0.len() {
            if self.applies(&block.0, i) && self.hit() {
                self.edit(&mut block.0, i);
                return;
            }
            match &mut block.0[i].kind {
                StmtKind::Op(_) => {}
                StmtKind::If { then, other, .. } => {
                    self.block(then);
                    self.block(other);
                }
                StmtKind::For { body, .. } | StmtKind::Elect { body } => self.block(body),
                StmtKind::While { head, body, .. } => {
                    self.block(head);
                    self.block(body);
                }
            }
            i += 1;
        }
    }

    fn applies(&self, stmts: &[Stmt], i: usize) -> bool {
        let synchronizes = any(&stmts[i], &is_sync);
        match self.kind {
            Kind::Drop | Kind::Twice => synchronizes,
            Kind::Swap => {
                let next = stmts.get(i + 1);
                let acts = |s: &Stmt| any(s, &|op| is_sync(op) || is_access(op));
                (synchronizes && next.is_some_and(acts))
                    || (acts(&stmts[i]) && next.is_some_and(|s| any(s, &is_sync)))
            }
            Kind::Branch => {
                let simple =
                    matches!(&stmts[i].kind, StmtKind::Op(op) if is_sync(op) || is_access(op));
                simple && self.selected.is_some()
            }
            Kind::Constant => {
                matches!(&stmts[i].kind, StmtKind::Op(op) if constant(&mut op.clone()))
            }
            Kind::Weaken => matches!(&stmts[i].kind, StmtKind::Op(op) if weaken(&mut op.clone())),
        }
    }

    fn edit(&self, stmts: &mut Vec<Stmt>, i: usize) {
        match self.kind {
            Kind::Drop => {
                stmts.remove(i);
            }
            Kind::Twice => {
                let again = stmts[i].clone();
                stmts.insert(i, again);
            }
            Kind::Swap => stmts.swap(i, i + 1),
            Kind::Branch => {
                if let Some(cond) = self.selected {
                    let loc = stmts[i].loc;
                    let then = Block(vec![stmts.remove(i)]);
                    let other = Block::default();
                    let kind = StmtKind::If { cond, then, other };
                    stmts.insert(i, Stmt { kind, loc });
                }
            }
            Kind::Constant | Kind::Weaken => {
                if let StmtKind::Op(op) = &mut stmts[i].kind {
                    match self.kind {
                        Kind::Constant => constant(op),
                        _ => weaken(op),
                    };
                }
            }
        }
    }
}

/// Does an op inside a statement satisfy `f`?
fn any(stmt: &Stmt, f: &dyn Fn(&Op) -> bool) -> bool {
    let inside = |b: &Block| b.0.iter().any(|s| any(s, f));
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

/// Changes a constant of a synchronization; says whether there is one.
fn constant(op: &mut Op) -> bool {
    let more = |o: &mut Operand, by: u64| match o {
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
            Some(tx) => more(tx, 16),
            None => more(&mut o.count, 1),
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
        Op::BulkLoad(o) => more(&mut o.bytes, 16),
        Op::BulkStore(o) => more(&mut o.bytes, 16),
        _ => false,
    }
}

/// Makes a synchronization cover less; says whether it can.
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

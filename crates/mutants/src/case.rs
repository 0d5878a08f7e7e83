//! A kernel as the kinds of mutation read it: every statement, and what stands around it.

use crate::edit::{Arm, Draft, Edit, Path, Root, Splice};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use warpline_check::Facts;
use warpline_ir::{
    MemoryAddress, BarId, BarRef, Block, Completion, Kernel, MemoryRegion, Op, RegId, RoleId, Stmt, StmtKind, SyncOp,
    TileId,
};

/// A statement, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Spot<'k> {
    pub(crate) stmt: &'k Stmt,
    /// The block it stands in, and its place there.
    pub(crate) block: &'k [Stmt],
    pub(crate) index: usize,
    pub(crate) path: Path,
    /// The statements around it, innermost last.
    pub(crate) around: Vec<&'k Stmt>,
    pub(crate) role: Option<RoleId>,
}

impl<'k> Spot<'k> {
    pub(crate) fn op(&self) -> Option<&'k Op> {
        match &self.stmt.kind {
            StmtKind::Op(op) => Some(op),
            _ => None,
        }
    }

    /// Statements of its block give way to others.
    pub(crate) fn splice(&self, range: Range<usize>, with: Vec<Stmt>) -> Splice {
        let path = self.path.clone();
        Splice { path, range, with }
    }

    /// It alone gives way to others.
    pub(crate) fn replace(&self, with: Vec<Stmt>) -> Splice {
        self.splice(self.index..self.index + 1, with)
    }

    /// Where the n-th statement around it stands: its block, and its place there.
    pub(crate) fn outer(&self, n: usize) -> (Path, usize) {
        let path = Path {
            root: self.path.root,
            arms: self.path.arms[..n].to_vec(),
        };
        (path, self.path.arms[n].0)
    }
}

/// A kernel and all its statements, outer ones before inner ones.
pub(crate) struct Case<'k> {
    pub(crate) kernel: &'k Kernel,
    pub(crate) spots: Vec<Spot<'k>>,
    /// The roles that use each array of mbarriers.
    users: HashMap<BarId, HashSet<RoleId>>,
}

impl<'k> Case<'k> {
    pub(crate) fn new(kernel: &'k Kernel) -> Self {
        let mut case = Self {
            kernel,
            spots: Vec::new(),
            users: HashMap::new(),
        };
        case.collect(&kernel.prologue, Root::Prologue, None);
        for (i, role) in kernel.roles.iter().enumerate() {
            case.collect(&role.body, Root::Role(i), Some(RoleId(i as u32)));
        }
        case.collect(&kernel.epilogue, Root::Epilogue, None);
        for spot in &case.spots {
            if let (Some(op), Some(role)) = (spot.op(), spot.role) {
                for b in bars(&Facts::of(op)) {
                    case.users.entry(b.bar).or_default().insert(role);
                }
            }
        }
        case
    }

    fn collect(&mut self, block: &'k Block, root: Root, role: Option<RoleId>) {
        let arms = Vec::new();
        self.block(block, &Path { root, arms }, &[], role);
    }

    fn block(&mut self, block: &'k Block, path: &Path, around: &[&'k Stmt], role: Option<RoleId>) {
        for (index, stmt) in block.0.iter().enumerate() {
            self.spots.push(Spot {
                stmt,
                block: &block.0,
                index,
                path: path.clone(),
                around: around.to_vec(),
                role,
            });
            let around = [around, &[stmt]].concat();
            for (arm, inner) in arms(stmt) {
                let mut path = path.clone();
                path.arms.push((index, arm));
                self.block(inner, &path, &around, role);
            }
        }
    }

    /// The ops among the statements.
    pub(crate) fn ops(&self) -> impl Iterator<Item = (&Spot<'k>, &'k Op)> {
        self.spots.iter().filter_map(|s| Some((s, s.op()?)))
    }

    /// Statements for a role, where a statement stands.
    pub(crate) fn draft(&self, spot: &Spot<'_>) -> Draft {
        Draft::new(self.kernel, spot.role, spot.stmt.loc)
    }

    /// A change, told of as one of the statement's role.
    pub(crate) fn edit(
        &self,
        spot: &Spot<'_>,
        text: impl Into<String>,
        splices: Vec<Splice>,
    ) -> Edit {
        let who = spot.role.and_then(|r| self.kernel.roles.get(r.index()));
        let who = who.map_or("all", |r| r.name.as_str());
        Edit {
            loc: spot.stmt.loc,
            text: format!("{who}: {}", text.into()),
            regs: Vec::new(),
            splices,
        }
    }

    /// A change of one statement into what was drafted.
    pub(crate) fn drafted(&self, spot: &Spot<'_>, text: impl Into<String>, draft: Draft) -> Edit {
        let edit = self.edit(spot, text, vec![spot.replace(draft.out)]);
        Edit {
            regs: draft.regs,
            ..edit
        }
    }

    /// Every op that is picked, left out.
    pub(crate) fn without(&self, pick: impl Fn(&Op) -> bool) -> Vec<Edit> {
        let picked = self.ops().filter(|(_, op)| pick(op));
        picked.map(|(spot, op)| self.left_out(spot, op)).collect()
    }

    /// An op left out. What stands for an arrival behind it is told by that.
    pub(crate) fn left_out(&self, spot: &Spot<'_>, op: &Op) -> Edit {
        let name = self.name(op);
        let mut behind = spot.block[spot.index + 1..].iter();
        let text = match (op, behind.find_map(|s| self.arrival(s))) {
            (Op::Fence(_) | Op::WarpSync(_), Some(arrival)) => {
                format!("no {name} before {arrival}")
            }
            _ => format!("no {name}"),
        };
        self.edit(spot, text, vec![spot.replace(Vec::new())])
    }

    /// The first arrival of a statement, by its name.
    pub(crate) fn arrival(&self, stmt: &Stmt) -> Option<String> {
        let mut name = None;
        each_op(stmt, &mut |op| {
            if name.is_none() && matches!(op, Op::MbarrierArrive(_) | Op::CopyArrive(_)) {
                name = Some(self.name(op));
            }
        });
        name
    }

    /// An op by its name and what it is about: `mbarrier_wait.cta ab.full`.
    pub(crate) fn name(&self, op: &Op) -> String {
        let facts = Facts::of(op);
        let mut words = vec![op.name()];
        let bars = bars(&facts).map(|b| self.kernel.barrier(b.bar).name.clone());
        let named = facts.syncs.iter().filter_map(|s| match s {
            SyncOp::NamedSync { bar, .. } | SyncOp::NamedArrive { bar, .. } => Some(*bar),
            _ => None,
        });
        let named = named.map(|n| self.kernel.named(n).name.clone());
        let tiles = tiles(&facts).map(|t| self.kernel.tile(t).name.clone());
        for word in tiles.chain(bars).chain(named) {
            if !words.contains(&word) {
                words.push(word);
            }
        }
        words.join(" ")
    }

    /// The barriers of an op at which roles meet.
    pub(crate) fn meetings(&self, op: &Op) -> Vec<BarId> {
        let several = |b: &BarRef| self.users.get(&b.bar).is_some_and(|roles| roles.len() > 1);
        bars(&Facts::of(op))
            .filter(several)
            .map(|b| b.bar)
            .collect()
    }
}

/// The blocks of a statement.
fn arms(stmt: &Stmt) -> Vec<(Arm, &Block)> {
    match &stmt.kind {
        StmtKind::Op(_) => vec![],
        StmtKind::If { then, other, .. } => vec![(Arm::Then, then), (Arm::Other, other)],
        StmtKind::For { body, .. } | StmtKind::Elect { body } => vec![(Arm::Body, body)],
        StmtKind::While { head, body, .. } => vec![(Arm::Head, head), (Arm::Body, body)],
    }
}

/// The mbarriers an op names.
pub(crate) fn bars(facts: &Facts) -> impl Iterator<Item = BarRef> {
    let acts = facts.syncs.iter().filter_map(|s| match s {
        SyncOp::Init { bar, .. }
        | SyncOp::Inval { bar }
        | SyncOp::Arrive { bar, .. }
        | SyncOp::ExpectTx { bar, .. }
        | SyncOp::Wait { bar, .. }
        | SyncOp::Test { bar, .. }
        | SyncOp::CopyArrive { bar, .. } => Some(*bar),
        _ => None,
    });
    let copies = facts.touches.iter().filter_map(|t| match t.completion {
        Completion::Bytes(bar) => Some(bar),
        _ => None,
    });
    acts.chain(copies)
}

/// The tiles an op touches.
pub(crate) fn tiles(facts: &Facts) -> impl Iterator<Item = TileId> {
    facts.touches.iter().filter_map(|t| match t.memory {
        MemoryRegion::PerLane(MemoryAddress::Shared(p), _) | MemoryRegion::Shared(p, _) | MemoryRegion::MatrixRows(p, _) => Some(p.tile),
        MemoryRegion::View(v) => Some(v.tile),
        _ => None,
    })
}

/// Calls `f` for every op of a statement.
pub(crate) fn each_op<'k>(stmt: &'k Stmt, f: &mut dyn FnMut(&'k Op)) {
    if let StmtKind::Op(op) = &stmt.kind {
        f(op);
    }
    for (_, block) in arms(stmt) {
        block.0.iter().for_each(|s| each_op(s, f));
    }
}

/// Is any op of a statement one of these?
pub(crate) fn any_op(stmt: &Stmt, pick: impl Fn(&Op) -> bool + Copy) -> bool {
    match &stmt.kind {
        StmtKind::Op(op) => pick(op),
        _ => {
            let inner = arms(stmt).into_iter().flat_map(|(_, block)| &block.0);
            inner.into_iter().any(|s| any_op(s, pick))
        }
    }
}

/// Registers that a statement writes.
pub(crate) fn written(stmt: &Stmt) -> HashSet<RegId> {
    let mut all = HashSet::new();
    each_op(stmt, &mut |op| all.extend(Facts::of(op).defs));
    all
}

/// Registers that a statement reads.
pub(crate) fn read(stmt: &Stmt) -> HashSet<RegId> {
    let mut all: HashSet<RegId> = match &stmt.kind {
        StmtKind::Op(op) => Facts::of(op).uses().collect(),
        StmtKind::If { cond, .. } | StmtKind::While { cond, .. } => [*cond].into(),
        StmtKind::For { from, to, step, .. } => {
            let bounds = [from, to, step];
            bounds.iter().filter_map(|o| o.as_reg()).collect()
        }
        StmtKind::Elect { .. } => HashSet::new(),
    };
    for (_, block) in arms(stmt) {
        all.extend(block.0.iter().flat_map(read));
    }
    all
}

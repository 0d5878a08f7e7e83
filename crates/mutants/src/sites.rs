//! The statements of a kernel with their position and enclosing statements.

use crate::edit::{Arm, Draft, Edit, Path, Root, Splice};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use warpline_check::Facts;
use warpline_ir::{
    BarId, BarRef, Block, Completion, Kernel, MemoryAddress, MemoryRegion, Op, RegId, RoleId, Stmt,
    StmtKind, SyncOp, TileId,
};

/// A statement and its position.
#[derive(Clone, Debug)]
pub(crate) struct Site<'k> {
    pub(crate) stmt: &'k Stmt,
    /// The block of the statement.
    pub(crate) block: &'k [Stmt],
    pub(crate) index: usize,
    pub(crate) path: Path,
    /// The enclosing statements, innermost last.
    pub(crate) enclosing: Vec<&'k Stmt>,
    pub(crate) role: Option<RoleId>,
}

impl<'k> Site<'k> {
    pub(crate) fn op(&self) -> Option<&'k Op> {
        match &self.stmt.kind {
            StmtKind::Op(op) => Some(op),
            _ => None,
        }
    }

    /// Replaces statements of the block.
    pub(crate) fn splice(&self, range: Range<usize>, stmts: Vec<Stmt>) -> Splice {
        let path = self.path.clone();
        Splice { path, range, stmts }
    }

    /// Replaces the statement.
    pub(crate) fn replace(&self, stmts: Vec<Stmt>) -> Splice {
        self.splice(self.index..self.index + 1, stmts)
    }

    /// Returns the path of the block of the `n`th enclosing statement, and its index there.
    pub(crate) fn enclosing_block(&self, n: usize) -> (Path, usize) {
        let path = Path {
            root: self.path.root,
            arms: self.path.arms[..n].to_vec(),
        };
        (path, self.path.arms[n].0)
    }
}

/// A kernel and all its statements, outer statements first.
pub(crate) struct KernelSites<'k> {
    pub(crate) kernel: &'k Kernel,
    pub(crate) statements: Vec<Site<'k>>,
    /// The roles that use each array of mbarriers.
    users: HashMap<BarId, HashSet<RoleId>>,
}

impl<'k> KernelSites<'k> {
    pub(crate) fn new(kernel: &'k Kernel) -> Self {
        let mut all = Self {
            kernel,
            statements: Vec::new(),
            users: HashMap::new(),
        };
        all.collect(&kernel.prologue, Root::Prologue, None);
        for (i, role) in kernel.roles.iter().enumerate() {
            all.collect(&role.body, Root::Role(i), Some(RoleId(i as u32)));
        }
        all.collect(&kernel.epilogue, Root::Epilogue, None);
        for site in &all.statements {
            if let (Some(op), Some(role)) = (site.op(), site.role) {
                for b in mbarriers(&Facts::of(op)) {
                    all.users.entry(b.bar).or_default().insert(role);
                }
            }
        }
        all
    }

    fn collect(&mut self, block: &'k Block, root: Root, role: Option<RoleId>) {
        let arms = Vec::new();
        self.collect_block(block, &Path { root, arms }, &[], role);
    }

    fn collect_block(
        &mut self,
        block: &'k Block,
        path: &Path,
        enclosing: &[&'k Stmt],
        role: Option<RoleId>,
    ) {
        for (index, stmt) in block.0.iter().enumerate() {
            self.statements.push(Site {
                stmt,
                block: &block.0,
                index,
                path: path.clone(),
                enclosing: enclosing.to_vec(),
                role,
            });
            let enclosing = [enclosing, &[stmt]].concat();
            for (arm, inner) in arms(stmt) {
                let mut path = path.clone();
                path.arms.push((index, arm));
                self.collect_block(inner, &path, &enclosing, role);
            }
        }
    }

    /// Returns the statements that are ops.
    pub(crate) fn ops(&self) -> impl Iterator<Item = (&Site<'k>, &'k Op)> {
        self.statements.iter().filter_map(|s| Some((s, s.op()?)))
    }

    /// Starts a draft with the role and the source location of a statement.
    pub(crate) fn draft(&self, site: &Site<'_>) -> Draft {
        Draft::new(self.kernel, site.role, site.stmt.loc)
    }

    /// Returns an edit whose text starts with the role of the statement.
    pub(crate) fn edit(
        &self,
        site: &Site<'_>,
        text: impl Into<String>,
        splices: Vec<Splice>,
    ) -> Edit {
        let role = site.role.and_then(|r| self.kernel.roles.get(r.index()));
        let role = role.map_or("all", |r| r.name.as_str());
        Edit {
            loc: site.stmt.loc,
            text: format!("{role}: {}", text.into()),
            regs: Vec::new(),
            splices,
        }
    }

    /// Returns an edit that replaces the statement by a draft.
    pub(crate) fn replace_with_draft(
        &self,
        site: &Site<'_>,
        text: impl Into<String>,
        draft: Draft,
    ) -> Edit {
        let edit = self.edit(site, text, vec![site.replace(draft.stmts)]);
        Edit {
            regs: draft.regs,
            ..edit
        }
    }

    /// Returns one edit for each op that satisfies `pick`: it drops the op.
    pub(crate) fn drop_ops(&self, pick: impl Fn(&Op) -> bool) -> Vec<Edit> {
        let picked = self.ops().filter(|(_, op)| pick(op));
        picked.map(|(site, op)| self.drop_op(site, op)).collect()
    }

    /// Returns an edit that drops an op. The text of a dropped fence or warp barrier names the next arrival.
    pub(crate) fn drop_op(&self, site: &Site<'_>, op: &Op) -> Edit {
        let name = self.name(op);
        let mut after = site.block[site.index + 1..].iter();
        let text = match (op, after.find_map(|s| self.arrival(s))) {
            (Op::Fence(_) | Op::WarpSync(_), Some(arrival)) => {
                format!("no {name} before {arrival}")
            }
            _ => format!("no {name}"),
        };
        self.edit(site, text, vec![site.replace(Vec::new())])
    }

    /// Names the first arrival of a statement.
    pub(crate) fn arrival(&self, stmt: &Stmt) -> Option<String> {
        let mut name = None;
        each_op(stmt, &mut |op| {
            if name.is_none() && matches!(op, Op::MbarrierArrive(_) | Op::CopyArrive(_)) {
                name = Some(self.name(op));
            }
        });
        name
    }

    /// Names an op with its tiles and barriers: `mbarrier_wait.cta ab.full`.
    pub(crate) fn name(&self, op: &Op) -> String {
        let facts = Facts::of(op);
        let mut words = vec![op.name()];
        let bars = mbarriers(&facts).map(|b| self.kernel.barrier(b.bar).name.clone());
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

    /// Returns the mbarriers of an op that several roles use.
    pub(crate) fn shared_barriers(&self, op: &Op) -> Vec<BarId> {
        let several = |b: &BarRef| self.users.get(&b.bar).is_some_and(|roles| roles.len() > 1);
        mbarriers(&Facts::of(op))
            .filter(several)
            .map(|b| b.bar)
            .collect()
    }
}

/// Returns the blocks of a statement.
fn arms(stmt: &Stmt) -> Vec<(Arm, &Block)> {
    match &stmt.kind {
        StmtKind::Op(_) => vec![],
        StmtKind::If { then, other, .. } => vec![(Arm::Then, then), (Arm::Other, other)],
        StmtKind::For { body, .. } | StmtKind::Elect { body } => vec![(Arm::Body, body)],
        StmtKind::While { head, body, .. } => vec![(Arm::Head, head), (Arm::Body, body)],
    }
}

/// Returns the mbarriers of an op.
pub(crate) fn mbarriers(facts: &Facts) -> impl Iterator<Item = BarRef> {
    let syncs = facts.syncs.iter().filter_map(|s| match s {
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
    syncs.chain(copies)
}

/// Returns the tiles that an op accesses.
pub(crate) fn tiles(facts: &Facts) -> impl Iterator<Item = TileId> {
    facts.touches.iter().filter_map(|t| match t.memory {
        MemoryRegion::PerLane(MemoryAddress::Shared(p), _)
        | MemoryRegion::Shared(p, _)
        | MemoryRegion::MatrixRows(p, _) => Some(p.tile),
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

/// Returns whether any op of a statement satisfies `pick`.
pub(crate) fn any_op(stmt: &Stmt, pick: impl Fn(&Op) -> bool + Copy) -> bool {
    match &stmt.kind {
        StmtKind::Op(op) => pick(op),
        _ => {
            let inner = arms(stmt).into_iter().flat_map(|(_, block)| &block.0);
            inner.into_iter().any(|s| any_op(s, pick))
        }
    }
}

/// Returns the registers that a statement writes.
pub(crate) fn written_regs(stmt: &Stmt) -> HashSet<RegId> {
    let mut all = HashSet::new();
    each_op(stmt, &mut |op| all.extend(Facts::of(op).defs));
    all
}

/// Returns the registers that a statement reads.
pub(crate) fn read_regs(stmt: &Stmt) -> HashSet<RegId> {
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
        all.extend(block.0.iter().flat_map(read_regs));
    }
    all
}

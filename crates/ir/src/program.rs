//! The kernel program: a plain value that the checker, the executor and the printer read.

use crate::bounds::{Bounds, Limit};
use crate::layout::{Swizzle, TileLayout};
use crate::loc::{Loc, Locs};
use crate::ops::Op;
use crate::target::Target;
use crate::tensor_map::TensorMapDecl;
use crate::types::{DType, Type};
use crate::value::{BarId, NamedId, Operand, ParamId, RegId, RegInfo, RoleId, TileId, View};

/// A kernel: roles that run beside one another in a CTA, and what they share.
///
/// Made by [`Kernel::build`]; read by everything else. Two kernels with the
/// same text have the same [`text_hash`](Kernel::text_hash), whatever file they were
/// written in.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The name of the PTX entry.
    pub name: String,
    /// The target that it was built for.
    pub target: Target,
    /// Launch parameters, in order.
    pub params: Vec<Param>,
    /// Upper bounds of products of parameters.
    pub limits: Vec<Limit>,
    /// Shared tiles.
    pub tiles: Vec<Tile>,
    /// Arrays of mbarriers.
    pub barriers: Vec<Barrier>,
    /// Named barriers.
    pub named: Vec<NamedBarrier>,
    /// Roles, by ascending first warp; together they cover the CTA.
    pub roles: Vec<Role>,
    /// Run by every thread before its role.
    pub prologue: Block,
    /// Run by every thread after its role.
    pub epilogue: Block,
    /// Virtual registers.
    pub regs: Vec<RegInfo>,
    /// CTAs of a cluster, by axis.
    pub cluster: [u32; 3],
    /// Bytes of dynamic shared memory: tiles, then mbarriers.
    pub shared_bytes: u32,
    /// CTAs that must be on the machine together, if they wait for each other through global memory.
    pub co_resident: bool,
    /// Source locations.
    pub locs: Locs,
}

/// A launch parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct Param {
    /// Its name at launch.
    pub name: String,
    /// What it is.
    pub kind: ParamKind,
    /// The values that a launch may pass.
    pub bounds: Bounds,
    /// Of memory: do the grids before leave it alone, so that a kernel that
    /// starts early may read it at once?
    pub settled: bool,
    /// Where it was declared.
    pub loc: Loc,
}

/// The kinds of launch parameter.
#[derive(Clone, PartialEq, Debug)]
pub enum ParamKind {
    /// A number.
    Scalar(Type),
    /// The address of elements in global memory.
    Pointer(DType),
    /// A tensor map.
    TensorMap(TensorMapDecl),
}

/// A declared tile of shared memory, with its stages.
#[derive(Clone, PartialEq, Debug)]
pub struct Tile {
    /// Its name in messages.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Layout of one stage.
    pub layout: TileLayout,
    /// Stages.
    pub stages: u32,
    /// Bytes from the start of shared memory; set when the kernel is finished.
    pub offset: u32,
    /// The tile whose bytes it shares.
    pub alias: Option<TileId>,
    /// Where it was declared.
    pub loc: Loc,
}

impl Tile {
    /// Bytes of all stages.
    pub fn bytes(&self) -> u32 {
        self.stages.saturating_mul(self.layout.stage_bytes())
    }
}

/// A declared array of mbarriers.
#[derive(Clone, PartialEq, Debug)]
pub struct Barrier {
    /// Its name in messages.
    pub name: String,
    /// How many.
    pub len: u32,
    /// Bytes from the start of shared memory; set when the kernel is finished.
    pub offset: u32,
    /// Where it was declared.
    pub loc: Loc,
}

/// A declared named barrier.
#[derive(Clone, PartialEq, Debug)]
pub struct NamedBarrier {
    /// Its name in messages.
    pub name: String,
    /// Its number, 1 to 15 (0 is the CTA's own).
    pub id: u32,
    /// Where it was declared.
    pub loc: Loc,
}

/// A role: warps that run one body.
#[derive(Clone, Debug)]
pub struct Role {
    /// Its name.
    pub name: String,
    /// Its first warp in the CTA.
    pub first_warp: u32,
    /// Its warps.
    pub warps: u32,
    /// The registers per thread it asked for.
    pub registers: Option<u32>,
    /// What it runs.
    pub body: Block,
    /// Where it was declared.
    pub loc: Loc,
}

/// Statements in order.
#[derive(Clone, Debug, Default)]
pub struct Block(pub Vec<Stmt>);

/// A statement and where it comes from.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// What it does.
    pub kind: StmtKind,
    /// Where it comes from.
    pub loc: Loc,
}

/// The statements. There is no jump: control flow is a tree.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// One op.
    Op(Op),
    /// Lanes whose predicate is set run `then`, the others `other`; then they meet.
    If {
        /// The predicate.
        cond: RegId,
        /// Run where it is set.
        then: Block,
        /// Run where it is not.
        other: Block,
    },
    /// Counts `var` from `from` while it is below `to`, by `step`.
    For {
        /// The counter (`u32` or `i32`), set by the loop alone.
        var: RegId,
        /// First value.
        from: Operand,
        /// The loop runs while `var < to`.
        to: Operand,
        /// Added after each round.
        step: Operand,
        /// The rounds.
        body: Block,
        /// How often ptxas may unroll it; `None` leaves it to ptxas.
        unroll: Option<u32>,
    },
    /// Runs `head`; leaves if the predicate is not set; runs `body`; again.
    While {
        /// Computes the predicate.
        head: Block,
        /// Goes on while it is set.
        cond: RegId,
        /// The rounds.
        body: Block,
    },
    /// One lane of each warp runs the body (the lowest active one).
    Elect {
        /// Run by that lane.
        body: Block,
    },
}

impl Kernel {
    /// Threads of a CTA.
    pub fn threads(&self) -> u32 {
        self.warps() * 32
    }

    /// Warps of a CTA.
    pub fn warps(&self) -> u32 {
        self.roles.iter().map(|r| r.warps).sum()
    }

    /// CTAs of a cluster.
    pub fn cluster_size(&self) -> u32 {
        self.cluster.iter().product()
    }

    /// The type of a register.
    pub fn ty(&self, r: RegId) -> Type {
        self.regs[r.index()].ty
    }

    /// A tile by id.
    pub fn tile(&self, t: TileId) -> &Tile {
        &self.tiles[t.index()]
    }

    /// An mbarrier array by id.
    pub fn barrier(&self, b: BarId) -> &Barrier {
        &self.barriers[b.index()]
    }

    /// A named barrier by id.
    pub fn named(&self, n: NamedId) -> &NamedBarrier {
        &self.named[n.index()]
    }

    /// A parameter by id.
    pub fn param(&self, p: ParamId) -> &Param {
        &self.params[p.index()]
    }

    /// A parameter by name.
    pub fn find_param(&self, name: &str) -> Option<ParamId> {
        self.params
            .iter()
            .position(|p| p.name == name)
            .map(|i| ParamId(i as u32))
    }

    /// The layout under a view.
    pub fn layout(&self, v: &View) -> TileLayout {
        self.tile(v.tile).layout
    }

    /// The role of a warp.
    pub fn role_of_warp(&self, warp: u32) -> RoleId {
        let i = self
            .roles
            .iter()
            .position(|r| warp < r.first_warp + r.warps)
            .unwrap_or(0);
        RoleId(i as u32)
    }

    /// Calls `f` for every statement, outer ones before inner ones, in program order.
    pub fn each_stmt<'a>(&'a self, f: &mut dyn FnMut(Option<RoleId>, &'a Stmt)) {
        self.prologue.each(&mut |s| f(None, s));
        for (i, r) in self.roles.iter().enumerate() {
            r.body.each(&mut |s| f(Some(RoleId(i as u32)), s));
        }
        self.epilogue.each(&mut |s| f(None, s));
    }

    /// Does any tile use a swizzle that needs it?
    pub fn shared_align(&self) -> u32 {
        self.tiles
            .iter()
            .map(|t| t.layout.swizzle.align())
            .max()
            .unwrap_or(Swizzle::None.align())
    }
}

impl Block {
    /// Calls `f` for every statement, outer ones before inner ones.
    pub fn each<'a>(&'a self, f: &mut dyn FnMut(&'a Stmt)) {
        for s in &self.0 {
            f(s);
            match &s.kind {
                StmtKind::Op(_) => {}
                StmtKind::If { then, other, .. } => {
                    then.each(f);
                    other.each(f);
                }
                StmtKind::For { body, .. } | StmtKind::Elect { body } => body.each(f),
                StmtKind::While { head, body, .. } => {
                    head.each(f);
                    body.each(f);
                }
            }
        }
    }
}

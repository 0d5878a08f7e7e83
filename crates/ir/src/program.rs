//! The kernel program, which the checker, the CPU executor and the PTX printer read.

use crate::bounds::{Bounds, Limit};
use crate::layout::{Swizzle, TileLayout};
use crate::loc::{Loc, Locs};
use crate::ops::Op;
use crate::target::Target;
use crate::tensor_map::TensorMapDecl;
use crate::types::{DType, Type};
use crate::value::{BarId, NamedId, Operand, ParamId, RegId, RegInfo, RoleId, TileId, View};

/// A kernel: the concurrent roles of a CTA, and the memory and barriers that they share.
///
/// [`Kernel::build`] creates it. Source locations do not enter its
/// [`text_hash`](Kernel::text_hash).
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The name of the PTX entry.
    pub name: String,
    /// The GPU target.
    pub target: Target,
    /// The launch parameters, in order.
    pub params: Vec<Param>,
    /// Upper bounds of sums of products of parameters.
    pub limits: Vec<Limit>,
    /// The tiles in shared memory.
    pub tiles: Vec<TileInfo>,
    /// The arrays of mbarriers.
    pub barriers: Vec<Barrier>,
    /// The named barriers.
    pub named: Vec<NamedBarrier>,
    /// The roles, by ascending first warp; together they cover the CTA.
    pub roles: Vec<Role>,
    /// The code that every thread runs before its role.
    pub prologue: Block,
    /// The code that every thread runs after its role.
    pub epilogue: Block,
    /// The virtual registers.
    pub regs: Vec<RegInfo>,
    /// The cluster shape in CTAs.
    pub cluster: [u32; 3],
    /// The bytes of dynamic shared memory: tiles, then mbarriers.
    pub shared_bytes: u32,
    /// Whether the grid must be co-resident, because its CTAs wait for each other through global memory.
    pub co_resident: bool,
    /// The source locations.
    pub locs: Locs,
}

/// A launch parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct Param {
    /// The name.
    pub name: String,
    /// The kind.
    pub kind: ParamKind,
    /// The declared bounds of the value.
    pub bounds: Bounds,
    /// Whether no earlier kernel of the plan writes the memory, so that a dependent launch may
    /// read it before its wait.
    pub pdl_safe: bool,
    /// The declaration's source location.
    pub loc: Loc,
}

/// The kind of a launch parameter.
#[derive(Clone, PartialEq, Debug)]
pub enum ParamKind {
    /// A number.
    Scalar(Type),
    /// The address of elements in global memory.
    Pointer(DType),
    /// A tensor map.
    TensorMap(TensorMapDecl),
}

/// A tile of shared memory, with its stages.
#[derive(Clone, PartialEq, Debug)]
pub struct TileInfo {
    /// The name in messages.
    pub name: String,
    /// The element type.
    pub dtype: DType,
    /// The layout of one stage.
    pub layout: TileLayout,
    /// The number of stages.
    pub stages: u32,
    /// The byte offset in shared memory, assigned by the last pass of the builder.
    pub offset: u32,
    /// The tile that it aliases.
    pub alias: Option<TileId>,
    /// The declaration's source location.
    pub loc: Loc,
}

impl TileInfo {
    /// Returns the bytes of all stages.
    pub fn bytes(&self) -> u32 {
        self.stages.saturating_mul(self.layout.stage_bytes())
    }
}

/// An array of mbarriers.
#[derive(Clone, PartialEq, Debug)]
pub struct Barrier {
    /// The name in messages.
    pub name: String,
    /// The number of mbarriers.
    pub len: u32,
    /// The byte offset in shared memory, assigned by the last pass of the builder.
    pub offset: u32,
    /// The declaration's source location.
    pub loc: Loc,
}

/// A named barrier.
#[derive(Clone, PartialEq, Debug)]
pub struct NamedBarrier {
    /// The name in messages.
    pub name: String,
    /// The barrier id, 1 to 15 (0 is the CTA barrier).
    pub id: u32,
    /// The declaration's source location.
    pub loc: Loc,
}

/// A role: consecutive warps that run one body.
#[derive(Clone, Debug)]
pub struct Role {
    /// The name.
    pub name: String,
    /// The first warp in the CTA.
    pub first_warp: u32,
    /// The number of warps.
    pub warps: u32,
    /// The register budget per thread for `setmaxnreg`; `None` keeps the launch default.
    pub registers: Option<u32>,
    /// The code.
    pub body: Block,
    /// The declaration's source location.
    pub loc: Loc,
}

/// A sequence of statements.
#[derive(Clone, Debug, Default)]
pub struct Block(pub Vec<Stmt>);

/// A statement and its source location.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// The statement.
    pub kind: StmtKind,
    /// The source location.
    pub loc: Loc,
}

/// The kinds of statement. There are no jumps: control flow is structured.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// One op.
    Op(Op),
    /// Lanes with a true predicate run `then`, the others run `other`; then they reconverge.
    If {
        /// The predicate.
        cond: RegId,
        /// The code for true.
        then: Block,
        /// The code for false.
        other: Block,
    },
    /// A counted loop: `for (var = from; var < to; var += step)`.
    For {
        /// The counter (`u32` or `i32`); only the loop writes it.
        var: RegId,
        /// The initial value.
        from: Operand,
        /// The end value, exclusive.
        to: Operand,
        /// The increment.
        step: Operand,
        /// The loop body.
        body: Block,
        /// The unroll limit for ptxas; only `Some(1)` has an effect (`.pragma "nounroll"`).
        unroll: Option<u32>,
    },
    /// A loop that runs `head`, exits if the predicate is false, and runs `body`.
    While {
        /// The code that computes the predicate.
        head: Block,
        /// The predicate; the loop continues while it is true.
        cond: RegId,
        /// The loop body.
        body: Block,
    },
    /// The lowest active lane of each warp runs the body (`elect.sync`).
    Elect {
        /// The code of the elected lane.
        body: Block,
    },
}

impl Kernel {
    /// Returns the threads of a CTA.
    pub fn threads(&self) -> u32 {
        self.warps() * 32
    }

    /// Returns the warps of a CTA.
    pub fn warps(&self) -> u32 {
        self.roles.iter().map(|r| r.warps).sum()
    }

    /// Returns the CTAs of a cluster.
    pub fn cluster_size(&self) -> u32 {
        self.cluster.iter().product()
    }

    /// Returns the type of a register.
    pub fn ty(&self, r: RegId) -> Type {
        self.regs[r.index()].ty
    }

    /// Returns a tile by id.
    pub fn tile(&self, t: TileId) -> &TileInfo {
        &self.tiles[t.index()]
    }

    /// Returns an mbarrier array by id.
    pub fn barrier(&self, b: BarId) -> &Barrier {
        &self.barriers[b.index()]
    }

    /// Returns a named barrier by id.
    pub fn named(&self, n: NamedId) -> &NamedBarrier {
        &self.named[n.index()]
    }

    /// Returns a parameter by id.
    pub fn param(&self, p: ParamId) -> &Param {
        &self.params[p.index()]
    }

    /// Returns a parameter by name.
    pub fn find_param(&self, name: &str) -> Option<ParamId> {
        self.params
            .iter()
            .position(|p| p.name == name)
            .map(|i| ParamId(i as u32))
    }

    /// Returns the layout of a view's tile.
    pub fn layout(&self, v: &View) -> TileLayout {
        self.tile(v.tile).layout
    }

    /// Returns the role of a warp.
    pub fn role_of_warp(&self, warp: u32) -> RoleId {
        let i = self
            .roles
            .iter()
            .position(|r| warp < r.first_warp + r.warps)
            .unwrap_or(0);
        RoleId(i as u32)
    }

    /// Calls `f` for every statement in program order, outer statements first.
    pub fn each_stmt<'a>(&'a self, f: &mut dyn FnMut(Option<RoleId>, &'a Stmt)) {
        self.prologue.each(&mut |s| f(None, s));
        for (i, r) in self.roles.iter().enumerate() {
            r.body.each(&mut |s| f(Some(RoleId(i as u32)), s));
        }
        self.epilogue.each(&mut |s| f(None, s));
    }

    /// Returns the alignment of shared memory that the widest swizzle needs.
    pub fn shared_align(&self) -> u32 {
        self.tiles
            .iter()
            .map(|t| t.layout.swizzle.align())
            .max()
            .unwrap_or(Swizzle::None.align())
    }
}

impl Block {
    /// Calls `f` for every statement, outer statements first.
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

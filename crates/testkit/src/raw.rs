//! Kernels written statement by statement, which may break any rule.
//!
//! The file of every statement is `kernel.rs`; the test states its line.

use crate::kernel::TARGET;
use warpline_check::{Diagnostic, examine, protocol};
use warpline_ir::*;

/// A kernel under construction, without the builder and its checks.
pub struct RawKernel(pub Kernel);

impl RawKernel {
    /// Creates a kernel named `kit` with roles of the given names and warps, declared at lines 1, 2, …
    pub fn new(roles: &[(&str, u32)]) -> Self {
        let mut locs = Locs::default();
        let mut first_warp = 0;
        let roles = roles.iter().enumerate().map(|(i, &(name, warps))| {
            let role = Role {
                name: name.to_owned(),
                first_warp,
                warps,
                registers: None,
                body: Block::default(),
                loc: locs.intern(&[frame(i as u32 + 1)]),
            };
            first_warp += warps;
            role
        });
        let roles = roles.collect();
        Self(Kernel {
            name: "kit".to_owned(),
            target: TARGET,
            params: vec![],
            tiles: vec![],
            barriers: vec![],
            named: vec![],
            roles,
            prologue: Block::default(),
            epilogue: Block::default(),
            regs: vec![],
            cluster: [1, 1, 1],
            shared_bytes: 0,
            limits: Vec::new(),
            co_resident: false,
            locs,
        })
    }

    /// Creates a kernel of one role `all` of one warpgroup.
    pub fn one() -> Self {
        Self::new(&[("all", 4)])
    }

    /// Returns the location of a line.
    pub fn loc(&mut self, line: u32) -> Loc {
        self.0.locs.intern(&[frame(line)])
    }

    /// Declares a register that every role may use.
    pub fn reg(&mut self, ty: Type) -> RegId {
        self.0.regs.push(RegInfo {
            ty,
            role: None,
            loc: Loc::default(),
        });
        RegId(self.0.regs.len() as u32 - 1)
    }

    /// Declares a register that the prologue writes.
    pub fn value(&mut self, ty: Type) -> RegId {
        let r = self.reg(ty);
        let mov = ops::arith::Mov {
            ty,
            dst: r,
            src: Operand::Imm(0),
        };
        let stmt = self.op(1, mov);
        self.0.prologue.0.push(stmt);
        r
    }

    /// Declares a register that holds the lane ID.
    pub fn lane(&mut self) -> RegId {
        let dst = self.reg(Type::U32);
        let which = Special::LaneId;
        let stmt = self.op(1, ops::special::ReadSpecial { dst, which });
        self.0.prologue.0.push(stmt);
        dst
    }

    /// Declares a predicate that differs from lane to lane.
    pub fn lane_pred(&mut self) -> RegId {
        let lane = self.lane();
        let dst = self.reg(Type::Pred);
        let setp = ops::compare::Setp {
            cmp: ops::compare::Cmp::Lt,
            ty: Type::U32,
            dst,
            a: lane.into(),
            b: Operand::Imm(5),
        };
        let stmt = self.op(1, setp);
        self.0.prologue.0.push(stmt);
        dst
    }

    /// Declares a tile after all other shared memory.
    pub fn tile(&mut self, line: u32, name: &str, layout: TileLayout, stages: u32) -> TileId {
        let loc = self.loc(line);
        let offset = self.0.shared_bytes.next_multiple_of(layout.swizzle.align());
        self.0.tiles.push(TileInfo {
            name: name.to_owned(),
            dtype: if layout.element_bytes == 2 {
                DType::Bf16
            } else {
                DType::F32
            },
            layout,
            stages,
            offset,
            alias: None,
            loc,
        });
        self.0.shared_bytes = offset + stages * layout.stage_bytes();
        TileId(self.0.tiles.len() as u32 - 1)
    }

    /// Declares an array of mbarriers after all other shared memory.
    pub fn barrier(&mut self, line: u32, name: &str, len: u32) -> BarId {
        let loc = self.loc(line);
        let offset = self.0.shared_bytes.next_multiple_of(8);
        self.0.barriers.push(Barrier {
            name: name.to_owned(),
            len,
            offset,
            loc,
        });
        self.0.shared_bytes = offset + 8 * len;
        BarId(self.0.barriers.len() as u32 - 1)
    }

    /// Declares a named barrier.
    pub fn named(&mut self, line: u32, name: &str, id: u32) -> NamedId {
        let loc = self.loc(line);
        self.0.named.push(NamedBarrier {
            name: name.to_owned(),
            id,
            loc,
        });
        NamedId(self.0.named.len() as u32 - 1)
    }

    /// Declares a parameter.
    pub fn param(&mut self, line: u32, name: &str, kind: ParamKind) -> ParamId {
        let loc = self.loc(line);
        self.0.params.push(Param::new(name, kind, loc));
        ParamId(self.0.params.len() as u32 - 1)
    }

    /// Creates a statement at a line.
    pub fn stmt(&mut self, line: u32, kind: StmtKind) -> Stmt {
        let loc = self.loc(line);
        Stmt { kind, loc }
    }

    /// Creates an op at a line.
    pub fn op(&mut self, line: u32, op: impl Into<Op>) -> Stmt {
        self.stmt(line, StmtKind::Op(op.into()))
    }

    /// Adds a statement to a role.
    pub fn run(&mut self, role: usize, stmt: Stmt) {
        self.0.roles[role].body.0.push(stmt);
    }

    /// Adds an op to the first role.
    pub fn push(&mut self, line: u32, op: impl Into<Op>) {
        let stmt = self.op(line, op);
        self.run(0, stmt);
    }

    /// Returns all diagnostics except those of the protocol rules, because these kernels have no
    /// complete protocol.
    pub fn diagnostics(self) -> Vec<Diagnostic> {
        let mut all = examine(&self.0, &TARGET).diagnostics;
        all.retain(|r| !protocol::rules::RULES.contains(&r.rule));
        all
    }

    /// Expects no diagnostic.
    #[track_caller]
    pub fn passes(self) {
        let name = self.0.name.clone();
        let found: Vec<_> = self
            .diagnostics()
            .iter()
            .map(Diagnostic::to_string)
            .collect();
        assert!(found.is_empty(), "{name}: {found:#?}");
    }

    /// Expects exactly one diagnostic, with this code and line; returns its text.
    #[track_caller]
    pub fn refuted(self, code: &str, line: u32) -> String {
        let all = self.diagnostics();
        let seen: Vec<_> = all
            .iter()
            .map(|r| (r.code(), r.at.map(|f| f.line)))
            .collect();
        assert_eq!(seen, [(code, Some(line))], "{all:#?}");
        all[0].to_string()
    }
}

fn frame(line: u32) -> Frame {
    Frame {
        file: "src/kernel.rs",
        line,
        column: 1,
    }
}

/// Returns the layout of swizzled bf16 rows of 128 bytes.
pub const fn swizzled(rows: u32) -> TileLayout {
    TileLayout {
        element_bytes: 2,
        rows,
        cols: 64,
        swizzle: Swizzle::B128,
    }
}

/// Returns the layout of plain f32 rows.
pub const fn plain(rows: u32, cols: u32) -> TileLayout {
    TileLayout {
        element_bytes: 4,
        rows,
        cols,
        swizzle: Swizzle::None,
    }
}

/// Returns a view of the first stage of a tile.
pub fn view(tile: TileId, rows: u32, cols: u32) -> View {
    View {
        tile,
        stage: Operand::Imm(0),
        row: 0,
        rows,
        col: 0,
        cols,
        peer: None,
    }
}

/// Returns the mbarrier of an array at a constant index.
pub fn bar(bar: BarId, index: u64) -> BarRef {
    BarRef {
        bar,
        index: Operand::Imm(index),
        peer: None,
    }
}

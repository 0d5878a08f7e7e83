//! A sheet: a kernel that holds every form of the ops of one group.

use warpline_check::Checked;
use warpline_ir::ops::compare::{Cmp, Setp};
use warpline_ir::ops::special::ReadParam;
use warpline_ir::*;
use warpline_ptx::{Ptx, print};

/// Every type of a register.
pub(crate) const TYPES: [Type; 17] = Type::ALL;

/// All lanes of a warp.
pub(crate) const ALL_LANES: Operand = Operand::Imm(0xffff_ffff);

/// A kernel of one role of one warpgroup, and a value of every type.
pub(crate) struct Sheet {
    pub(crate) kernel: Kernel,
    values: Vec<(Type, RegId)>,
}

impl Sheet {
    pub(crate) fn new(group: &str) -> Self {
        let mut locs = Locs::default();
        let loc = locs.intern(vec![Frame {
            file: "src/sheet.rs",
            line: 1,
            column: 1,
        }]);
        let role = Role {
            name: "all".to_owned(),
            first_warp: 0,
            warps: 4,
            registers: None,
            body: Block::default(),
            loc,
        };
        let kernel = Kernel {
            name: group.to_owned(),
            params: vec![],
            tiles: vec![],
            barriers: vec![],
            named: vec![],
            roles: vec![role],
            prologue: Block::default(),
            epilogue: Block::default(),
            regs: vec![],
            cluster: [1, 1, 1],
            shared_bytes: 0,
            limits: Vec::new(),
            co_resident: false,
            locs,
        };
        Self {
            kernel,
            values: vec![],
        }
    }

    /// A fresh register.
    pub(crate) fn reg(&mut self, ty: Type) -> RegId {
        self.kernel.regs.push(RegInfo {
            ty,
            role: None,
            loc: Loc(0),
        });
        RegId(self.kernel.regs.len() as u32 - 1)
    }

    /// Fresh registers.
    pub(crate) fn regs(&mut self, ty: Type, n: usize) -> Vec<RegId> {
        (0..n).map(|_| self.reg(ty)).collect()
    }

    /// A register that a launch gave a value to.
    pub(crate) fn value(&mut self, ty: Type) -> RegId {
        if let Some((_, r)) = self.values.iter().find(|(t, _)| *t == ty) {
            return *r;
        }
        let dst = self.reg(ty);
        let op: Op = if ty == Type::Pred {
            let (a, b) = (self.value(Type::U32).into(), Operand::Imm(0));
            let (cmp, ty) = (Cmp::Ne, Type::U32);
            Setp { cmp, ty, dst, a, b }.into()
        } else {
            let param = self.param(ty.name(), ParamKind::Scalar(ty));
            ReadParam { dst, param, ty }.into()
        };
        let stmt = stmt(StmtKind::Op(op));
        self.kernel.prologue.0.push(stmt);
        self.values.push((ty, dst));
        dst
    }

    /// A value, and a constant.
    pub(crate) fn both(&mut self, ty: Type) -> [Operand; 2] {
        [self.value(ty).into(), constant(ty)]
    }

    pub(crate) fn param(&mut self, name: &str, kind: ParamKind) -> ParamId {
        self.kernel.params.push(Param::new(name, kind, Loc(0)));
        ParamId(self.kernel.params.len() as u32 - 1)
    }

    /// The address of global memory.
    pub(crate) fn global(&mut self, offset: i32) -> At {
        At::Global {
            addr: self.value(Type::U64).into(),
            offset,
        }
    }

    /// A tile of 16-bit elements.
    pub(crate) fn tile(
        &mut self,
        name: &str,
        rows: u32,
        cols: u32,
        swizzle: Swizzle,
        stages: u32,
    ) -> TileId {
        let layout = TileLayout {
            element: 2,
            rows,
            cols,
            swizzle,
        };
        let offset = self.kernel.shared_bytes.next_multiple_of(swizzle.align());
        self.kernel.tiles.push(Tile {
            name: name.to_owned(),
            dtype: DType::Bf16,
            layout,
            stages,
            offset,
            alias: None,
            loc: Loc(0),
        });
        self.kernel.shared_bytes = offset + stages * layout.stage_bytes();
        TileId(self.kernel.tiles.len() as u32 - 1)
    }

    /// mbarriers.
    pub(crate) fn barrier(&mut self, name: &str, len: u32) -> BarId {
        let offset = self.kernel.shared_bytes.next_multiple_of(8);
        self.kernel.barriers.push(Barrier {
            name: name.to_owned(),
            len,
            offset,
            loc: Loc(0),
        });
        self.kernel.shared_bytes = offset + 8 * len;
        BarId(self.kernel.barriers.len() as u32 - 1)
    }

    /// Adds an op.
    pub(crate) fn op(&mut self, op: impl Into<Op>) {
        self.kernel.roles[0]
            .body
            .0
            .push(stmt(StmtKind::Op(op.into())));
    }

    /// Adds an op if there is such a form.
    pub(crate) fn form(&mut self, op: impl Into<Op>) {
        let op = op.into();
        if op.legal(&Target::SM_90A).is_ok() {
            self.op(op);
        }
    }

    /// The text of the sheet, which says what the sheet says.
    #[track_caller]
    pub(crate) fn print(self) -> Ptx {
        let target = &Target::SM_90A;
        self.kernel.each_stmt(&mut |_, s| {
            if let StmtKind::Op(op) = &s.kind {
                op.legal(target).unwrap_or_else(|e| panic!("{e}"));
            }
        });
        let sheet = Checked::unproved(self.kernel, "every form of some ops, and no program");
        let ptx = print(&sheet, target).unwrap();
        warpline_translation::verify(&sheet, &ptx.text).unwrap_or_else(|e| panic!("{e}"));
        ptx
    }
}

/// A statement without a line of its own.
pub(crate) fn stmt(kind: StmtKind) -> Stmt {
    Stmt { kind, loc: Loc(0) }
}

/// A constant of a type: 1.5, or 3.
pub(crate) fn constant(ty: Type) -> Operand {
    Operand::Imm(match ty {
        Type::Pred => 1,
        Type::F32 | Type::Tf32 => 0x3fc0_0000,
        Type::F16 => 0x3e00,
        Type::Bf16 => 0x3fc0,
        Type::F16x2 => 0x3e00_3e00,
        Type::Bf16x2 => 0x3fc0_3fc0,
        Type::I32 => 0xffff_fffd,
        Type::I64 => -3i64 as u64,
        _ => 3,
    })
}

/// A place in a stage that a register or a constant names.
pub(crate) fn place(tile: TileId, stage: impl Into<Operand>, byte: impl Into<Operand>) -> Place {
    Place {
        tile,
        stage: stage.into(),
        byte: byte.into(),
        offset: 16,
        peer: None,
    }
}

/// A view of a stage.
pub(crate) fn view(
    tile: TileId,
    stage: impl Into<Operand>,
    [row, rows, col, cols]: [u32; 4],
) -> View {
    View {
        tile,
        stage: stage.into(),
        row,
        rows,
        col,
        cols,
        peer: None,
    }
}

/// An mbarrier that a register or a constant names.
pub(crate) fn bar(bar: BarId, index: impl Into<Operand>) -> BarRef {
    BarRef {
        bar,
        index: index.into(),
        peer: None,
    }
}

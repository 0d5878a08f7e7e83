//! A kernel with every variant of the ops of one group.

use warpline_check::Checked;
use warpline_ir::ops::compare::{Cmp, Setp};
use warpline_ir::ops::special::ReadParam;
use warpline_ir::*;
use warpline_ptx::Ptx;
use warpline_testkit::assemble::printed;
use warpline_testkit::kernel::TARGET;
use warpline_testkit::raw::RawKernel;

/// Every register type.
pub(crate) const TYPES: [Type; 17] = Type::ALL;

/// All lanes of a warp.
pub(crate) const ALL_LANES: Operand = Operand::Imm(0xffff_ffff);

/// A kernel with one role of one warpgroup, and a value of every type.
pub(crate) struct OpKernel {
    pub(crate) raw: RawKernel,
    values: Vec<(Type, RegId)>,
}

impl OpKernel {
    pub(crate) fn new(group: &str) -> Self {
        let mut raw = RawKernel::one();
        raw.0.name = group.to_owned();
        Self {
            raw,
            values: vec![],
        }
    }

    /// Allocates a register.
    pub(crate) fn reg(&mut self, ty: Type) -> RegId {
        self.raw.reg(ty)
    }

    /// Allocates registers.
    pub(crate) fn regs(&mut self, ty: Type, n: usize) -> Vec<RegId> {
        (0..n).map(|_| self.reg(ty)).collect()
    }

    /// Returns a register of a type, loaded from a launch parameter.
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
        self.raw.0.prologue.0.push(stmt);
        self.values.push((ty, dst));
        dst
    }

    /// Returns a register operand and an immediate.
    pub(crate) fn reg_and_imm(&mut self, ty: Type) -> [Operand; 2] {
        [self.value(ty).into(), constant(ty)]
    }

    pub(crate) fn param(&mut self, name: &str, kind: ParamKind) -> ParamId {
        self.raw.param(1, name, kind)
    }

    /// Returns a global address.
    pub(crate) fn global(&mut self, offset: i32) -> MemoryAddress {
        MemoryAddress::Global {
            addr: self.value(Type::U64).into(),
            offset,
        }
    }

    /// Declares a tile of 16-bit elements.
    pub(crate) fn tile(
        &mut self,
        name: &str,
        rows: u32,
        cols: u32,
        swizzle: Swizzle,
        stages: u32,
    ) -> TileId {
        let layout = TileLayout {
            element_bytes: 2,
            rows,
            cols,
            swizzle,
        };
        self.raw.tile(1, name, layout, stages)
    }

    /// Declares mbarriers.
    pub(crate) fn barrier(&mut self, name: &str, len: u32) -> BarId {
        self.raw.barrier(1, name, len)
    }

    /// Adds an op.
    pub(crate) fn op(&mut self, op: impl Into<Op>) {
        self.raw.push(1, op);
    }

    /// Adds an op if the target supports the variant.
    pub(crate) fn op_if_legal(&mut self, op: impl Into<Op>) {
        let op = op.into();
        if op.legal(&TARGET).is_ok() {
            self.op(op);
        }
    }

    /// Prints the kernel and runs the translation check.
    #[track_caller]
    pub(crate) fn print(self) -> Ptx {
        self.raw.0.each_stmt(&mut |_, s| {
            if let StmtKind::Op(op) = &s.kind {
                op.legal(&TARGET).unwrap_or_else(|e| panic!("{e}"));
            }
        });
        let kernel = Checked::unproved(self.raw.0, "a printer test with every variant of some ops");
        printed(&kernel).unwrap_or_else(|e| panic!("{e}"))
    }
}

/// Wraps an op in a statement without a source location.
pub(crate) fn stmt(kind: StmtKind) -> Stmt {
    Stmt { kind, loc: Loc(0) }
}

/// Returns an immediate of a type: 1.5 or 3.
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

/// Returns an address in a stage; the stage is a register or an immediate.
pub(crate) fn shared_address(
    tile: TileId,
    stage: impl Into<Operand>,
    byte: impl Into<Operand>,
) -> SharedAddress {
    SharedAddress {
        tile,
        stage: stage.into(),
        byte: byte.into(),
        offset: 16,
        peer: None,
    }
}

/// Returns a view of a stage.
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

/// Returns an mbarrier; its index is a register or an immediate.
pub(crate) fn bar(bar: BarId, index: impl Into<Operand>) -> BarRef {
    BarRef {
        bar,
        index: index.into(),
        peer: None,
    }
}

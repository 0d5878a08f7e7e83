//! Conversion of operands, addresses and descriptors of the program to values.

use crate::value::OperandValue;
use warpline_ir::ops::policy::CacheHint;
use warpline_ir::{
    BarRef, Kernel, Major, MemoryAddress, Operand, ParamId, RegId, Scope, Semantics, SharedAddress,
    Type, View, WgmmaDescriptor,
};

/// Converts operands of a kernel to values.
#[derive(Clone, Copy)]
pub(super) struct OperandConverter<'a> {
    pub(super) kernel: &'a Kernel,
}

impl<'a> OperandConverter<'a> {
    pub(super) fn reg(self, r: RegId) -> OperandValue<'a> {
        let class = match self.kernel.ty(r).bytes() {
            0 => 'p',
            1 | 2 => 'h',
            8 => 'd',
            _ => 'r',
        };
        OperandValue::Reg(class, r.0)
    }

    pub(super) fn regs(self, all: &[RegId]) -> OperandValue<'a> {
        OperandValue::List(all.iter().map(|&r| self.reg(r)).collect())
    }

    pub(super) fn operand(self, o: Operand, ty: Type) -> OperandValue<'a> {
        match (o, ty) {
            (Operand::Reg(r), _) => self.reg(r),
            (Operand::Imm(bits), Type::I32) => OperandValue::Number(bits as u32 as i32 as u64),
            (Operand::Imm(bits), Type::Pred) => OperandValue::Number((bits != 0).into()),
            (Operand::Imm(bits), _) => OperandValue::Number(bits),
        }
    }

    pub(super) fn operands(self, all: &[Operand], ty: Type) -> OperandValue<'a> {
        OperandValue::List(all.iter().map(|&o| self.operand(o, ty)).collect())
    }

    pub(super) fn u32_operand(self, o: Operand) -> OperandValue<'a> {
        self.operand(o, Type::U32)
    }

    pub(super) fn u64_operand(self, o: Operand) -> OperandValue<'a> {
        self.operand(o, Type::U64)
    }

    /// Returns an address in shared memory of this CTA or a peer.
    fn in_shared(
        self,
        peer: Option<Operand>,
        dynamic_offset: OperandValue<'a>,
        constant_offset: u64,
    ) -> OperandValue<'a> {
        let base = match peer {
            None => OperandValue::Shared,
            Some(rank) => OperandValue::Computed(
                "mapa.shared::cluster.u32",
                vec![OperandValue::Shared, self.u32_operand(rank)],
            ),
        };
        base.plus(dynamic_offset)
            .plus(OperandValue::Number(constant_offset))
            .wrap_to_32_bits()
    }

    pub(super) fn barrier(self, b: &BarRef) -> OperandValue<'a> {
        let offset = self.kernel.barrier(b.bar).offset;
        self.in_shared(b.peer, self.u32_operand(b.index).times(8), offset.into())
    }

    pub(super) fn shared_address(self, p: &SharedAddress) -> OperandValue<'a> {
        let tile = self.kernel.tile(p.tile);
        let stage = self
            .u32_operand(p.stage)
            .times(tile.layout.stage_bytes().into());
        let constant = u64::from(tile.offset) + u64::from(p.offset);
        self.in_shared(p.peer, stage.plus(self.u32_operand(p.byte)), constant)
    }

    pub(super) fn view(self, v: &View) -> OperandValue<'a> {
        let tile = self.kernel.tile(v.tile);
        let stage = self
            .u32_operand(v.stage)
            .times(tile.layout.stage_bytes().into());
        let constant =
            u64::from(tile.offset) + u64::from(tile.layout.unswizzled_offset(v.row, v.col));
        self.in_shared(v.peer, stage, constant)
    }

    pub(super) fn address(self, at: &MemoryAddress) -> OperandValue<'a> {
        match at {
            MemoryAddress::Shared(address) => self.shared_address(address),
            MemoryAddress::Global { addr, offset } => {
                let offset = OperandValue::Number(i64::from(*offset) as u64);
                self.u64_operand(*addr).plus(offset)
            }
        }
    }

    /// Returns the state space of an access.
    pub(super) fn space(self, at: &MemoryAddress) -> OperandValue<'a> {
        match at {
            MemoryAddress::Global { .. } => OperandValue::Name("global"),
            MemoryAddress::Shared(address) => space(address.peer),
        }
    }

    /// Returns the wgmma descriptor of a matrix in shared memory: two words, in units of 16 bytes.
    pub(super) fn descriptor(self, v: &View, major: Major) -> OperandValue<'a> {
        let tile = self.kernel.tile(v.tile);
        let (leading, high) = tile.layout.descriptor(WgmmaDescriptor { major });
        let start =
            (u64::from(tile.offset) + u64::from(tile.layout.unswizzled_offset(v.row, v.col))) / 16;
        let stage = self
            .u32_operand(v.stage)
            .times(u64::from(tile.layout.stage_bytes() / 16));
        let base = OperandValue::Computed(
            "bfe.u32",
            vec![
                OperandValue::Shared,
                OperandValue::Number(4),
                OperandValue::Number(14),
            ],
        );
        let low = base
            .plus(stage)
            .plus(OperandValue::Number(start + u64::from(leading)));
        OperandValue::List(vec![low, high.into()])
    }

    /// Returns the generic address of a tensor map.
    pub(super) fn map(self, p: ParamId) -> OperandValue<'a> {
        OperandValue::Computed("cvta.param.u64", vec![OperandValue::Param(p.index())])
    }

    pub(super) fn policy(self, hint: Option<CacheHint>) -> OperandValue<'a> {
        hint.map_or(OperandValue::Absent, |h| self.u64_operand(h.policy()))
    }

    /// Returns the 16-bit mask of the CTAs that receive a multicast.
    pub(super) fn multicast_mask(self, mask: Option<Operand>) -> OperandValue<'a> {
        mask.map_or(OperandValue::Absent, |o| {
            OperandValue::Computed("cvt.u16.u32", vec![self.u32_operand(o)])
        })
    }
}

/// Returns the state space: shared memory of the CTA, or of the cluster.
pub(super) fn space<'a>(peer: Option<Operand>) -> OperandValue<'a> {
    OperandValue::Name(match peer {
        None => "shared::cta",
        Some(_) => "shared::cluster",
    })
}

/// Returns the PTX name of a scope.
pub(super) const fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Cta => "cta",
        Scope::Cluster => "cluster",
        Scope::Gpu => "gpu",
        Scope::Sys => "sys",
    }
}

/// Returns the PTX name of a memory order.
pub(super) const fn order(order: Semantics) -> &'static str {
    match order {
        Semantics::Relaxed => "relaxed",
        Semantics::Acquire => "acquire",
        Semantics::Release => "release",
        Semantics::AcqRel => "acq_rel",
    }
}

/// Returns the PTX name of a type, such as `s32`.
pub(super) const fn type_name(ty: Type) -> &'static str {
    match ty {
        Type::I32 => "s32",
        Type::I64 => "s64",
        other => other.name(),
    }
}

/// Returns the PTX name of an untyped value, such as `b32`.
pub(super) const fn bits(bytes: usize) -> &'static str {
    match bytes {
        1 => "b8",
        2 => "b16",
        4 => "b32",
        _ => "b64",
    }
}

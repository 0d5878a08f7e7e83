//! Operands, addresses and descriptors of the program, as values.

use crate::value::Value;
use warpline_ir::ops::policy::CacheHint;
use warpline_ir::{
    At, BarRef, Descriptor, Kernel, Major, Operand, ParamId, Place, RegId, Scope, Semantics, Type,
    View,
};

/// A kernel whose operands are turned into values.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    pub(super) kernel: &'a Kernel,
}

impl<'a> Terms<'a> {
    pub(super) fn reg(self, r: RegId) -> Value<'a> {
        let class = match self.kernel.ty(r).bytes() {
            0 => 'p',
            1 | 2 => 'h',
            8 => 'd',
            _ => 'r',
        };
        Value::Reg(class, r.0)
    }

    pub(super) fn regs(self, all: &[RegId]) -> Value<'a> {
        Value::List(all.iter().map(|&r| self.reg(r)).collect())
    }

    pub(super) fn operand(self, o: Operand, ty: Type) -> Value<'a> {
        match (o, ty) {
            (Operand::Reg(r), _) => self.reg(r),
            (Operand::Imm(bits), Type::I32) => Value::Number(bits as u32 as i32 as u64),
            (Operand::Imm(bits), Type::Pred) => Value::Number((bits != 0).into()),
            (Operand::Imm(bits), _) => Value::Number(bits),
        }
    }

    pub(super) fn operands(self, all: &[Operand], ty: Type) -> Value<'a> {
        Value::List(all.iter().map(|&o| self.operand(o, ty)).collect())
    }

    pub(super) fn word(self, o: Operand) -> Value<'a> {
        self.operand(o, Type::U32)
    }

    pub(super) fn long(self, o: Operand) -> Value<'a> {
        self.operand(o, Type::U64)
    }

    /// A byte of a peer's or the CTA's own shared memory.
    fn shared(self, peer: Option<Operand>, stage: Value<'a>, constant: u64) -> Value<'a> {
        let base = match peer {
            None => Value::Shared,
            Some(rank) => Value::Made(
                "mapa.shared::cluster.u32",
                vec![Value::Shared, self.word(rank)],
            ),
        };
        base.plus(stage).plus(Value::Number(constant)).wrapped()
    }

    pub(super) fn barrier(self, b: &BarRef) -> Value<'a> {
        let offset = self.kernel.barrier(b.bar).offset;
        self.shared(b.peer, self.word(b.index).times(8), offset.into())
    }

    pub(super) fn place(self, p: &Place) -> Value<'a> {
        let tile = self.kernel.tile(p.tile);
        let stage = self.word(p.stage).times(tile.layout.stage_bytes().into());
        let constant = u64::from(tile.offset) + u64::from(p.offset);
        self.shared(p.peer, stage.plus(self.word(p.byte)), constant)
    }

    pub(super) fn view(self, v: &View) -> Value<'a> {
        let tile = self.kernel.tile(v.tile);
        let stage = self.word(v.stage).times(tile.layout.stage_bytes().into());
        let constant = u64::from(tile.offset) + u64::from(tile.layout.linear(v.row, v.col));
        self.shared(v.peer, stage, constant)
    }

    pub(super) fn at(self, at: &At) -> Value<'a> {
        match at {
            At::Shared(place) => self.place(place),
            At::Global { addr, offset } => {
                let offset = Value::Number(i64::from(*offset) as u64);
                self.long(*addr).plus(offset)
            }
        }
    }

    /// The state space of an access.
    pub(super) fn space(self, at: &At) -> Value<'a> {
        match at {
            At::Global { .. } => Value::Name("global"),
            At::Shared(place) => space(place.peer),
        }
    }

    /// The descriptor of a matrix in shared memory: two words, all in units of 16 bytes.
    pub(super) fn descriptor(self, v: &View, major: Major) -> Value<'a> {
        let tile = self.kernel.tile(v.tile);
        let (leading, high) = tile.layout.descriptor(Descriptor { major });
        let start = (u64::from(tile.offset) + u64::from(tile.layout.linear(v.row, v.col))) / 16;
        let stage = self
            .word(v.stage)
            .times(u64::from(tile.layout.stage_bytes() / 16));
        let base = Value::Made("shr.u32", vec![Value::Shared, Value::Number(4)]);
        let low = base
            .plus(stage)
            .plus(Value::Number(start + u64::from(leading)));
        Value::List(vec![low, high.into()])
    }

    /// The generic address of a tensor map.
    pub(super) fn map(self, p: ParamId) -> Value<'a> {
        Value::Made("cvta.param.u64", vec![Value::Param(p.index())])
    }

    pub(super) fn policy(self, hint: Option<CacheHint>) -> Value<'a> {
        hint.map_or(Value::Nothing, |h| self.long(h.policy()))
    }

    /// The CTAs that receive a multicast, in 16 bits.
    pub(super) fn receivers(self, mask: Option<Operand>) -> Value<'a> {
        mask.map_or(Value::Nothing, |o| {
            Value::Made("cvt.u16.u32", vec![self.word(o)])
        })
    }
}

/// The shared memory of the CTA itself, or of the cluster.
pub(super) fn space<'a>(peer: Option<Operand>) -> Value<'a> {
    Value::Name(match peer {
        None => "shared::cta",
        Some(_) => "shared::cluster",
    })
}

/// The name of a scope in PTX.
pub(super) const fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Cta => "cta",
        Scope::Cluster => "cluster",
        Scope::Gpu => "gpu",
        Scope::Sys => "sys",
    }
}

/// The name of an order in PTX.
pub(super) const fn order(order: Semantics) -> &'static str {
    match order {
        Semantics::Relaxed => "relaxed",
        Semantics::Acquire => "acquire",
        Semantics::Release => "release",
        Semantics::AcqRel => "acq_rel",
    }
}

/// The name of a number in PTX: `s32`.
pub(super) const fn number(ty: Type) -> &'static str {
    match ty {
        Type::I32 => "s32",
        Type::I64 => "s64",
        other => other.name(),
    }
}

/// The name of a width in PTX: `b32`.
pub(super) const fn bits(bytes: usize) -> &'static str {
    match bytes {
        1 => "b8",
        2 => "b16",
        4 => "b32",
        _ => "b64",
    }
}

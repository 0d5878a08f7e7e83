//! From global memory to the caches.

use super::issue::{Issue, legal_offsets, legal_rank, list, taps};
use super::mode;
use crate::lanes::lanes_of;
use crate::machine::{Access, Asm, Completion, Effects, Exec, Machine, Memory, Step};
use crate::ops::bulk::{CacheHint, hint_asm, hint_effects, hint_name, legal_copy, touch};
use crate::ops::{Exactness, Info, Instr};
use crate::target::Target;
use crate::types::Type;
use crate::value::{Operand, ParamId};

/// Brings a tensor map near, before its first copy.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorPrefetch {
    /// The tensor map.
    pub map: ParamId,
}

impl Instr for TensorPrefetch {
    const INFO: Info = Info {
        name: "tensor_prefetch",
        ptx: "prefetch.tensormap",
        doc: "brings a tensor map near, before its first copy",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("tensor_prefetch.{}", self.map)
    }
    fn effects(&self, _: &mut dyn Effects) {}
    fn asm(&self, a: &mut dyn Asm) {
        let map = a.param(self.map);
        a.emit(format!("prefetch.tensormap [{map}]"));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        m.tensor_map(self.map)?;
        Ok(Step::Next)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_copy(target, false)
    }
}

/// Brings a box of a tensor to the L2, before it is copied.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorPrefetchBox {
    /// The tensor map.
    pub map: ParamId,
    /// The box's first element (`i32`), innermost dimension first.
    pub coords: Vec<Operand>,
    /// The filter tap of an im2col map (`u16`), innermost dimension first; none for a tiled one.
    pub offsets: Vec<Operand>,
    /// How long the L2 shall keep the bytes.
    pub hint: Option<CacheHint>,
}

impl Instr for TensorPrefetchBox {
    const INFO: Info = Info {
        name: "tensor_prefetch_box",
        ptx: "cp.async.bulk.prefetch.tensor.{1d,2d,3d,4d,5d}.L2.global.{tile,im2col}{.L2::cache_hint}",
        doc: "brings a box of a tensor to the L2; the CPU checks its operands and moves nothing",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        let (rank, mode, hint) = (self.coords.len(), mode(&self.offsets), hint_name(self.hint));
        format!("tensor_prefetch_box.{rank}d.{mode}{hint}")
    }
    fn effects(&self, e: &mut dyn Effects) {
        let (map, now) = (Memory::Tensor(self.map), Completion::Now);
        e.touch(&touch(map, Access::Read, now));
        self.coords.iter().for_each(|&o| e.arg(o, Type::I32));
        self.offsets.iter().for_each(|&o| e.arg(o, Type::U16));
        hint_effects(e, self.hint);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let map = a.param(self.map);
        let coords = list(a, &self.coords, Type::I32);
        let taps = taps(a, &self.offsets);
        let (hint, policy) = hint_asm(a, self.hint);
        a.emit(format!(
            "cp.async.bulk.prefetch.tensor.{}d.L2.global.{}{hint} [{map}, {coords}]{taps}{policy}",
            self.coords.len(),
            mode(&self.offsets)
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let issue = Issue::of_box(m, self.map, &self.coords, &self.offsets)?;
        for lane in lanes_of(m.active()) {
            issue.start(lane)?;
        }
        Ok(Step::Next)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_rank(Self::INFO.name, self.coords.len())?;
        legal_offsets(self.coords.len(), self.offsets.len())?;
        legal_copy(target, false)
    }
}

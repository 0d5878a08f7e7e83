//! Prefetches of tensor maps and of boxes.

use super::issue::{PreparedCopy, im2col_offsets, legal_offsets, legal_rank, operand_list};
use super::mode;
use crate::lanes::lanes_of;
use crate::machine::{
    AccessKind, Asm, Completion, Effects, Exec, ExecStatus, Machine, MemoryRegion,
};
use crate::ops::bulk::{CacheHint, async_access, hint_asm, hint_effects, hint_name, legal_copy};
use crate::ops::{Exactness, Instr, OpInfo};
use crate::target::Target;
use crate::types::Type;
use crate::value::{Operand, ParamId};

/// Prefetches a tensor map before its first use.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorPrefetch {
    /// The tensor map.
    pub map: ParamId,
}

impl Instr for TensorPrefetch {
    const INFO: OpInfo = OpInfo {
        name: "tensor_prefetch",
        ptx: "prefetch.tensormap",
        doc: "prefetches a tensor map before its first use",
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
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_copy(target, false)
    }
}

/// Prefetches a box of a tensor into the L2.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorPrefetchBox {
    /// The tensor map.
    pub map: ParamId,
    /// Coordinates of the first element (`i32`), innermost dimension first.
    pub coords: Vec<Operand>,
    /// The im2col offsets (`u16`), innermost dimension first; empty for a tiled map.
    pub offsets: Vec<Operand>,
    /// L2 cache hint.
    pub hint: Option<CacheHint>,
}

impl Instr for TensorPrefetchBox {
    const INFO: OpInfo = OpInfo {
        name: "tensor_prefetch_box",
        ptx: "cp.async.bulk.prefetch.tensor.{1d,2d,3d,4d,5d}.L2.global.{tile,im2col}{.L2::cache_hint}",
        doc: "prefetches a box of a tensor into the L2; the CPU executor only checks the operands",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        let (rank, mode, hint) = (self.coords.len(), mode(&self.offsets), hint_name(self.hint));
        format!("tensor_prefetch_box.{rank}d.{mode}{hint}")
    }
    fn effects(&self, e: &mut dyn Effects) {
        let (map, completion) = (MemoryRegion::Tensor(self.map), Completion::Now);
        e.access(&async_access(map, AccessKind::Read, completion));
        self.coords.iter().for_each(|&o| e.arg(o, Type::I32));
        self.offsets.iter().for_each(|&o| e.arg(o, Type::U16));
        hint_effects(e, self.hint);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let map = a.param(self.map);
        let coords = operand_list(a, &self.coords, Type::I32);
        let offsets = im2col_offsets(a, &self.offsets);
        let (hint, policy) = hint_asm(a, self.hint);
        a.emit(format!(
            "cp.async.bulk.prefetch.tensor.{}d.L2.global.{}{hint} [{map}, {coords}]{offsets}{policy}",
            self.coords.len(),
            mode(&self.offsets)
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let copy = PreparedCopy::without_view(m, self.map, &self.coords, &self.offsets)?;
        for lane in lanes_of(m.active()) {
            copy.start(lane)?;
        }
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_rank(Self::INFO.name, self.coords.len())?;
        legal_offsets(self.coords.len(), self.offsets.len())?;
        legal_copy(target, false)
    }
}

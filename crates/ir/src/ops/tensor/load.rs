//! TMA loads: copies from a tensor to shared memory.

use super::issue::{PreparedCopy, im2col_offsets, legal_offsets, legal_rank, operand_list};
use super::job::CopyDirection;
use super::mode;
use crate::job::{Job, JobCompletion};
use crate::lanes::lanes_of;
use crate::machine::{
    AccessKind, Asm, Completion, Effects, Exec, ExecStatus, Machine, MemoryAccess, MemoryRegion,
};
use crate::ops::bulk::{
    CacheHint, async_access, hint_asm, hint_effects, hint_name, legal_copy, multicast_asm,
    receivers,
};
use crate::ops::{Exactness, Instr, OpInfo};
use crate::target::Target;
use crate::types::Type;
use crate::value::{BarRef, Operand, ParamId, View};

/// Copies a box of a tensor to shared memory, asynchronously.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorLoad {
    /// The tensor map.
    pub map: ParamId,
    /// Destination: a contiguous view with the size of the box.
    pub dst: View,
    /// Coordinates of the first element (`i32`), innermost dimension first.
    pub coords: Vec<Operand>,
    /// The im2col offsets (`u16`), innermost dimension first; empty for a tiled copy.
    pub offsets: Vec<Operand>,
    /// The mbarrier that counts the bytes, in the receiving CTA.
    pub bar: BarRef,
    /// The CTAs of the cluster that receive the box, each at the same offset and
    /// with its own mbarrier (`u32`, bit r = rank r); `None`: the CTA of `dst`.
    pub multicast: Option<Operand>,
    /// L2 cache hint.
    pub hint: Option<CacheHint>,
}

impl Instr for TensorLoad {
    const INFO: OpInfo = OpInfo {
        name: "tensor_load",
        ptx: "cp.async.bulk.tensor.{1d,2d,3d,4d,5d}.shared::cluster.global.{tile,im2col}.mbarrier::complete_tx::bytes{.multicast::cluster}{.L2::cache_hint}",
        doc: "TMA load: asynchronously copies a box of a tensor to shared memory, with zero fill out of bounds; completes on an mbarrier; a tf32 map rounds to nearest even",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        let (rank, mode, hint) = (self.coords.len(), mode(&self.offsets), hint_name(self.hint));
        format!("tensor_load.{rank}d.{mode}{hint}")
    }
    fn effects(&self, e: &mut dyn Effects) {
        let completion = Completion::Bytes(self.bar);
        e.access(&MemoryAccess {
            multicast: self.multicast,
            ..async_access(MemoryRegion::View(self.dst), AccessKind::Write, completion)
        });
        e.access(&async_access(
            MemoryRegion::Tensor(self.map),
            AccessKind::Read,
            completion,
        ));
        self.coords.iter().for_each(|&o| e.arg(o, Type::I32));
        self.offsets.iter().for_each(|&o| e.arg(o, Type::U16));
        hint_effects(e, self.hint);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (dst, map) = (a.view(&self.dst), a.param(self.map));
        let coords = operand_list(a, &self.coords, Type::I32);
        let bar = a.barrier(&self.bar);
        let offsets = im2col_offsets(a, &self.offsets);
        let (multicast, mask) = multicast_asm(a, self.multicast);
        let (hint, policy) = hint_asm(a, self.hint);
        a.emit(format!(
            "cp.async.bulk.tensor.{}d.shared::cluster.global.{}.mbarrier::complete_tx::bytes{multicast}{hint} \
             [{dst}], [{map}, {coords}], [{bar}]{offsets}{mask}{policy}",
            self.coords.len(),
            mode(&self.offsets)
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let copy = PreparedCopy::new(m, self.map, &self.dst, &self.coords, &self.offsets)?;
        let mask = self.multicast.map(|o| m.get::<u32>(o));
        for lane in lanes_of(m.active()) {
            let dst = m.resolve_view(&self.dst, lane)?;
            let bar = m.resolve_bar(&self.bar, lane)?;
            for (dst, bar) in receivers(m, dst, bar, mask.map(|v| v[lane]))? {
                let job = copy.job(lane, CopyDirection::Load, dst, JobCompletion::Bytes(bar))?;
                m.submit(1 << lane, Job::Tensor(job))?;
            }
        }
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_rank(Self::INFO.name, self.coords.len())?;
        legal_offsets(self.coords.len(), self.offsets.len())?;
        legal_copy(target, self.multicast.is_some() || self.dst.peer.is_some())
    }
}

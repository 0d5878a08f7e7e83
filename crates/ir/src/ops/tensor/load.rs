//! From a tensor to shared memory.

use super::issue::{Issue, legal_offsets, legal_rank, list, taps};
use super::job::Way;
use super::mode;
use crate::job::{Done, Job};
use crate::lanes::lanes_of;
use crate::machine::{Access, Asm, Completion, Effects, Exec, Machine, Memory, Step, Touch};
use crate::ops::bulk::{
    CacheHint, hint_asm, hint_effects, hint_name, legal_copy, multicast_asm, receivers, touch,
};
use crate::ops::{Exactness, Info, Instr};
use crate::target::Target;
use crate::types::Type;
use crate::value::{BarRef, Operand, ParamId, View};

/// Copies a box of a tensor to shared memory.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorLoad {
    /// The tensor map.
    pub map: ParamId,
    /// Where to: as many bytes as the box, one after the other.
    pub dst: View,
    /// The box's first element (`i32`), innermost dimension first.
    pub coords: Vec<Operand>,
    /// The filter tap of an im2col copy (`u16`), innermost dimension first; none for a tiled one.
    pub offsets: Vec<Operand>,
    /// The barrier that counts the bytes, in the CTA that receives.
    pub bar: BarRef,
    /// The CTAs of the cluster that receive, each at the same place and with
    /// its own barrier (`u32`, bit r = rank r); `None`: the one named.
    pub multicast: Option<Operand>,
    /// How long the L2 shall keep the bytes.
    pub hint: Option<CacheHint>,
}

impl Instr for TensorLoad {
    const INFO: Info = Info {
        name: "tensor_load",
        ptx: "cp.async.bulk.tensor.{1d,2d,3d,4d,5d}.shared::cluster.global.{tile,im2col}.mbarrier::complete_tx::bytes{.multicast::cluster}{.L2::cache_hint}",
        doc: "copies a box of a tensor to shared memory, counted by an mbarrier; zeros outside the tensor; a tf32 map rounds to nearest even",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        let (rank, mode, hint) = (self.coords.len(), mode(&self.offsets), hint_name(self.hint));
        format!("tensor_load.{rank}d.{mode}{hint}")
    }
    fn effects(&self, e: &mut dyn Effects) {
        let done = Completion::Bytes(self.bar);
        e.touch(&Touch {
            multicast: self.multicast,
            ..touch(Memory::View(self.dst), Access::Write, done)
        });
        e.touch(&touch(Memory::Tensor(self.map), Access::Read, done));
        self.coords.iter().for_each(|&o| e.arg(o, Type::I32));
        self.offsets.iter().for_each(|&o| e.arg(o, Type::U16));
        hint_effects(e, self.hint);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (dst, map) = (a.view(&self.dst), a.param(self.map));
        let coords = list(a, &self.coords, Type::I32);
        let bar = a.barrier(&self.bar);
        let taps = taps(a, &self.offsets);
        let (many, mask) = multicast_asm(a, self.multicast);
        let (hint, policy) = hint_asm(a, self.hint);
        a.emit(format!(
            "cp.async.bulk.tensor.{}d.shared::cluster.global.{}.mbarrier::complete_tx::bytes{many}{hint} \
             [{dst}], [{map}, {coords}], [{bar}]{taps}{mask}{policy}",
            self.coords.len(),
            mode(&self.offsets)
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let issue = Issue::new(m, self.map, &self.dst, &self.coords, &self.offsets)?;
        let mask = self.multicast.map(|o| m.get::<u32>(o));
        for lane in lanes_of(m.active()) {
            let dst = m.resolve_view(&self.dst, lane)?;
            let bar = m.resolve_bar(&self.bar, lane)?;
            for (dst, bar) in receivers(m, dst, bar, mask.map(|v| v[lane]))? {
                let job = issue.job(lane, Way::Load, dst, Done::Bytes(bar))?;
                m.submit(1 << lane, Job::Tensor(job))?;
            }
        }
        Ok(Step::Next)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_rank(Self::INFO.name, self.coords.len())?;
        legal_offsets(self.coords.len(), self.offsets.len())?;
        legal_copy(target, self.multicast.is_some() || self.dst.peer.is_some())
    }
}

//! TMA stores: copies and reductions from shared memory to a tensor.

use super::issue::{PreparedCopy, legal_rank, legal_store_start, operand_list};
use super::job::CopyDirection;
use crate::job::{Job, JobCompletion};
use crate::lanes::lanes_of;
use crate::machine::{
    AccessKind, Asm, Completion, Effects, Exec, ExecStatus, Fault, FaultKind, Machine, MemoryRegion,
};
use crate::ops::bulk::{
    CacheHint, Reduction, async_access, hint_asm, hint_effects, hint_name, legal_copy,
};
use crate::ops::{Exactness, Instr, OpInfo};
use crate::target::Target;
use crate::types::Type;
use crate::value::{Operand, ParamId, View};

/// Copies a box from shared memory to a tensor, or reduces it into the tensor, asynchronously.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorStore {
    /// The tensor map.
    pub map: ParamId,
    /// Source: a contiguous view with the size of the box, in the same CTA.
    pub src: View,
    /// Coordinates of the first element (`i32`, at least 0), innermost dimension first.
    pub coords: Vec<Operand>,
    /// Stores to the pixels of an im2col map, without offsets (`im2col_no_offs`).
    pub im2col: bool,
    /// The reduction into the tensor; `None`: a copy.
    pub reduce: Option<Reduction>,
    /// L2 cache hint.
    pub hint: Option<CacheHint>,
}

impl TensorStore {
    fn mode(&self) -> &'static str {
        if self.im2col {
            "im2col_no_offs"
        } else {
            "tile"
        }
    }
}

impl Instr for TensorStore {
    const INFO: OpInfo = OpInfo {
        name: "tensor_store",
        ptx: "cp{.reduce}.async.bulk.tensor.{1d,2d,3d,4d,5d}.global.shared::cta{.add,.min,.max,.inc,.dec,.and,.or,.xor}.{tile,im2col_no_offs}.bulk_group{.L2::cache_hint}",
        doc: "TMA store: asynchronously copies a box from shared memory to a tensor, or reduces it into the tensor; skips out-of-bounds elements; completes in the lane's bulk async-group; coordinates must not be negative, and the start must be 16-byte aligned",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        let reduce = self
            .reduce
            .map_or(String::new(), |r| format!(".{}", r.name()));
        let im2col = if self.im2col { ".im2col" } else { "" };
        let (rank, hint) = (self.coords.len(), hint_name(self.hint));
        format!("tensor_store.{rank}d{im2col}{reduce}{hint}")
    }
    fn effects(&self, e: &mut dyn Effects) {
        let completion = Completion::BulkGroup;
        let access = match self.reduce {
            None => AccessKind::Write,
            Some(_) => AccessKind::Atomic,
        };
        e.access(&async_access(
            MemoryRegion::Tensor(self.map),
            access,
            completion,
        ));
        self.coords.iter().for_each(|&o| e.arg(o, Type::I32));
        e.access(&async_access(
            MemoryRegion::View(self.src),
            AccessKind::Read,
            completion,
        ));
        hint_effects(e, self.hint);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let map = a.param(self.map);
        let coords = operand_list(a, &self.coords, Type::I32);
        let src = a.view(&self.src);
        let (hint, policy) = hint_asm(a, self.hint);
        let (verb, reduction) = match self.reduce {
            None => ("cp", String::new()),
            Some(r) => ("cp.reduce", format!(".{}", r.name())),
        };
        a.emit(format!(
            "{verb}.async.bulk.tensor.{}d.global.shared::cta{reduction}.{}.bulk_group{hint} [{map}, {coords}], [{src}]{policy}",
            self.coords.len(),
            self.mode()
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let taps = if self.im2col {
            self.coords.len().saturating_sub(2)
        } else {
            0
        };
        let zero_offsets = vec![Operand::Imm(0); taps];
        let copy = PreparedCopy::new(m, self.map, &self.src, &self.coords, &zero_offsets)?;
        if let Some(r) = self.reduce {
            r.legal_in_tensor(copy.map.decl.dtype)
                .map_err(|why| Fault::new(FaultKind::TensorMap, why))?;
        }
        for lane in lanes_of(m.active()) {
            let src = m.resolve_view(&self.src, lane)?;
            let completion = JobCompletion::BulkGroup { lane: lane as u32 };
            let direction = CopyDirection::Store(self.reduce);
            let job = copy.job(lane, direction, src, completion)?;
            m.submit(1 << lane, Job::Tensor(job))?;
        }
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_rank(Self::INFO.name, self.coords.len())?;
        if self.im2col && self.coords.len() < 3 {
            return Err(format!(
                "im2col store has {} coordinates; the rank must be 3 to 5",
                self.coords.len()
            ));
        }
        // The executor checks coordinates in registers.
        legal_store_start(self.coords.iter().map(|&c| match c {
            Operand::Imm(bits) => bits as i32,
            Operand::Reg(_) => 0,
        }))
        .map_err(|why| format!("tensor_store {why}"))?;
        if self.src.peer.is_some() {
            return Err(
                "tensor_store from a tile of a peer; the source must be in the same CTA".into(),
            );
        }
        legal_copy(target, false)
    }
}

//! From shared memory to a tensor.

use super::issue::{Issue, legal_corner, legal_rank, list};
use super::job::Way;
use crate::job::{Done, Job};
use crate::lanes::lanes_of;
use crate::machine::{
    Access, Asm, Completion, Effects, Exec, Fault, FaultKind, Machine, Memory, Step,
};
use crate::ops::bulk::{
    CacheHint, Reduction, hint_asm, hint_effects, hint_name, legal_copy, touch,
};
use crate::ops::{Exactness, Info, Instr};
use crate::target::Target;
use crate::types::Type;
use crate::value::{Operand, ParamId, View};

/// Copies a box of shared memory to a tensor, or combines it with what is there.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorStore {
    /// The tensor map.
    pub map: ParamId,
    /// Where from: as many bytes as the box, one after the other.
    pub src: View,
    /// The box's first element (`i32`, 0 or more), innermost dimension first.
    pub coords: Vec<Operand>,
    /// Does it go to the pixels of an im2col map, which it names without a filter tap?
    pub im2col: bool,
    /// How the elements are combined with those of the tensor; `None`: they replace them.
    pub reduce: Option<Reduction>,
    /// How long the L2 shall keep the bytes.
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
    const INFO: Info = Info {
        name: "tensor_store",
        ptx: "cp{.reduce}.async.bulk.tensor.{1d,2d,3d,4d,5d}.global.shared::cta{.add,.min,.max,.inc,.dec,.and,.or,.xor}.{tile,im2col_no_offs}.bulk_group{.L2::cache_hint}",
        doc: "copies a box of shared memory to a tensor, or combines it with what is there, in the lane's bulk group; nothing past the end of the tensor; it starts inside, on 16 bytes of a row",
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
        let done = Completion::BulkGroup;
        let access = match self.reduce {
            None => Access::Write,
            Some(_) => Access::Atomic,
        };
        e.touch(&touch(Memory::Tensor(self.map), access, done));
        self.coords.iter().for_each(|&o| e.arg(o, Type::I32));
        e.touch(&touch(Memory::View(self.src), Access::Read, done));
        hint_effects(e, self.hint);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let map = a.param(self.map);
        let coords = list(a, &self.coords, Type::I32);
        let src = a.view(&self.src);
        let (hint, policy) = hint_asm(a, self.hint);
        let (verb, how) = match self.reduce {
            None => ("cp", String::new()),
            Some(r) => ("cp.reduce", format!(".{}", r.name())),
        };
        a.emit(format!(
            "{verb}.async.bulk.tensor.{}d.global.shared::cta{how}.{}.bulk_group{hint} [{map}, {coords}], [{src}]{policy}",
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
        let none = vec![Operand::Imm(0); taps];
        let issue = Issue::new(m, self.map, &self.src, &self.coords, &none)?;
        if let Some(r) = self.reduce {
            r.legal_in_tensor(issue.map.decl.dtype)
                .map_err(|why| Fault::new(FaultKind::TensorMap, why))?;
        }
        for lane in lanes_of(m.active()) {
            let src = m.resolve_view(&self.src, lane)?;
            let done = Done::BulkGroup { lane: lane as u32 };
            let way = Way::Store(self.reduce);
            m.submit(1 << lane, Job::Tensor(issue.job(lane, way, src, done)?))?;
        }
        Ok(Step::Next)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_rank(Self::INFO.name, self.coords.len())?;
        if self.im2col && self.coords.len() < 3 {
            return Err(format!(
                "an im2col store takes 3 to 5 coordinates, not {}",
                self.coords.len()
            ));
        }
        // What is in a register, the executor looks at.
        legal_corner(self.coords.iter().map(|&c| match c {
            Operand::Imm(bits) => bits as i32,
            Operand::Reg(_) => 0,
        }))?;
        if self.src.peer.is_some() {
            return Err("tensor_store takes a tile of the CTA itself, not of a peer".into());
        }
        legal_copy(target, false)
    }
}

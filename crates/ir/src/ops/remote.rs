//! Stores to the shared memory of a peer that arrive on their own.
//!
//! The values are taken when the op runs; they are written some time after,
//! and their bytes arrive on an mbarrier of the CTA that receives them. Unlike
//! bulk copies they go through the generic proxy: no proxy fence is due.

use super::bulk::{Reduce, ReduceInto, Reduction, receivers};
use super::cluster::legal_cluster;
use super::{Exactness, Info, Instr};
use crate::job::{Done, Engine, Job, PIECES, Span, joined, part};
use crate::lanes::lanes_of;
use crate::machine::{
    Access, Asm, Completion, Effects, Exec, Fault, FaultKind, LaneBytes, Machine, Mask, Memory,
    Proxy, SharedAt, Step, Touch,
};
use crate::target::Target;
use crate::types::{DType, Type};
use crate::value::{At, BarRef, Operand, Place};

/// Values of some lanes of a warp on their way to one CTA.
#[derive(Clone, PartialEq, Debug)]
pub struct RemoteJob {
    /// How it tells that it is done.
    pub done: Done,
    /// Bytes of each value.
    width: u32,
    /// Where each value goes, and what it is.
    values: Vec<(SharedAt, [u8; 16])>,
    /// How they are combined with what is there; `None`: they replace it.
    reduce: Option<Reduce>,
}

impl RemoteJob {
    /// The bytes it will write.
    pub fn writes(&self, each: &mut dyn FnMut(Span)) {
        joined(each, |each| {
            for (at, _) in &self.values {
                each(Span::Shared(*at, self.width));
            }
        });
    }

    /// The bytes that each of the issuing lanes will write, lowest lane first.
    pub fn written(&self) -> impl Iterator<Item = (SharedAt, u32)> + '_ {
        self.values.iter().map(|(at, _)| (*at, self.width))
    }

    /// Are what it writes sums with what is there?
    pub fn combines(&self) -> bool {
        self.reduce.is_some()
    }

    /// Pieces it may be done in.
    pub fn pieces(&self) -> u32 {
        (self.values.len() as u32).clamp(1, PIECES)
    }

    /// Writes some of the values; gives their bytes.
    pub fn complete(&self, piece: u32, e: &mut impl Engine) -> Result<u32, Fault> {
        let lanes = part(self.values.len() as u32, piece, self.pieces());
        let values = &self.values[lanes.start as usize..lanes.end as usize];
        for (at, bytes) in values {
            let (to, data) = (Span::Shared(*at, self.width), &bytes[..self.width as usize]);
            match self.reduce {
                None => e.write(to, data)?,
                Some(r) => e.reduce(to, data, r.dtype.bytes(), &|old, new, out| {
                    r.op.combine(r.dtype, old, new, out);
                })?,
            }
        }
        Ok(values.len() as u32 * self.width)
    }
}

/// Hands over the values of the active lanes: one job for each barrier they name.
fn submit<M: Machine>(
    m: &mut M,
    dst: &Place,
    bar: &BarRef,
    width: usize,
    data: &LaneBytes,
    reduce: Option<Reduce>,
) -> Exec {
    let mut jobs: Vec<(Mask, RemoteJob)> = Vec::new();
    for lane in lanes_of(m.active()) {
        let to = m.resolve(dst, lane, width)?;
        if !to.byte.is_multiple_of(width as u32) {
            return Err(Fault::new(
                FaultKind::Misaligned,
                format!(
                    "an asynchronous store of {width} bytes goes to a multiple of {width}, not to {:#x}",
                    to.byte
                ),
            ));
        }
        let bar = m.resolve_bar(bar, lane)?;
        for (to, bar) in receivers(m, to, bar, None)? {
            let (value, done) = ((to, data[lane]), Done::Bytes(bar));
            match jobs.iter_mut().find(|(_, job)| job.done == done) {
                Some((lanes, job)) => {
                    *lanes |= 1 << lane;
                    job.values.push(value);
                }
                None => {
                    let job = RemoteJob {
                        done,
                        width: width as u32,
                        values: vec![value],
                        reduce,
                    };
                    jobs.push((1 << lane, job));
                }
            }
        }
    }
    for (lanes, job) in jobs {
        m.submit(lanes, Job::Remote(job))?;
    }
    Ok(Step::Next)
}

/// The registers of each lane, one after the other.
fn gather<M: Machine>(m: &mut M, src: &[Operand], ty: Type) -> LaneBytes {
    let mut data = LaneBytes::default();
    let size = ty.bytes();
    for (i, &o) in src.iter().enumerate() {
        let words = match size {
            8 => m.get::<u64>(o),
            _ => m.get::<u32>(o).map(u64::from),
        };
        for (to, word) in data.iter_mut().zip(words) {
            to[i * size..(i + 1) * size].copy_from_slice(&word.to_le_bytes()[..size]);
        }
    }
    data
}

/// Stores up to 16 bytes per lane to the shared memory of a CTA of the cluster, some time after.
#[derive(Clone, PartialEq, Debug)]
pub struct StoreAsync {
    /// Type of the registers: 4 or 8 bytes.
    pub ty: Type,
    /// One, two or four registers, stored one after the other.
    pub src: Vec<Operand>,
    /// Where to.
    pub dst: Place,
    /// The barrier that counts the bytes, in the CTA that receives.
    pub bar: BarRef,
}

impl StoreAsync {
    fn width(&self) -> usize {
        self.src.len() * self.ty.bytes()
    }

    fn vector(&self) -> &'static str {
        match self.src.len() {
            2 => ".v2",
            4 => ".v4",
            _ => "",
        }
    }
}

/// A touch of a peer's memory by values on their way.
fn touch(at: Place, width: usize, access: Access, bar: BarRef) -> Touch {
    Touch {
        memory: Memory::At(At::Shared(at), width as u32),
        access,
        proxy: Proxy::Remote,
        completion: Completion::Bytes(bar),
        multicast: None,
    }
}

impl Instr for StoreAsync {
    const INFO: Info = Info {
        name: "store_async",
        ptx: "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes{.v2,.v4}.{b32,b64}",
        doc: "stores registers to the shared memory of a peer some time after, counted by an mbarrier of the peer",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("store_async{}.{}", self.vector(), self.ty)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.touch(&touch(self.dst, self.width(), Access::Write, self.bar));
        self.src.iter().for_each(|&o| e.arg(o, self.ty));
    }
    fn asm(&self, a: &mut dyn Asm) {
        let dst = a.address(&At::Shared(self.dst));
        let src: Vec<_> = self.src.iter().map(|&o| a.in_reg(o, self.ty)).collect();
        let src = match &src[..] {
            [one] => one.clone(),
            many => format!("{{{}}}", many.join(", ")),
        };
        let bar = a.barrier(&self.bar);
        a.emit(format!(
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes{}.{} [{dst}], {src}, [{bar}]",
            self.vector(),
            self.ty.bits()
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let data = gather(m, &self.src, self.ty);
        submit(m, &self.dst, &self.bar, self.width(), &data, None)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_cluster(target)?;
        if !matches!(self.ty.bytes(), 4 | 8) {
            return Err(format!(
                "store_async takes registers of 4 or 8 bytes, not {}",
                self.ty
            ));
        }
        if !matches!(self.src.len(), 1 | 2 | 4) || self.width() > 16 {
            return Err(format!(
                "store_async takes 1, 2 or 4 registers of at most 16 bytes, not {} of {}",
                self.src.len(),
                self.ty
            ));
        }
        Ok(())
    }
    fn ptx_version(&self) -> (u32, u32) {
        (8, 1)
    }
}

/// Combines a word with one in the shared memory of a CTA of the cluster, some time after.
#[derive(Clone, PartialEq, Debug)]
pub struct ReduceAsync {
    /// How.
    pub op: Reduction,
    /// Type of the word: an integer of 4 or 8 bytes.
    pub ty: Type,
    /// The word.
    pub src: Operand,
    /// Where to.
    pub dst: Place,
    /// The barrier that counts the bytes, in the CTA that receives.
    pub bar: BarRef,
}

impl ReduceAsync {
    fn reduce(&self) -> Option<Reduce> {
        let dtype = match self.ty {
            Type::U32 => DType::U32,
            Type::I32 => DType::I32,
            Type::U64 => DType::U64,
            Type::I64 => DType::I64,
            _ => return None,
        };
        Some(Reduce { op: self.op, dtype })
    }

    fn suffix(&self) -> String {
        self.reduce().map_or(String::new(), Reduce::ptx)
    }
}

impl Instr for ReduceAsync {
    const INFO: Info = Info {
        name: "reduce_async",
        ptx: "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{add,min,max,inc,dec,and,or,xor}.{u32,s32,u64,b32}",
        doc: "combines a register with a word in the shared memory of a peer some time after, counted by an mbarrier of the peer",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("reduce_async.{}.{}", self.op.name(), self.ty)
    }
    fn effects(&self, e: &mut dyn Effects) {
        let width = self.ty.bytes();
        e.touch(&touch(self.dst, width, Access::Atomic, self.bar));
        e.arg(self.src, self.ty);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let dst = a.address(&At::Shared(self.dst));
        let src = a.in_reg(self.src, self.ty);
        let bar = a.barrier(&self.bar);
        a.emit(format!(
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes{} [{dst}], {src}, [{bar}]",
            self.suffix()
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let Some(reduce) = self.reduce() else {
            return Err(crate::lanes::no_such_type(self.ty));
        };
        let data = gather(m, &[self.src], self.ty);
        let width = self.ty.bytes();
        submit(m, &self.dst, &self.bar, width, &data, Some(reduce))
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_cluster(target)?;
        match self.reduce() {
            Some(r) => r.op.legal(r.dtype, ReduceInto::Shared),
            None => Err(format!(
                "reduce_async takes integers of 4 or 8 bytes, not {}",
                self.ty
            )),
        }
    }
    fn ptx_version(&self) -> (u32, u32) {
        (8, 1)
    }
}

#[cfg(test)]
mod tests;

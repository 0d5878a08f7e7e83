//! `st.async` and `red.async`: asynchronous stores and reductions to the shared memory of a peer.
//!
//! The op reads its registers when it executes. The write completes later, on
//! an mbarrier of the receiving CTA. Unlike bulk copies these writes use the
//! generic proxy, so that no proxy fence is needed.

use super::bulk::{BulkReduce, ReduceInto, Reduction, receivers};
use super::cluster::legal_cluster;
use super::{Exactness, Instr, OpInfo};
use crate::job::{Engine, Job, JobCompletion, PIECES, Span, join_spans, piece_range};
use crate::lanes::lanes_of;
use crate::machine::{
    AccessKind, Asm, Completion, Effects, Exec, ExecStatus, Fault, FaultKind, LaneBytes, Machine,
    Mask, MemoryAccess, MemoryRegion, Proxy, ResolvedAddress,
};
use crate::target::Target;
use crate::types::{DType, Type};
use crate::value::{BarRef, MemoryAddress, Operand, SharedAddress};

/// The asynchronous stores of some lanes of a warp to one mbarrier.
#[derive(Clone, PartialEq, Debug)]
pub struct RemoteJob {
    /// The completion mechanism.
    pub completion: JobCompletion,
    /// Bytes per lane.
    width: u32,
    /// Destination and bytes of each lane.
    values: Vec<(ResolvedAddress, [u8; 16])>,
    /// The reduction into the destination; `None`: a store.
    reduce: Option<BulkReduce>,
}

impl RemoteJob {
    /// Calls `each` with the bytes that the job will write.
    pub fn writes(&self, each: &mut dyn FnMut(Span)) {
        join_spans(each, |each| {
            for (at, _) in &self.values {
                each(Span::Shared(*at, self.width));
            }
        });
    }

    /// Iterates over the writes of the issuing lanes, lowest lane first: address, length.
    pub fn written(&self) -> impl Iterator<Item = (ResolvedAddress, u32)> + '_ {
        self.values.iter().map(|(at, _)| (*at, self.width))
    }

    /// Returns whether the job reduces into the destination.
    pub fn is_reduction(&self) -> bool {
        self.reduce.is_some()
    }

    /// Returns the number of pieces.
    pub fn pieces(&self) -> u32 {
        (self.values.len() as u32).clamp(1, PIECES)
    }

    /// Completes one piece and returns its bytes.
    pub fn complete(&self, piece: u32, e: &mut impl Engine) -> Result<u32, Fault> {
        let lanes = piece_range(self.values.len() as u32, piece, self.pieces());
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

/// Issues the stores of the active lanes: one job for each mbarrier.
fn submit<M: Machine>(
    m: &mut M,
    dst: &SharedAddress,
    bar: &BarRef,
    width: usize,
    data: &LaneBytes,
    reduce: Option<BulkReduce>,
) -> Exec {
    let mut jobs: Vec<(Mask, RemoteJob)> = Vec::new();
    for lane in lanes_of(m.active()) {
        let to = m.resolve(dst, lane, width)?;
        if !to.byte.is_multiple_of(width as u32) {
            return Err(Fault::new(
                FaultKind::Misaligned,
                format!(
                    "has address {:#x}; it must be a multiple of {width} bytes",
                    to.byte
                ),
            ));
        }
        let bar = m.resolve_bar(bar, lane)?;
        for (to, bar) in receivers(m, to, bar, None)? {
            let (value, completion) = ((to, data[lane]), JobCompletion::Bytes(bar));
            match jobs
                .iter_mut()
                .find(|(_, job)| job.completion == completion)
            {
                Some((lanes, job)) => {
                    *lanes |= 1 << lane;
                    job.values.push(value);
                }
                None => {
                    let job = RemoteJob {
                        completion,
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
    Ok(ExecStatus::Completed)
}

/// Returns the registers of each lane as consecutive bytes.
fn lane_bytes<M: Machine>(m: &mut M, src: &[Operand], ty: Type) -> LaneBytes {
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

/// Stores up to 16 bytes per lane to the shared memory of a CTA of the cluster, asynchronously.
#[derive(Clone, PartialEq, Debug)]
pub struct StoreAsync {
    /// Type of the registers, of 4 or 8 bytes.
    pub ty: Type,
    /// One, two or four registers, stored consecutively.
    pub src: Vec<Operand>,
    /// Destination.
    pub dst: SharedAddress,
    /// The mbarrier that counts the bytes, in the receiving CTA.
    pub bar: BarRef,
}

impl StoreAsync {
    fn width(&self) -> usize {
        self.src.len() * self.ty.bytes()
    }

    fn vector_suffix(&self) -> &'static str {
        match self.src.len() {
            2 => ".v2",
            4 => ".v4",
            _ => "",
        }
    }
}

/// Returns an asynchronous access to the shared memory of a peer.
fn remote_access(at: SharedAddress, width: usize, access: AccessKind, bar: BarRef) -> MemoryAccess {
    MemoryAccess {
        memory: MemoryRegion::PerLane(MemoryAddress::Shared(at), width as u32),
        access,
        proxy: Proxy::Remote,
        completion: Completion::Bytes(bar),
        multicast: None,
    }
}

impl Instr for StoreAsync {
    const INFO: OpInfo = OpInfo {
        name: "store_async",
        ptx: "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes{.v2,.v4}.{b32,b64}",
        doc: "asynchronously stores registers to the shared memory of a peer; completes on an mbarrier of the peer",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("store_async{}.{}", self.vector_suffix(), self.ty)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.access(&remote_access(
            self.dst,
            self.width(),
            AccessKind::Write,
            self.bar,
        ));
        self.src.iter().for_each(|&o| e.arg(o, self.ty));
    }
    fn asm(&self, a: &mut dyn Asm) {
        let dst = a.address(&MemoryAddress::Shared(self.dst));
        let src: Vec<_> = self.src.iter().map(|&o| a.in_reg(o, self.ty)).collect();
        let src = match &src[..] {
            [one] => one.clone(),
            many => format!("{{{}}}", many.join(", ")),
        };
        let bar = a.barrier(&self.bar);
        a.emit(format!(
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes{}.{} [{dst}], {src}, [{bar}]",
            self.vector_suffix(),
            self.ty.bits()
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let data = lane_bytes(m, &self.src, self.ty);
        submit(m, &self.dst, &self.bar, self.width(), &data, None)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_cluster(target)?;
        if !matches!(self.ty.bytes(), 4 | 8) {
            return Err(format!(
                "store_async does not support {}; registers must have 4 or 8 bytes",
                self.ty
            ));
        }
        if !matches!(self.src.len(), 1 | 2 | 4) || self.width() > 16 {
            return Err(format!(
                "store_async of {} registers of {}; it stores 1, 2 or 4 registers and at most 16 bytes",
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

/// Reduces a word into the shared memory of a CTA of the cluster, asynchronously.
#[derive(Clone, PartialEq, Debug)]
pub struct ReduceAsync {
    /// The operation.
    pub op: Reduction,
    /// Type of the word, an integer of 4 or 8 bytes.
    pub ty: Type,
    /// The operand.
    pub src: Operand,
    /// Destination.
    pub dst: SharedAddress,
    /// The mbarrier that counts the bytes, in the receiving CTA.
    pub bar: BarRef,
}

impl ReduceAsync {
    fn reduce(&self) -> Option<BulkReduce> {
        let dtype = match self.ty {
            Type::U32 => DType::U32,
            Type::I32 => DType::I32,
            Type::U64 => DType::U64,
            Type::I64 => DType::I64,
            _ => return None,
        };
        Some(BulkReduce { op: self.op, dtype })
    }

    fn suffix(&self) -> String {
        self.reduce().map_or(String::new(), BulkReduce::ptx)
    }
}

impl Instr for ReduceAsync {
    const INFO: OpInfo = OpInfo {
        name: "reduce_async",
        ptx: "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{add,min,max,inc,dec,and,or,xor}.{u32,s32,u64,b32}",
        doc: "asynchronously reduces a register into a word in the shared memory of a peer; completes on an mbarrier of the peer",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("reduce_async.{}.{}", self.op.name(), self.ty)
    }
    fn effects(&self, e: &mut dyn Effects) {
        let width = self.ty.bytes();
        e.access(&remote_access(
            self.dst,
            width,
            AccessKind::Atomic,
            self.bar,
        ));
        e.arg(self.src, self.ty);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let dst = a.address(&MemoryAddress::Shared(self.dst));
        let src = a.in_reg(self.src, self.ty);
        let bar = a.barrier(&self.bar);
        a.emit(format!(
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes{} [{dst}], {src}, [{bar}]",
            self.suffix()
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let Some(reduce) = self.reduce() else {
            return Err(crate::lanes::unsupported_type(self.ty));
        };
        let data = lane_bytes(m, &[self.src], self.ty);
        let width = self.ty.bytes();
        submit(m, &self.dst, &self.bar, width, &data, Some(reduce))
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_cluster(target)?;
        match self.reduce() {
            Some(r) => (r.op.legal(r.dtype, ReduceInto::Shared))
                .map_err(|why| format!("reduce_async {why}")),
            None => Err(format!(
                "reduce_async does not support {}; the type must be an integer of 4 or 8 bytes",
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

//! Bulk copies of a run of bytes, and the groups in which stores complete.
//!
//! Each active lane issues a copy of its own; usually one elected lane does.
//! Addresses and lengths are multiples of 16 bytes.

use super::cluster::legal_cluster;
use super::control::acts;
use super::{Exactness, Info, Instr};
use crate::job::{Done, Engine, Job, PIECES, Span, part};
use crate::lanes::lanes_of;
use crate::machine::{
    Access, Asm, BarAt, Completion, Effects, Exec, Fault, FaultKind, Lanes, Machine, Memory, Proxy,
    SharedAt, Special, Step, Touch,
};
use crate::sync::Sync;
use crate::target::Target;
use crate::types::Type;
use crate::value::{BarRef, Operand, Place};

/// How long the L2 shall keep what a copy moves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CacheHint {
    /// As other lines.
    EvictNormal,
    /// Read once.
    EvictFirst,
    /// Read again and again.
    EvictLast,
}

impl CacheHint {
    /// The 64-bit policy, as `createpolicy.fractional` would make it.
    pub const fn policy(self) -> u64 {
        match self {
            CacheHint::EvictNormal => 0x1000_0000_0000_0000,
            CacheHint::EvictFirst => 0x12F0_0000_0000_0000,
            CacheHint::EvictLast => 0x14F0_0000_0000_0000,
        }
    }

    /// The name in text.
    pub const fn name(self) -> &'static str {
        match self {
            CacheHint::EvictNormal => "evict_normal",
            CacheHint::EvictFirst => "evict_first",
            CacheHint::EvictLast => "evict_last",
        }
    }
}

/// The hint's part of an op's name.
pub(super) fn hint_name(hint: Option<CacheHint>) -> String {
    hint.map_or(String::new(), |h| format!(".{}", h.name()))
}

/// The hint's suffix and operand in PTX.
pub(super) fn hint_asm(a: &mut dyn Asm, hint: Option<CacheHint>) -> (&'static str, String) {
    match hint {
        None => ("", String::new()),
        Some(h) => {
            let policy = a.in_reg(Operand::Imm(h.policy()), Type::U64);
            (".L2::cache_hint", format!(", {policy}"))
        }
    }
}

/// The mask's suffix and operand in PTX.
pub(super) fn multicast_asm(a: &mut dyn Asm, mask: Option<Operand>) -> (&'static str, String) {
    match mask {
        None => ("", String::new()),
        Some(mask) => {
            let (wide, narrow) = (a.in_reg(mask, Type::U32), a.temp(Type::U16));
            a.emit(format!("cvt.u16.u32 {narrow}, {wide}"));
            (".multicast::cluster", format!(", {narrow}"))
        }
    }
}

/// Refuses a target without bulk copies, or without clusters to multicast in.
pub(super) fn legal_copy(target: &Target, multicast: bool) -> Result<(), String> {
    if !target.features.tma {
        return Err(format!("{} has no bulk copies", target.name));
    }
    if multicast {
        legal_cluster(target)
    } else {
        Ok(())
    }
}

/// A touch by a bulk engine.
pub(super) fn touch(memory: Memory, access: Access, completion: Completion) -> Touch {
    Touch {
        memory,
        access,
        proxy: Proxy::Bulk,
        completion,
        multicast: None,
    }
}

/// Refuses a value that is not a multiple of what the engine moves.
pub(super) fn aligned(what: &str, value: u64, to: u64) -> Result<(), Fault> {
    if value.is_multiple_of(to) {
        return Ok(());
    }
    Err(Fault::new(
        FaultKind::Misaligned,
        format!("{what} is a multiple of {to} bytes, not {value:#x}"),
    ))
}

/// Where a lane's copy arrives: shared memory and barrier of each receiver.
pub(super) fn receivers<M: Machine>(
    m: &mut M,
    dst: SharedAt,
    bar: BarAt,
    mask: Option<u32>,
) -> Result<Vec<(SharedAt, BarAt)>, Fault> {
    if dst.cta != bar.cta {
        return Err(Fault::new(
            FaultKind::Operand,
            format!(
                "a copy and its barrier are in one CTA, not in those of rank {} and {}",
                dst.cta, bar.cta
            ),
        ));
    }
    let Some(mask) = mask else {
        return Ok(vec![(dst, bar)]);
    };
    let size = m.special(Special::ClusterSize)[0];
    if mask == 0 || size < 16 && mask >> size != 0 || mask >> 16 != 0 {
        return Err(Fault::new(
            FaultKind::Operand,
            format!(
                "a multicast mask names some of the {size} CTAs of the cluster; {mask:#x} does not"
            ),
        ));
    }
    let to = |cta| (SharedAt { cta, ..dst }, BarAt { cta, ..bar });
    Ok(lanes_of(mask).map(|rank| to(rank as u32)).collect())
}

/// A run of bytes between global and shared memory.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkJob {
    /// How it tells that it is done.
    pub done: Done,
    /// Where the bytes are.
    from: Span,
    /// Where they go, as many.
    to: Span,
}

impl BulkJob {
    /// The bytes it will read.
    pub fn reads(&self, each: &mut dyn FnMut(Span)) {
        if !self.from.is_empty() {
            each(self.from);
        }
    }

    /// The bytes it will write.
    pub fn writes(&self, each: &mut dyn FnMut(Span)) {
        if !self.to.is_empty() {
            each(self.to);
        }
    }

    /// Pieces it may be done in.
    pub fn pieces(&self) -> u32 {
        (self.from.len() / 16).clamp(1, PIECES)
    }

    /// Copies one piece; gives its bytes.
    pub fn complete(&self, piece: u32, e: &mut impl Engine) -> Result<u32, Fault> {
        let chunks = part(self.from.len() / 16, piece, self.pieces());
        let (at, len) = (16 * chunks.start, 16 * chunks.len() as u32);
        if len > 0 {
            let mut bytes = vec![0; len as usize];
            e.read(self.from.slice(at, len), &mut bytes)?;
            e.write(self.to.slice(at, len), &bytes)?;
        }
        Ok(len)
    }
}

/// Copies a run of bytes from global to shared memory.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkLoad {
    /// Where to.
    pub dst: Place,
    /// The global address (`u64`).
    pub src: Operand,
    /// How many bytes (`u32`).
    pub bytes: Operand,
    /// The barrier that counts them, in the CTA that receives.
    pub bar: BarRef,
    /// The CTAs of the cluster that receive, each at the same place and with
    /// its own barrier (`u32`, bit r = rank r); `None`: the one named.
    pub multicast: Option<Operand>,
    /// How long the L2 shall keep the bytes.
    pub hint: Option<CacheHint>,
}

impl Instr for BulkLoad {
    const INFO: Info = Info {
        name: "bulk_load",
        ptx: "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{.multicast::cluster}{.L2::cache_hint}",
        doc: "copies a run of bytes from global to shared memory, counted by an mbarrier",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("bulk_load{}", hint_name(self.hint))
    }
    fn effects(&self, e: &mut dyn Effects) {
        let done = Completion::Bytes(self.bar);
        e.touch(&Touch {
            multicast: self.multicast,
            ..touch(Memory::Run(self.dst, self.bytes), Access::Write, done)
        });
        e.touch(&touch(
            Memory::Global(self.src, self.bytes),
            Access::Read,
            done,
        ));
    }
    fn asm(&self, a: &mut dyn Asm) {
        let dst = a.address(&crate::value::At::Shared(self.dst));
        let (src, bytes) = (
            a.in_reg(self.src, Type::U64),
            a.operand(self.bytes, Type::U32),
        );
        let bar = a.barrier(&self.bar);
        let (many, mask) = multicast_asm(a, self.multicast);
        let (hint, policy) = hint_asm(a, self.hint);
        a.emit(format!(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{many}{hint} \
             [{dst}], [{src}], {bytes}, [{bar}]{mask}{policy}"
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let (src, bytes) = runs(m, self.src, self.bytes);
        let mask = self.multicast.map(|o| m.get::<u32>(o));
        for lane in lanes_of(m.active()) {
            let dst = m.resolve(&self.dst, lane, bytes[lane] as usize)?;
            check_run(dst, src[lane], bytes[lane])?;
            let bar = m.resolve_bar(&self.bar, lane)?;
            for (dst, bar) in receivers(m, dst, bar, mask.map(|v| v[lane]))? {
                m.submit(Job::Bulk(BulkJob {
                    done: Done::Bytes(bar),
                    from: Span::Global(src[lane], bytes[lane]),
                    to: Span::Shared(dst, bytes[lane]),
                }))?;
            }
        }
        Ok(Step::Next)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_copy(target, self.multicast.is_some() || self.dst.peer.is_some())
    }
}

/// Copies a run of bytes from shared to global memory.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkStore {
    /// Where from.
    pub src: Place,
    /// The global address (`u64`).
    pub dst: Operand,
    /// How many bytes (`u32`).
    pub bytes: Operand,
    /// How long the L2 shall keep the bytes.
    pub hint: Option<CacheHint>,
}

impl Instr for BulkStore {
    const INFO: Info = Info {
        name: "bulk_store",
        ptx: "cp.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}",
        doc: "copies a run of bytes from shared to global memory, in the lane's bulk group",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("bulk_store{}", hint_name(self.hint))
    }
    fn effects(&self, e: &mut dyn Effects) {
        let done = Completion::BulkGroup;
        e.touch(&touch(
            Memory::Global(self.dst, self.bytes),
            Access::Write,
            done,
        ));
        e.touch(&touch(
            Memory::Run(self.src, self.bytes),
            Access::Read,
            done,
        ));
    }
    fn asm(&self, a: &mut dyn Asm) {
        let dst = a.in_reg(self.dst, Type::U64);
        let src = a.address(&crate::value::At::Shared(self.src));
        let bytes = a.operand(self.bytes, Type::U32);
        let (hint, policy) = hint_asm(a, self.hint);
        a.emit(format!(
            "cp.async.bulk.global.shared::cta.bulk_group{hint} [{dst}], [{src}], {bytes}{policy}"
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let (dst, bytes) = runs(m, self.dst, self.bytes);
        for lane in lanes_of(m.active()) {
            let src = m.resolve(&self.src, lane, bytes[lane] as usize)?;
            check_run(src, dst[lane], bytes[lane])?;
            m.submit(Job::Bulk(BulkJob {
                done: Done::BulkGroup { lane: lane as u32 },
                from: Span::Shared(src, bytes[lane]),
                to: Span::Global(dst[lane], bytes[lane]),
            }))?;
        }
        Ok(Step::Next)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        if self.src.peer.is_some() {
            return Err("bulk_store takes a tile of the CTA itself, not of a peer".into());
        }
        legal_copy(target, false)
    }
}

/// Global address and length of each lane's run.
fn runs<M: Machine>(m: &mut M, global: Operand, bytes: Operand) -> (Lanes<u64>, Lanes<u32>) {
    (m.get(global), m.get(bytes))
}

/// The alignment rules of a bulk copy.
fn check_run(shared: SharedAt, global: u64, bytes: u32) -> Result<(), Fault> {
    aligned("the shared address of a bulk copy", shared.byte.into(), 16)?;
    aligned("the global address of a bulk copy", global, 16)?;
    aligned("the length of a bulk copy", bytes.into(), 16)
}

/// Closes the bulk stores a thread has issued into one group.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkCommit;

impl BulkCommit {
    fn act(&self) -> Sync {
        Sync::BulkCommit
    }
}

impl Instr for BulkCommit {
    const INFO: Info = Info {
        name: "bulk_commit",
        ptx: "cp.async.bulk.commit_group",
        doc: "closes the bulk stores a thread has issued into one group",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "bulk_commit".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit("cp.async.bulk.commit_group".into());
    }
    acts!();
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_copy(target, false)
    }
}

/// Waits for a thread's bulk groups.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkWait {
    /// Groups that may stay open, the youngest ones.
    pub pending: u32,
    /// Only the reads of shared memory must be done.
    pub read: bool,
}

impl BulkWait {
    fn act(&self) -> Sync {
        Sync::BulkWait {
            pending: self.pending,
            read: self.read,
        }
    }

    fn suffix(&self) -> &'static str {
        if self.read { ".read" } else { "" }
    }
}

impl Instr for BulkWait {
    const INFO: Info = Info {
        name: "bulk_wait",
        ptx: "cp.async.bulk.wait_group{.read}",
        doc: "waits until a thread has at most some bulk groups open",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("bulk_wait{}", self.suffix())
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit(format!(
            "cp.async.bulk.wait_group{} {}",
            self.suffix(),
            self.pending
        ));
    }
    acts!();
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_copy(target, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fake::{Cta, GLOBAL, Rng, bar, place};
    use crate::lanes::fake::{arg, ptx};
    use crate::layout::{Swizzle, TileLayout};

    /// A tile of 2048 bytes at byte 512, in a cluster of four; global memory is random.
    fn cta() -> Cta {
        let layout = TileLayout {
            element: 4,
            rows: 1,
            cols: 512,
            swizzle: Swizzle::None,
        };
        let mut cta = Cta::new(4, 4096).tile(512, layout);
        cta.global = Rng(2).bytes(4096);
        cta.warp.active = 1;
        cta
    }

    fn load(byte: u64, src: u64, bytes: u64) -> BulkLoad {
        BulkLoad {
            dst: place(0, Operand::Imm(byte)),
            src: Operand::Imm(GLOBAL + src),
            bytes: Operand::Imm(bytes),
            bar: bar(3),
            multicast: None,
            hint: None,
        }
    }

    fn store(byte: u64, dst: u64, bytes: u64) -> BulkStore {
        BulkStore {
            src: place(0, Operand::Imm(byte)),
            dst: Operand::Imm(GLOBAL + dst),
            bytes: Operand::Imm(bytes),
            hint: None,
        }
    }

    #[test]
    fn a_load_copies_the_run_and_counts_its_bytes() {
        for bytes in [0, 16, 48, 80, 1040, 2032] {
            let mut cta = cta();
            let before = cta.shared[0].clone();
            cta.run(&load(16, 32, bytes));
            assert_eq!(cta.jobs[0].done(), Done::Bytes(BarAt { cta: 0, slot: 3 }));
            assert_eq!(cta.complete(), [bytes as u32]);
            let n = bytes as usize;
            assert_eq!(cta.shared[0][528..528 + n], cta.global[32..32 + n]);
            assert_eq!(cta.shared[0][..528], before[..528]);
            assert_eq!(cta.shared[0][528 + n..], before[528 + n..]);
        }
    }

    #[test]
    fn a_store_copies_the_run_back_in_the_lanes_group() {
        let mut cta = cta();
        cta.warp.active = 1 << 4;
        cta.run(&store(32, 64, 1008));
        assert_eq!(cta.jobs[0].done(), Done::BulkGroup { lane: 4 });
        cta.complete();
        assert_eq!(cta.global[64..64 + 1008], cta.shared[0][544..544 + 1008]);
    }

    #[test]
    fn bytes_are_read_when_the_job_completes() {
        let mut cta = cta();
        cta.run(&load(0, 0, 64));
        cta.global.fill(9);
        cta.complete();
        assert_eq!(cta.shared[0][512..576], [9; 64]);
    }

    #[test]
    fn every_active_lane_copies() {
        let mut cta = cta();
        cta.warp = cta
            .warp
            .clone()
            .with(1, &[0u32, 64, 128])
            .with_active(0b111);
        cta.run(&BulkLoad {
            dst: place(0, arg(1)),
            ..load(0, 256, 64)
        });
        assert_eq!(cta.complete(), [64; 3]);
        for lane in 0..3 {
            let at = 512 + 64 * lane;
            assert_eq!(cta.shared[0][at..at + 64], cta.global[256..256 + 64]);
        }
    }

    #[test]
    fn a_multicast_goes_to_each_receiver_and_its_barrier() {
        let mut cta = cta();
        let before = cta.shared.clone();
        cta.run(&BulkLoad {
            multicast: Some(Operand::Imm(0b1010)),
            ..load(0, 0, 256)
        });
        let done: Vec<_> = cta.jobs.iter().map(Job::done).collect();
        assert_eq!(done, [1, 3].map(|cta| Done::Bytes(BarAt { cta, slot: 3 })));
        assert_eq!(cta.complete(), [256, 256]);
        for (rank, before) in before.iter().enumerate() {
            let got = &cta.shared[rank][512..512 + 256];
            match rank % 2 {
                1 => assert_eq!(got, &cta.global[..256]),
                _ => assert_eq!(got, &before[512..512 + 256]),
            }
        }
    }

    #[test]
    fn a_load_may_go_to_a_peer_with_its_barrier() {
        let mut cta = cta();
        let (mut dst, mut bar) = (place(0, Operand::Imm(0)), bar(3));
        dst.peer = Some(Operand::Imm(2));
        bar.peer = Some(Operand::Imm(2));
        cta.run(&BulkLoad {
            dst,
            bar,
            ..load(0, 0, 32)
        });
        cta.complete();
        assert_eq!(cta.shared[2][512..544], cta.global[..32]);
    }

    #[test]
    fn faults_name_the_rule_and_the_value() {
        let is = |f: Fault, kind, text: &str| {
            assert_eq!(f.kind, kind, "{}", f.text);
            assert!(f.text.contains(text), "{}", f.text);
        };
        let misaligned = FaultKind::Misaligned;
        is(
            cta().fault(&load(8, 0, 16)),
            misaligned,
            "shared address of a bulk copy is a multiple of 16 bytes, not 0x208",
        );
        is(
            cta().fault(&load(0, 4, 16)),
            misaligned,
            "global address of a bulk copy is a multiple of 16 bytes, not 0x1004",
        );
        is(
            cta().fault(&store(0, 0, 20)),
            misaligned,
            "length of a bulk copy is a multiple of 16 bytes, not 0x14",
        );
        is(
            cta().fault(&load(2032, 0, 32)),
            FaultKind::OutOfBounds,
            "byte 2032",
        );
        let cast = |mask| BulkLoad {
            multicast: Some(Operand::Imm(mask)),
            ..load(0, 0, 16)
        };
        is(
            cta().fault(&cast(0)),
            FaultKind::Operand,
            "the 4 CTAs of the cluster; 0x0 does not",
        );
        is(
            cta().fault(&cast(0x11)),
            FaultKind::Operand,
            "0x11 does not",
        );
        let mut apart = load(0, 0, 16);
        apart.bar.peer = Some(Operand::Imm(1));
        is(
            cta().fault(&apart),
            FaultKind::Operand,
            "not in those of rank 0 and 1",
        );
    }

    #[test]
    fn groups_are_acts() {
        let mut cta = cta();
        cta.run(&BulkCommit);
        let wait = BulkWait {
            pending: 1,
            read: true,
        };
        cta.run(&wait);
        let waited = Sync::BulkWait {
            pending: 1,
            read: true,
        };
        assert_eq!(cta.warp.syncs, [Sync::BulkCommit, waited]);
    }

    #[test]
    fn ptx_of_copies() {
        let full = BulkLoad {
            src: arg(1),
            bytes: arg(2),
            multicast: Some(arg(3)),
            hint: Some(CacheHint::EvictLast),
            ..load(0, 0, 0)
        };
        assert_eq!(
            ptx(&full),
            [
                "cvt.u16.u32 %t0, %3",
                "mov.b64 %t1, 0x14f0000000000000",
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint \
                 [address], [%1], %2, [barrier], %t0, %t1",
            ]
        );
        let plain = BulkLoad {
            src: arg(1),
            ..load(0, 0, 64)
        };
        assert_eq!(
            ptx(&plain),
            [
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [address], [%1], 64, [barrier]"
            ]
        );
        let out = BulkStore {
            dst: arg(1),
            hint: Some(CacheHint::EvictFirst),
            ..store(0, 0, 64)
        };
        assert_eq!(
            ptx(&out),
            [
                "mov.b64 %t0, 0x12f0000000000000",
                "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%1], [address], 64, %t0",
            ]
        );
        assert_eq!(ptx(&BulkCommit), ["cp.async.bulk.commit_group"]);
        let wait = |pending, read| ptx(&BulkWait { pending, read });
        assert_eq!(wait(2, false), ["cp.async.bulk.wait_group 2"]);
        assert_eq!(wait(0, true), ["cp.async.bulk.wait_group.read 0"]);
    }

    #[test]
    fn legality() {
        let mut t = Target::SM_90A;
        assert_eq!(load(0, 0, 16).legal(&t), Ok(()));
        let mut remote = store(0, 0, 16);
        remote.src.peer = Some(Operand::Imm(1));
        assert!(remote.legal(&t).unwrap_err().contains("not of a peer"));
        t.features.clusters = false;
        let cast = BulkLoad {
            multicast: Some(Operand::Imm(1)),
            ..load(0, 0, 16)
        };
        assert!(cast.legal(&t).unwrap_err().contains("no clusters"));
        t.features.tma = false;
        assert!(
            load(0, 0, 16)
                .legal(&t)
                .unwrap_err()
                .contains("no bulk copies")
        );
    }
}

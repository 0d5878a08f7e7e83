//! A warp with memory for tests of ops; it completes jobs on request.

use super::{Combine, Engine, Job, Span};
use crate::lanes::fake::Warp;
use crate::lanes::lanes_of;
use crate::layout::TileLayout;
use crate::machine::*;
use crate::ops::Instr;
use crate::sync::{MemoryOrder, SyncOp};
use crate::tensor_map::TensorMapValue;
use crate::value::{BarRef, MemoryAddress, Operand, ParamId, RegId, SharedAddress, TileId, View};

/// First address of global memory.
pub(crate) const GLOBAL: u64 = 0x1000;

/// Shared memory bytes of each CTA.
const SHARED: usize = 64 << 10;

/// One warp of a CTA in a small cluster.
pub(crate) struct Cta {
    pub(crate) warp: Warp,
    /// Warp index in the CTA.
    pub(crate) warp_id: u32,
    /// The shared memory of every CTA of the cluster; this one has rank 0.
    pub(crate) shared: Vec<Vec<u8>>,
    pub(crate) global: Vec<u8>,
    /// The start of each tile, and the layout of its stages.
    pub(crate) tiles: Vec<(u32, TileLayout)>,
    pub(crate) maps: Vec<TensorMapValue>,
    /// Jobs in flight.
    pub(crate) jobs: Vec<Job>,
    /// The result of [`Machine::sync`].
    pub(crate) sync_result: ExecStatus,
    /// The memory orders of the executed atomics.
    pub(crate) orders: Vec<MemoryOrder>,
}

impl Cta {
    /// Creates a cluster of `cluster` CTAs with random shared memory and `global` zero bytes of global memory.
    pub(crate) fn new(cluster: usize, global: usize) -> Self {
        let mut rng = Rng(7);
        Self {
            warp: Warp::new(),
            warp_id: 0,
            shared: (0..cluster).map(|_| rng.bytes(SHARED)).collect(),
            global: vec![0; global],
            tiles: Vec::new(),
            maps: Vec::new(),
            jobs: Vec::new(),
            sync_result: ExecStatus::Completed,
            orders: Vec::new(),
        }
    }

    /// Adds a tile at a byte of shared memory; tiles are numbered from 0.
    pub(crate) fn tile(mut self, at: u32, layout: TileLayout) -> Self {
        self.tiles.push((at, layout));
        self
    }

    /// Executes an op that must not block.
    pub(crate) fn run(&mut self, op: &impl Instr) {
        assert_eq!(op.exec(self), Ok(ExecStatus::Completed), "{}", op.name());
    }

    /// Executes an op that must fail and returns its fault.
    pub(crate) fn fault(&mut self, op: &impl Instr) -> Fault {
        op.exec(self).expect_err(&op.name())
    }

    /// Completes all jobs, the last piece of the last job first, and returns the bytes of each.
    ///
    /// Asserts that each job accesses exactly the bytes that it declared.
    pub(crate) fn complete(&mut self) -> Vec<u32> {
        let jobs = std::mem::take(&mut self.jobs);
        let mut all: Vec<_> = jobs
            .iter()
            .rev()
            .map(|job| self.complete_job(job))
            .collect();
        all.reverse();
        all
    }

    fn complete_job(&mut self, job: &Job) -> u32 {
        let mut recorder = AccessRecorder {
            cta: self,
            read: Vec::new(),
            written: Vec::new(),
        };
        let bytes = (0..job.pieces())
            .rev()
            .map(|piece| {
                job.complete(piece, &mut recorder)
                    .expect("a job of a test completes")
            })
            .sum();
        let AccessRecorder { read, written, .. } = recorder;
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        job.reads(&mut |s| reads.push(s));
        job.writes(&mut |s| writes.push(s));
        assert_eq!(
            distinct_bytes(&read),
            distinct_bytes(&reads),
            "reads of {job:?}"
        );
        assert_eq!(
            distinct_bytes(&written),
            distinct_bytes(&writes),
            "writes of {job:?}"
        );
        bytes
    }

    fn bytes(&mut self, span: Span) -> Result<&mut [u8], Fault> {
        let (memory, at, len) = match span {
            Span::Shared(s, len) => (&mut self.shared[s.cta as usize], u64::from(s.byte), len),
            Span::Global(at, len) => (&mut self.global, at.wrapping_sub(GLOBAL), len),
        };
        let end = at.saturating_add(u64::from(len));
        memory
            .get_mut(at as usize..end as usize)
            .ok_or_else(|| Fault::new(FaultKind::OutOfBounds, format!("{span:?}")))
    }

    fn span(&mut self, at: &MemoryAddress, lane: usize, len: usize) -> Result<Span, Fault> {
        match *at {
            MemoryAddress::Shared(address) => {
                Ok(Span::Shared(self.resolve(&address, lane, len)?, len as u32))
            }
            MemoryAddress::Global { addr, offset } => {
                let addr = self.get::<u64>(addr)[lane].wrapping_add_signed(offset.into());
                Ok(Span::Global(addr, len as u32))
            }
        }
    }

    fn rank(&mut self, peer: Option<Operand>, lane: usize) -> u32 {
        peer.map_or(0, |p| self.get::<u32>(p)[lane])
    }
}

/// Returns the distinct bytes of the spans: `(rank for shared memory, address)`.
fn distinct_bytes(spans: &[Span]) -> Vec<(Option<u32>, u64)> {
    let mut all: Vec<_> = spans
        .iter()
        .flat_map(|span| {
            assert!(!span.is_empty(), "job declares an empty span");
            let (cta, at) = match *span {
                Span::Shared(s, _) => (Some(s.cta), s.byte.into()),
                Span::Global(at, _) => (None, at),
            };
            (at..at + u64::from(span.len())).map(move |byte| (cta, byte))
        })
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl Machine for Cta {
    fn active(&self) -> Mask {
        self.warp.active
    }
    fn get<T: Lane>(&mut self, o: Operand) -> PerLane<T> {
        self.warp.get(o)
    }
    fn set<T: Lane>(&mut self, r: RegId, v: &PerLane<T>) {
        self.warp.set(r, v);
    }
    fn pred(&mut self, o: Operand) -> Mask {
        self.warp.pred(o)
    }
    fn set_pred(&mut self, r: RegId, m: Mask) {
        self.warp.set_pred(r, m);
    }
    fn special(&mut self, s: Special) -> PerLane<u64> {
        match s {
            Special::WarpId => [self.warp_id.into(); WARP],
            Special::ClusterSize => [self.shared.len() as u64; WARP],
            other => self.warp.special(other),
        }
    }
    fn param(&mut self, p: ParamId) -> u64 {
        self.warp.param(p)
    }
    fn tensor_map(&mut self, p: ParamId) -> Result<TensorMapValue, Fault> {
        Ok(self.maps[p.index()].clone())
    }
    fn load(&mut self, lanes: Mask, at: &MemoryAddress, width: usize) -> Result<LaneBytes, Fault> {
        let mut out = [[0; 16]; WARP];
        for lane in lanes_of(lanes) {
            let span = self.span(at, lane, width)?;
            out[lane][..width].copy_from_slice(self.bytes(span)?);
        }
        Ok(out)
    }
    fn store(
        &mut self,
        lanes: Mask,
        at: &MemoryAddress,
        width: usize,
        data: &LaneBytes,
    ) -> Result<(), Fault> {
        for lane in lanes_of(lanes) {
            let span = self.span(at, lane, width)?;
            self.bytes(span)?.copy_from_slice(&data[lane][..width]);
        }
        Ok(())
    }
    fn atomic(
        &mut self,
        at: &MemoryAddress,
        width: usize,
        order: MemoryOrder,
        f: &mut dyn FnMut(usize, u64) -> u64,
    ) -> Result<PerLane<u64>, Fault> {
        self.orders.push(order);
        let mut old = [0; WARP];
        for lane in lanes_of(self.active()) {
            let span = self.span(at, lane, width)?;
            let word = self.bytes(span)?;
            let mut bytes = [0; 8];
            bytes[..width].copy_from_slice(word);
            old[lane] = u64::from_le_bytes(bytes);
            word.copy_from_slice(&f(lane, old[lane]).to_le_bytes()[..width]);
        }
        Ok(old)
    }
    fn resolve(
        &mut self,
        p: &SharedAddress,
        lane: usize,
        len: usize,
    ) -> Result<ResolvedAddress, Fault> {
        let (at, layout) = self.tiles[p.tile.index()];
        let (stage, byte) = (
            self.get::<u32>(p.stage)[lane],
            self.get::<u32>(p.byte)[lane],
        );
        let byte = byte + p.offset;
        if byte as usize + len > layout.stage_bytes() as usize {
            return Err(Fault::new(
                FaultKind::OutOfBounds,
                format!("byte {byte} of {}", p.tile),
            ));
        }
        Ok(ResolvedAddress {
            cta: self.rank(p.peer, lane),
            byte: at + stage * layout.stage_bytes() + byte,
        })
    }
    fn resolve_view(&mut self, v: &View, lane: usize) -> Result<ResolvedAddress, Fault> {
        let (at, layout) = self.tiles[v.tile.index()];
        Ok(ResolvedAddress {
            cta: self.rank(v.peer, lane),
            byte: at
                + self.get::<u32>(v.stage)[lane] * layout.stage_bytes()
                + layout.unswizzled_offset(v.row, v.col),
        })
    }
    fn resolve_bar(&mut self, b: &BarRef, lane: usize) -> Result<ResolvedBarrier, Fault> {
        Ok(ResolvedBarrier {
            cta: self.rank(b.peer, lane),
            slot: self.get::<u32>(b.index)[lane],
        })
    }
    fn layout(&self, v: &View) -> TileLayout {
        self.tiles[v.tile.index()].1
    }
    fn sync(&mut self, s: &SyncOp) -> Exec {
        self.warp.syncs.push(*s);
        Ok(self.sync_result)
    }
    fn submit(&mut self, _: Mask, job: Job) -> Result<(), Fault> {
        self.jobs.push(job);
        Ok(())
    }
}

/// Completes a job and records the bytes that it accesses.
struct AccessRecorder<'a> {
    cta: &'a mut Cta,
    read: Vec<Span>,
    written: Vec<Span>,
}

impl Engine for AccessRecorder<'_> {
    fn read(&mut self, span: Span, out: &mut [u8]) -> Result<(), Fault> {
        self.read.push(span);
        out.copy_from_slice(self.cta.bytes(span)?);
        Ok(())
    }
    fn write(&mut self, span: Span, data: &[u8]) -> Result<(), Fault> {
        self.written.push(span);
        self.cta.bytes(span)?.copy_from_slice(data);
        Ok(())
    }
    fn reduce(
        &mut self,
        span: Span,
        data: &[u8],
        size: usize,
        f: Combine<'_>,
    ) -> Result<(), Fault> {
        self.written.push(span);
        for (old, new) in self
            .cta
            .bytes(span)?
            .chunks_mut(size)
            .zip(data.chunks(size))
        {
            let before = old.to_vec();
            f(&before, new, old);
        }
        Ok(())
    }
    fn register(&mut self, r: RegId) -> [u32; 32] {
        self.cta.warp.read(r.0)
    }
    fn set_register(&mut self, r: RegId, v: &[u32; 32]) {
        self.cta.warp.set(r, v);
    }
}

/// An address in the only stage of a tile.
pub(crate) fn shared_address(tile: u32, byte: Operand) -> SharedAddress {
    SharedAddress {
        tile: TileId(tile),
        stage: Operand::Imm(0),
        byte,
        offset: 0,
        peer: None,
    }
}

/// Mbarrier `index` of the CTA itself.
pub(crate) fn bar(index: u64) -> BarRef {
    BarRef {
        bar: crate::value::BarId(0),
        index: Operand::Imm(index),
        peer: None,
    }
}

/// A rectangle of the only stage of a tile.
pub(crate) fn view(tile: u32, row: u32, rows: u32, col: u32, cols: u32) -> View {
    View {
        tile: TileId(tile),
        stage: Operand::Imm(0),
        row,
        rows,
        col,
        cols,
        peer: None,
    }
}

/// A deterministic random number generator (xorshift).
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number in `lo..hi`.
    pub(crate) fn range(&mut self, lo: i64, hi: i64) -> i64 {
        lo + (self.next() >> 11) as i64 % (hi - lo)
    }

    pub(crate) fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| (self.next() >> 32) as u8).collect()
    }
}

//! The machine on which the ops of one warp run.

use super::env::LaunchEnv;
use super::happens_before::{AccessKind, OrderViolation};
use super::state::{InFlight, State};
use warpline_ir::{
    BarRef, Exec, Fault, FaultKind, Job, JobCompletion, Lane, LaneBytes, Machine, Mask,
    MemoryAddress, MemoryOrder, Operand, ParamId, PerLane, RegId, ResolvedAddress, ResolvedBarrier,
    SharedAddress, Span, Special, SyncOp, TensorMapValue, TileLayout, View, WARP,
};

/// A running warp.
pub(super) struct WarpMachine<'a, 'k> {
    pub(super) env: &'a LaunchEnv<'k>,
    pub(super) st: &'a mut State,
    pub(super) warp: usize,
}

/// Returns the lanes of a mask.
pub(super) fn lanes_of(mask: Mask) -> impl Iterator<Item = usize> {
    (0..WARP).filter(move |l| mask >> l & 1 == 1)
}

/// Returns the fault of an unordered access.
pub(super) fn order_fault(violation: OrderViolation, access: &str) -> Fault {
    match violation {
        OrderViolation::Race => Fault::new(
            FaultKind::Race,
            format!("{access} is not ordered after a conflicting access"),
        ),
        OrderViolation::Proxy => Fault::new(
            FaultKind::MissingProxyFence,
            format!("{access} follows a generic access without a proxy fence"),
        ),
    }
}

impl WarpMachine<'_, '_> {
    /// Returns the observer index of a lane of this warp.
    pub(super) fn lane_observer(&self, lane: usize) -> usize {
        self.warp * WARP + lane
    }

    pub(super) fn cta(&self) -> usize {
        self.st.warps[self.warp].cta
    }

    fn word(&mut self, o: Operand, lane: usize) -> u32 {
        self.get::<u32>(o)[lane]
    }

    fn peer_rank(&mut self, peer: Option<Operand>, lane: usize) -> Result<u32, Fault> {
        let Some(peer) = peer else {
            return Ok(self.cta() as u32);
        };
        let rank = self.word(peer, lane);
        match (rank as usize) < self.env.ctas {
            true => Ok(rank),
            false => Err(Fault::new(
                FaultKind::OutOfBounds,
                format!("CTA rank {rank} is outside of the cluster"),
            )),
        }
    }

    /// Records a generic access of a lane to shared memory.
    fn touch(
        &mut self,
        lane: usize,
        at: ResolvedAddress,
        width: usize,
        write: bool,
        atomic: bool,
    ) -> Result<(), Fault> {
        let cta = at.cta as usize;
        let event = self.st.events.add(
            AccessKind::Generic,
            write,
            atomic,
            self.lane_observer(lane),
            cta,
        );
        for byte in at.byte as usize..at.byte as usize + width {
            let cell = self.env.cell(cta, byte);
            if !write && !self.st.events.is_written(cell) {
                return Err(Fault::new(
                    FaultKind::NeverWritten,
                    format!("reads byte {byte}, which was never written"),
                ));
            }
            let touched = self.st.events.touch(cell, event);
            touched.map_err(|why| order_fault(why, &format!("an access to byte {byte}")))?;
        }
        Ok(())
    }

    fn address(
        &mut self,
        at: &MemoryAddress,
        lane: usize,
        width: usize,
    ) -> Result<(usize, usize), Fault> {
        let MemoryAddress::Global { addr, offset } = at else {
            return Err(Fault::new(
                FaultKind::Illegal,
                "the address is not in global memory",
            ));
        };
        let base = self.get::<u64>(*addr)[lane];
        let addr = base.wrapping_add_signed(i64::from(*offset));
        resolve_global(self.st, addr, width)
    }
}

/// Returns the buffer and the byte of a global address.
fn resolve_global(st: &State, addr: u64, width: usize) -> Result<(usize, usize), Fault> {
    let (buffer, at) = ((addr >> 40) as usize, (addr & ((1 << 40) - 1)) as usize);
    let found = buffer
        .checked_sub(1)
        .and_then(|i| st.global.get(i).map(|b| (i, b)))
        .filter(|(_, b)| at + width <= b.len());
    found.map(|(i, _)| (i, at)).ok_or_else(|| {
        Fault::new(
            FaultKind::OutOfBounds,
            format!("accesses {width} bytes at {addr:#x}, outside of every buffer"),
        )
    })
}

impl Machine for WarpMachine<'_, '_> {
    fn active(&self) -> Mask {
        self.st.warps[self.warp].active
    }

    fn get<T: Lane>(&mut self, o: Operand) -> PerLane<T> {
        let row = match o {
            Operand::Imm(x) => [x; WARP],
            Operand::Reg(r) => self.st.warps[self.warp].regs[r.index()],
        };
        row.map(|x| bytes::read::<T>(x))
    }

    fn set<T: Lane>(&mut self, r: RegId, v: &PerLane<T>) {
        let warp = &mut self.st.warps[self.warp];
        for lane in lanes_of(warp.active) {
            warp.regs[r.index()][lane] = bytes::bits(v[lane]);
        }
    }

    fn pred(&mut self, o: Operand) -> Mask {
        let row = match o {
            Operand::Imm(x) => [x; WARP],
            Operand::Reg(r) => self.st.warps[self.warp].regs[r.index()],
        };
        (0..WARP).fold(0, |m, l| m | u32::from(row[l] != 0) << l)
    }

    fn set_pred(&mut self, r: RegId, m: Mask) {
        let warp = &mut self.st.warps[self.warp];
        for lane in lanes_of(warp.active) {
            warp.regs[r.index()][lane] = u64::from(m >> lane & 1);
        }
    }

    fn special(&mut self, s: Special) -> PerLane<u64> {
        let w = &self.st.warps[self.warp];
        let (cta, index, ctas) = (w.cta as u64, u64::from(w.index), self.env.ctas as u64);
        match s {
            Special::Tid => std::array::from_fn(|l| index * WARP as u64 + l as u64),
            Special::LaneId => std::array::from_fn(|l| l as u64),
            Special::WarpId => [index; WARP],
            Special::CtaId(a) | Special::ClusterCtaId(a) => {
                [if a.index() == 0 { cta } else { 0 }; WARP]
            }
            Special::ClusterRank => [cta; WARP],
            Special::ClusterSize => [ctas; WARP],
            Special::GridDim(a) | Special::ClusterDim(a) => {
                [if a.index() == 0 { ctas } else { 1 }; WARP]
            }
            Special::GridClusters(_) | Special::SmCount => [1; WARP],
            Special::ClusterId(_) | Special::SmId | Special::Clock | Special::GlobalTimer => {
                [0; WARP]
            }
        }
    }

    fn param(&mut self, p: ParamId) -> u64 {
        self.env.scalars.get(p.index()).copied().unwrap_or(0)
    }

    fn tensor_map(&mut self, _: ParamId) -> Result<TensorMapValue, Fault> {
        Err(Fault::new(
            FaultKind::TensorMap,
            "the brute-force machine does not support tensor maps",
        ))
    }

    fn load(&mut self, lanes: Mask, at: &MemoryAddress, width: usize) -> Result<LaneBytes, Fault> {
        let mut out = [[0; 16]; WARP];
        for lane in lanes_of(lanes) {
            let bytes = match at {
                MemoryAddress::Shared(place) => {
                    let at = self.resolve(place, lane, width)?;
                    check_alignment(at.byte as usize, width)?;
                    self.touch(lane, at, width, false, false)?;
                    &self.st.shared[at.cta as usize][at.byte as usize..][..width]
                }
                MemoryAddress::Global { .. } => {
                    let (buffer, at) = self.address(at, lane, width)?;
                    check_alignment(at, width)?;
                    &self.st.global[buffer][at..at + width]
                }
            };
            out[lane][..width].copy_from_slice(bytes);
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
            let to = match at {
                MemoryAddress::Shared(place) => {
                    let at = self.resolve(place, lane, width)?;
                    check_alignment(at.byte as usize, width)?;
                    self.touch(lane, at, width, true, false)?;
                    &mut self.st.shared[at.cta as usize][at.byte as usize..][..width]
                }
                MemoryAddress::Global { .. } => {
                    let (buffer, at) = self.address(at, lane, width)?;
                    check_alignment(at, width)?;
                    &mut self.st.global[buffer][at..at + width]
                }
            };
            to.copy_from_slice(&data[lane][..width]);
        }
        Ok(())
    }

    fn atomic(
        &mut self,
        at: &MemoryAddress,
        width: usize,
        _: MemoryOrder,
        f: &mut dyn FnMut(usize, u64) -> u64,
    ) -> Result<PerLane<u64>, Fault> {
        let mut old = [0; WARP];
        for lane in lanes_of(self.active()) {
            let bytes = match at {
                MemoryAddress::Shared(place) => {
                    let at = self.resolve(place, lane, width)?;
                    self.touch(lane, at, width, true, true)?;
                    &mut self.st.shared[at.cta as usize][at.byte as usize..][..width]
                }
                MemoryAddress::Global { .. } => {
                    let (buffer, at) = self.address(at, lane, width)?;
                    &mut self.st.global[buffer][at..at + width]
                }
            };
            let mut word = [0; 8];
            word[..width].copy_from_slice(bytes);
            old[lane] = u64::from_le_bytes(word);
            let new = f(lane, old[lane]).to_le_bytes();
            bytes.copy_from_slice(&new[..width]);
        }
        Ok(old)
    }

    fn resolve(
        &mut self,
        place: &SharedAddress,
        lane: usize,
        len: usize,
    ) -> Result<ResolvedAddress, Fault> {
        let cta = self.peer_rank(place.peer, lane)?;
        let (stage, byte) = (self.word(place.stage, lane), self.word(place.byte, lane));
        let tile = self.env.kernel.tile(place.tile);
        let inside = u64::from(byte) + u64::from(place.offset);
        let size = tile.layout.rows * tile.layout.row_bytes();
        if stage >= tile.stages || inside + len as u64 > u64::from(size) {
            return Err(Fault::new(
                FaultKind::OutOfBounds,
                format!("accesses byte {inside} of stage {stage} of {}", tile.name),
            ));
        }
        let byte = tile.offset + stage * tile.layout.stage_bytes() + inside as u32;
        Ok(ResolvedAddress { cta, byte })
    }

    fn resolve_view(&mut self, view: &View, lane: usize) -> Result<ResolvedAddress, Fault> {
        let cta = self.peer_rank(view.peer, lane)?;
        let stage = self.word(view.stage, lane);
        let tile = self.env.kernel.tile(view.tile);
        if stage >= tile.stages {
            return Err(Fault::new(
                FaultKind::OutOfBounds,
                "the stage is out of range",
            ));
        }
        let base = tile.offset + stage * tile.layout.stage_bytes();
        let byte = base + tile.layout.unswizzled_offset(view.row, view.col);
        Ok(ResolvedAddress { cta, byte })
    }

    fn resolve_bar(&mut self, bar: &BarRef, lane: usize) -> Result<ResolvedBarrier, Fault> {
        let cta = self.peer_rank(bar.peer, lane)?;
        let index = self.word(bar.index, lane);
        if index >= self.env.kernel.barrier(bar.bar).len {
            return Err(Fault::new(
                FaultKind::OutOfBounds,
                "the mbarrier index is out of range",
            ));
        }
        let slot = self.env.first_bar_slot[bar.bar.index()] as u32 + index;
        Ok(ResolvedBarrier { cta, slot })
    }

    fn layout(&self, view: &View) -> TileLayout {
        self.env.kernel.layout(view)
    }

    fn sync(&mut self, s: &SyncOp) -> Exec {
        self.synchronize(s)
    }

    fn submit(&mut self, _: warpline_ir::Mask, job: Job) -> Result<(), Fault> {
        self.issue(job)
    }
}

impl WarpMachine<'_, '_> {
    /// Issues an asynchronous job. Its accesses are events without observers.
    fn issue(&mut self, job: Job) -> Result<(), Fault> {
        let lane = match job.completion() {
            JobCompletion::BulkGroup { lane } => lane as usize,
            _ => self.active().trailing_zeros() as usize,
        };
        let id = self.st.in_flight.len();
        let slot = self.env.job_slot(id);
        self.st.events.clear(slot);
        self.st.events.acquire(slot, self.lane_observer(lane));
        let mut events = Vec::new();
        if let JobCompletion::CopyGroup { lanes } = job.completion() {
            let mut spans = Vec::new();
            job.writes(&mut |s| spans.push(s));
            let total: u32 = spans.iter().map(Span::len).sum();
            let each = total / lanes.count_ones().max(1);
            let mut pieces = spans.iter().flat_map(|s| match *s {
                Span::Shared(at, len) => (0..len / each.max(1))
                    .map(|i| (at.cta as usize, (at.byte + i * each) as usize))
                    .collect(),
                Span::Global(..) => Vec::new(),
            });
            for lane in lanes_of(lanes) {
                let Some((cta, byte)) = pieces.next() else {
                    break;
                };
                let me = self.lane_observer(lane);
                let event = self.st.events.add(AccessKind::Copy, true, false, me, cta);
                for byte in byte..byte + each as usize {
                    let touched = self.st.events.touch(self.env.cell(cta, byte), event);
                    touched.map_err(|why| order_fault(why, &format!("a copy to byte {byte}")))?;
                }
                events.push((lane, event));
                let open = self.st.warps[self.warp].copies[lane].last_mut();
                open.into_iter().for_each(|group| group.push(id));
            }
        } else {
            let mut spans = Vec::new();
            job.reads(&mut |s| spans.push((s, false)));
            job.writes(&mut |s| spans.push((s, true)));
            for (span, write) in spans {
                match span {
                    Span::Shared(at, len) => {
                        let cta = at.cta as usize;
                        let me = self.lane_observer(lane);
                        let event = self.st.events.add(AccessKind::Async, write, false, me, cta);
                        for byte in at.byte as usize..(at.byte + len) as usize {
                            let touched = self.st.events.touch(self.env.cell(cta, byte), event);
                            let what = format!("an engine's access to byte {byte}");
                            touched.map_err(|why| order_fault(why, &what))?;
                        }
                        events.push((lane, event));
                    }
                    Span::Global(addr, len) => {
                        resolve_global(self.st, addr, len as usize)?;
                    }
                }
            }
            if let JobCompletion::BulkGroup { .. } = job.completion() {
                let open = self.st.warps[self.warp].bulk[lane].last_mut();
                open.into_iter().for_each(|group| group.push(id));
            }
        }
        self.st
            .in_flight
            .push(Some(InFlight::Job { job, events, slot }));
        Ok(())
    }
}

fn check_alignment(at: usize, width: usize) -> Result<(), Fault> {
    match at.is_multiple_of(width.max(1)) {
        true => Ok(()),
        false => Err(Fault::new(
            FaultKind::Misaligned,
            format!("accesses {width} bytes at byte {at}, which is not a multiple of {width}"),
        )),
    }
}

/// The memory that an asynchronous engine accesses.
pub(super) struct CopyEngine<'a>(pub(super) &'a mut State);

impl warpline_ir::Engine for CopyEngine<'_> {
    fn read(&mut self, span: Span, out: &mut [u8]) -> Result<(), Fault> {
        let from = match span {
            Span::Shared(at, len) => {
                &self.0.shared[at.cta as usize][at.byte as usize..][..len as usize]
            }
            Span::Global(addr, len) => {
                let (buffer, at) = resolve_global(self.0, addr, len as usize)?;
                &self.0.global[buffer][at..at + len as usize]
            }
        };
        out.copy_from_slice(from);
        Ok(())
    }

    fn write(&mut self, span: Span, data: &[u8]) -> Result<(), Fault> {
        let to = match span {
            Span::Shared(at, len) => {
                &mut self.0.shared[at.cta as usize][at.byte as usize..][..len as usize]
            }
            Span::Global(addr, len) => {
                let (buffer, at) = resolve_global(self.0, addr, len as usize)?;
                &mut self.0.global[buffer][at..at + len as usize]
            }
        };
        to.copy_from_slice(data);
        Ok(())
    }

    fn reduce(
        &mut self,
        span: Span,
        data: &[u8],
        size: usize,
        f: &(dyn Fn(&[u8], &[u8], &mut [u8]) + '_),
    ) -> Result<(), Fault> {
        let mut old = vec![0; data.len()];
        self.read(span, &mut old)?;
        let mut new = old.clone();
        for ((o, d), n) in old
            .chunks_exact(size)
            .zip(data.chunks_exact(size))
            .zip(new.chunks_exact_mut(size))
        {
            f(o, d, n);
        }
        self.write(span, &new)
    }

    fn register(&mut self, _: RegId) -> [u32; 32] {
        [0; 32]
    }

    fn set_register(&mut self, _: RegId, _: &[u32; 32]) {}
}

/// Converts between register values and bits.
mod bytes {
    use warpline_ir::Lane;

    pub(super) fn read<T: Lane>(bits: u64) -> T {
        bytemuck::pod_read_unaligned(&bits.to_le_bytes()[..size_of::<T>()])
    }

    pub(super) fn bits<T: Lane>(x: T) -> u64 {
        let mut all = [0; 8];
        all[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&x));
        u64::from_le_bytes(all)
    }
}

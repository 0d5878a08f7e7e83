//! The machine that ops run on: one warp in lockstep.
//!
//! Registers and address resolution are here; memory is in [`access`](crate::access),
//! synchronization in [`sync`](crate::sync).

use crate::cluster::Cluster;
use crate::compile::RoleCode;
use crate::env::Env;
use crate::error::RaceKind;
use crate::global_shadow::GlobalShadow;
use crate::stats::Counters;
use crate::warp::{Waiting, Warp};
use warpline_ir::{
    Axis, BarRef, Exec, Fault, FaultKind, Job, Lane, LaneBytes, Machine, Mask, MemoryAddress,
    MemoryOrder, OpLocation, Operand, ParamId, PerLane, RegId, ResolvedAddress, ResolvedBarrier,
    SharedAddress, Special, SyncOp, TensorMapValue, TileLayout, View, WARP,
};

/// A running warp, and the state that it can access.
pub(crate) struct WarpMachine<'a, 'k> {
    pub(crate) env: &'a Env<'k>,
    pub(crate) code: &'a RoleCode<'k>,
    pub(crate) warp: &'a mut Warp,
    pub(crate) cluster: &'a mut Cluster,
    /// The shadow of global memory, if races are checked.
    pub(crate) global: &'a mut Option<GlobalShadow>,
    pub(crate) counters: &'a mut Counters,
    /// The current op.
    pub(crate) site: u32,
    /// The steps of this scheduler so far, which also serve as the clock of the kernel.
    pub(crate) now: u64,
    /// The wait of an op that returned `Blocked`.
    pub(crate) waiting: Option<Waiting>,
    /// Whether the op polled without success.
    pub(crate) polled: bool,
    /// Whether the op issued an asynchronous op.
    pub(crate) submitted: bool,
    /// A fault that a function without a `Result` found.
    pub(crate) deferred: Option<Fault>,
    /// The faulting lane.
    pub(crate) lane: Option<u32>,
    /// The other access of a fault.
    pub(crate) other: Option<OpLocation>,
    /// The kind of a race.
    pub(crate) race: Option<RaceKind>,
    /// The usual fix of a fault.
    pub(crate) help: Option<&'static str>,
    /// The faulting loop, if the fault is not in an op.
    pub(crate) branch: Option<u32>,
}

/// Iterates over the lanes of a mask, lowest first.
pub(crate) fn lanes_of(mask: Mask) -> impl Iterator<Item = usize> {
    (0..WARP).filter(move |l| mask >> l & 1 == 1)
}

impl WarpMachine<'_, '_> {
    /// Returns the location of an op in a warp of this cluster.
    pub(crate) fn op_location(&self, warp: u32, site: u32) -> OpLocation {
        self.env.op_location(self.cluster.index, warp, site)
    }

    /// Builds a fault of one lane.
    pub(crate) fn lane_fault(&mut self, lane: usize, kind: FaultKind, text: String) -> Fault {
        self.lane = Some(lane as u32);
        Fault::new(kind, text)
    }

    /// Checks an access to a register that a wgmma in flight may use.
    #[inline]
    fn check_in_flight(&mut self, r: RegId) {
        if let Some(w) = &self.warp.wgmma
            && w.is_in_flight(r)
        {
            self.register_in_flight(r);
        }
    }

    #[cold]
    fn register_in_flight(&mut self, r: RegId) {
        self.help = Some("call `wgmma_wait` before the access");
        self.deferred.get_or_insert_with(|| {
            Fault::new(
                FaultKind::RegisterInFlight,
                format!("accesses register {r} while a wgmma in flight uses it"),
            )
        });
    }

    #[inline]
    fn record_register_write(&mut self, r: RegId) {
        self.check_in_flight(r);
        if let Some(w) = &mut self.warp.wgmma {
            w.record_write(r);
        }
    }

    /// Returns the value of a `u32` operand in one lane.
    pub(crate) fn lane_value(&mut self, o: Operand, lane: usize) -> u32 {
        match o {
            Operand::Imm(x) => x as u32,
            Operand::Reg(_) => self.get::<u32>(o)[lane],
        }
    }

    /// Resolves the CTA rank of a reference; without `peer` it is the rank of the warp's CTA.
    pub(crate) fn resolve_rank(
        &mut self,
        peer: Option<Operand>,
        lane: usize,
    ) -> Result<u32, Fault> {
        let Some(peer) = peer else {
            return Ok(self.warp.cta);
        };
        let rank = self.lane_value(peer, lane);
        let size = self.cluster.threads.ctas;
        if rank < size {
            return Ok(rank);
        }
        Err(self.lane_fault(
            lane,
            FaultKind::OutOfBounds,
            format!("names CTA rank {rank} in a cluster of {size} CTAs"),
        ))
    }

    /// Checks, in `late` and `random`, that a peer has not exited.
    pub(crate) fn check_not_exited(&mut self, cta: u32) -> Result<(), Fault> {
        if self.env.races && cta != self.warp.cta && self.cluster.ctas[cta as usize].live == 0 {
            return Err(Fault::new(
                FaultKind::PeerExited,
                format!("accesses CTA rank {cta}, which has exited"),
            ));
        }
        Ok(())
    }

    /// Returns the first byte of a stage of a tile; checks the stage.
    pub(crate) fn stage_base(
        &mut self,
        tile: warpline_ir::TileId,
        stage: u32,
        lane: usize,
    ) -> Result<u32, Fault> {
        let t = self.env.kernel.tile(tile);
        if stage < t.stages {
            return Ok(t.offset + stage * t.layout.stage_bytes());
        }
        Err(self.lane_fault(
            lane,
            FaultKind::OutOfBounds,
            format!(
                "names stage {stage} of tile {}, which has {} stages",
                t.name, t.stages
            ),
        ))
    }

    /// Builds the fault for an access outside one stage of a tile.
    #[cold]
    pub(crate) fn outside_tile(
        &mut self,
        tile: warpline_ir::TileId,
        byte: u64,
        len: usize,
        lane: usize,
    ) -> Fault {
        let t = self.env.kernel.tile(tile);
        let bytes = t.layout.rows * t.layout.row_bytes();
        self.lane_fault(
            lane,
            FaultKind::OutOfBounds,
            format!(
                "accesses {len} bytes at byte {byte} of tile {}, which has {bytes} bytes",
                t.name
            ),
        )
    }
}

impl Machine for WarpMachine<'_, '_> {
    #[inline]
    fn active(&self) -> Mask {
        self.warp.active
    }

    #[inline]
    fn get<T: Lane>(&mut self, o: Operand) -> PerLane<T> {
        match o {
            Operand::Imm(x) => {
                [bytemuck::pod_read_unaligned(&x.to_le_bytes()[..size_of::<T>()]); WARP]
            }
            Operand::Reg(r) => {
                self.check_in_flight(r);
                *self.warp.regs.get(self.code.register_slot(r))
            }
        }
    }

    #[inline]
    fn set<T: Lane>(&mut self, r: RegId, v: &PerLane<T>) {
        self.record_register_write(r);
        let active = self.warp.active;
        let to = self.warp.regs.get_mut::<T>(self.code.register_slot(r));
        if active == Mask::MAX {
            *to = *v;
            return;
        }
        for lane in lanes_of(active) {
            to[lane] = v[lane];
        }
    }

    #[inline]
    fn pred(&mut self, o: Operand) -> Mask {
        match o {
            Operand::Imm(0) => 0,
            Operand::Imm(_) => Mask::MAX,
            Operand::Reg(r) => self.warp.regs.pred(self.code.register_slot(r)),
        }
    }

    #[inline]
    fn set_pred(&mut self, r: RegId, m: Mask) {
        let active = self.warp.active;
        let to = self.warp.regs.pred_mut(self.code.register_slot(r));
        *to = *to & !active | m & active;
    }

    fn special(&mut self, s: Special) -> PerLane<u64> {
        let (w, env) = (&*self.warp, self.env);
        let cta = &self.cluster.ctas[w.cta as usize];
        let cluster_dim = |a: Axis| env.kernel.cluster[a.index()];
        let uniform = |x: u64| [x; WARP];
        match s {
            Special::Tid => std::array::from_fn(|l| u64::from(w.index) * WARP as u64 + l as u64),
            Special::LaneId => std::array::from_fn(|l| l as u64),
            Special::WarpId => uniform(u64::from(w.index)),
            Special::CtaId(a) => uniform(u64::from(cta.id[a.index()])),
            Special::GridDim(a) => uniform(u64::from(env.grid[a.index()])),
            Special::ClusterRank => uniform(u64::from(w.cta)),
            Special::ClusterSize => uniform(u64::from(env.kernel.cluster_size())),
            Special::ClusterCtaId(a) => uniform(u64::from(cta.id[a.index()] % cluster_dim(a))),
            Special::ClusterDim(a) => uniform(u64::from(cluster_dim(a))),
            Special::ClusterId(a) => uniform(u64::from(cta.id[a.index()] / cluster_dim(a))),
            Special::GridClusters(a) => uniform(u64::from(env.grid[a.index()] / cluster_dim(a))),
            Special::SmId => uniform(cta.number % u64::from(env.target.sms.max(1))),
            Special::SmCount => uniform(u64::from(env.target.sms.max(1))),
            Special::Clock => uniform(self.now & u64::from(u32::MAX)),
            Special::GlobalTimer => uniform(self.now),
        }
    }

    fn param(&mut self, p: ParamId) -> u64 {
        self.env.scalars.get(p.index()).copied().unwrap_or(0)
    }

    fn tensor_map(&mut self, p: ParamId) -> Result<TensorMapValue, Fault> {
        let map = self.env.maps.get(p.index()).copied().flatten();
        map.cloned()
            .ok_or_else(|| Fault::new(FaultKind::TensorMap, format!("{p} is not a tensor map")))
    }

    fn load(&mut self, lanes: Mask, at: &MemoryAddress, width: usize) -> Result<LaneBytes, Fault> {
        match at {
            MemoryAddress::Shared(p) => self.load_shared(lanes, p, width),
            MemoryAddress::Global { addr, offset } => {
                self.load_global(lanes, *addr, *offset, width)
            }
        }
    }

    fn store(
        &mut self,
        lanes: Mask,
        at: &MemoryAddress,
        width: usize,
        data: &LaneBytes,
    ) -> Result<(), Fault> {
        self.cluster.progress += 1;
        match at {
            MemoryAddress::Shared(p) => self.store_shared(lanes, p, width, data),
            MemoryAddress::Global { addr, offset } => {
                self.store_global(lanes, *addr, *offset, width, data)
            }
        }
    }

    fn atomic(
        &mut self,
        at: &MemoryAddress,
        width: usize,
        order: MemoryOrder,
        f: &mut dyn FnMut(usize, u64) -> u64,
    ) -> Result<PerLane<u64>, Fault> {
        match at {
            MemoryAddress::Shared(p) => self.atomic_shared(p, width, order, f),
            MemoryAddress::Global { addr, offset } => {
                self.atomic_global(*addr, *offset, width, order, f)
            }
        }
    }

    fn resolve(
        &mut self,
        address: &SharedAddress,
        lane: usize,
        len: usize,
    ) -> Result<ResolvedAddress, Fault> {
        let cta = self.resolve_rank(address.peer, lane)?;
        let stage = self.lane_value(address.stage, lane);
        let base = self.stage_base(address.tile, stage, lane)?;
        let byte = u64::from(self.lane_value(address.byte, lane)) + u64::from(address.offset);
        let layout = self.env.kernel.tile(address.tile).layout;
        if byte + len as u64 > u64::from(layout.rows * layout.row_bytes()) {
            return Err(self.outside_tile(address.tile, byte, len, lane));
        }
        Ok(ResolvedAddress {
            cta,
            byte: base + byte as u32,
        })
    }

    fn resolve_view(&mut self, view: &View, lane: usize) -> Result<ResolvedAddress, Fault> {
        let cta = self.resolve_rank(view.peer, lane)?;
        let stage = self.lane_value(view.stage, lane);
        let base = self.stage_base(view.tile, stage, lane)?;
        let t = self.env.kernel.tile(view.tile);
        let l = t.layout;
        if u64::from(view.row) + u64::from(view.rows) > u64::from(l.rows)
            || u64::from(view.col) + u64::from(view.cols) > u64::from(l.cols)
        {
            return Err(self.lane_fault(
                lane,
                FaultKind::OutOfBounds,
                format!(
                    "names rows {}+{} and columns {}+{} of tile {}, which has {} × {} elements",
                    view.row, view.rows, view.col, view.cols, t.name, l.rows, l.cols
                ),
            ));
        }
        Ok(ResolvedAddress {
            cta,
            byte: base + l.unswizzled_offset(view.row, view.col),
        })
    }

    fn resolve_bar(&mut self, bar: &BarRef, lane: usize) -> Result<ResolvedBarrier, Fault> {
        let cta = self.resolve_rank(bar.peer, lane)?;
        let index = self.lane_value(bar.index, lane);
        let b = self.env.kernel.barrier(bar.bar);
        if index >= b.len {
            return Err(self.lane_fault(
                lane,
                FaultKind::OutOfBounds,
                format!(
                    "names mbarrier {}[{index}], but the array has {}",
                    b.name, b.len
                ),
            ));
        }
        Ok(ResolvedBarrier {
            cta,
            slot: self.env.first_slot[bar.bar.index()] + index,
        })
    }

    fn layout(&self, view: &View) -> TileLayout {
        self.env.kernel.layout(view)
    }

    fn sync(&mut self, s: &SyncOp) -> Exec {
        self.run_sync(s)
    }

    fn submit(&mut self, lanes: Mask, job: Job) -> Result<(), Fault> {
        self.issue(lanes, job)
    }
}

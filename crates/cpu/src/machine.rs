//! One warp in lockstep: what ops see of the machine.
//!
//! Registers and names are here; memory is in [`access`](crate::access),
//! synchronisation in [`act`](crate::act).

use crate::cluster::Cluster;
use crate::compile::RoleCode;
use crate::env::Env;
use crate::global::Global;
use crate::stats::Counters;
use crate::warp::{Waiting, Warp};
use warpline_ir::{
    At, Axis, BarAt, BarRef, Exec, Fault, FaultKind, Job, Lane, LaneBytes, Lanes, Machine, Mask,
    MemoryOrder, Operand, ParamId, Place, RegId, SharedAt, Site, Special, Sync, TensorMapValue,
    TileLayout, View, WARP,
};

/// A warp that runs, and all it can reach.
pub(crate) struct Lockstep<'a, 'k> {
    pub(crate) env: &'a Env<'k>,
    pub(crate) code: &'a RoleCode<'k>,
    pub(crate) warp: &'a mut Warp,
    pub(crate) cluster: &'a mut Cluster,
    /// Who touched global memory, where races are looked for.
    pub(crate) global: &'a mut Option<Global>,
    pub(crate) counters: &'a mut Counters,
    /// The op that runs.
    pub(crate) site: u32,
    /// Steps of this scheduler so far: its clock.
    pub(crate) now: u64,
    /// Why the op returned `Blocked`.
    pub(crate) waiting: Option<Waiting>,
    /// Did the op ask for something that had not changed?
    pub(crate) polled: bool,
    /// Has it given work to an engine?
    pub(crate) submitted: bool,
    /// A fault that the op could not return.
    pub(crate) deferred: Option<Fault>,
    /// The lane to blame for a fault.
    pub(crate) lane: Option<u32>,
    /// The other side of a fault.
    pub(crate) other: Option<Site>,
    /// The loop to blame for a fault, if no op is.
    pub(crate) branch: Option<u32>,
}

/// The lanes of a mask, lowest first.
pub(crate) fn lanes_of(mask: Mask) -> impl Iterator<Item = usize> {
    (0..WARP).filter(move |l| mask >> l & 1 == 1)
}

impl Lockstep<'_, '_> {
    /// An op of a warp of this cluster, as the other side of a fault.
    pub(crate) fn party(&self, warp: u32, site: u32) -> Site {
        self.env.party(self.cluster.index, warp, site)
    }

    /// A fault of one lane.
    pub(crate) fn fault_in(&mut self, lane: usize, kind: FaultKind, text: String) -> Fault {
        self.lane = Some(lane as u32);
        Fault::new(kind, text)
    }

    /// Notes that the op touches a register that a wgmma may own.
    #[inline]
    fn touch(&mut self, r: RegId) {
        if let Some(w) = &self.warp.wgmma
            && w.owns(r)
        {
            self.owned(r);
        }
    }

    #[cold]
    fn owned(&mut self, r: RegId) {
        self.deferred.get_or_insert_with(|| {
            Fault::new(
                FaultKind::RegisterInFlight,
                format!(
                    "touches register {r} while a wgmma owns it: no wait has covered that wgmma"
                ),
            )
        });
    }

    #[inline]
    fn wrote(&mut self, r: RegId) {
        self.touch(r);
        if let Some(w) = &mut self.warp.wgmma {
            w.wrote(r);
        }
    }

    /// A `u32` operand in one lane.
    pub(crate) fn one(&mut self, o: Operand, lane: usize) -> u32 {
        match o {
            Operand::Imm(x) => x as u32,
            Operand::Reg(_) => self.get::<u32>(o)[lane],
        }
    }

    /// The rank that a reference names.
    pub(crate) fn rank(&mut self, peer: Option<Operand>, lane: usize) -> Result<u32, Fault> {
        let Some(peer) = peer else {
            return Ok(self.warp.cta);
        };
        let rank = self.one(peer, lane);
        let size = self.cluster.threads.ctas;
        if rank < size {
            return Ok(rank);
        }
        Err(self.fault_in(
            lane,
            FaultKind::OutOfBounds,
            format!("names the CTA of rank {rank} in a cluster of {size}"),
        ))
    }

    /// Refuses a peer that has left; only where that may happen at any time.
    pub(crate) fn check_here(&mut self, cta: u32) -> Result<(), Fault> {
        if self.env.races && cta != self.warp.cta && self.cluster.ctas[cta as usize].live == 0 {
            return Err(Fault::new(
                FaultKind::PeerExited,
                format!("reaches into the CTA of rank {cta}, which has left"),
            ));
        }
        Ok(())
    }

    /// The first byte of a stage of a tile, after checking the stage.
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
        Err(self.fault_in(
            lane,
            FaultKind::OutOfBounds,
            format!(
                "names stage {stage} of tile {}, which has {}",
                t.name, t.stages
            ),
        ))
    }

    /// Refuses bytes outside one stage of a tile.
    #[cold]
    pub(crate) fn outside(
        &mut self,
        tile: warpline_ir::TileId,
        byte: u64,
        len: usize,
        lane: usize,
    ) -> Fault {
        let t = self.env.kernel.tile(tile);
        let bytes = t.layout.rows * t.layout.row_bytes();
        self.fault_in(
            lane,
            FaultKind::OutOfBounds,
            format!(
                "reaches {len} bytes at byte {byte} of tile {}, which has {bytes}",
                t.name
            ),
        )
    }
}

impl Machine for Lockstep<'_, '_> {
    #[inline]
    fn active(&self) -> Mask {
        self.warp.active
    }

    #[inline]
    fn get<T: Lane>(&mut self, o: Operand) -> Lanes<T> {
        match o {
            Operand::Imm(x) => {
                [bytemuck::pod_read_unaligned(&x.to_le_bytes()[..size_of::<T>()]); WARP]
            }
            Operand::Reg(r) => {
                self.touch(r);
                *self.warp.regs.get(self.code.slot(r))
            }
        }
    }

    #[inline]
    fn set<T: Lane>(&mut self, r: RegId, v: &Lanes<T>) {
        self.wrote(r);
        let active = self.warp.active;
        let to = self.warp.regs.get_mut::<T>(self.code.slot(r));
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
            Operand::Reg(r) => self.warp.regs.pred(self.code.slot(r)),
        }
    }

    #[inline]
    fn set_pred(&mut self, r: RegId, m: Mask) {
        let active = self.warp.active;
        let to = self.warp.regs.pred_mut(self.code.slot(r));
        *to = *to & !active | m & active;
    }

    fn special(&mut self, s: Special) -> Lanes<u64> {
        let (w, env) = (&*self.warp, self.env);
        let cta = &self.cluster.ctas[w.cta as usize];
        let side = |a: Axis| env.kernel.cluster[a.index()];
        let all = |x: u64| [x; WARP];
        match s {
            Special::Tid => std::array::from_fn(|l| u64::from(w.index) * WARP as u64 + l as u64),
            Special::LaneId => std::array::from_fn(|l| l as u64),
            Special::WarpId => all(u64::from(w.index)),
            Special::CtaId(a) => all(u64::from(cta.id[a.index()])),
            Special::GridDim(a) => all(u64::from(env.grid[a.index()])),
            Special::ClusterRank => all(u64::from(w.cta)),
            Special::ClusterSize => all(u64::from(env.kernel.cluster_size())),
            Special::ClusterCtaId(a) => all(u64::from(cta.id[a.index()] % side(a))),
            Special::ClusterDim(a) => all(u64::from(side(a))),
            Special::ClusterId(a) => all(u64::from(cta.id[a.index()] / side(a))),
            Special::GridClusters(a) => all(u64::from(env.grid[a.index()] / side(a))),
            Special::SmId => all(cta.number % u64::from(env.target.sms.max(1))),
            Special::SmCount => all(u64::from(env.target.sms.max(1))),
            Special::Clock => all(self.now & u64::from(u32::MAX)),
            Special::GlobalTimer => all(self.now),
        }
    }

    fn param(&mut self, p: ParamId) -> u64 {
        self.env.scalars.get(p.index()).copied().unwrap_or(0)
    }

    fn tensor_map(&mut self, p: ParamId) -> Result<TensorMapValue, Fault> {
        let map = self.env.maps.get(p.index()).copied().flatten();
        map.cloned()
            .ok_or_else(|| Fault::new(FaultKind::TensorMap, format!("{p} is no tensor map")))
    }

    fn load(&mut self, lanes: Mask, at: &At, width: usize) -> Result<LaneBytes, Fault> {
        match at {
            At::Shared(p) => self.load_shared(lanes, p, width),
            At::Global { addr, offset } => self.load_global(lanes, *addr, *offset, width),
        }
    }

    fn store(&mut self, lanes: Mask, at: &At, width: usize, data: &LaneBytes) -> Result<(), Fault> {
        self.cluster.progress += 1;
        match at {
            At::Shared(p) => self.store_shared(lanes, p, width, data),
            At::Global { addr, offset } => self.store_global(lanes, *addr, *offset, width, data),
        }
    }

    fn atomic(
        &mut self,
        at: &At,
        width: usize,
        order: MemoryOrder,
        f: &mut dyn FnMut(usize, u64) -> u64,
    ) -> Result<Lanes<u64>, Fault> {
        match at {
            At::Shared(p) => self.atomic_shared(p, width, order, f),
            At::Global { addr, offset } => self.atomic_global(*addr, *offset, width, order, f),
        }
    }

    fn resolve(&mut self, place: &Place, lane: usize, len: usize) -> Result<SharedAt, Fault> {
        let cta = self.rank(place.peer, lane)?;
        let stage = self.one(place.stage, lane);
        let base = self.stage_base(place.tile, stage, lane)?;
        let byte = u64::from(self.one(place.byte, lane)) + u64::from(place.offset);
        let layout = self.env.kernel.tile(place.tile).layout;
        if byte + len as u64 > u64::from(layout.rows * layout.row_bytes()) {
            return Err(self.outside(place.tile, byte, len, lane));
        }
        Ok(SharedAt {
            cta,
            byte: base + byte as u32,
        })
    }

    fn resolve_view(&mut self, view: &View, lane: usize) -> Result<SharedAt, Fault> {
        let cta = self.rank(view.peer, lane)?;
        let stage = self.one(view.stage, lane);
        let base = self.stage_base(view.tile, stage, lane)?;
        let t = self.env.kernel.tile(view.tile);
        let l = t.layout;
        if u64::from(view.row) + u64::from(view.rows) > u64::from(l.rows)
            || u64::from(view.col) + u64::from(view.cols) > u64::from(l.cols)
        {
            return Err(self.fault_in(
                lane,
                FaultKind::OutOfBounds,
                format!(
                    "names rows {}+{} and columns {}+{} of tile {}, which has {} × {}",
                    view.row, view.rows, view.col, view.cols, t.name, l.rows, l.cols
                ),
            ));
        }
        Ok(SharedAt {
            cta,
            byte: base + l.linear(view.row, view.col),
        })
    }

    fn resolve_bar(&mut self, bar: &BarRef, lane: usize) -> Result<BarAt, Fault> {
        let cta = self.rank(bar.peer, lane)?;
        let index = self.one(bar.index, lane);
        let b = self.env.kernel.barrier(bar.bar);
        if index >= b.len {
            return Err(self.fault_in(
                lane,
                FaultKind::OutOfBounds,
                format!("names mbarrier {}[{index}] of {}", b.name, b.len),
            ));
        }
        Ok(BarAt {
            cta,
            slot: self.env.first_slot[bar.bar.index()] + index,
        })
    }

    fn layout(&self, view: &View) -> TileLayout {
        self.env.kernel.layout(view)
    }

    fn sync(&mut self, s: &Sync) -> Exec {
        self.act(s)
    }

    fn submit(&mut self, lanes: Mask, job: Job) -> Result<(), Fault> {
        self.issue(lanes, job)
    }
}

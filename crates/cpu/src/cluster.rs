//! The state that the warps of a cluster share.

use crate::barrier::{BarrierClocks, Mbarrier, ThreadBarrier};
use crate::clock::{Clock, Threads};
use crate::engine::Engines;
use crate::env::Env;
use crate::last_uses::LastUses;
use crate::release_acquire::Released;
use crate::shared_memory::{MemoryUse, SharedMemory};
use crate::shared_shadow::SharedShadow;
use crate::warp::{Status, Waiting, Warp};
use crate::warp_clock::WarpClock;
use warpline_ir::{Mask, Span};

/// The shared state of a cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// The cluster index in the grid.
    pub(crate) index: u64,
    /// The CTAs, by rank.
    pub(crate) ctas: Vec<Cta>,
    /// Asynchronous ops.
    pub(crate) engines: Engines,
    /// The cluster barrier; each warp arrives with 32 threads.
    pub(crate) barrier: ThreadBarrier,
    /// The shadow of shared memory, if races are checked.
    pub(crate) shadow: Option<SharedShadow>,
    /// The clocks released through memory words, if races are checked.
    pub(crate) released: Option<Released>,
    /// The numbering of the threads.
    pub(crate) threads: Threads,
    /// Whether an event occurred that may let a waiting warp pass.
    pub(crate) notified: bool,
    /// The number of events that another warp can observe.
    pub(crate) progress: u64,
}

/// One CTA.
#[derive(Debug)]
pub(crate) struct Cta {
    /// The CTA index in the grid.
    pub(crate) id: [u32; 3],
    /// The linear CTA index, x fastest.
    pub(crate) number: u64,
    /// The shared memory.
    pub(crate) shared: SharedMemory,
    /// The mbarriers, by slot.
    pub(crate) bars: Vec<Mbarrier>,
    /// The CTA barrier.
    pub(crate) barrier: ThreadBarrier,
    /// The named barriers.
    pub(crate) named: Vec<ThreadBarrier>,
    /// Free registers of the pool.
    pub(crate) free_registers: u32,
    /// Warps that have not exited.
    pub(crate) live: u32,
    /// The last accesses of other CTAs to its shared memory and mbarriers.
    pub(crate) remote_uses: LastUses,
    /// The joined clocks of its exited warps, if other CTAs may access it.
    pub(crate) exited_clock: Option<Clock>,
}

impl Cluster {
    /// Creates the cluster `index` of the grid and its warps.
    pub(crate) fn new(env: &Env<'_>, index: u64) -> (Self, Vec<Warp>) {
        let kernel = env.kernel;
        let threads = env.threads;
        let clocks = || env.races.then(|| Box::new(BarrierClocks::new(&threads)));
        let cta = |rank: u32| {
            let id = env.cta_id(index, rank);
            Cta {
                id,
                number: env.cta_number(id),
                shared: SharedMemory::new(kernel.shared_bytes as usize),
                bars: (0..threads.mbarriers_per_cta)
                    .map(|_| {
                        let mut bar = Mbarrier::new(clocks());
                        let has_uses = env.races && env.code.invalidates_mbarriers;
                        bar.uses = has_uses.then(LastUses::default);
                        bar
                    })
                    .collect(),
                barrier: ThreadBarrier::new(clocks()),
                named: kernel
                    .named
                    .iter()
                    .map(|_| ThreadBarrier::new(clocks()))
                    .collect(),
                free_registers: 0,
                live: threads.warps_per_cta,
                remote_uses: LastUses::default(),
                exited_clock: (env.races && threads.ctas > 1).then(|| Clock::new(&threads)),
            }
        };
        let warp = |id: u32| {
            let (cta, index) = (id / threads.warps_per_cta, id % threads.warps_per_cta);
            let role = kernel.role_of_warp(index).index();
            let mut w = Warp::new(id, cta, index, role, &env.code.roles[role]);
            w.budget = env.entry_registers;
            w.clock = env.races.then(|| Box::new(WarpClock::new(&threads, id)));
            w
        };
        let cluster = Self {
            index,
            ctas: (0..threads.ctas).map(cta).collect(),
            engines: Engines::new(&threads),
            barrier: ThreadBarrier::new(clocks()),
            shadow: env.races.then(|| {
                SharedShadow::new(&threads, kernel.shared_bytes as usize, env.code.sites.len())
            }),
            released: env.races.then(|| Released::new(&threads)),
            threads,
            notified: false,
            progress: 0,
        };
        (cluster, (0..threads.all_warps()).map(warp).collect())
    }

    /// Records an event that other warps can observe or wait for.
    pub(crate) fn notify(&mut self) {
        self.notified = true;
        self.progress += 1;
    }

    /// Whether a wait of a warp passes.
    pub(crate) fn wait_passes(&self, warp: &Warp, on: &Waiting) -> bool {
        let cta = &self.ctas[warp.cta as usize];
        match *on {
            Waiting::Mbarrier { bar, parity } => {
                self.ctas[bar.cta as usize].bars[bar.slot as usize].passes(parity)
            }
            Waiting::Named { named, phase } => cta.named[named as usize].phase > phase,
            Waiting::Cta { phase } => cta.barrier.phase > phase,
            Waiting::Cluster { phase } => self.barrier.phase > phase,
            Waiting::Bulk {
                lane,
                pending,
                read,
            } => self.engines.groups[warp.id as usize].wait_passes(lane, pending, read),
            Waiting::Copies { lane, end } => {
                !self.engines.lane_copies[warp.id as usize].is_open(lane, end)
            }
            Waiting::Wgmma { done } => self.engines.wgmma_queue(warp).done >= done,
            Waiting::Registers { wanted, .. } => cta.free_registers >= wanted,
        }
    }

    /// Exits a warp, and removes its threads from the CTA and cluster barriers.
    pub(crate) fn exit_warp(&mut self, warp: &mut Warp) {
        warp.status = Status::Exited;
        let cta = &mut self.ctas[warp.cta as usize];
        cta.live -= 1;
        if let (Some(exited_clock), Some(clock)) = (&mut cta.exited_clock, &warp.clock) {
            clock.publish(Mask::MAX, exited_clock);
        }
        cta.barrier.shrink(32 * cta.live);
        let live: u32 = self.ctas.iter().map(|c| c.live).sum();
        self.barrier.shrink(32 * live);
        self.notify();
    }

    /// Ends the claim of an asynchronous op on a span of shared memory.
    pub(crate) fn unclaim(&mut self, span: Span, usage: MemoryUse) {
        if let Span::Shared(at, len) = span {
            let shared = &mut self.ctas[at.cta as usize].shared;
            shared.unclaim(&(at.byte..at.byte + len), usage);
        }
    }

    /// Whether all warps have exited.
    pub(crate) fn has_exited(&self) -> bool {
        self.ctas.iter().all(|c| c.live == 0)
    }
}

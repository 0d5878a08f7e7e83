//! The CTAs of one cluster: what their warps share.

use crate::barrier::{Mbarrier, Meeting, Passing};
use crate::clock::{Clock, Threads};
use crate::engine::Engines;
use crate::env::Env;
use crate::last::LastMoments;
use crate::order::Released;
use crate::shadow::Shadow;
use crate::shared::{Shared, Use};
use crate::warp::{Status, Waiting, Warp};
use crate::warp_clock::WarpClock;
use warpline_ir::{Mask, Span};

/// What the warps of a cluster share.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// Its number in the grid.
    pub(crate) index: u64,
    /// Its CTAs, by rank.
    pub(crate) ctas: Vec<Cta>,
    /// Asynchronous work.
    pub(crate) engines: Engines,
    /// Its barrier, in warps of 32 threads.
    pub(crate) meeting: Meeting,
    /// Who touched what, where races are looked for.
    pub(crate) shadow: Option<Shadow>,
    /// What was released through words of memory, where races are looked for.
    pub(crate) released: Option<Released>,
    /// Numbers its threads.
    pub(crate) threads: Threads,
    /// Has anything happened that a waiting warp may wait for?
    pub(crate) stirred: bool,
    /// Counts everything that another warp could see.
    pub(crate) progress: u64,
}

/// One CTA.
#[derive(Debug)]
pub(crate) struct Cta {
    /// Its place in the grid.
    pub(crate) id: [u32; 3],
    /// Its number in the grid, x fastest.
    pub(crate) number: u64,
    /// Its shared memory.
    pub(crate) shared: Shared,
    /// Its mbarriers, by slot.
    pub(crate) bars: Vec<Mbarrier>,
    /// Its own barrier.
    pub(crate) meeting: Meeting,
    /// Its named barriers.
    pub(crate) named: Vec<Meeting>,
    /// Registers of the pool that no warp has.
    pub(crate) free_registers: u32,
    /// Warps that have not left.
    pub(crate) live: u32,
    /// Who reached into it from other CTAs.
    pub(crate) reached: LastMoments,
    /// What the warps knew that have left, where others may reach into it.
    pub(crate) left: Option<Clock>,
}

impl Cluster {
    /// Cluster number `index` of the grid, and its warps.
    pub(crate) fn new(env: &Env<'_>, index: u64) -> (Self, Vec<Warp>) {
        let kernel = env.kernel;
        let threads = env.threads;
        let passing = || env.races.then(|| Box::new(Passing::new(&threads)));
        let cta = |rank: u32| {
            let id = env.cta_id(index, rank);
            Cta {
                id,
                number: env.cta_number(id),
                shared: Shared::new(kernel.shared_bytes as usize),
                bars: (0..threads.bars)
                    .map(|_| {
                        let mut bar = Mbarrier::new(passing());
                        let uses = env.races && env.code.ends_bars;
                        bar.uses = uses.then(LastMoments::default);
                        bar
                    })
                    .collect(),
                meeting: Meeting::new(passing()),
                named: kernel
                    .named
                    .iter()
                    .map(|_| Meeting::new(passing()))
                    .collect(),
                free_registers: 0,
                live: threads.warps,
                reached: LastMoments::default(),
                left: (env.races && threads.ctas > 1).then(|| Clock::new(&threads)),
            }
        };
        let warp = |id: u32| {
            let (cta, index) = (id / threads.warps, id % threads.warps);
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
            meeting: Meeting::new(passing()),
            shadow: env
                .races
                .then(|| Shadow::new(&threads, kernel.shared_bytes as usize, env.code.sites.len())),
            released: env.races.then(|| Released::new(&threads)),
            threads,
            stirred: false,
            progress: 0,
        };
        (cluster, (0..threads.all_warps()).map(warp).collect())
    }

    /// Something happened that others can see, and may wait for.
    pub(crate) fn stir(&mut self) {
        self.stirred = true;
        self.progress += 1;
    }

    /// Can a waiting warp go on?
    pub(crate) fn passes(&self, warp: &Warp, on: &Waiting) -> bool {
        let cta = &self.ctas[warp.cta as usize];
        match *on {
            Waiting::Mbarrier { bar, parity } => {
                self.ctas[bar.cta as usize].bars[bar.slot as usize].passes(parity)
            }
            Waiting::Named { named, meeting } => cta.named[named as usize].over > meeting,
            Waiting::Cta { meeting } => cta.meeting.over > meeting,
            Waiting::Cluster { meeting } => self.meeting.over > meeting,
            Waiting::Bulk {
                lane,
                pending,
                read,
            } => self.engines.groups[warp.id as usize].passed(lane, pending, read),
            Waiting::Copies { lane, past } => {
                !self.engines.lane_copies[warp.id as usize].is_open(lane, past)
            }
            Waiting::Wgmma { done } => self.engines.products_of(warp).done >= done,
            Waiting::Registers { wanted, .. } => cta.free_registers >= wanted,
        }
    }

    /// A warp has run its last op. Barriers of the whole CTA or cluster no
    /// longer count it.
    pub(crate) fn leave(&mut self, warp: &mut Warp) {
        warp.status = Status::Exited;
        let cta = &mut self.ctas[warp.cta as usize];
        cta.live -= 1;
        if let (Some(left), Some(clock)) = (&mut cta.left, &warp.clock) {
            clock.tell(Mask::MAX, left);
        }
        cta.meeting.shrink(32 * cta.live);
        let live: u32 = self.ctas.iter().map(|c| c.live).sum();
        self.meeting.shrink(32 * live);
        self.stir();
    }

    /// Work is no longer in flight over a run of shared memory.
    pub(crate) fn unclaim(&mut self, span: Span, how: Use) {
        if let Span::Shared(at, len) = span {
            let shared = &mut self.ctas[at.cta as usize].shared;
            shared.unclaim(&(at.byte..at.byte + len), how);
        }
    }

    /// Have all warps left?
    pub(crate) fn over(&self) -> bool {
        self.ctas.iter().all(|c| c.live == 0)
    }
}

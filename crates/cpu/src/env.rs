//! The immutable state of a run: kernel, launch, options.

use crate::clock::Threads;
use crate::compile::Code;
use crate::error::RunError;
use crate::global_memory::GlobalMemory;
use crate::machine::lanes_of;
use crate::options::{Options, Timing};
use crate::rng::Rng;
use warpline_ir::{
    Arg, Fault, Kernel, Launch, Mask, OpLocation, ResolvedBarrier, Target, TensorMapValue,
};

/// The immutable state of a run.
#[derive(Debug)]
pub(crate) struct Env<'k> {
    pub(crate) kernel: &'k Kernel,
    pub(crate) code: Code<'k>,
    pub(crate) memory: &'k GlobalMemory,
    pub(crate) grid: [u32; 3],
    pub(crate) timing: Timing,
    /// The seed of `random`.
    pub(crate) seed: u64,
    /// Whether races, exits and fences are checked (`late` and `random`).
    pub(crate) races: bool,
    /// Whether a CTA must complete the phases of its mbarriers.
    pub(crate) require_complete_phases: bool,
    /// By parameter: the bits of a scalar or pointer.
    pub(crate) scalars: Vec<u64>,
    /// By parameter: the tensor map.
    pub(crate) maps: Vec<Option<&'k TensorMapValue>>,
    /// By barrier array: the slot of its first mbarrier.
    pub(crate) first_slot: Vec<u32>,
    /// Registers per thread at entry; 0 if no role runs `setmaxnreg`.
    pub(crate) entry_registers: u32,
    /// The numbering of the threads of a cluster.
    pub(crate) threads: Threads,
    /// The GPU that the executor models.
    pub(crate) target: Target,
}

impl<'k> Env<'k> {
    /// Prepares a checked launch.
    pub(crate) fn new(
        kernel: &'k Kernel,
        code: Code<'k>,
        launch: &'k Launch,
        memory: &'k GlobalMemory,
        options: &Options,
    ) -> Self {
        let (timing, target) = (options.timing, options.target);
        let mut bars = 0;
        let first_slot = kernel.barriers.iter().map(|b| {
            bars += b.len;
            bars - b.len
        });
        let first_slot = first_slot.collect();
        let entry = target.entry_registers(kernel.threads());
        Self {
            kernel,
            memory,
            grid: launch.grid,
            timing,
            seed: options.seed,
            races: timing != Timing::Eager,
            require_complete_phases: options.require_complete_phases,
            scalars: launch
                .args
                .iter()
                .map(|a| match a {
                    Arg::Scalar(_, x) | Arg::Pointer(x) => *x,
                    Arg::TensorMap(_) => 0,
                })
                .collect(),
            maps: launch
                .args
                .iter()
                .map(|a| match a {
                    Arg::TensorMap(m) => Some(m),
                    _ => None,
                })
                .collect(),
            first_slot,
            entry_registers: if code.runs_setmaxnreg { entry } else { 0 },
            threads: Threads {
                ctas: kernel.cluster_size(),
                warps_per_cta: kernel.warps(),
                mbarriers_per_cta: bars,
                has_copy_streams: code.uses_cp_async,
                has_bulk_groups: code.uses_bulk_groups,
            },
            target,
            code,
        }
    }

    /// Returns the lane that `elect` selects. It depends only on the seed and the active lanes.
    pub(crate) fn elected(&self, lanes: Mask) -> Mask {
        let lowest = lanes & lanes.wrapping_neg();
        if self.timing != Timing::Random || lanes == lowest {
            return lowest;
        }
        let nth = Rng::new(self.seed, lanes.into()).below(lanes.count_ones() as usize);
        lanes_of(lanes).nth(nth).map_or(lowest, |lane| 1 << lane)
    }

    /// Returns the clusters of the grid, by axis.
    fn clusters_by_axis(&self) -> [u64; 3] {
        std::array::from_fn(|i| u64::from(self.grid[i] / self.kernel.cluster[i]))
    }

    /// Returns the number of clusters.
    pub(crate) fn clusters(&self) -> u64 {
        self.clusters_by_axis().iter().product()
    }

    /// Returns the number of CTAs.
    pub(crate) fn ctas(&self) -> u64 {
        self.grid.iter().map(|&g| u64::from(g)).product()
    }

    /// Returns the grid index of a CTA of a cluster; x is fastest in both.
    pub(crate) fn cta_id(&self, cluster: u64, rank: u32) -> [u32; 3] {
        let [nx, ny, _] = self.clusters_by_axis();
        let [cx, cy, cz] = self.kernel.cluster;
        let at = [cluster % nx, cluster / nx % ny, cluster / nx / ny].map(|x| x as u32);
        [
            at[0] * cx + rank % cx,
            at[1] * cy + rank / cx % cy,
            at[2] * cz + rank / cx / cy,
        ]
    }

    /// Returns the linear index of a CTA; x is fastest.
    pub(crate) fn cta_number(&self, [x, y, z]: [u32; 3]) -> u64 {
        let [gx, gy, _] = self.grid.map(u64::from);
        u64::from(x) + gx * (u64::from(y) + gy * u64::from(z))
    }

    /// Returns the array name and index of an mbarrier: `full[2]`.
    pub(crate) fn barrier_name(&self, at: ResolvedBarrier) -> (&'k str, u32) {
        let i = self.first_slot.partition_point(|&f| f <= at.slot) - 1;
        (&self.kernel.barriers[i].name, at.slot - self.first_slot[i])
    }

    /// Describes a byte of shared memory: `byte 12 of tile a, stage 1`.
    pub(crate) fn byte_name(&self, byte: u32) -> String {
        let tile = self
            .kernel
            .tiles
            .iter()
            .find(|t| (t.offset..t.offset + t.bytes()).contains(&byte));
        match tile {
            None => format!("byte {byte} of shared memory"),
            Some(t) => {
                let at = byte - t.offset;
                let stage = t.layout.stage_bytes();
                match t.stages {
                    1 => format!("byte {at} of tile {}", t.name),
                    _ => format!(
                        "byte {} of tile {}, stage {}",
                        at % stage,
                        t.name,
                        at / stage
                    ),
                }
            }
        }
    }

    /// Returns the location of an op in a warp; `warp` is the index in the cluster.
    pub(crate) fn op_location(&self, cluster: u64, warp: u32, site: u32) -> OpLocation {
        let (cta, warp) = (
            warp / self.threads.warps_per_cta,
            warp % self.threads.warps_per_cta,
        );
        self.site_location(self.cta_id(cluster, cta), warp, site)
    }

    /// Returns the location of an op in a warp of a CTA.
    pub(crate) fn site_location(&self, cta: [u32; 3], warp: u32, site: u32) -> OpLocation {
        let s = &self.code.sites[site as usize];
        OpLocation {
            role: self.kernel.roles[s.role.index()].name.clone(),
            warp,
            cta,
            op: s.op.name(),
            frame: self.kernel.locs.author(s.loc),
            stack: self.kernel.locs.stack(s.loc).to_vec(),
        }
    }
}

impl Env<'_> {
    /// Returns the location of a loop in a warp; `warp` is the index in the cluster.
    pub(crate) fn branch_location(&self, cluster: u64, warp: u32, branch: u32) -> OpLocation {
        let b = &self.code.branches[branch as usize];
        let (cta, warp) = (
            warp / self.threads.warps_per_cta,
            warp % self.threads.warps_per_cta,
        );
        OpLocation {
            role: self.kernel.roles[b.role.index()].name.clone(),
            warp,
            cta: self.cta_id(cluster, cta),
            op: "for".into(),
            frame: self.kernel.locs.author(b.loc),
            stack: self.kernel.locs.stack(b.loc).to_vec(),
        }
    }
}

/// Builds the error for a fault of the launch.
pub(crate) fn launch_fault(f: Fault) -> Box<RunError> {
    Box::new(RunError {
        kind: f.kind,
        text: f.text,
        at: None,
        lane: None,
        other: None,
        race: None,
        help: None,
        waits: Vec::new(),
    })
}

//! What a run did: instructions, bytes, conflicts, sectors.

use crate::compile::Code;
use crate::warp::Warp;
use serde::{Serialize, Serializer};
use warpline_ir::{Frame, Kernel, Mask, Role, RoleId, Tile, TileId, WARP};

/// Counts of one run, summed over all CTAs. The same for any number of threads.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Stats {
    /// CTAs that ran.
    pub ctas: u64,
    /// Statements that warps ran, control flow included.
    pub steps: u64,
    /// By role, in the kernel's order.
    pub roles: Vec<RoleStats>,
    /// Bytes moved, by kind.
    pub bytes: Bytes,
    /// Floating-point operations of wgmmas.
    pub wgmma_flops: u64,
    /// The ops that touched memory themselves, in program order.
    pub sites: Vec<SiteStats>,
    /// The branches that split a warp, in program order.
    pub branches: Vec<BranchStats>,
    /// The shared tiles, in the kernel's order.
    pub tiles: Vec<TileStats>,
}

/// What one role did.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RoleStats {
    /// Its name.
    pub name: String,
    /// Ops that its warps ran.
    pub instructions: u64,
    /// Its warps, in order, each summed over all CTAs.
    pub warps: Vec<WarpStats>,
}

/// What one warp of a CTA did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct WarpStats {
    /// Ops that it ran.
    pub instructions: u64,
    /// Accesses to memory that it made itself.
    pub accesses: u64,
    /// Work that it gave to an engine: copies and wgmmas.
    pub jobs: u64,
}

/// A branch or loop that kept part of a warp from its ops. `elect` is none: it says so.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BranchStats {
    /// The role.
    pub role: String,
    /// The author's line.
    #[serde(serialize_with = "shown")]
    pub frame: Option<Frame>,
    /// How often and at what cost.
    pub split: Split,
}

/// How a branch splits warps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Split {
    /// Times that a warp came to it; to each round of a loop.
    pub runs: u64,
    /// Times that some of its lanes went one way and some the other.
    pub splits: u64,
    /// Ops that warps ran inside it after they were split.
    pub ops: u64,
    /// Lanes that were missing in those, summed over ops. Lanes that a branch
    /// further in took away are counted there.
    pub lost_lanes: u64,
}

/// What was written into one shared tile.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TileStats {
    /// Its name.
    pub name: String,
    /// Bytes written into each stage, by threads and by engines.
    pub written: Vec<u64>,
}

/// Bytes moved, by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Bytes {
    /// Loads from global memory.
    pub global_load: u64,
    /// Stores to global memory.
    pub global_store: u64,
    /// Atomics on global memory.
    pub global_atomic: u64,
    /// Loads from the CTA's shared memory.
    pub shared_load: u64,
    /// Stores to the CTA's shared memory.
    pub shared_store: u64,
    /// Atomics on shared memory.
    pub shared_atomic: u64,
    /// Loads from the shared memory of a peer.
    pub peer_load: u64,
    /// Stores to the shared memory of a peer.
    pub peer_store: u64,
    /// Copies of single lanes into shared memory.
    pub lane_copy: u64,
    /// Bulk and tensor copies into shared memory, counted at each receiver.
    pub bulk_load: u64,
    /// Bulk and tensor copies into global memory.
    pub bulk_store: u64,
    /// Shared memory read by wgmmas, counted once per warpgroup.
    pub wgmma_read: u64,
}

/// What one op of one role did in all warps that ran it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SiteStats {
    /// The op.
    pub op: String,
    /// The role.
    pub role: String,
    /// The author's line.
    #[serde(serialize_with = "shown")]
    pub frame: Option<Frame>,
    /// What it touched, and how well.
    pub traffic: Traffic,
}

/// Traffic of one op.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Traffic {
    /// Warp-wide accesses to shared memory.
    pub shared_accesses: u64,
    /// The fewest turns of the banks that those could take, of what lies in the CTA itself.
    pub bank_turns: u64,
    /// Turns of the banks that those took beyond the fewest possible.
    pub bank_conflicts: u64,
    /// Warp-wide accesses to global memory.
    pub global_requests: u64,
    /// 32-byte sectors that those touched.
    pub global_sectors: u64,
    /// The fewest sectors that would hold as many bytes.
    pub least_sectors: u64,
    /// Bytes that lanes loaded or stored.
    pub bytes: u64,
}

/// A line as it is shown: `gemm.rs:88`.
fn shown<S: Serializer>(frame: &Option<Frame>, to: S) -> Result<S::Ok, S::Error> {
    frame.map(|f| f.to_string()).serialize(to)
}

/// The counters of one host thread.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    pub(crate) ctas: u64,
    pub(crate) steps: u64,
    /// By warp of a CTA.
    warps: Vec<WarpStats>,
    pub(crate) bytes: Bytes,
    pub(crate) wgmma_flops: u64,
    pub(crate) sites: Vec<Traffic>,
    pub(crate) branches: Vec<Split>,
    /// By tile and stage: bytes written.
    tiles: Vec<Vec<u64>>,
}

impl Counters {
    /// All 0.
    pub(crate) fn new(kernel: &Kernel, code: &Code<'_>) -> Self {
        // A tile of no bytes may claim any number of stages.
        let stages = |t: &Tile| vec![0; t.stages.min(t.bytes()) as usize];
        Self {
            ctas: 0,
            steps: 0,
            warps: vec![WarpStats::default(); kernel.warps() as usize],
            bytes: Bytes::default(),
            wgmma_flops: 0,
            sites: vec![Traffic::default(); code.sites.len()],
            branches: vec![Split::default(); code.branches.len()],
            tiles: kernel.tiles.iter().map(stages).collect(),
        }
    }

    /// A warp has run its last op.
    pub(crate) fn leaves(&mut self, warp: &Warp) {
        self.warps[warp.index as usize].add(&WarpStats {
            instructions: warp.ran.ops,
            accesses: warp.accesses,
            jobs: warp.jobs,
        });
    }

    /// Bytes are written from a byte of shared memory on, by an op that names a tile.
    pub(crate) fn written(&mut self, kernel: &Kernel, tile: Option<TileId>, byte: u32, bytes: u64) {
        let Some(id) = tile else { return };
        let tile = kernel.tile(id);
        let stages = &mut self.tiles[id.index()];
        let stage = match stages.len() {
            1 => 0,
            _ => byte.saturating_sub(tile.offset) / tile.layout.stage_bytes().max(1),
        };
        if let Some(stage) = stages.get_mut(stage as usize) {
            *stage += bytes;
        }
    }

    /// Adds another's.
    pub(crate) fn add(mut self, other: &Self) -> Self {
        self.ctas += other.ctas;
        self.steps += other.steps;
        self.wgmma_flops += other.wgmma_flops;
        for (a, b) in self.warps.iter_mut().zip(&other.warps) {
            a.add(b);
        }
        let (a, b) = (&mut self.bytes, &other.bytes);
        a.global_load += b.global_load;
        a.global_store += b.global_store;
        a.global_atomic += b.global_atomic;
        a.shared_load += b.shared_load;
        a.shared_store += b.shared_store;
        a.shared_atomic += b.shared_atomic;
        a.peer_load += b.peer_load;
        a.peer_store += b.peer_store;
        a.lane_copy += b.lane_copy;
        a.bulk_load += b.bulk_load;
        a.bulk_store += b.bulk_store;
        a.wgmma_read += b.wgmma_read;
        for (a, b) in self.sites.iter_mut().zip(&other.sites) {
            a.shared_accesses += b.shared_accesses;
            a.bank_turns += b.bank_turns;
            a.bank_conflicts += b.bank_conflicts;
            a.global_requests += b.global_requests;
            a.global_sectors += b.global_sectors;
            a.least_sectors += b.least_sectors;
            a.bytes += b.bytes;
        }
        for (a, b) in self.branches.iter_mut().zip(&other.branches) {
            a.runs += b.runs;
            a.splits += b.splits;
            a.ops += b.ops;
            a.lost_lanes += b.lost_lanes;
        }
        for (a, b) in self.tiles.iter_mut().zip(&other.tiles) {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        }
        self
    }

    /// Names what was counted.
    pub(crate) fn stats(&self, kernel: &Kernel, code: &Code<'_>) -> Stats {
        let name = |role: RoleId| kernel.roles[role.index()].name.clone();
        let warps = |r: &Role| self.warps[r.first_warp as usize..][..r.warps as usize].to_vec();
        let sites = code.sites.iter().zip(&self.sites);
        Stats {
            ctas: self.ctas,
            steps: self.steps,
            roles: (kernel.roles.iter())
                .map(|r| RoleStats {
                    name: r.name.clone(),
                    instructions: warps(r).iter().map(|w| w.instructions).sum(),
                    warps: warps(r),
                })
                .collect(),
            bytes: self.bytes,
            wgmma_flops: self.wgmma_flops,
            sites: sites
                .filter(|(_, t)| **t != Traffic::default())
                .map(|(s, &traffic)| SiteStats {
                    op: s.op.name(),
                    role: name(s.role),
                    frame: kernel.locs.author(s.loc),
                    traffic,
                })
                .collect(),
            branches: (code.branches.iter().zip(&self.branches))
                .filter(|(_, split)| split.splits > 0)
                .map(|(b, &split)| BranchStats {
                    role: name(b.role),
                    frame: kernel.locs.author(b.loc),
                    split,
                })
                .collect(),
            tiles: (kernel.tiles.iter().zip(&self.tiles))
                .map(|(t, written)| TileStats {
                    name: t.name.clone(),
                    written: written.clone(),
                })
                .collect(),
        }
    }
}

impl WarpStats {
    fn add(&mut self, other: &Self) {
        self.instructions += other.instructions;
        self.accesses += other.accesses;
        self.jobs += other.jobs;
    }
}

/// Are the lanes of an access neighbours in ascending order?
pub(crate) fn dense(lanes: Mask, at: &[u64; WARP], width: usize) -> bool {
    lanes == Mask::MAX && (0..WARP as u64).all(|i| at[i as usize] == at[0] + i * width as u64)
}

/// The fewest turns of the 32 banks that a shared access can take: one for each
/// group of lanes that take part.
pub(crate) fn bank_turns(lanes: Mask, width: usize) -> u64 {
    let group = WARP / (width / 4).max(1);
    let of_group = |first: usize| lanes >> first & (Mask::MAX >> (WARP - group)) != 0;
    (0..WARP).step_by(group).filter(|&f| of_group(f)).count() as u64
}

/// Turns of the 32 banks that a shared access takes beyond the fewest possible.
///
/// Each bank gives one 4-byte word per turn; lanes that want the same word
/// share it. Accesses of 8 bytes are made by half warps, of 16 by quarter warps.
pub(crate) fn bank_conflicts(lanes: Mask, at: &[u64; WARP], width: usize) -> u64 {
    let group = WARP / (width / 4).max(1);
    let mut extra = 0;
    for first in (0..WARP).step_by(group) {
        // The first word each bank is asked for, and the words beyond those.
        let mut held = [u64::MAX; 32];
        let mut turns = [1u64; 32];
        let (mut more, mut n) = ([0; WARP], 0);
        for lane in (first..first + group).filter(|l| lanes >> l & 1 == 1) {
            for word in at[lane] / 4..(at[lane] + width as u64).div_ceil(4) {
                let bank = (word % 32) as usize;
                if held[bank] == u64::MAX {
                    held[bank] = word;
                } else if held[bank] != word && !more[..n].contains(&word) {
                    more[n] = word;
                    n += 1;
                    turns[bank] += 1;
                }
            }
        }
        extra += turns.iter().max().map_or(0, |t| t - 1);
    }
    extra
}

/// 32-byte sectors that a global access touches, and the fewest that would
/// hold as many bytes. Bytes that several lanes want count once.
pub(crate) fn sectors(lanes: Mask, at: &[u64; WARP], width: usize) -> (u64, u64) {
    let holds = |n: usize| (n * width).div_ceil(32) as u64;
    if dense(lanes, at, width) {
        return (at[WARP - 1] / 32 - at[0] / 32 + 1, holds(WARP));
    }
    let mut seen = [0; WARP];
    let mut n = 0;
    for lane in (0..WARP).filter(|l| lanes >> l & 1 == 1) {
        seen[n] = at[lane];
        n += 1;
    }
    let seen = &mut seen[..n];
    seen.sort_unstable();
    let places = seen.chunk_by(|a, b| a == b).count();
    // No access crosses a sector: it is aligned to its width.
    let touched = seen.chunk_by(|a, b| a / 32 == b / 32).count();
    (touched as u64, holds(places))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(f: impl Fn(u64) -> u64) -> [u64; WARP] {
        std::array::from_fn(|i| f(i as u64))
    }

    #[test]
    fn conflicts_are_turns_beyond_the_first() {
        assert_eq!(bank_conflicts(Mask::MAX, &at(|i| 4 * i), 4), 0);
        assert_eq!(bank_conflicts(Mask::MAX, &at(|i| 8 * i), 4), 1);
        assert_eq!(bank_conflicts(Mask::MAX, &at(|i| 128 * i), 4), 31);
        assert_eq!(bank_conflicts(Mask::MAX, &at(|_| 64), 4), 0);
        assert_eq!(bank_conflicts(Mask::MAX, &at(|i| 2 * i), 2), 0);
        assert_eq!(bank_conflicts(Mask::MAX, &at(|i| 16 * i), 16), 0);
        assert_eq!(bank_conflicts(Mask::MAX, &at(|i| 128 * i), 16), 4 * 7);
        assert_eq!(bank_conflicts(Mask::MAX, &at(|i| 8 * i), 8), 0);
        assert_eq!(bank_conflicts(1, &at(|i| 128 * i), 4), 0);
    }

    #[test]
    fn the_fewest_turns_are_one_for_each_group_that_takes_part() {
        assert_eq!(
            [1, 4, 8, 16].map(|w| bank_turns(Mask::MAX, w)),
            [1, 1, 2, 4]
        );
        assert_eq!([4, 16].map(|w| bank_turns(0b11, w)), [1, 1]);
        assert_eq!([4, 8, 16].map(|w| bank_turns(0x0101_0000, w)), [1, 1, 2]);
        assert_eq!(bank_turns(0, 4), 0);
    }

    #[test]
    fn sectors_are_counted_once() {
        assert_eq!(sectors(Mask::MAX, &at(|i| 4 * i), 4), (4, 4));
        assert_eq!(sectors(Mask::MAX, &at(|i| 4 + 4 * i), 4), (5, 4));
        assert_eq!(sectors(Mask::MAX, &at(|i| 16 * i), 16), (16, 16));
        assert_eq!(sectors(Mask::MAX, &at(|i| 4096 * i), 4), (32, 4));
        assert_eq!(sectors(Mask::MAX, &at(|_| 4096), 4), (1, 1));
        assert_eq!(sectors(0b11, &at(|i| 32 * i), 4), (2, 1));
        assert_eq!(sectors(0, &at(|i| i), 4), (0, 0));
    }

    #[test]
    fn dense_is_whole_and_ascending() {
        assert!(dense(Mask::MAX, &at(|i| 100 + 4 * i), 4));
        assert!(!dense(Mask::MAX, &at(|i| 100 + 8 * i), 4));
        assert!(!dense(1, &at(|i| 100 + 4 * i), 4));
    }
}

//! Counters of a run: instructions, bytes, bank conflicts, sectors.

use crate::compile::Code;
use crate::warp::Warp;
use serde::{Serialize, Serializer};
use warpline_ir::{Frame, Kernel, Mask, Role, RoleId, TileId, TileInfo, WARP};

/// Counters of one run, summed over all CTAs; independent of the number of host threads.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Stats {
    /// The number of CTAs.
    pub ctas: u64,
    /// Executed statements, including control flow.
    pub steps: u64,
    /// The roles, in the kernel's order.
    pub roles: Vec<RoleStats>,
    /// Bytes moved, by kind.
    pub bytes: ByteCounts,
    /// Floating-point operations of wgmmas.
    pub wgmma_flops: u64,
    /// The ops with direct memory accesses, in program order.
    pub sites: Vec<SiteStats>,
    /// The divergent branches, in program order.
    pub branches: Vec<BranchStats>,
    /// The shared tiles, in the kernel's order.
    pub tiles: Vec<TileStats>,
}

/// Counters of one role.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RoleStats {
    /// The role's name.
    pub name: String,
    /// Ops executed by its warps.
    pub instructions: u64,
    /// The warps in order, each summed over all CTAs.
    pub warps: Vec<WarpStats>,
}

/// Counters of one warp of a CTA.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct WarpStats {
    /// Executed ops.
    pub instructions: u64,
    /// Direct memory accesses.
    pub accesses: u64,
    /// Issued asynchronous ops: copies and wgmmas.
    pub async_ops: u64,
}

/// A branch or loop that diverged. `elect` does not count, because it is explicit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BranchStats {
    /// The role.
    pub role: String,
    /// The source line.
    #[serde(serialize_with = "serialize_frame")]
    pub frame: Option<Frame>,
    /// The divergence counters.
    pub divergence: Divergence,
}

/// Divergence counters of a branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Divergence {
    /// Executions by a warp; each iteration of a loop counts.
    pub executions: u64,
    /// Executions in which the lanes diverged.
    pub divergent: u64,
    /// Ops executed inside it while diverged.
    pub ops: u64,
    /// Inactive lanes, summed over those ops. Lanes that an inner branch masks off count at that
    /// branch.
    pub inactive_lanes: u64,
}

/// Counters of one shared tile.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TileStats {
    /// The tile's name.
    pub name: String,
    /// Bytes written into each stage, by threads and by engines.
    pub written: Vec<u64>,
}

/// Bytes moved, by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct ByteCounts {
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
    /// `cp.async` copies into shared memory.
    pub lane_copy: u64,
    /// Bulk and tensor copies into shared memory, counted at each receiver.
    pub bulk_load: u64,
    /// Bulk and tensor copies into global memory.
    pub bulk_store: u64,
    /// Shared memory read by wgmmas, counted once per warpgroup.
    pub wgmma_read: u64,
}

/// Counters of one op of one role, over all warps.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SiteStats {
    /// The op.
    pub op: String,
    /// The role.
    pub role: String,
    /// The source line.
    #[serde(serialize_with = "serialize_frame")]
    pub frame: Option<Frame>,
    /// The memory traffic.
    pub traffic: MemoryTraffic,
}

/// Memory traffic of one op.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct MemoryTraffic {
    /// Warp-wide accesses to shared memory.
    pub shared_accesses: u64,
    /// The minimum wavefronts of the accesses to the own CTA.
    pub ideal_wavefronts: u64,
    /// The wavefronts beyond that minimum.
    pub bank_conflicts: u64,
    /// Warp-wide accesses to global memory.
    pub global_requests: u64,
    /// Accessed 32-byte sectors.
    pub global_sectors: u64,
    /// The minimum number of sectors for the same bytes.
    pub ideal_sectors: u64,
    /// Bytes loaded or stored by lanes.
    pub bytes: u64,
}

/// Serializes a source line as `gemm.rs:88`.
fn serialize_frame<S: Serializer>(frame: &Option<Frame>, to: S) -> Result<S::Ok, S::Error> {
    frame.map(|f| f.to_string()).serialize(to)
}

/// The counters of one host thread.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    pub(crate) ctas: u64,
    pub(crate) steps: u64,
    /// By warp of a CTA.
    warps: Vec<WarpStats>,
    pub(crate) bytes: ByteCounts,
    pub(crate) wgmma_flops: u64,
    pub(crate) sites: Vec<MemoryTraffic>,
    pub(crate) branches: Vec<Divergence>,
    /// By tile and stage: bytes written.
    tiles: Vec<Vec<u64>>,
}

impl Counters {
    /// Creates zeroed counters.
    pub(crate) fn new(kernel: &Kernel, code: &Code<'_>) -> Self {
        // An empty tile may declare any number of stages.
        let stages = |t: &TileInfo| vec![0; t.stages.min(t.bytes()) as usize];
        Self {
            ctas: 0,
            steps: 0,
            warps: vec![WarpStats::default(); kernel.warps() as usize],
            bytes: ByteCounts::default(),
            wgmma_flops: 0,
            sites: vec![MemoryTraffic::default(); code.sites.len()],
            branches: vec![Divergence::default(); code.branches.len()],
            tiles: kernel.tiles.iter().map(stages).collect(),
        }
    }

    /// Adds the counters of an exiting warp.
    pub(crate) fn add_warp(&mut self, warp: &Warp) {
        self.warps[warp.index as usize].add(&WarpStats {
            instructions: warp.executed.ops,
            accesses: warp.accesses,
            async_ops: warp.async_ops,
        });
    }

    /// Counts bytes written at a byte of shared memory by an op that names a tile.
    pub(crate) fn add_tile_write(
        &mut self,
        kernel: &Kernel,
        tile: Option<TileId>,
        byte: u32,
        bytes: u64,
    ) {
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

    /// Adds other counters.
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
            a.ideal_wavefronts += b.ideal_wavefronts;
            a.bank_conflicts += b.bank_conflicts;
            a.global_requests += b.global_requests;
            a.global_sectors += b.global_sectors;
            a.ideal_sectors += b.ideal_sectors;
            a.bytes += b.bytes;
        }
        for (a, b) in self.branches.iter_mut().zip(&other.branches) {
            a.executions += b.executions;
            a.divergent += b.divergent;
            a.ops += b.ops;
            a.inactive_lanes += b.inactive_lanes;
        }
        for (a, b) in self.tiles.iter_mut().zip(&other.tiles) {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        }
        self
    }

    /// Converts to the public counters.
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
                .filter(|(_, t)| **t != MemoryTraffic::default())
                .map(|(s, &traffic)| SiteStats {
                    op: s.op.name(),
                    role: name(s.role),
                    frame: kernel.locs.author(s.loc),
                    traffic,
                })
                .collect(),
            branches: (code.branches.iter().zip(&self.branches))
                .filter(|(_, d)| d.divergent > 0)
                .map(|(b, &divergence)| BranchStats {
                    role: name(b.role),
                    frame: kernel.locs.author(b.loc),
                    divergence,
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
        self.async_ops += other.async_ops;
    }
}

/// Whether all lanes access consecutive elements in ascending order.
pub(crate) fn is_dense(lanes: Mask, at: &[u64; WARP], width: usize) -> bool {
    lanes == Mask::MAX && (0..WARP as u64).all(|i| at[i as usize] == at[0] + i * width as u64)
}

/// Returns the minimum wavefronts of a shared access: one for each group of lanes with an active lane.
pub(crate) fn ideal_wavefronts(lanes: Mask, width: usize) -> u64 {
    let group = WARP / (width / 4).max(1);
    let has_active_lane = |first: usize| lanes >> first & (Mask::MAX >> (WARP - group)) != 0;
    (0..WARP)
        .step_by(group)
        .filter(|&f| has_active_lane(f))
        .count() as u64
}

/// Returns the wavefronts of a shared access beyond the minimum.
///
/// Each bank delivers one 4-byte word per wavefront; lanes with the same word share it. Accesses of
/// 8 bytes run per half warp, of 16 bytes per quarter warp.
pub(crate) fn bank_conflicts(lanes: Mask, at: &[u64; WARP], width: usize) -> u64 {
    let group = WARP / (width / 4).max(1);
    let mut extra = 0;
    for first in (0..WARP).step_by(group) {
        // The first word of each bank, and the further words.
        let mut first_word = [u64::MAX; 32];
        let mut wavefronts = [1u64; 32];
        let (mut further_words, mut n) = ([0; WARP], 0);
        for lane in (first..first + group).filter(|l| lanes >> l & 1 == 1) {
            for word in at[lane] / 4..(at[lane] + width as u64).div_ceil(4) {
                let bank = (word % 32) as usize;
                if first_word[bank] == u64::MAX {
                    first_word[bank] = word;
                } else if first_word[bank] != word && !further_words[..n].contains(&word) {
                    further_words[n] = word;
                    n += 1;
                    wavefronts[bank] += 1;
                }
            }
        }
        extra += wavefronts.iter().max().map_or(0, |w| w - 1);
    }
    extra
}

/// Returns the 32-byte sectors of a global access, and the minimum for the same bytes. Bytes that
/// several lanes access count once.
pub(crate) fn sectors(lanes: Mask, at: &[u64; WARP], width: usize) -> (u64, u64) {
    let min_sectors = |n: usize| (n * width).div_ceil(32) as u64;
    if is_dense(lanes, at, width) {
        return (at[WARP - 1] / 32 - at[0] / 32 + 1, min_sectors(WARP));
    }
    let mut seen = [0; WARP];
    let mut n = 0;
    for lane in (0..WARP).filter(|l| lanes >> l & 1 == 1) {
        seen[n] = at[lane];
        n += 1;
    }
    let seen = &mut seen[..n];
    seen.sort_unstable();
    let distinct = seen.chunk_by(|a, b| a == b).count();
    // An access is aligned to its width, so it never crosses a sector.
    let touched = seen.chunk_by(|a, b| a / 32 == b / 32).count();
    (touched as u64, min_sectors(distinct))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(f: impl Fn(u64) -> u64) -> [u64; WARP] {
        std::array::from_fn(|i| f(i as u64))
    }

    #[test]
    fn conflicts_are_wavefronts_beyond_the_minimum() {
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
    fn the_minimum_is_one_wavefront_per_active_group() {
        assert_eq!(
            [1, 4, 8, 16].map(|w| ideal_wavefronts(Mask::MAX, w)),
            [1, 1, 2, 4]
        );
        assert_eq!([4, 16].map(|w| ideal_wavefronts(0b11, w)), [1, 1]);
        assert_eq!(
            [4, 8, 16].map(|w| ideal_wavefronts(0x0101_0000, w)),
            [1, 1, 2]
        );
        assert_eq!(ideal_wavefronts(0, 4), 0);
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
    fn dense_requires_all_lanes_in_ascending_order() {
        assert!(is_dense(Mask::MAX, &at(|i| 100 + 4 * i), 4));
        assert!(!is_dense(Mask::MAX, &at(|i| 100 + 8 * i), 4));
        assert!(!is_dense(1, &at(|i| 100 + 4 * i), 4));
    }
}

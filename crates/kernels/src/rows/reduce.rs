//! Reductions of records over the lanes of a warp, the warps of a CTA and the CTAs of a cluster.

use super::config::Config;
use super::op::{RowOp, RowRecord};
use std::marker::PhantomData;
use warpline_ir::builder::*;

/// Merges the records of `count` lanes; every lane gets the result.
#[track_caller]
pub(super) fn across_lanes<K: RowOp>(mut stats: RowRecord, count: u32) -> RowRecord {
    let mut mask = 1;
    while mask < count {
        let other = stats.iter().map(|&x| shuffle_xor(x, mask)).collect();
        stats = K::merge(&stats, &other);
        mask *= 2;
    }
    if K::MERGE_IS_COMMUTATIVE || count == 1 {
        return stats;
    }
    // Each lane merges in its own order, so results differ in their last bits: all take the first
    // lane's.
    let first_lane = lane_id() & !(count - 1);
    stats.iter().map(|&x| shuffle_from(x, first_lane)).collect()
}

/// The shared memory in which the warps of a row exchange records, double-buffered by row.
///
/// Two buffers and one mbarrier each are enough. A warp that writes the record of row `t + 2` has
/// read all records of row `t + 1`, and their writers had finished reading row `t`.
pub(super) struct RowReduction<K> {
    records: Tile<f32>,
    full: MbarrierArray,
    /// Warps of one CTA that share a row.
    warps: u32,
    cluster: u32,
    block: u32,
    op: PhantomData<K>,
}

impl<K> Clone for RowReduction<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> Copy for RowReduction<K> {}

impl<K: RowOp> RowReduction<K> {
    const WORDS: u32 = K::IDENTITY.len() as u32;
    /// Mask of the row counter: two buffers times two parities.
    pub(super) const COUNT_MASK: u32 = 3;

    /// Declares the buffers; `None` if a single warp holds a row.
    pub(super) fn declare(k: Builder, c: &Config) -> Option<Self> {
        let (warps, cluster, block) = (c.warps_per_row(), c.cluster, c.block);
        let writers = warps * cluster;
        if writers == 1 {
            return None;
        }
        // In a cluster the mbarrier counts bytes, and one thread arrives; else every warp arrives.
        let arrivals = if cluster > 1 { 1 } else { warps };
        Some(Self {
            records: k
                .tile::<f32>(
                    "records",
                    1,
                    (2 * block * writers * Self::WORDS).next_multiple_of(4),
                )
                .unswizzled()
                .declare(),
            full: k.barrier("records_full", 2 * block).arrivals(arrivals),
            warps,
            cluster,
            block,
            op: PhantomData,
        })
    }

    /// Returns the record of the whole row.
    ///
    /// `count` is the number of earlier rows of this CTA modulo 4, `row` the row inside the block and
    /// `warp` the index among the warps of the row.
    #[track_caller]
    pub(super) fn all_reduce(
        &self,
        stats: RowRecord,
        count: Reg<u32>,
        row: Reg<u32>,
        warp: Reg<u32>,
    ) -> RowRecord {
        let writers = self.warps * self.cluster;
        let buffer = (count & 1u32) * self.block + row;
        let parity = (count >> 1) & 1u32;
        let full = self.full.at(buffer);
        let first = buffer * (writers * Self::WORDS);
        let writer = match self.cluster {
            1 => warp,
            _ => cluster_rank() * self.warps + warp,
        };
        let offset = first + writer * Self::WORDS;
        // Every lane must have finished reading the previous row's records.
        warp_sync();
        if self.cluster == 1 {
            elect_lane(|| {
                match stats[..] {
                    [a] => self.records.whole().store_vec(0u32, offset, [a]),
                    [a, b] => self.records.whole().store_vec(0u32, offset, [a, b]),
                    [a, b, c, d] => self.records.whole().store_vec(0u32, offset, [a, b, c, d]),
                    _ => {}
                }
                full.arrive();
            });
            full.wait(parity);
        } else {
            if_(warp.eq(0u32), || {
                elect_lane(|| full.arrive_expect(writers * Self::WORDS * 4));
            });
            let peer = lane_id();
            if_(peer.lt(self.cluster), || {
                let (to, bar) = (self.records.whole().peer(peer), full.peer(peer));
                match stats[..] {
                    [a] => store_async(to, 0u32, offset, [a], bar),
                    [a, b] => store_async(to, 0u32, offset, [a, b], bar),
                    [a, b, c, d] => store_async(to, 0u32, offset, [a, b, c, d], bar),
                    _ => {}
                }
            });
            full.wait_cluster(parity);
        }
        self.read_and_merge(first, writers)
    }

    /// Reads the records of all writers, one or more per lane, and merges them.
    #[track_caller]
    fn read_and_merge(&self, first: Reg<u32>, writers: u32) -> RowRecord {
        let width = writers.min(32).next_power_of_two();
        let lane = lane_id() & (width - 1);
        let record = |i: u32| -> RowRecord {
            let index = lane + i * 32;
            let load = |index: Reg<u32>| -> RowRecord {
                let from = self.records.whole();
                let offset = first + index * Self::WORDS;
                match Self::WORDS {
                    1 => from.load_vec::<1>(0u32, offset).to_vec(),
                    2 => from.load_vec::<2>(0u32, offset).to_vec(),
                    _ => from.load_vec::<4>(0u32, offset).to_vec(),
                }
            };
            if i * 32 + width <= writers {
                return load(index);
            }
            let inside = index.lt(writers);
            let clamped = load(index.min(writers - 1));
            let identity = K::IDENTITY.iter();
            clamped
                .iter()
                .zip(identity)
                .map(|(&x, &n)| select(inside, x, n))
                .collect()
        };
        let mut stats = record(0);
        for i in 1..writers.div_ceil(32) {
            stats = K::merge(&stats, &record(i));
        }
        across_lanes::<K>(stats, width)
    }
}

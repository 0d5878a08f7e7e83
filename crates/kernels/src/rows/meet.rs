//! Where the records of a row come together: lanes of a warp, warps of a CTA, CTAs of a cluster.

use super::config::Config;
use super::op::{RowOp, Stat};
use std::marker::PhantomData;
use warpline_ir::build::*;

/// The record of `count` lanes that each have one, known to each of them.
#[track_caller]
pub(super) fn lanes<K: RowOp>(mut stat: Stat, count: u32) -> Stat {
    let mut mask = 1;
    while mask < count {
        let other = stat.iter().map(|&x| shuffle_xor(x, mask)).collect();
        stat = K::merge(&stat, &other);
        mask *= 2;
    }
    if K::SYMMETRIC || count == 1 {
        return stat;
    }
    // Each lane sums in its own order: all take what the first one found.
    let first = lane_id() & !(count - 1);
    stat.iter().map(|&x| shuffle_from(x, first)).collect()
}

/// Where warps leave their records for each other, two rows in turn.
///
/// A warp that writes the record of row `t + 2` has seen all records of row
/// `t + 1`, and whoever wrote one of those was done with row `t`: two places
/// are enough, and no second barrier.
pub(super) struct Meet<K> {
    records: Tile<f32>,
    full: Bar,
    /// Warps of one CTA that share a row.
    warps: u32,
    cluster: u32,
    block: u32,
    op: PhantomData<K>,
}

impl<K> Clone for Meet<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> Copy for Meet<K> {}

impl<K: RowOp> Meet<K> {
    const WORDS: u32 = K::NOTHING.len() as u32;
    /// Turns are counted up to this: two places, two parities.
    pub(super) const TURNS: u32 = 3;

    /// None where a single warp holds a row.
    pub(super) fn declare(k: Builder, c: &Config) -> Option<Self> {
        let (warps, cluster, block) = (c.warps_of_row(), c.cluster, c.block);
        let all = warps * cluster;
        if all == 1 {
            return None;
        }
        // Words from peers come as bytes; the warps of one CTA arrive themselves.
        let arrivals = if cluster > 1 { 1 } else { warps };
        Some(Self {
            records: k
                .tile::<f32>(
                    "records",
                    1,
                    (2 * block * all * Self::WORDS).next_multiple_of(4),
                )
                .plain()
                .declare(),
            full: k.barrier("records_full", 2 * block).count(arrivals),
            warps,
            cluster,
            block,
            op: PhantomData,
        })
    }

    /// The record of the whole row: `turn` counts the rows of this CTA (modulo four), `row`
    /// is the row's place in the block, `warp` the warp's among those of the row.
    #[track_caller]
    pub(super) fn merge(&self, stat: Stat, turn: Reg<u32>, row: Reg<u32>, warp: Reg<u32>) -> Stat {
        let all = self.warps * self.cluster;
        let place = (turn & 1u32) * self.block + row;
        let parity = (turn >> 1) & 1u32;
        let full = self.full.at(place);
        let first = place * (all * Self::WORDS);
        let mine = match self.cluster {
            1 => warp,
            _ => cluster_rank() * self.warps + warp,
        };
        let at = first + mine * Self::WORDS;
        // Every lane of the warp is done with the records of the row before.
        warp_sync();
        if self.cluster == 1 {
            elect_lane(|| {
                match stat[..] {
                    [a] => self.records.whole().store_vec(0u32, at, [a]),
                    [a, b] => self.records.whole().store_vec(0u32, at, [a, b]),
                    [a, b, c, d] => self.records.whole().store_vec(0u32, at, [a, b, c, d]),
                    _ => {}
                }
                full.arrive();
            });
            full.wait(parity);
        } else {
            if_(warp.eq(0u32), || {
                elect_lane(|| full.arrive_expect(all * Self::WORDS * 4));
            });
            let peer = lane_id();
            if_(peer.lt(self.cluster), || {
                let (to, bar) = (self.records.whole().peer(peer), full.peer(peer));
                match stat[..] {
                    [a] => store_async(to, 0u32, at, [a], bar),
                    [a, b] => store_async(to, 0u32, at, [a, b], bar),
                    [a, b, c, d] => store_async(to, 0u32, at, [a, b, c, d], bar),
                    _ => {}
                }
            });
            full.wait_cluster(parity);
        }
        self.read(first, all)
    }

    /// Every lane reads some of the records; together they know all.
    #[track_caller]
    fn read(&self, first: Reg<u32>, all: u32) -> Stat {
        let width = all.min(32).next_power_of_two();
        let lane = lane_id() & (width - 1);
        let one = |i: u32| -> Stat {
            let index = lane + i * 32;
            let at = |index: Reg<u32>| first + index * Self::WORDS;
            let load = |index| -> Stat {
                let from = self.records.whole();
                match Self::WORDS {
                    1 => from.load_vec::<1>(0u32, at(index)).to_vec(),
                    2 => from.load_vec::<2>(0u32, at(index)).to_vec(),
                    _ => from.load_vec::<4>(0u32, at(index)).to_vec(),
                }
            };
            if i * 32 + width <= all {
                return load(index);
            }
            let inside = index.lt(all);
            let some = load(index.min(all - 1));
            let none = K::NOTHING.iter();
            some.iter()
                .zip(none)
                .map(|(&x, &n)| select(inside, x, n))
                .collect()
        };
        let mut stat = one(0);
        for i in 1..all.div_ceil(32) {
            stat = K::merge(&stat, &one(i));
        }
        lanes::<K>(stat, width)
    }
}

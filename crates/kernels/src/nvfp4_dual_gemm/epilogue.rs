//! The epilogue: sums to values of C.

use super::context::Context;
use super::decode::Decoded;
use super::units::OUTPUTS;
use crate::gemm::tile_scheduler::TileCoord;
use crate::roles::CONSUMERS;
use warpline_ir::build::*;

/// Sums that another CTA has handed.
type Handed = Slot<Tile<f32>, Reading>;

/// Finishes the sums of a consumer's outputs.
pub(super) struct Epilogue<'a, T: Decoded> {
    context: &'a Context<'a, T>,
    consumer: u32,
    /// Sums that CTAs of a cluster hand each other, by the bit in which their ranks differ.
    handed: Vec<(u32, Ring<Tile<f32>>)>,
    outbox: Outbox<T>,
}

impl<'a, T: Decoded> Epilogue<'a, T> {
    pub(super) fn declare(k: Builder, context: &'a Context<'a, T>, consumer: u32) -> Self {
        let (c, name) = (context.config, CONSUMERS[consumer as usize]);
        let bits = (0..c.split_k.ilog2()).rev().map(|bit| 1 << bit);
        let handed = bits.map(|bit| {
            let columns = c.tile_m * bit / c.split_k;
            let ring = k.ring(&format!("sums_{name}_{bit}"), 1, |s| {
                s.plain::<f32>(columns / 8, 512)
            });
            (bit, ring.posted())
        });
        Self {
            context,
            consumer,
            handed: handed.collect(),
            outbox: k.outbox(name, 1, c.finished(), OUTPUTS),
        }
    }

    /// Finishes sums and stores the values.
    #[track_caller]
    pub(super) fn finish(&self, sums: Frag, tile: TileCoord) {
        finish(std::slice::from_ref(self), vec![sums], tile);
    }

    /// Stores the values of sums of the whole of K.
    #[track_caller]
    fn send(&self, sums: &Frag, factors: [Reg<f32>; 2], tile: TileCoord) {
        let (context, c) = (self.context, self.context.config);
        let activation = context.gate();
        let values =
            sums.fold_eights(|gate, up| activation.apply(gate * factors[0]) * (up * factors[1]));
        let token = tile.m * c.tile_m;
        let token = match c.split_k {
            1 => token,
            _ => token + cluster_rank() * c.finished(),
        };
        let at = [context.output(self.consumer, tile), token];
        self.outbox.send_eights(&values, context.out, at);
    }
}

/// Finishes the sums of several sets of outputs and stores the values. All partial sums are on their
/// way to other CTAs before one waits for theirs.
#[track_caller]
pub(super) fn finish<T: Decoded>(ends: &[Epilogue<'_, T>], mut sums: Vec<Frag>, tile: TileCoord) {
    let Some(first) = ends.first() else { return };
    let factors = first.context.factors();
    let mut taken = Vec::new();
    for level in 0..first.handed.len() {
        let rings: Vec<_> = ends.iter().map(|end| &end.handed[level]).collect();
        let kept: Vec<_> = (sums.iter().zip(&rings))
            .map(|(sums, ring)| hand(sums, ring))
            .collect();
        sums = (kept.into_iter().zip(rings))
            .map(|(kept, ring)| {
                let (sums, slot, peer) = add(kept, ring);
                taken.push((slot, peer));
                sums
            })
            .collect();
    }
    for (end, sums) in ends.iter().zip(&sums) {
        end.send(sums, factors, tile);
    }
    // Only then, as a release to another CTA waits for all that was stored.
    for (slot, peer) in taken {
        slot.release_to(peer);
    }
}

/// Of two CTAs of a cluster whose ranks differ in a bit the one with it keeps the
/// last half of the columns, the other the first; the rest goes to the other.
#[track_caller]
fn hand(sums: &Frag, (bit, ring): &(u32, Ring<Tile<f32>>)) -> Frag {
    let rank = cluster_rank();
    let last = (rank & *bit).ne(0u32);
    let (low, high) = sums.split(sums.cols() / 2);
    let away = low.clone().zip(&high, |low, high| select(last, low, high));
    let slot = ring.acquire_at(rank ^ *bit);
    away.post_lanes(&slot);
    slot.commit();
    low.zip(&high, |low, high| select(last, high, low))
}

/// Adds what the other handed. With the sums comes the slot that has been read,
/// and whose it is.
#[track_caller]
fn add(kept: Frag, (bit, ring): &(u32, Ring<Tile<f32>>)) -> (Frag, Handed, Reg<u32>) {
    let slot = ring.wait();
    let more = kept.load_lanes(&slot.tiles());
    let sums = kept.zip(&more, |x, y| x + y);
    (sums, slot, cluster_rank() ^ *bit)
}

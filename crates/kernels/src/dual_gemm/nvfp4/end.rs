//! What becomes of the sums of a tile.

use super::decode::Decoded;
use super::line::{Line, OUTPUTS, finished};
use crate::gemm::forms;
use crate::gemm::walk::Seat;
use warpline_ir::build::*;

/// Sums that another CTA has handed.
type Handed = Slot<Tile<f32>, Reading>;

/// What a consumer does with the sums of its outputs.
pub(super) struct End<'a, T: Decoded> {
    line: &'a Line<'a, T>,
    consumer: u32,
    /// What CTAs of a cluster hand each other, by the bit in which their ranks differ.
    handed: Vec<(u32, Ring<Tile<f32>>)>,
    outbox: Outbox<T>,
}

impl<'a, T: Decoded> End<'a, T> {
    pub(super) fn declare(k: Builder, line: &'a Line<'a, T>, consumer: u32) -> Self {
        let (c, name) = (line.config, forms::CONSUMERS[consumer as usize]);
        let bits = (0..c.split_k.ilog2()).rev().map(|bit| 1 << bit);
        let handed = bits.map(|bit| {
            let columns = c.tile_m * bit / c.split_k;
            let ring = k.ring(&format!("sums_{name}_{bit}"), 1, |s| {
                s.plain::<f32>(columns / 8, 512)
            });
            (bit, ring.posted())
        });
        Self {
            line,
            consumer,
            handed: handed.collect(),
            outbox: k.outbox(name, 1, finished(c), OUTPUTS),
        }
    }

    /// Sends what becomes of sums.
    #[track_caller]
    pub(super) fn finish(&self, sums: Frag, seat: Seat) {
        let (line, c) = (self.line, self.line.config);
        let factors = line.factors();
        let mut taken = Vec::new();
        let sums = self.handed.iter().fold(sums, |sums, handed| {
            let (sums, slot, peer) = exchange(sums, handed);
            taken.push((slot, peer));
            sums
        });
        let activation = line.class.activation();
        let values =
            sums.fold_eights(|gate, up| activation.apply(gate * factors[0]) * (up * factors[1]));
        let token = seat.m * c.tile_m;
        let token = match c.split_k {
            1 => token,
            _ => token + cluster_rank() * finished(c),
        };
        let at = [line.output(self.consumer, seat), token];
        self.outbox.send_eights(&values, line.out, at);
        // Only then, as a release to another CTA waits for all that was stored.
        taken
            .into_iter()
            .for_each(|(slot, peer)| slot.release_to(peer));
    }
}

/// Two CTAs of a cluster, whose ranks differ in a bit, hand each other half of
/// the columns and add up: the one with the bit has the last half, the other the
/// first. With the sums comes the slot that has been read, and whose it is.
#[track_caller]
fn exchange(sums: Frag, (bit, ring): &(u32, Ring<Tile<f32>>)) -> (Frag, Handed, Reg<u32>) {
    let rank = cluster_rank();
    let peer = rank ^ *bit;
    let last = (rank & *bit).ne(0u32);
    let (low, high) = sums.split(sums.cols() / 2);
    let away = low.clone().zip(&high, |low, high| select(last, low, high));
    let kept = low.zip(&high, |low, high| select(last, high, low));
    let slot = ring.acquire_at(peer);
    away.post_lanes(&slot);
    slot.commit();
    let slot = ring.wait();
    let more = kept.load_lanes(&slot.tiles());
    (kept.zip(&more, |x, y| x + y), slot, peer)
}

//! The epilogue: split-K exchange, scales, gate, store.

use super::context::Context;
use super::decode::DecodeTarget;
use super::kernel_spec::Outputs;
use super::units::OUTPUTS;
use crate::gemm::tile_scheduler::TileCoord;
use crate::roles::CONSUMERS;
use warpline_ir::builder::*;

/// A slot with accumulators that another CTA sent.
type PeerSlot = Slot<Tile<f32>, Consuming>;

/// The epilogue of one consumer's outputs.
pub(super) struct Epilogue<'a, T: DecodeTarget> {
    context: &'a Context<'a, T>,
    consumer: u32,
    /// Rings through which two CTAs of a cluster exchange accumulators, each with the bit in which their ranks
    /// differ.
    exchange_rings: Vec<(u32, Ring<Tile<f32>>)>,
    outbox: Outbox<T>,
}

impl<'a, T: DecodeTarget> Epilogue<'a, T> {
    pub(super) fn declare(k: Builder, context: &'a Context<'a, T>, consumer: u32) -> Self {
        let (c, name) = (context.config, CONSUMERS[consumer as usize]);
        let bits = (0..c.split_k.ilog2()).rev().map(|bit| 1 << bit);
        let exchange_rings = bits.map(|bit| {
            let columns = c.tile_m * bit / c.split_k;
            let ring = k.ring(&format!("peer_accs_{name}_{bit}"), 1, |s| {
                s.unswizzled::<f32>(columns / 8, 512)
            });
            (bit, ring.async_stores())
        });
        Self {
            context,
            consumer,
            exchange_rings: exchange_rings.collect(),
            outbox: k.outbox(
                name,
                1,
                c.tokens_per_cta(),
                OUTPUTS * context.spec.outputs.per_pair(),
            ),
        }
    }

    /// Combines, scales and stores the accumulators of a tile.
    #[track_caller]
    pub(super) fn finish(&self, accs: Frag, tile: TileCoord) {
        run_epilogues(std::slice::from_ref(self), vec![accs], tile);
    }

    /// Scales the complete accumulators, gates them or adds the bias, and stores them.
    #[track_caller]
    fn store(&self, accs: &Frag, scales: [Reg<f32>; 2], tile: TileCoord) {
        match self.context.spec.outputs {
            Outputs::Gated(activation) => {
                let values = accs
                    .fold_rows_8(|gate, up| activation.apply(gate * scales[0]) * (up * scales[1]));
                let (out, offset) = self.place(tile);
                self.outbox.store_folded_transposed(&values, out, offset);
            }
            Outputs::Linear { .. } => {
                let bias = self.context.bias(self.context.output(self.consumer, tile));
                let half = |i: usize| {
                    accs.fold_rows_8(|upper, lower| {
                        let x = [upper, lower][i] * scales[i];
                        bias.map_or(x, |bias| x + bias[i])
                    })
                };
                let (upper, lower) = (half(0), half(1));
                let (out, offset) = self.place(tile);
                self.outbox
                    .store_folded_pair_transposed(&upper, &lower, out, offset);
            }
        }
    }

    /// Returns the tensor map of C and the coordinates of this CTA's part of a tile.
    #[track_caller]
    fn place(&self, tile: TileCoord) -> (TensorMap, [Reg<u32>; 2]) {
        let (context, c) = (self.context, self.context.config);
        let token = tile.m * c.tile_m;
        let token = match c.split_k {
            1 => token,
            _ => token + cluster_rank() * c.tokens_per_cta(),
        };
        (context.out, [context.output(self.consumer, tile), token])
    }
}

/// Runs the epilogue of several sets of outputs. It sends all partial accumulators to the other CTAs
/// before it waits for theirs.
#[track_caller]
pub(super) fn run_epilogues<T: DecodeTarget>(
    epilogues: &[Epilogue<'_, T>],
    mut accs: Vec<Frag>,
    tile: TileCoord,
) {
    let Some(first) = epilogues.first() else {
        return;
    };
    let scales = first.context.output_scales();
    let mut to_release = Vec::new();
    for exchange in 0..first.exchange_rings.len() {
        let rings: Vec<_> = epilogues
            .iter()
            .map(|epilogue| &epilogue.exchange_rings[exchange])
            .collect();
        let kept: Vec<_> = (accs.iter().zip(&rings))
            .map(|(accs, ring)| exchange_half(accs, ring))
            .collect();
        accs = (kept.into_iter().zip(rings))
            .map(|(kept, ring)| {
                let (accs, slot, peer) = add_peer_half(kept, ring);
                to_release.push((slot, peer));
                accs
            })
            .collect();
    }
    for (epilogue, accs) in epilogues.iter().zip(&accs) {
        epilogue.store(accs, scales, tile);
    }
    // Released last: a release to another CTA waits for all stores before it.
    for (slot, peer) in to_release {
        slot.release_remote(peer);
    }
}

/// Exchanges half of the columns with the CTA whose rank differs in `bit`: the CTA with the bit set
/// keeps the last half, the other the first. Returns the kept half.
#[track_caller]
fn exchange_half(accs: &Frag, (bit, ring): &(u32, Ring<Tile<f32>>)) -> Frag {
    let rank = cluster_rank();
    let keeps_last = (rank & *bit).ne(0u32);
    let (low, high) = accs.split_cols(accs.cols() / 2);
    let sent = low
        .clone()
        .zip(&high, |low, high| select(keeps_last, low, high));
    let slot = ring.acquire_remote(rank ^ *bit);
    sent.store_async_thread_major(&slot);
    slot.commit();
    low.zip(&high, |low, high| select(keeps_last, high, low))
}

/// Adds the half that the other CTA sent. Returns the sum, the slot to release, and the sender's rank.
#[track_caller]
fn add_peer_half(kept: Frag, (bit, ring): &(u32, Ring<Tile<f32>>)) -> (Frag, PeerSlot, Reg<u32>) {
    let slot = ring.wait();
    let received = kept.load_thread_major(&slot.tiles());
    let accs = kept.zip(&received, |x, y| x + y);
    (accs, slot, cluster_rank() ^ *bit)
}

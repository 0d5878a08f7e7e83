//! Scores, softmax and values, block by block. Consumers overlap each other: while one computes its
//! softmax, another one multiplies.

use crate::attention::config::Config;
use crate::attention::context::{Consumer, Half16, ROWS};
use crate::attention::scores::Block;
use crate::attention::softmax::RunningSoftmax;
use warpline_ir::builder::*;

/// Computes O and the logarithms of a consumer's rows.
pub(super) fn tile<T: Half16>(consumer: &Consumer<'_, T>) -> (Frag, RowVector) {
    let context = consumer.context;
    let (rings, scale) = (context.rings, context.rules.scale());
    let Config {
        tile_keys: keys,
        rescale,
        ..
    } = context.config;
    let blocks = &consumer.blocks;
    let q_slot = rings.q.wait();
    let q = consumer.queries(&q_slot);
    let o = Acc::new(ROWS, context.class.cols_v);
    let scores = |index, is_masked| {
        let block = Block::new(consumer, index, is_masked);
        let slot = rings.k.wait();
        let s = Acc::new(ROWS, keys);
        s.mma(&q, &consumer.keys(&slot));
        let s = s.into_frag();
        slot.release();
        block.scores(s)
    };
    let multiply = |p: &Frag| {
        let slot = rings.v.wait();
        o.mma(&p.operand::<T>(), &consumer.values(&slot));
        o.wait();
        slot.release();
    };
    let (softmax, p) =
        RunningSoftmax::start(scores(blocks.last, !context.class.whole_blocks), scale);
    multiply(&p);
    let visit = |(max, sum): (RowVector, RowVector), index, is_masked| {
        let s = scores(index, is_masked);
        let (softmax, p, correction) = RunningSoftmax { max, sum }.add(s, scale, rescale);
        correction.apply(&o);
        multiply(&p);
        (softmax.max, softmax.sum)
    };
    let start = (softmax.max, softmax.sum);
    let (max, sum) = blocks.fold(start, visit);
    q_slot.release();
    let (factor, log) = RunningSoftmax { max, sum }.finish(scale, consumer.sink());
    (o.into_frag().rescale(&factor), log)
}

//! The scores of a block beside the values of the block before: while a consumer computes the softmax of
//! one block, its tensor cores still have the product of the last one.

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
    let q_slot = rings.q.wait();
    let q = consumer.queries(&q_slot);
    let o = Acc::new(ROWS, context.class.cols_v);
    let blocks = &consumer.blocks;
    let last = Block::new(consumer, blocks.last, !context.class.whole_blocks);
    let key_slot = rings.k.wait();
    let s = Acc::new(ROWS, keys);
    s.mma(&q, &consumer.keys(&key_slot));
    let s = s.into_frag();
    key_slot.release();
    let (softmax, p) = RunningSoftmax::start(last.scores(s), scale);
    type State<T> = (
        RegOperand<T, Natural>,
        Slot<Tile<T>, Consuming>,
        RowVector,
        RowVector,
    );
    let visit = |(p, values, max, sum): State<T>, index, is_masked| -> State<T> {
        let block = Block::new(consumer, index, is_masked);
        let key_slot = rings.k.wait();
        let s = Acc::new(ROWS, keys);
        s.mma(&q, &consumer.keys(&key_slot));
        o.mma(&p, &consumer.values(&values));
        let s = s.into_frag();
        key_slot.release();
        let (softmax, p, correction) =
            RunningSoftmax { max, sum }.add(block.scores(s), scale, rescale);
        o.wait();
        values.release();
        correction.apply(&o);
        (p.operand(), rings.v.wait(), softmax.max, softmax.sum)
    };
    let start = (p.operand::<T>(), rings.v.wait(), softmax.max, softmax.sum);
    let (p, values, max, sum) = blocks.fold(start, visit);
    // The load role can fill the slot with the next tile's queries.
    q_slot.release();
    o.mma(&p, &consumer.values(&values));
    let o = o.into_frag();
    values.release();
    let (factor, log) = RunningSoftmax { max, sum }.finish(scale, consumer.sink());
    (o.rescale(&factor), log)
}

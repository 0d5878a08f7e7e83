//! The scores of a block beside the values of the block before: while a consumer computes the softmax of
//! one block, its tensor cores still have the product of the last one.

use crate::attention::context::{Consumer, Half16, ROWS};
use crate::attention::softmax::RunningSoftmax;
use warpline_ir::builder::*;

/// Computes O and the logarithms of a consumer's rows.
pub(super) fn tile<T: Half16>(consumer: &Consumer<'_, T>) -> (Frag, RowVector) {
    let context = consumer.context;
    let (rings, scale, keys) = (context.rings, context.scale, context.config.tile_keys);
    let q_slot = rings.q.wait();
    let q = consumer.queries(&q_slot);
    let o = Acc::new(ROWS, context.class.cols_v);
    let key_slot = rings.k.wait();
    let s = Acc::new(ROWS, keys);
    s.mma(&q, &consumer.keys(&key_slot));
    let s = s.into_frag();
    key_slot.release();
    let (softmax, p) = RunningSoftmax::start(consumer.mask(s, 0u32.reg()), scale);
    type State<T> = (
        RegOperand<T, Natural>,
        Slot<Tile<T>, Consuming>,
        RowVector,
        RowVector,
    );
    let block = |(p, values, max, sum): State<T>, mask: &dyn Fn(Frag) -> Frag| -> State<T> {
        let key_slot = rings.k.wait();
        let s = Acc::new(ROWS, keys);
        s.mma(&q, &consumer.keys(&key_slot));
        o.mma(&p, &consumer.values(&values));
        let s = s.into_frag();
        key_slot.release();
        let (softmax, p, correction) = RunningSoftmax { max, sum }.add(mask(s), scale);
        o.wait();
        values.release();
        o.rescale(&correction);
        (p.operand(), rings.v.wait(), softmax.max, softmax.sum)
    };
    let start = (p.operand::<T>(), rings.v.wait(), softmax.max, softmax.sum);
    let masked = steps(consumer.blocks.masked)
        .fold(start, |i, state| block(state, &|s| consumer.mask(s, i + 1)));
    let full = steps(consumer.blocks.full).fold(masked, |_, state| block(state, &|s| s));
    let (p, values, max, sum) = full;
    // The load role can fill the slot with the next tile's queries.
    q_slot.release();
    o.mma(&p, &consumer.values(&values));
    let o = o.into_frag();
    values.release();
    let (factor, log) = RunningSoftmax { max, sum }.finish(scale);
    (o.rescale(&factor), log)
}

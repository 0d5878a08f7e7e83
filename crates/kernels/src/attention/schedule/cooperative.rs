//! Scores, softmax and values, block by block. Consumers overlap each other: while one computes its
//! softmax, another one multiplies.

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
    let scores = || {
        let slot = rings.k.wait();
        let s = Acc::new(ROWS, keys);
        s.mma(&q, &consumer.keys(&slot));
        let s = s.into_frag();
        slot.release();
        s
    };
    let multiply = |p: &Frag| {
        let slot = rings.v.wait();
        o.mma(&p.operand::<T>(), &consumer.values(&slot));
        o.wait();
        slot.release();
    };
    let (softmax, p) = RunningSoftmax::start(consumer.mask(scores(), 0u32.reg()), scale);
    multiply(&p);
    let block = |s: Frag, (max, sum): (RowVector, RowVector)| {
        let (softmax, p, correction) = RunningSoftmax { max, sum }.add(s, scale);
        o.rescale(&correction);
        multiply(&p);
        (softmax.max, softmax.sum)
    };
    let start = (softmax.max, softmax.sum);
    let masked = steps(consumer.blocks.masked).fold(start, |i, state| {
        block(consumer.mask(scores(), i + 1), state)
    });
    let (max, sum) = steps(consumer.blocks.full).fold(masked, |_, state| block(scores(), state));
    q_slot.release();
    let (factor, log) = RunningSoftmax { max, sum }.finish(scale);
    (o.into_frag().rescale(&factor), log)
}

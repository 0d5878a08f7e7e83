//! Online softmax: the running maximum and sum of each row.
//!
//! With `m` the maximum of all scores so far, the sum of exponentials and the accumulated values are
//! relative to `m`. A block with a larger maximum `m'` scales both by `2^(scale · (m − m'))`. Scores are
//! multiplied by `scale`, which includes log₂ e, inside of the argument of exp2: one FMA per score.
//!
//! With [`Rescale::Lazy`] a row keeps `m` until the exponent of a score exceeds that of `m` by more than
//! [`MAX_LEAD`]. Probabilities are then at most `2^MAX_LEAD` instead of 1. They are floating-point numbers, so
//! that their relative rounding is the same, and sums in f32 are far from overflow: the error bound does not
//! change. The bits do.

use super::config::Rescale;
use warpline_ir::builder::*;

/// The base-2 exponent that a probability can have with lazy rescaling.
const MAX_LEAD: f32 = 8.0;

/// The maximum, and each lane's part of the sum, of every row.
pub(super) struct RunningSoftmax {
    pub(super) max: RowVector,
    pub(super) sum: RowVector,
}

/// The factors that rescale the accumulated values and sums to a new maximum.
pub(super) struct Correction {
    /// The factor of each row.
    factor: RowVector,
    /// Whether a row of the warp has a factor other than 1; it is not asked for if rows are always rescaled.
    is_needed: Option<Reg<bool>>,
}

impl Correction {
    /// Scales the accumulated values.
    #[track_caller]
    pub(super) fn apply(&self, o: &Acc) {
        match self.is_needed {
            None => o.rescale(&self.factor),
            Some(is_needed) => if_(is_needed, || o.rescale(&self.factor)),
        }
    }
}

/// Returns the maximum as the subtrahend of scores: 0 for a row without a visible key, whose maximum is
/// −∞.
fn finite(max: &RowVector) -> RowVector {
    max.map(|m| select(m.eq(f32::NEG_INFINITY), 0.0f32, m))
}

/// Returns the probabilities of scores, relative to their maximum.
fn probabilities(scores: Frag, max: &RowVector, scale: Reg<f32>) -> Frag {
    let subtrahend = finite(max).map(|m| m * scale);
    scores.zip_rows(&subtrahend, |s, m| exp2(s.fma(scale, -m)))
}

/// Returns the sum of each row within a lane.
fn lane_sums(p: &Frag) -> RowVector {
    p.row_reduce_partial(|x, y| x + y)
}

impl RunningSoftmax {
    /// Starts with the scores of the first block; returns their probabilities.
    #[track_caller]
    pub(super) fn start(scores: Frag, scale: Reg<f32>) -> (Self, Frag) {
        let max = scores.row_max();
        let p = probabilities(scores, &max, scale);
        let sum = lane_sums(&p);
        (Self { max, sum }, p)
    }

    /// Adds the scores of a block; returns their probabilities, and the correction of the accumulator and
    /// sums.
    #[track_caller]
    pub(super) fn add(
        self,
        scores: Frag,
        scale: Reg<f32>,
        rescale: Rescale,
    ) -> (Self, Frag, Correction) {
        let largest = self.max.zip(&scores.row_max(), |x, y| x.max(y));
        let (max, is_needed) = match rescale {
            Rescale::Always => (largest, None),
            Rescale::Lazy => {
                let mut is_kept = true.reg();
                let max = self.max.zip(&largest, |old, new| {
                    // False for a first maximum of −∞, and for NaN.
                    let keeps = ((new - old) * scale).le(MAX_LEAD);
                    is_kept = is_kept & keeps;
                    select(keeps, old, new)
                });
                (max, Some(any_lane(!is_kept)))
            }
        };
        let factor = self
            .max
            .zip(&finite(&max), |old, new| exp2((old - new) * scale));
        let p = probabilities(scores, &max, scale);
        let sum = self.sum.zip(&factor, |sum, by| sum * by);
        let sum = sum.zip(&lane_sums(&p), |x, y| x + y);
        (Self { max, sum }, p, Correction { factor, is_needed })
    }

    /// Returns the factor of the accumulated values, and the logarithm of the sum of exponentials. A row
    /// without a visible key has 0 and −∞. `sink` is the exponent of a score without a value.
    #[track_caller]
    pub(super) fn finish(self, scale: Reg<f32>, sink: Option<RowVector>) -> (RowVector, RowVector) {
        let sum = self.sum.reduce_lanes(|x, y| x + y);
        let Some(sink) = sink else {
            let factor = sum.map(|sum| select(sum.eq(0.0f32), 0.0f32, recip(sum)));
            let log = finite(&self.max).zip(&sum, |max, sum| logarithm(max * scale, sum));
            return (factor, log);
        };
        // Relative to the larger one of the maximum and the sink.
        let old = self.max.map(|max| max * scale);
        let max = finite(&old.zip(&sink, |max, sink| max.max(sink)));
        let correction = old.zip(&max, |old, new| exp2(old - new));
        let sum = sum.zip(&correction, |sum, by| sum * by);
        let of_sink = sink.zip(&max, |sink, max| exp2(sink - max));
        let sum = sum.zip(&of_sink, |sum, of_sink| sum + of_sink);
        let factor = sum.zip(&correction, |sum, by| {
            select(sum.eq(0.0f32), 0.0f32, recip(sum) * by)
        });
        (factor, max.zip(&sum, logarithm))
    }
}

/// Returns the natural logarithm of `sum · 2^max`.
fn logarithm(max: Reg<f32>, sum: Reg<f32>) -> Reg<f32> {
    (max + log2(sum)) * std::f32::consts::LN_2
}

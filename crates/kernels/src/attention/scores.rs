//! The scores of a block, from the product of Q and K to the softmax: softcap, bias and mask. And the sink.

use super::bias::{Bias, BiasPart, Values};
use super::config::Config;
use super::context::{Consumer, Half16};
use super::problem::{Class, Problem};
use super::workspace::ZEROS;
use warpline_family::error::FamilyError;
use warpline_family::plan::{Buffer, LaunchStep};
use warpline_family::tensor::TensorSpec;
use warpline_ir::builder::*;

/// The parameters of the scores.
#[derive(Clone, Copy)]
pub(super) struct ScoreRules {
    /// The factor from the scores to base-2 exponents, after the softcap.
    scale: Reg<f32>,
    /// The factor of the argument of the softcap's exponential.
    softcap: Option<Reg<f32>>,
    bias: Option<Bias>,
    sink: Option<Values>,
}

/// A block of keys.
pub(super) struct Block<'a, T> {
    consumer: &'a Consumer<'a, T>,
    index: Reg<u32>,
    is_masked: bool,
    bias: Option<BiasPart>,
}

impl ScoreRules {
    /// Declares the parameters.
    pub(super) fn declare(
        k: Builder,
        class: &Class,
        c: &Config,
        queries: Option<Reg<u32>>,
        keys: Reg<u32>,
    ) -> Self {
        let bias = class.bias.zip(queries);
        Self {
            scale: k.param("scale"),
            softcap: class.softcap.then(|| k.param("softcap")),
            bias: bias.map(|(bias, queries)| Bias::declare(k, bias, [queries, keys])),
            // Parts of the keys have no sink.
            sink: (class.sink.filter(|_| !c.is_split())).map(|ty| Values::declare(k, "sink", ty)),
        }
    }

    /// Binds the parameters.
    pub(super) fn bind(
        mut step: LaunchStep,
        p: &Problem,
        c: &Config,
        inputs: &[TensorSpec],
    ) -> Result<LaunchStep, FamilyError> {
        // tanh(x) = 1 − 2 / (1 + exp(2 x)).
        let scale = match p.softcap {
            None => p.scale(),
            Some(softcap) => {
                let softcap = f64::from(softcap);
                let factor = 2.0 * std::f64::consts::LOG2_E * p.scale() / softcap;
                step = step.scalar("softcap", factor as f32);
                softcap
            }
        };
        step = step.scalar("scale", (scale * std::f64::consts::LOG2_E) as f32);
        if p.sink.is_some() && !c.is_split() {
            step = step.pointer("sink", Buffer::named(inputs, "sink")?);
        }
        if p.bias.is_some() {
            let bias = Buffer::named(inputs, "bias")?.into();
            step = Bias::bind(step, p, bias, ZEROS);
        }
        Ok(step)
    }

    /// Returns the factor from the scores of [`Block::scores`] to base-2 exponents.
    pub(super) fn scale(&self) -> Reg<f32> {
        match self.bias {
            None => self.scale,
            // The bias is added to exponents.
            Some(_) => 1.0f32.reg(),
        }
    }

    /// Returns the function from a head to the base-2 exponent of its sink.
    pub(super) fn sink(&self) -> Option<impl Fn(Reg<u32>) -> Reg<f32>> {
        let sink = self.sink?;
        Some(move |head| sink.load(head) * std::f32::consts::LOG2_E)
    }
}

impl<'a, T: Half16> Block<'a, T> {
    /// Starts to load what the scores of a block need.
    #[track_caller]
    pub(super) fn new(consumer: &'a Consumer<'a, T>, index: Reg<u32>, is_masked: bool) -> Self {
        let context = consumer.context;
        let keys = context.config.tile_keys;
        let (tile, query) = (&consumer.tile, consumer.first_query);
        let load = |bias: Bias| bias.load([tile.batch, tile.head], query, (index * keys, keys));
        Self {
            consumer,
            index,
            is_masked,
            bias: context.rules.bias.map(load),
        }
    }

    /// Returns the scores of a product.
    #[track_caller]
    pub(super) fn scores(self, product: Frag) -> Frag {
        let rules = &self.consumer.context.rules;
        let mut scores = product;
        if let Some(factor) = rules.softcap {
            scores = scores.map(|s| recip(exp2(s * factor) + 1.0f32).fma(-2.0f32, 1.0f32));
        }
        if let Some(bias) = &self.bias {
            scores = bias.add(scores, rules.scale);
        }
        if !self.is_masked {
            return scores;
        }
        let keys = self.consumer.context.config.tile_keys;
        let first_key = self.index * keys;
        let is_visible = |at: FragCoord| {
            let (query, key) = (self.consumer.row(at.row).query, first_key + at.col);
            (self.consumer.visibility).is_visible(query, key, keys)
        };
        scores.mask(is_visible, f32::NEG_INFINITY)
    }
}

//! The compiled-in part of a kernel.

use super::config::Config;
use super::schedule::scale_words;
use super::units::OUTPUTS;
use crate::gemm::Activation;

/// The weights of a kernel, and the outputs that it computes from their accumulators.
///
/// The 64 accumulator rows of a consumer come from two sets of 32 weight rows, *upper* and *lower*, in
/// alternating blocks of eight. So one thread holds both accumulators of a pair.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Outputs {
    /// Two weights: a gate (upper) and an up projection (lower). An output combines one row of each.
    Gated(Activation),
    /// One weight: upper and lower are 64 consecutive rows, and each row is an output.
    Linear {
        /// Adds a bias.
        bias: bool,
    },
}

impl Outputs {
    /// Returns the number of weight tensors.
    pub(crate) fn weights(self) -> u32 {
        match self {
            Outputs::Gated(_) => 2,
            Outputs::Linear { .. } => 1,
        }
    }

    /// Returns the columns of C for each accumulator pair.
    pub(crate) fn per_pair(self) -> u32 {
        2 / self.weights()
    }

    /// Returns the rows of one weight in a slot, which are the columns of C in a tile; `pairs` is the
    /// number of accumulator pairs of a token in a tile.
    pub(crate) fn weight_rows(self, pairs: u32) -> u32 {
        pairs * self.per_pair()
    }

    /// Returns the distance of the lower rows from the upper rows in a slot.
    pub(crate) fn lower_rows(self, pairs: u32) -> u32 {
        match self {
            Outputs::Gated(_) => pairs,
            Outputs::Linear { .. } => OUTPUTS,
        }
    }

    /// Returns the distance in words of the lower rows' scales from those of the upper rows.
    pub(crate) fn lower_scale_words(self, config: &Config) -> u32 {
        match self {
            Outputs::Gated(_) => scale_words(config.schedule.tile_n(), config.schedule.panels()),
            // 32 rows further in a block of 128 rows, whose words are four apart in each row of 32.
            Outputs::Linear { .. } => 1,
        }
    }

    /// Returns the words of weight scales in a slot.
    pub(crate) fn scale_words(self, config: &Config) -> u32 {
        let rows = self.weight_rows(config.schedule.tile_n());
        self.weights() * scale_words(rows, config.schedule.panels())
    }
}

/// Everything that is compiled into a kernel, except the element type of A.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KernelSpec {
    /// The config; its grid is not compiled in.
    pub(crate) config: Config,
    /// The weights and the outputs.
    pub(crate) outputs: Outputs,
    /// The parameters that hold tensor scales.
    pub(crate) tensor_scales: &'static [&'static str],
    /// Does the kernel load the codes of A?
    pub(crate) a_is_coded: bool,
    /// Are weights and scales PDL-safe: does no earlier launch of the plan write them?
    pub(crate) weights_are_pdl_safe: bool,
    /// Is K a multiple of 64, so that no block reaches past K?
    pub(crate) has_whole_blocks: bool,
}

impl KernelSpec {
    /// Returns the rows of one weight in a slot.
    pub(super) fn weight_rows(&self) -> u32 {
        self.outputs.weight_rows(self.config.schedule.tile_n())
    }

    /// Returns the distance of the lower rows from the upper rows in a slot.
    pub(super) fn lower_rows(&self) -> u32 {
        self.outputs.lower_rows(self.config.schedule.tile_n())
    }

    /// Returns the first upper row of a consumer in a slot.
    pub(super) fn first_row(&self, consumer: u32) -> u32 {
        self.outputs.per_pair() * self.config.schedule.first_row(consumer)
    }
}

//! The compiled-in part of a kernel.

use super::config::Config;
use super::scale_boxes::ScaleBoxes;
use super::schedule::Schedule;
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

/// From this many tokens in a tile on, MMAs or the loads of A take longer than the decoding in natural order.
const NATURAL_ORDER_TOKENS: u32 = 128;

impl Outputs {
    /// Does an earlier launch widen A to 16 bits, or permute its K?
    ///
    /// Decoding with K in the order of the codes costs least, and needs a permuted A. A linear layer with
    /// large tiles takes A as it is: its MMAs hide the longer decoding.
    pub(crate) fn needs_widened_a(self, config: &Config) -> bool {
        !matches!(config.schedule, Schedule::Warps(_)) && !self.decodes_in_natural_order(config)
    }

    /// Do the consumers decode weights with K in the order of A?
    pub(super) fn decodes_in_natural_order(self, config: &Config) -> bool {
        match self {
            Outputs::Gated(_) => false,
            Outputs::Linear { .. } => config.tile_m >= NATURAL_ORDER_TOKENS,
        }
    }

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
}

/// Everything that is compiled into a kernel, except the element type of A.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KernelSpec {
    /// The config; its grid is not compiled in.
    pub(crate) config: Config,
    /// The weights and the outputs.
    pub(crate) outputs: Outputs,
    /// How scales are loaded.
    pub(crate) scale_boxes: ScaleBoxes,
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
    /// Does the kernel read only tensors that no earlier launch of the plan writes?
    pub(super) fn is_single_launch(&self) -> bool {
        self.weights_are_pdl_safe && !self.needs_widened_a()
    }

    /// Does an earlier launch widen or permute A?
    fn needs_widened_a(&self) -> bool {
        self.outputs.needs_widened_a(&self.config)
    }

    /// Returns the rows of one weight in a slot.
    pub(super) fn weight_rows(&self) -> u32 {
        self.outputs.weight_rows(self.config.schedule.tile_n())
    }

    /// Returns the distance of the lower rows from the upper rows in a slot.
    pub(super) fn lower_rows(&self) -> u32 {
        self.outputs.lower_rows(self.config.schedule.tile_n())
    }

    /// Returns the words in a slot of the scales of `rows` rows.
    pub(super) fn scale_words(&self, rows: u32) -> u32 {
        self.scale_boxes.words(rows, self.config.schedule.panels())
    }

    /// Returns the words of weight scales in a slot.
    pub(super) fn weight_scale_words(&self) -> u32 {
        self.outputs.weights() * self.scale_words(self.weight_rows())
    }

    /// Returns the distance in words of the lower rows' scales from those of the upper rows.
    pub(super) fn lower_scale_words(&self) -> u32 {
        match self.outputs {
            Outputs::Gated(_) => self.scale_words(self.weight_rows()),
            Outputs::Linear { .. } => {
                let panels = self.config.schedule.panels();
                self.scale_boxes.row_words(self.lower_rows(), panels)
            }
        }
    }

    /// Returns the first upper row of a consumer in a slot.
    pub(super) fn first_row(&self, consumer: u32) -> u32 {
        self.outputs.per_pair() * self.config.schedule.first_row(consumer)
    }
}

//! The compiled-in part of a kernel.

use super::config::Config;
use crate::gemm::Activation;

/// Everything that is compiled into a kernel, except the element type of A.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct KernelSpec {
    /// The config; its grid is not compiled in.
    pub(super) config: Config,
    /// The function applied to the gate.
    pub(super) gate: Activation,
    /// The parameters that hold tensor scales.
    pub(super) tensor_scales: &'static [&'static str],
    /// Does the kernel load the codes of A?
    pub(super) a_is_coded: bool,
    /// Are weights and scales PDL-safe: does no earlier launch of the plan write them?
    pub(super) weights_are_pdl_safe: bool,
    /// Is K a multiple of 64, so that no block reaches past K?
    pub(super) has_whole_blocks: bool,
}

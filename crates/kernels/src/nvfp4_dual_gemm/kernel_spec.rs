//! Everything that is compiled into a kernel.

use super::config::Config;
use crate::gemm::Activation;

/// Everything that is compiled in, beside the element type of A.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct KernelSpec {
    /// The config; its grid is of no matter.
    pub(super) config: Config,
    /// The function of the gate.
    pub(super) gate: Activation,
    /// The parameters that multiply whole tensors.
    pub(super) tensor_scales: &'static [&'static str],
    /// Is A loaded in codes?
    pub(super) a_is_coded: bool,
    /// Are weights and their scales safe before the dependency wait: does no step of the plan
    /// write them?
    pub(super) is_settled: bool,
    /// Is K a multiple of 64, so that no scale lies behind it?
    pub(super) is_whole: bool,
}

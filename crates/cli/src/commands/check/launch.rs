//! The launch of `check FAMILY --launch`, on the simulator with every race check on.

use crate::errors::Failure;
use crate::progress::Bar;
use warpline::{Device, RunOptions, Timing};
use warpline_kernels::AnyWork;

/// Runs the work; what races, in shared or in global memory, is refused.
pub(super) fn run(work: &dyn AnyWork) -> Result<(), Failure> {
    let bar = Bar::new();
    let mut options = RunOptions::default();
    options.timing = Timing::Late;
    options.progress = Some(bar.listener());
    let outcome = warpline::run(work, &Device::cpu(), &options)?;
    match outcome.passed() {
        true => Ok(()),
        false => {
            let text = "the launch gives wrong results: `warpline run` shows them";
            Err(Failure::refused("wrong-results", text))
        }
    }
}

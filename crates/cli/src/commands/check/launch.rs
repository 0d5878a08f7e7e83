//! `check FAMILY --launch`: one launch on the CPU executor with all race checks.

use crate::errors::Failure;
use crate::progress::Bar;
use warpline::{Device, RunOptions, Timing};
use warpline_kernels::AnyWorkload;

/// Runs the workload; fails on a data race in shared or global memory, or a wrong result.
pub(super) fn run(work: &dyn AnyWorkload) -> Result<(), Failure> {
    let bar = Bar::new();
    let mut options = RunOptions::default();
    options.timing = Timing::Late;
    options.progress = Some(bar.listener());
    let outcome = warpline::run(work, &Device::cpu(), &options)?;
    match outcome.passed() {
        true => Ok(()),
        false => {
            let text = "the launch computes a wrong result\nhelp: `warpline run` with the same options shows the elements";
            Err(Failure::bad_result("wrong-result", text))
        }
    }
}

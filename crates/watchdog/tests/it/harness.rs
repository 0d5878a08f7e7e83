//! Test support: launches of watched kernels on the executor.

use warpline_cpu::{GlobalMemory, Options, RunError, run};
use warpline_ir::{Arg, Kernel, Launch};
use warpline_watchdog::{Hang, TimeLimits, WatchedKernel, watch};

/// Limits in executor steps; the executor's clock counts statements.
pub(crate) const SHORT: TimeLimits = TimeLimits {
    wait_ns: 40_000,
    exit_ns: 40_000,
    drain_ns: 40_000,
};

/// Iterates over all timings; `random` with several seeds.
pub(crate) fn timings() -> impl Iterator<Item = Options> {
    warpline_testkit::timings::timings(4)
}

/// Adds a watchdog to a kernel.
pub(crate) fn watched(kernel: &Kernel, limits: &TimeLimits) -> WatchedKernel {
    watch(kernel, limits).unwrap_or_else(|e| panic!("{}: {e}", kernel.name))
}

/// The result of a watched launch.
pub(crate) struct WatchedRun {
    pub(crate) result: Result<(), Box<RunError>>,
    pub(crate) has_timed_out: bool,
    pub(crate) hang: Hang,
}

/// Launches a watched kernel with the arguments of the original.
pub(crate) fn launch(
    watched: &WatchedKernel,
    mut launch: Launch,
    memory: &mut GlobalMemory,
    options: &Options,
) -> WatchedRun {
    let grid = launch.grid;
    let bytes = watched.status_bytes(grid);
    let status = memory.alloc_from(&vec![0; bytes], "status");
    let abort = memory.alloc_from(&[0; WatchedKernel::ABORT_BYTES], "abort");
    launch.args.extend([status, abort].map(Arg::Pointer));
    let result = run(&watched.kernel, &launch, memory, options).map(|_| ());
    let words = memory
        .read(status, bytes)
        .expect("status words are written whole");
    let words: Vec<u64> = words
        .as_chunks()
        .0
        .iter()
        .map(|w| u64::from_le_bytes(*w))
        .collect();
    WatchedRun {
        result,
        has_timed_out: watched.has_timed_out(&words),
        hang: watched.read_hang(&words, grid),
    }
}

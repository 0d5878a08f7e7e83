//! What the tests share: watched launches on the executor.

use warpline_cpu::{Memory, Options, RunError, run};
use warpline_ir::{Arg, Kernel, Launch};
use warpline_watchdog::{Hang, Limits, Watched, watch};

/// Limits in steps of the executor, whose clock counts statements.
pub(crate) const SHORT: Limits = Limits {
    wait: 40_000,
    leave: 40_000,
    linger: 40_000,
};

/// Every timing; random with some seeds.
pub(crate) fn timings() -> impl Iterator<Item = Options> {
    warpline_testkit::timings::timings(4)
}

/// Adds a watchdog to a kernel.
pub(crate) fn watched(kernel: &Kernel, limits: &Limits) -> Watched {
    watch(kernel, limits).unwrap_or_else(|e| panic!("{}: {e}", kernel.name))
}

/// What came of a watched launch.
pub(crate) struct Ended {
    pub(crate) result: Result<(), Box<RunError>>,
    pub(crate) gave_up: bool,
    pub(crate) hang: Hang,
}

/// Launches a watched kernel with the arguments of the one it was made from.
pub(crate) fn launch(
    watched: &Watched,
    mut launch: Launch,
    memory: &mut Memory,
    options: &Options,
) -> Ended {
    let grid = launch.grid;
    let bytes = watched.notes_bytes(grid);
    let notes = memory.alloc_from(&vec![0; bytes], "notes");
    let abort = memory.alloc_from(&[0; Watched::ABORT_BYTES], "abort");
    launch.args.extend([notes, abort].map(Arg::Pointer));
    let result = run(&watched.kernel, &launch, memory, options).map(|_| ());
    let words = memory.read(notes, bytes).expect("notes are written whole");
    let words: Vec<u64> = words
        .as_chunks()
        .0
        .iter()
        .map(|w| u64::from_le_bytes(*w))
        .collect();
    Ended {
        result,
        gave_up: watched.gave_up(&words),
        hang: watched.hang(&words, grid),
    }
}

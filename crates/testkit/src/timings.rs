//! The executor timings under which a kernel runs.

use warpline_cpu::{Options, Timing};

/// Returns the options of every timing: eager, late, and random with `seeds` seeds.
pub fn timings(seeds: u64) -> impl Iterator<Item = Options> {
    let seeded = |seed| Options {
        seed,
        ..Options::with_timing(Timing::Random)
    };
    [
        Options::with_timing(Timing::Eager),
        Options::with_timing(Timing::Late),
    ]
    .into_iter()
    .chain((0..seeds).map(seeded))
}

/// Returns the options of the timings that check races: late, and random with `seeds` seeds.
pub fn strict(seeds: u64) -> impl Iterator<Item = Options> {
    timings(seeds).filter(|o| o.timing != Timing::Eager)
}

//! What it is measured at.

use super::problem::{Layout, Locations, Problem};
use super::{DETR, SEED};

/// The batch of small maps in both layouts; the encoder and the decoder of
/// Deformable-DETR. Where a query has its own place, also with points around it.
pub(super) fn problems() -> Vec<(&'static str, Problem)> {
    let standard = Problem::new(48, 20522, 1, 8, &SEED);
    let halo = Problem {
        layout: Layout::Halo,
        ..standard.clone()
    };
    let detr = |queries| Problem::new(2, queries, 8, 4, &DETR);
    let both = |uniform: Problem| {
        let grid = Problem {
            locations: Locations::Grid,
            ..uniform.clone()
        };
        [uniform, grid]
    };
    let all = [
        both(halo),
        both(standard),
        both(detr(22223)),
        [detr(300), detr(900)],
    ];
    all.into_iter().flatten().map(|p| ("msda", p)).collect()
}

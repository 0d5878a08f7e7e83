//! The problems that the family is measured at.

use super::problem::{Layout, Locations, Problem};

/// The levels of the encoder of Deformable-DETR.
pub(super) const DETR: [[u32; 2]; 4] = [[100, 167], [50, 84], [25, 42], [13, 21]];
/// The levels of a batch of 48 small maps.
const SEED: [[u32; 2]; 4] = [[92, 160], [46, 80], [23, 40], [12, 20]];

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

//! Benchmark problems of the family.

use super::problem::{LevelLayout, PointDistribution, Problem};

/// The levels of the Deformable-DETR encoder.
pub(super) const DETR: [[u32; 2]; 4] = [[100, 167], [50, 84], [25, 42], [13, 21]];
/// The levels of a batch of 48 small feature maps.
const SMALL_MAPS: [[u32; 2]; 4] = [[92, 160], [46, 80], [23, 40], [12, 20]];

/// Returns the batch of small maps in both layouts, and the encoder and decoder of Deformable-DETR.
/// Problems with one query per pixel also come with points near the query.
pub(super) fn problems() -> Vec<(&'static str, Problem)> {
    let standard = Problem::new(48, 20522, 1, 8, &SMALL_MAPS);
    let halo = Problem {
        layout: LevelLayout::Halo,
        ..standard.clone()
    };
    let detr = |queries| Problem::new(2, queries, 8, 4, &DETR);
    let both_distributions = |uniform: Problem| {
        let grid = Problem {
            locations: PointDistribution::Grid,
            ..uniform.clone()
        };
        [uniform, grid]
    };
    let all = [
        both_distributions(halo),
        both_distributions(standard),
        both_distributions(detr(22223)),
        [detr(300), detr(900)],
    ];
    all.into_iter().flatten().map(|p| ("msda", p)).collect()
}

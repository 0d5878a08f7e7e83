//! Random problems of the documented domain.

use super::problem::{
    INDEX_LIMIT, LevelLayout, MAX_EXTENTS, MAX_LEVEL_PIXELS, PointDistribution, Problem,
};
use warpline_family::float::FloatType;
use warpline_family::numbers::Random;

/// Draws a problem: 1 to 8 levels, 1 to 16 points, channels in multiples of 8, and any batch,
/// queries and heads whose products stay below [`INDEX_LIMIT`].
pub(super) fn draw(random: &mut Random) -> Problem {
    let [max_channels, max_levels, max_points] = MAX_EXTENTS;
    let layout = random.pick(LevelLayout::ALL);
    let dtype = random.pick(FloatType::ALL);
    let channels = 8 * (1 + random.below(u64::from(max_channels) / 8) as u32);
    let levels = 1 + random.below(max_levels.into());
    let mut shapes: Vec<[u32; 2]> = (0..levels).map(|_| level(random, layout)).collect();
    let pixel_bytes = u64::from(channels) * dtype.dtype().bytes() as u64;
    // One head needs less than the limit.
    while stored_pixels(&shapes, layout) * pixel_bytes >= INDEX_LIMIT {
        let largest = shapes.iter_mut().flatten().max();
        if let Some(side) = largest {
            *side = side.div_ceil(2);
        }
    }
    let pixels = stored_pixels(&shapes, layout);
    let heads = random.extent(1..=(INDEX_LIMIT - 1) / (pixels * pixel_bytes));
    // The number of heads of most models.
    let heads = if random.percent(60) {
        heads.min(1 + random.below(16))
    } else {
        heads
    };
    // Query order `strips` needs one query per pixel.
    let max_queries = (INDEX_LIMIT - 1) / heads;
    let queries = match random.percent(25) {
        true => pixels.min(max_queries),
        false => random.extent(0..=max_queries),
    };
    let batch = random.extent(0..=max_queries / queries.max(1));
    Problem {
        point_dtype: random.percent(40).then(|| random.pick(FloatType::ALL)),
        locations: random.pick(PointDistribution::ALL),
        spatial_size: random.percent(20).then_some(pixels as u32),
        levels: random.percent(20).then_some(levels as u32),
        im2col_step: (random.percent(20)).then(|| random.extent(0..=u32::MAX.into()) as u32),
        channels,
        dtype,
        layout,
        ..Problem::new(
            batch as u32,
            queries as u32,
            heads as u32,
            1 + random.below(max_points.into()) as u32,
            &shapes,
        )
    }
}

/// Draws height and width of a level: a single row, column or pixel, small, or as large as allowed.
fn level(random: &mut Random, layout: LevelLayout) -> [u32; 2] {
    let border = u64::from(layout.border());
    let max_side = if random.percent(70) {
        200
    } else {
        MAX_LEVEL_PIXELS / (1 + border) - border
    };
    let long = random.extent(1..=max_side);
    let short = random.extent(1..=(MAX_LEVEL_PIXELS / (long + border) - border).clamp(1, 2048));
    let sides = [long as u32, short as u32];
    if random.percent(50) {
        sides
    } else {
        [sides[1], sides[0]]
    }
}

/// Returns the pixels of all levels in memory.
fn stored_pixels(shapes: &[[u32; 2]], layout: LevelLayout) -> u64 {
    let border = u64::from(layout.border());
    let pixels = |shape: &[u32; 2]| {
        shape
            .map(|side| u64::from(side) + border)
            .iter()
            .product::<u64>()
    };
    shapes.iter().map(pixels).sum()
}

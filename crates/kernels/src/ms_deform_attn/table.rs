//! The test table: small problems that reach every path.

use super::config::{Choice, QueryOrder, RecordPath, Schedule, WorkSplit};
use super::lanes::CornerReads;
use super::problem::{LevelLayout, PointDistribution, Problem};
use warpline_family::family::TestCase;
use warpline_family::float::FloatType;

/// Returns small problems.
pub(super) fn cases() -> Vec<TestCase<Problem, Choice>> {
    let mut cases = Vec::new();
    let mut add = |problem: Problem, choice: Choice| cases.push(TestCase { problem, choice });
    let small = |warps: u32| Choice {
        warps: Some(warps),
        ctas: Some(3),
        parts: Some(2),
        ..Choice::default()
    };
    let levels = [[9, 7], [5, 4], [1, 1]];
    // Heuristic selection.
    add(
        Problem::new(2, 77, 2, 4, &[[16, 12], [8, 6], [4, 3]]),
        Choice::default(),
    );
    // One resident level.
    add(Problem::new(2, 7, 1, 4, &[[6, 5]]), Choice::default());
    // No query, one query, full and ragged rounds.
    for (queries, resident_levels) in [(0, 2), (1, 0), (8, 2), (9, 2), (33, 0)] {
        let choice = Choice {
            resident_levels: Some(resident_levels),
            ..small(1)
        };
        add(Problem::new(2, queries, 1, 8, &levels), choice);
    }
    // Element types, layouts, corner reads, heads.
    let readers = [
        (1, CornerReads::Pair),
        (2, CornerReads::Pixel),
        (3, CornerReads::Pixel),
    ];
    for (i, dtype) in FloatType::ALL.iter().copied().enumerate() {
        for (j, layout) in [LevelLayout::Standard, LevelLayout::Halo]
            .into_iter()
            .enumerate()
        {
            let (heads, reads) = readers[(i + j) % readers.len()];
            let problem = Problem {
                dtype,
                layout,
                locations: PointDistribution::Grid,
                ..Problem::new(1, 37, heads, 4, &levels)
            };
            let choice = Choice {
                reads: Some(reads),
                ..small(2)
            };
            add(problem, choice);
        }
    }
    // Channels from one lane to several slices; points that do not divide evenly.
    for (channels, points, dtype, reads) in [
        (8, 1, FloatType::F16, CornerReads::Pixel),
        (24, 3, FloatType::F16, CornerReads::Pair),
        (64, 5, FloatType::F16, CornerReads::Pixel),
        (256, 2, FloatType::F16, CornerReads::Pixel),
        (256, 1, FloatType::F32, CornerReads::Pair),
        (40, 16, FloatType::Bf16, CornerReads::Pair),
    ] {
        let problem = Problem {
            channels,
            dtype,
            point_dtype: Some(FloatType::F32),
            ..Problem::new(1, 19, 2, points, &[[6, 5], [1, 3]])
        };
        let choice = Choice {
            reads: Some(reads),
            ..small(1)
        };
        add(problem, choice);
    }
    // Resident levels of several heads; eight levels.
    for heads in [1, 4] {
        let choice = Choice {
            resident_levels: Some(2),
            points_in_flight: Some(1),
            promote_every: Some(if heads == 1 { 4 } else { 2 }),
            ..small(2)
        };
        add(
            Problem::new(2, 21, heads, 2, &[[16, 12], [11, 9], [3, 2]]),
            choice,
        );
    }
    let eight_levels = [
        [7, 9],
        [6, 8],
        [5, 7],
        [4, 6],
        [3, 5],
        [2, 4],
        [1, 3],
        [2, 1],
    ];
    add(Problem::new(1, 11, 2, 3, &eight_levels), small(1));
    // Record paths; query orders.
    for (heads, points_per_record, prefetch) in [(1, 1, true), (2, 2, true), (1, 1, false)] {
        let choice = Choice {
            points_per_record: Some(points_per_record),
            prefetch: Some(prefetch),
            ..small(2)
        };
        add(Problem::new(2, 21, heads, 8, &[[9, 7], [5, 4]]), choice);
    }
    let roles = |warps: u32, producers: u32, stages: u32| Choice {
        schedule: Some(Schedule::Specialized),
        producers: Some(producers),
        stages: Some(stages),
        ..small(warps)
    };
    for (i, producers) in (1..=4).enumerate() {
        let (heads, queries) = [(1, 129), (2, 0), (2, 33), (1, 1)][i];
        let problem = Problem {
            layout: [LevelLayout::Halo, LevelLayout::Standard][i % 2],
            ..Problem::new(2, queries, heads, 8, &levels)
        };
        let choice = Choice {
            record_path: Some([RecordPath::Shared, RecordPath::Shuffles][i / 2]),
            resident_levels: Some([1, 0, 2, 0][i]),
            ..roles([8, 8, 16, 24][i], producers, 2 + i as u32 % 3)
        };
        add(problem, choice);
    }
    for (i, (points, dtype, tma_points)) in [
        (3, FloatType::F16, false),
        (16, FloatType::F32, true),
        (5, FloatType::Bf16, false),
        (4, FloatType::F16, false),
    ]
    .into_iter()
    .enumerate()
    {
        let problem = Problem {
            dtype,
            channels: [32, 24, 128, 32][i],
            ..Problem::new(1, 45, [1, 1, 2, 8][i], points, &levels)
        };
        let choice = Choice {
            tma_points: Some(tma_points),
            record_path: Some([RecordPath::Shuffles, RecordPath::Shared][i % 2]),
            ..roles(8, 2, 2)
        };
        add(problem, choice);
    }
    // One range per CTA across batch boundaries; CTAs without work.
    for (queries, batch, ctas) in [(0, 3, 2), (1, 3, 2), (33, 5, 3), (9, 2, 7)] {
        for schedule in [Schedule::Plain, Schedule::Specialized] {
            let choice = Choice {
                schedule: Some(schedule),
                work_split: Some(WorkSplit::Ranges),
                ctas: Some(ctas),
                warps: Some(if schedule == Schedule::Plain { 2 } else { 8 }),
                resident_levels: Some(1),
                ..Choice::default()
            };
            add(Problem::new(batch, queries, 2, 4, &levels), choice);
        }
    }
    for (layout, queries, strip) in [
        (LevelLayout::Standard, 84, 4),
        (LevelLayout::Halo, 150, 8),
        (LevelLayout::Halo, 150, 1),
    ] {
        let problem = Problem {
            layout,
            locations: PointDistribution::Grid,
            ..Problem::new(1, queries, 1, 4, &levels)
        };
        let choice = Choice {
            query_order: Some(QueryOrder::Strips),
            strip_width: Some(strip),
            ..small(2)
        };
        add(problem, choice);
    }
    // Records of one, two and four points, no narrow level; `setmaxnreg`.
    for (points_per_record, warps) in [(1, 9), (2, 20), (4, 20)] {
        let choice = Choice {
            query_order: Some(QueryOrder::Strips),
            strip_width: Some(4),
            points_per_record: Some(points_per_record),
            ..roles(warps, 2, 2)
        };
        let levels = [[9, 7], [5, 4], [3, 2], [2, 2]];
        add(Problem::new(2, 93, 1, 8, &levels), choice);
    }
    // Boxes: element types, channels that fill part of a box or several boxes, both query orders.
    for (i, (dtype, channels, points, queries)) in [
        (FloatType::F16, 32, 8, 45),
        (FloatType::F32, 24, 3, 1),
        (FloatType::Bf16, 128, 16, 9),
        (FloatType::F16, 8, 1, 0),
        (FloatType::F16, 32, 4, 84),
    ]
    .into_iter()
    .enumerate()
    {
        let problem = Problem {
            dtype,
            channels,
            layout: [LevelLayout::Halo, LevelLayout::Standard][i % 2],
            ..Problem::new(2, queries, [1, 2, 1, 3, 1][i], points, &levels)
        };
        let problem = Problem {
            layout: if i == 4 {
                LevelLayout::Standard
            } else {
                problem.layout
            },
            ..problem
        };
        let choice = Choice {
            schedule: Some(Schedule::Boxes),
            stages: Some(2 + i as u32 % 3),
            query_order: (i == 4).then_some(QueryOrder::Strips),
            ..small([4, 6, 2, 8, 4][i])
        };
        add(problem, choice);
    }
    cases
}

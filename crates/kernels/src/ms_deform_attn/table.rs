//! The test table: small problems that reach every path.

use super::config::{Choice, Form, Handed, Order, Share};
use super::lanes::Reads;
use super::problem::{Layout, Locations, Problem};
use warpline_family::family::Case;
use warpline_family::float::Float;

/// Small problems.
pub(super) fn cases() -> Vec<Case<Problem, Choice>> {
    let mut cases = Vec::new();
    let mut add = |problem: Problem, choice: Choice| cases.push(Case { problem, choice });
    let small = |warps: u32| Choice {
        warps: Some(warps),
        ctas: Some(3),
        parts: Some(2),
        ..Choice::default()
    };
    let levels = [[9, 7], [5, 4], [1, 1]];
    // What the chooser makes of it.
    add(
        Problem::new(2, 77, 2, 4, &[[16, 12], [8, 6], [4, 3]]),
        Choice::default(),
    );
    // One level, which is kept.
    add(Problem::new(2, 7, 1, 4, &[[6, 5]]), Choice::default());
    // Nothing to do, one query, whole and ragged rounds.
    for (queries, held) in [(0, 2), (1, 0), (8, 2), (9, 2), (33, 0)] {
        let choice = Choice {
            held: Some(held),
            ..small(1)
        };
        add(Problem::new(2, queries, 1, 8, &levels), choice);
    }
    // Types, layouts, reads, heads.
    let seats = [(1, Reads::Pair), (2, Reads::Pixel), (3, Reads::Pixel)];
    for (i, dtype) in Float::ALL.iter().copied().enumerate() {
        for (j, layout) in [Layout::Standard, Layout::Halo].into_iter().enumerate() {
            let (heads, reads) = seats[(i + j) % seats.len()];
            let problem = Problem {
                dtype,
                layout,
                locations: Locations::Grid,
                ..Problem::new(1, 37, heads, 4, &levels)
            };
            let choice = Choice {
                reads: Some(reads),
                ..small(2)
            };
            add(problem, choice);
        }
    }
    // Channels from one lane to several slices; points that do not divide.
    for (channels, points, dtype, reads) in [
        (8, 1, Float::F16, Reads::Pixel),
        (24, 3, Float::F16, Reads::Pair),
        (64, 5, Float::F16, Reads::Pixel),
        (256, 2, Float::F16, Reads::Pixel),
        (256, 1, Float::F32, Reads::Pair),
        (40, 16, Float::Bf16, Reads::Pair),
    ] {
        let problem = Problem {
            channels,
            dtype,
            point_dtype: Some(Float::F32),
            ..Problem::new(1, 19, 2, points, &[[6, 5], [1, 3]])
        };
        let choice = Choice {
            reads: Some(reads),
            ..small(1)
        };
        add(problem, choice);
    }
    // Levels that are kept of some heads; eight levels.
    for heads in [1, 4] {
        let choice = Choice {
            held: Some(2),
            ahead: Some(1),
            sums: Some(if heads == 1 { 4 } else { 2 }),
            ..small(2)
        };
        add(
            Problem::new(2, 21, heads, 2, &[[16, 12], [11, 9], [3, 2]]),
            choice,
        );
    }
    let eight = [
        [7, 9],
        [6, 8],
        [5, 7],
        [4, 6],
        [3, 5],
        [2, 4],
        [1, 3],
        [2, 1],
    ];
    add(Problem::new(1, 11, 2, 3, &eight), small(1));
    // How points come to those who gather; walks.
    for (heads, joined, prefetch) in [(1, 1, true), (2, 2, true), (1, 1, false)] {
        let choice = Choice {
            joined: Some(joined),
            prefetch: Some(prefetch),
            ..small(2)
        };
        add(Problem::new(2, 21, heads, 8, &[[9, 7], [5, 4]]), choice);
    }
    let roles = |warps: u32, producers: u32, stages: u32| Choice {
        form: Some(Form::Specialized),
        producers: Some(producers),
        stages: Some(stages),
        ..small(warps)
    };
    for (i, producers) in (1..=4).enumerate() {
        let (heads, queries) = [(1, 129), (2, 0), (2, 33), (1, 1)][i];
        let problem = Problem {
            layout: [Layout::Halo, Layout::Standard][i % 2],
            ..Problem::new(2, queries, heads, 8, &levels)
        };
        let choice = Choice {
            handed: Some([Handed::Shared, Handed::Shuffles][i / 2]),
            held: Some([1, 0, 2, 0][i]),
            ..roles([8, 8, 16, 24][i], producers, 2 + i as u32 % 3)
        };
        add(problem, choice);
    }
    for (i, (points, dtype, copied)) in [
        (3, Float::F16, false),
        (16, Float::F32, true),
        (5, Float::Bf16, false),
        (4, Float::F16, false),
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
            copied: Some(copied),
            handed: Some([Handed::Shuffles, Handed::Shared][i % 2]),
            ..roles(8, 2, 2)
        };
        add(problem, choice);
    }
    // One range for each CTA, wherever a batch ends; CTAs without any.
    for (queries, batch, ctas) in [(0, 3, 2), (1, 3, 2), (33, 5, 3), (9, 2, 7)] {
        for form in [Form::Plain, Form::Specialized] {
            let choice = Choice {
                form: Some(form),
                share: Some(Share::Ranges),
                ctas: Some(ctas),
                warps: Some(if form == Form::Plain { 2 } else { 8 }),
                held: Some(1),
                ..Choice::default()
            };
            add(Problem::new(batch, queries, 2, 4, &levels), choice);
        }
    }
    for (layout, queries, strip) in [
        (Layout::Standard, 84, 4),
        (Layout::Halo, 150, 8),
        (Layout::Halo, 150, 1),
    ] {
        let problem = Problem {
            layout,
            locations: Locations::Grid,
            ..Problem::new(1, queries, 1, 4, &levels)
        };
        let choice = Choice {
            order: Some(Order::Strips),
            strip: Some(strip),
            ..small(2)
        };
        add(problem, choice);
    }
    // Records of one point, two and four, none of a narrow level; registers moved.
    for (joined, warps) in [(1, 9), (2, 20), (4, 20)] {
        let choice = Choice {
            order: Some(Order::Strips),
            strip: Some(4),
            joined: Some(joined),
            ..roles(warps, 2, 2)
        };
        let levels = [[9, 7], [5, 4], [3, 2], [2, 2]];
        add(Problem::new(2, 93, 1, 8, &levels), choice);
    }
    // A box for every point: types, channels of part of a box and of several, all walks.
    for (i, (dtype, channels, points, queries)) in [
        (Float::F16, 32, 8, 45),
        (Float::F32, 24, 3, 1),
        (Float::Bf16, 128, 16, 9),
        (Float::F16, 8, 1, 0),
        (Float::F16, 32, 4, 84),
    ]
    .into_iter()
    .enumerate()
    {
        let problem = Problem {
            dtype,
            channels,
            layout: [Layout::Halo, Layout::Standard][i % 2],
            ..Problem::new(2, queries, [1, 2, 1, 3, 1][i], points, &levels)
        };
        let problem = Problem {
            layout: if i == 4 {
                Layout::Standard
            } else {
                problem.layout
            },
            ..problem
        };
        let choice = Choice {
            form: Some(Form::Boxes),
            stages: Some(2 + i as u32 % 3),
            order: (i == 4).then_some(Order::Strips),
            ..small([4, 6, 2, 8, 4][i])
        };
        add(problem, choice);
    }
    cases
}

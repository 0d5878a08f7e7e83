//! Which queries a CTA works on, and in which order it walks them.

use super::config::{Config, Order};
use super::level::Extent;
use super::problem::{Class, Problem};
use warpline_family::plan::Step;
use warpline_ir::build::*;

/// What one CTA works on at a time: some queries of a batch, and of its heads.
#[derive(Clone, Copy)]
pub(super) struct Item {
    pub(super) batch: Reg<u32>,
    /// The first head.
    pub(super) head: Reg<u32>,
    /// The first chunk of a pixel, where channels are divided.
    pub(super) chunk: Option<Reg<u32>>,
    /// Where in the walk it starts.
    pub(super) first: Reg<u32>,
    /// Rounds of all warps.
    pub(super) rounds: Reg<u32>,
}

/// The order of a walk over queries.
pub(super) enum Walk {
    /// As they are.
    Rows,
    /// Every level in strips of columns, each row by row: those that follow
    /// each other are neighbours in both directions, and so are their points,
    /// where these lie around their queries.
    Strips(Vec<Strips>),
}

/// A level in strips of columns, as the walk knows it.
#[derive(Clone, Copy)]
pub(super) struct Strips {
    /// The first query.
    start: Reg<u32>,
    width: Reg<u32>,
    /// Queries of a strip.
    area: Reg<u32>,
    of_area: Divisor,
    /// Columns of the last strip.
    last: Reg<u32>,
    of_last: Divisor,
}

impl Walk {
    pub(super) fn declare(k: Builder, class: &Class, c: &Config, levels: &[Extent]) -> Self {
        if c.order == Order::Rows {
            return Self::Rows;
        }
        let strips = |(i, extent): (usize, &Extent)| {
            let [height, width] = extent.stored(class.layout);
            Strips {
                start: extent.start(),
                width,
                area: height * c.strip,
                of_area: k.divisor(&format!("of_area_{i}")),
                last: k
                    .param::<u32>(&format!("last_{i}"))
                    .at_least(1)
                    .at_most(c.strip),
                of_last: k.divisor(&format!("of_last_{i}")),
            }
        };
        Self::Strips(levels.iter().enumerate().map(strips).collect())
    }

    /// Binds the launch arguments.
    pub(super) fn bind_args(mut step: Step, p: &Problem, c: &Config) -> Step {
        if c.order == Order::Rows {
            return step;
        }
        for (i, shape) in p.shapes.0.iter().enumerate() {
            let [height, width] = p.stored(*shape).map(|side| side as u32);
            let last = width - (width - 1) / c.strip * c.strip;
            step = step
                .divisor(&format!("of_area_{i}"), height.saturating_mul(c.strip))
                .scalar(&format!("last_{i}"), last)
                .divisor(&format!("of_last_{i}"), last);
        }
        step
    }

    /// The query at a step of the walk.
    #[track_caller]
    pub(super) fn query(&self, c: &Config, step: Reg<u32>) -> Reg<u32> {
        let Self::Strips(levels) = self else {
            return step;
        };
        let mut level = levels[0];
        for other in &levels[1..] {
            let there = step.ge(other.start);
            let choose = |yes: Reg<u32>, no: Reg<u32>| select(there, yes, no);
            level = Strips {
                start: choose(other.start, level.start),
                width: choose(other.width, level.width),
                area: choose(other.area, level.area),
                of_area: Divisor::select(there, other.of_area, level.of_area),
                last: choose(other.last, level.last),
                of_last: Divisor::select(there, other.of_last, level.of_last),
            };
        }
        let within = step - level.start;
        let strip = level.of_area.of(within);
        let within = within - strip * level.area;
        let left = strip * c.strip;
        let narrow = (left + c.strip).gt(level.width);
        let row = select(
            narrow,
            level.of_last.of(within),
            within >> c.strip.trailing_zeros(),
        );
        let columns = select(narrow, level.last, c.strip);
        level.start + left + within + row * (level.width - columns)
    }
}

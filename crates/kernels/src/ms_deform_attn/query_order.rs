//! The order in which queries are processed.

use super::config::{Config, QueryOrder};
use super::level::LevelExtent;
use super::problem::{Class, Problem};
use warpline_family::plan::LaunchStep;
use warpline_ir::builder::*;

/// The work of a CTA between two changes of batch or head: queries of one batch and some heads.
#[derive(Clone, Copy)]
pub(super) struct WorkItem {
    pub(super) batch: Reg<u32>,
    /// The first head.
    pub(super) head: Reg<u32>,
    /// The first 16-byte chunk of a pixel, if channels are sliced.
    pub(super) chunk: Option<Reg<u32>>,
    /// The first position in the query order.
    pub(super) first: Reg<u32>,
    /// Rounds over all gathering warps.
    pub(super) rounds: Reg<u32>,
}

/// The map from a position in the order to a query.
pub(super) enum QueryPermutation {
    /// The identity.
    Rows,
    /// Each level in vertical strips, row by row inside a strip. Consecutive queries are then neighbors
    /// in both directions, and so are their points if these are near their queries.
    Strips(Vec<StripLevel>),
}

/// A level divided into strips of columns.
#[derive(Clone, Copy)]
pub(super) struct StripLevel {
    /// The first query.
    start: Reg<u32>,
    width: Reg<u32>,
    /// Queries of a full strip.
    area: Reg<u32>,
    area_divisor: FastDivisor,
    /// Columns of the last strip.
    last_width: Reg<u32>,
    last_width_divisor: FastDivisor,
}

impl QueryPermutation {
    pub(super) fn declare(k: Builder, class: &Class, c: &Config, levels: &[LevelExtent]) -> Self {
        if c.query_order == QueryOrder::Rows {
            return Self::Rows;
        }
        let strips = |(i, extent): (usize, &LevelExtent)| {
            let [height, width] = extent.stored_size(class.layout);
            StripLevel {
                start: extent.start(),
                width,
                area: height * c.strip_width,
                area_divisor: k.divisor(&format!("area_divisor_{i}")),
                last_width: k
                    .param::<u32>(&format!("last_strip_width_{i}"))
                    .at_least(1)
                    .at_most(c.strip_width),
                last_width_divisor: k.divisor(&format!("last_width_divisor_{i}")),
            }
        };
        Self::Strips(levels.iter().enumerate().map(strips).collect())
    }

    /// Binds the launch arguments.
    pub(super) fn bind_args(mut step: LaunchStep, p: &Problem, c: &Config) -> LaunchStep {
        if c.query_order == QueryOrder::Rows {
            return step;
        }
        for (i, shape) in p.shapes.0.iter().enumerate() {
            let [height, width] = p.stored_size(*shape).map(|side| side as u32);
            let last_width = width - (width - 1) / c.strip_width * c.strip_width;
            step = step
                .divisor(
                    &format!("area_divisor_{i}"),
                    height.saturating_mul(c.strip_width),
                )
                .scalar(&format!("last_strip_width_{i}"), last_width)
                .divisor(&format!("last_width_divisor_{i}"), last_width);
        }
        step
    }

    /// Returns the query at a position of the order.
    #[track_caller]
    pub(super) fn query(&self, c: &Config, position: Reg<u32>) -> Reg<u32> {
        let Self::Strips(levels) = self else {
            return position;
        };
        let mut level = levels[0];
        for other in &levels[1..] {
            let is_at_or_after = position.ge(other.start);
            let choose = |yes: Reg<u32>, no: Reg<u32>| select(is_at_or_after, yes, no);
            level = StripLevel {
                start: choose(other.start, level.start),
                width: choose(other.width, level.width),
                area: choose(other.area, level.area),
                area_divisor: FastDivisor::select(
                    is_at_or_after,
                    other.area_divisor,
                    level.area_divisor,
                ),
                last_width: choose(other.last_width, level.last_width),
                last_width_divisor: FastDivisor::select(
                    is_at_or_after,
                    other.last_width_divisor,
                    level.last_width_divisor,
                ),
            };
        }
        let within = position - level.start;
        let strip = level.area_divisor.divide(within);
        let within = within - strip * level.area;
        let first_col = strip * c.strip_width;
        let is_last_strip = (first_col + c.strip_width).gt(level.width);
        let row = select(
            is_last_strip,
            level.last_width_divisor.divide(within),
            within >> c.strip_width.trailing_zeros(),
        );
        let columns = select(is_last_strip, level.last_width, c.strip_width);
        level.start + first_col + within + row * (level.width - columns)
    }
}

//! The plain schedule: every warp samples its points, gathers and sums.

use super::context::{DeformContext, ResidentLevels};
use super::gather::{Gather, LanePosition, OutputRow};
use super::points::{LaneSampler, PointWords};
use super::query_order::WorkItem;
use super::record::ShuffledRecords;
use super::texel::{PointElement, Texel};
use warpline_ir::builder::*;

/// Declares the roles.
pub(super) fn roles<E: Texel, N: PointElement>(k: Builder, cx: &DeformContext<E, N>) {
    let resident = cx.resident_ring(k);
    let role = k.role("gather").warps(cx.config.warps);
    role.body(|| gather(cx, resident));
    if let Some(resident) = resident {
        k.role("load_levels")
            .warps(1)
            .body(|| cx.load_resident_levels(resident));
    }
}

/// Gathers all queries of a CTA.
fn gather<E: Texel, N: PointElement>(
    cx: &DeformContext<E, N>,
    resident: Option<ResidentLevels<E>>,
) {
    let lane = LanePosition::new(&cx.lanes);
    let sampler = LaneSampler::new(cx, lane.lane_in_query);
    cx.for_each_item(|item| {
        let slot = resident.map(|resident| resident.wait());
        let resident_tile = slot.as_ref().map(|slot| slot.tiles());
        let gather = Gather::new(cx, lane, item, resident_tile);
        let load_points = |step: Reg<u32>| {
            let row = OutputRow::new(cx, lane, item, step);
            (row, sampler.load(row.index))
        };
        let gather_round = |row: OutputRow, raw: &PointWords| {
            let sampled = sampler.sample(raw);
            let records = ShuffledRecords::from_lanes(
                cx.format(),
                &cx.class,
                &cx.lanes,
                lane.corner_group,
                sampled,
            );
            gather.gather_query(row, |point| records.points_of(point));
        };
        for_each_round(cx, item, load_points, gather_round);
        if let Some(slot) = slot {
            slot.release();
        }
    });
}

/// Runs `gather_round` for the queries of an item, one warp step per round. The last round of a batch may
/// contain out-of-range queries; they are masked.
fn for_each_round<E: Texel, N: PointElement>(
    cx: &DeformContext<E, N>,
    item: WorkItem,
    load_points: impl Fn(Reg<u32>) -> (OutputRow, PointWords),
    gather_round: impl Fn(OutputRow, &PointWords),
) {
    let step = cx.lanes.queries_per_warp();
    let first_step = item.first + warp_in_role() * step;
    let step_per_round = cx.config.queries_per_round(&cx.lanes);
    if !cx.config.prefetch {
        steps(item.rounds).each(|i| {
            let first = first_step + i * step_per_round;
            if_(first.lt(cx.queries), || {
                let (row, raw) = load_points(first);
                gather_round(row, &raw);
            });
        });
        return;
    }
    // The points of the next round are loaded before this one is gathered.
    let (row, raw) = load_points(first_step);
    let in_range_word = |row: &OutputRow| select(row.in_range, 1u32, 0u32);
    let carried = (row.index, in_range_word(&row), raw.words.clone());
    steps(item.rounds).fold(carried, |i, (index, in_range, words)| {
        let (next_row, next_points) = load_points(first_step + (i + 1) * step_per_round);
        let in_range = in_range.ne(0u32);
        gather_round(OutputRow { index, in_range }, &raw.with_words(words));
        (next_row.index, in_range_word(&next_row), next_points.words)
    });
}

//! Lanes that branches leave idle.

use crate::checks::kit::{linted, passes, warns};
use warpline_ir::builder::*;
use warpline_lint::checks::DIVERGENCE;

#[test]
fn a_branch_that_few_lanes_take_warns() {
    let mut line = 0;
    let found = linted(DIVERGENCE, |k| {
        let x = k.pointer::<u32>("x");
        k.role("all").body(|| {
            let few = lane_id().lt(8);
            line = line!() + 1;
            if_(few, || {
                (0..30u32).for_each(|i| x.store(lane_id() + 32 * i, i));
            });
        });
    });
    let text = found.first().map_or("", |f| &f.text).to_owned();
    warns(&found, line, Some("all"), &text);
    let start = "the branch diverges 2 of 2 times; the ops inside run with 8.0 of 32 lanes, ";
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn a_loop_that_lanes_leave_one_by_one_warns() {
    let mut line = 0;
    let found = linted(DIVERGENCE, |k| {
        let x = k.pointer::<u32>("x");
        k.role("all").body(|| {
            line = line!() + 1;
            steps(lane_id()).each(|i| x.store(lane_id(), i));
        });
    });
    let text = found.first().map_or("", |f| &f.text).to_owned();
    warns(&found, line, Some("all"), &text);
    assert!(
        text.starts_with("the branch diverges 62 of 64 times"),
        "{text}"
    );
}

#[test]
fn a_single_store_of_one_lane_and_an_elected_lane_pass() {
    let found = linted(DIVERGENCE, |k| {
        let x = k.pointer::<u32>("x");
        k.role("all").body(|| {
            let words = (0..20u32).map(|i| x.load(lane_id() + 32 * i));
            let sum = redux_add(words.fold(0u32.reg(), |a, b| a + b));
            if_(lane_id().eq(0), || x.store(0u32, sum));
            elect(|| (0..50u32).for_each(|i| x.store(i, i)));
        });
    });
    let text = found.first().map_or("", |f| &f.text).to_owned();
    passes(&found, &text);
    assert!(text.starts_with("branches leave "), "{text}");
}

#[test]
fn a_warp_uniform_branch_passes() {
    let found = linted(DIVERGENCE, |k| {
        let x = k.pointer::<u32>("x");
        k.role("all").warps(2).body(|| {
            if_(warp_in_role().eq(0), || x.store(lane_id(), 0u32));
        });
    });
    passes(&found, "no branch splits a warp");
}

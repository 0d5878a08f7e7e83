//! Thread counts and tiles that are not powers of two.

use crate::checks::kit::{linted, passes, warns};
use warpline_lint::checks::BLOCK_SIZES;

#[test]
fn a_role_of_three_warps_warns() {
    let mut line = 0;
    let found = linted(BLOCK_SIZES, |k| {
        line = line!() + 1;
        k.role("all").warps(3).body(|| {});
    });
    warns(
        &found,
        line,
        Some("all"),
        "96 threads are not a power of two",
    );
}

#[test]
fn a_tile_of_48_rows_warns() {
    let mut line = 0;
    let found = linted(BLOCK_SIZES, |k| {
        line = line!() + 1;
        k.tile::<u32>("t", 48, 32).declare();
        k.role("all").body(|| {});
    });
    warns(
        &found,
        line,
        None,
        "tile `t` is 48 × 32, which is not a power of two",
    );
}

#[test]
fn each_role_is_checked_separately() {
    let found = linted(BLOCK_SIZES, |k| {
        k.tile::<u32>("t", 64, 32).declare();
        k.role("load").warpgroups(1).body(|| {});
        k.role("math").warpgroups(2).body(|| {});
    });
    let text = "the thread count of every role and the extents of every tile are powers of two";
    passes(&found, text);
}

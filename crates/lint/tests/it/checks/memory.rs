//! Bank conflicts and coalescing.

use crate::checks::kit::{linted, passes, warns};
use warpline_ir::builder::*;
use warpline_lint::LintStatus;
use warpline_lint::checks::{BANK_CONFLICTS, COALESCING};

#[test]
fn reading_a_column_of_an_unswizzled_tile_warns() {
    let mut line = 0;
    let found = linted(BANK_CONFLICTS, |k| {
        let t = k.tile::<u32>("t", 32, 32).unswizzled().declare().whole();
        k.role("all").body(|| {
            (0..32u32).for_each(|row| t.store(row, lane_id(), row));
            warp_sync();
            line = line!() + 1;
            (0..4u32).map(|col| t.load(lane_id(), col)).for_each(|_| {});
        });
    });
    let text = "32.0 wavefronts per access, where 1.0 suffice, in 8 accesses";
    warns(&found, line, Some("all"), text);
}

#[test]
fn a_swizzled_tile_and_wide_accesses_have_no_conflicts() {
    let found = linted(BANK_CONFLICTS, |k| {
        let t = k.tile::<u32>("t", 32, 32).declare().whole();
        k.role("all").body(|| {
            (0..32u32).for_each(|row| t.store(row, lane_id(), row));
            warp_sync();
            // The eight lanes of a quarter warp read one row each, in one wavefront.
            t.load_vec::<4>(lane_id(), 0u32);
        });
    });
    passes(
        &found,
        "66 shared-memory accesses take 0 % more wavefronts than needed",
    );
}

#[test]
fn the_worst_line_comes_first() {
    let mut lines = [0; 2];
    let found = linted(BANK_CONFLICTS, |k| {
        let t = k.tile::<u32>("t", 64, 32).unswizzled().declare().whole();
        k.role("all").body(|| {
            lines[1] = line!() + 1;
            (0..2u32).for_each(|i| t.store(lane_id() >> 4, (lane_id() & 15) * 2 + i, 0u32));
            lines[0] = line!() + 1;
            t.store(lane_id() * 2, 0u32, 0u32);
        });
    });
    assert!(found.iter().all(|f| f.status == LintStatus::Warn));
    let at: Vec<u32> = found.iter().map(|f| f.at.unwrap().line).collect();
    assert_eq!(at, lines);
}

#[test]
fn a_strided_access_warns() {
    let mut line = 0;
    let found = linted(COALESCING, |k| {
        let x = k.pointer::<u32>("x");
        k.role("all").body(|| {
            x.store(lane_id(), 1u32);
            line = line!() + 1;
            x.load(lane_id() * 2);
        });
    });
    let text = "8.0 sectors per request, where 4.0 suffice, in 2 requests";
    warns(&found, line, Some("all"), text);
}

#[test]
fn a_misaligned_contiguous_access_passes() {
    let found = linted(COALESCING, |k| {
        let x = k.pointer::<u32>("x");
        k.role("all")
            .body(|| x.store(lane_id() + 1, x.load(lane_id())));
    });
    passes(
        &found,
        "4 requests to global memory touch 12 % more sectors than needed",
    );
}

#[test]
fn a_kernel_without_memory_accesses_passes() {
    for (check, text) in [
        (BANK_CONFLICTS, "no thread accesses shared memory"),
        (COALESCING, "no thread accesses global memory"),
    ] {
        passes(&linted(check, |k| k.role("all").body(|| {})), text);
    }
}

//! Rasterization visits each tile exactly once, for any rectangle and any grid.

use crate::pipelines::harness::{Input, run_words, timings};
use proptest::prelude::*;
use warpline_ir::builder::*;
use warpline_ir::{Kernel, Target};

/// Writes the tile of every index as `m · 65536 + n`.
fn visit(order: Rasterization) -> Kernel {
    Kernel::build("visit", &Target::SM_90A, |k| {
        let (rows, cols) = (k.param::<u32>("rows"), k.param::<u32>("cols"));
        let out = k.pointer::<u32>("out");
        k.role("all").body(|| {
            let tiles = order.tiles(rows, cols);
            range(cta_id() * 32, tiles.count())
                .step_by(grid_ctas() * 32)
                .each(|base| {
                    let i = base + lane_id();
                    if_(i.lt(tiles.count()), || {
                        let t = tiles.at(i);
                        out.store(i, t.m * 65536 + t.n);
                    });
                });
        });
    })
    .expect("a valid kernel")
}

fn sequence(kernel: &Kernel, rows: u32, cols: u32) -> Vec<(u32, u32)> {
    let inputs = [
        Input::U32(rows),
        Input::U32(cols),
        Input::Output((rows * cols * 4) as usize),
    ];
    run_words(kernel, 2, &inputs, &timings(0)[0])
        .into_iter()
        .map(|x| (x >> 16, x & 0xffff))
        .collect()
}

const ORDERS: [Rasterization; 5] = [
    Rasterization::RowMajor,
    Rasterization::Grouped(1),
    Rasterization::Grouped(4),
    Rasterization::Grouped(16),
    Rasterization::Hilbert,
];

#[test]
fn each_tile_is_visited_exactly_once() {
    for order in ORDERS {
        let kernel = visit(order);
        let mut shapes = vec![(1, 1), (1, 9), (9, 1), (64, 1), (31, 33), (16, 112)];
        shapes.extend((2..8).flat_map(|r| (2..8).map(move |c| (r, c))));
        for (rows, cols) in shapes {
            let mut seen = sequence(&kernel, rows, cols);
            seen.sort_unstable();
            let all: Vec<_> = (0..rows)
                .flat_map(|m| (0..cols).map(move |n| (m, n)))
                .collect();
            assert_eq!(seen, all, "{order:?} over {rows} x {cols}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_rectangle_is_covered(rows in 1..60u32, cols in 1..60u32, group in 1..20u32, which in 0..3) {
        let order = [Rasterization::RowMajor, Rasterization::Grouped(group), Rasterization::Hilbert][which as usize];
        let seen = sequence(&visit(order), rows, cols);
        let distinct: std::collections::HashSet<_> = seen.iter().copied().collect();
        prop_assert_eq!(distinct.len() as u32, rows * cols);
        prop_assert!(seen.iter().all(|&(m, n)| m < rows && n < cols));
    }
}

#[test]
fn rasterizations_have_their_documented_order() {
    let at = |order, rows, cols| sequence(&visit(order), rows, cols);
    assert_eq!(
        at(Rasterization::RowMajor, 2, 3),
        [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    );
    assert_eq!(
        at(Rasterization::Grouped(2), 3, 2),
        [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)]
    );
    // Each step of a Hilbert curve goes to a neighbor; on odd sides it may be a diagonal one.
    for (rows, cols) in [(8, 8), (16, 4), (6, 10), (12, 32)] {
        let path = at(Rasterization::Hilbert, rows, cols);
        for pair in path.windows(2) {
            let d = (pair[0].0.abs_diff(pair[1].0), pair[0].1.abs_diff(pair[1].1));
            assert!(d.0 <= 1 && d.1 <= 1, "{pair:?} in {rows} x {cols}");
        }
    }
}

#[test]
fn round_robin_tiles_go_to_one_role_each() {
    let kernel = Kernel::build("round_robin", &Target::SM_90A, |k| {
        let (rows, cols) = (k.param::<u32>("rows"), k.param::<u32>("cols"));
        let out = k.pointer::<u32>("out");
        let tiles = Rasterization::Grouped(4).tiles(rows, cols);
        for role in 0..2 {
            k.role(["ping", "pong"][role as usize]).body(|| {
                tiles.round_robin(role, 2, |_| {}).each(|t| {
                    elect(|| out.store(t.m * cols + t.n, cta_id() * 2 + role));
                });
            });
        }
    })
    .expect("a valid kernel");
    let inputs = [Input::U32(5), Input::U32(7), Input::Output(5 * 7 * 4)];
    for options in timings(3) {
        let got = run_words(&kernel, 3, &inputs, &options);
        assert!(got.iter().all(|&x| x < 6));
        let ping = got.iter().filter(|&&x| x % 2 == 0).count();
        assert_eq!(
            ping, 18,
            "3 CTAs take 12, 12 and 11 of the 35 tiles, and `ping` takes 6 in each"
        );
    }
}

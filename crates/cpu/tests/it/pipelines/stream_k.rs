//! Stream-K: the shares of all CTAs cover every k-tile once, and the finishing CTA adds the partial
//! tiles.

use crate::pipelines::harness::{Input, run, timings, to_words};
use warpline_cpu::GlobalMemory;
use warpline_ir::builder::*;
use warpline_ir::{Arg, Kernel, Launch, Target};
use warpline_testkit::kernel::build;

/// Every CTA records its shares: the count and the CTA for each k-tile and for each finished tile,
/// and the CTAs that contribute partial tiles.
fn record_shares() -> Kernel {
    Kernel::build("notes", &Target::SM_90A, |k| {
        let [rows, cols, count] = ["rows", "cols", "steps"].map(|name| k.param::<u32>(name));
        let [computed, computed_by, finished, finisher, contributions] = [
            "computed",
            "computed_by",
            "finished",
            "finisher",
            "contributions",
        ]
        .map(|name| k.pointer::<u32>(name));
        let stream = Rasterization::RowMajor.tiles(rows, cols).stream_k(count);
        k.role("all").body(|| {
            elect(|| {
                stream.each(|share| {
                    let tile = share.tile.m * cols + share.tile.n;
                    share.k_tiles().each(|i| {
                        computed.fetch_add(tile * count + i, 1u32);
                        computed_by.store(tile * count + i, cta_id());
                    });
                    if_(share.finishes_tile(), || {
                        finished.fetch_add(tile, 1u32);
                        finisher.store(tile, cta_id());
                        let of = tile * grid_ctas();
                        share.contributors().each(|cta| {
                            contributions.fetch_add(of + cta, 1u32);
                        });
                    });
                    if_(!share.finishes_tile(), || {
                        contributions.fetch_add(tile * grid_ctas() + share.partial_index(), 2u32);
                    });
                });
            });
        });
    })
    .expect("a valid kernel")
}

#[test]
fn shares_cover_every_k_tile_once() {
    let kernel = record_shares();
    for [rows, cols, steps, ctas] in [
        [1, 1, 1, 1],
        [1, 1, 1, 4],
        [1, 1, 7, 3],
        [2, 3, 5, 4],
        [2, 3, 5, 7],
        [3, 3, 4, 9],
        [3, 3, 4, 36],
        [3, 3, 4, 40],
        [1, 5, 3, 2],
        [4, 2, 9, 5],
        [2, 2, 16, 13],
        [0, 3, 4, 2],
    ] {
        let (tiles, at) = (
            rows * cols,
            format!("{rows} x {cols} tiles of {steps}, {ctas} CTAs"),
        );
        let words = |n: u32| Input::Zeros(n as usize * 4);
        let inputs = [
            Input::U32(rows),
            Input::U32(cols),
            Input::U32(steps),
            words(tiles * steps),
            words(tiles * steps),
            words(tiles),
            words(tiles),
            words(tiles * ctas),
        ];
        for options in timings(1) {
            let out = run(&kernel, ctas, &inputs, &options).unwrap_or_else(|e| panic!("{at}: {e}"));
            let [computed, computed_by, finished, finisher, contributions] =
                [0, 1, 2, 3, 4].map(|i| to_words(&out[i]));
            assert!(
                computed.iter().all(|&n| n == 1),
                "{at}: every k-tile once, not {computed:?}"
            );
            assert!(
                computed_by.is_sorted(),
                "{at}: shares are consecutive: {computed_by:?}"
            );
            let share = |cta| computed_by.iter().filter(|&&c| c == cta).count();
            let shares: Vec<usize> = (0..ctas).map(share).collect();
            let (least, most) = (shares.iter().min(), shares.iter().max());
            let even = most
                .zip(least)
                .is_some_and(|(most, least)| most - least <= 1);
            assert!(even, "{at}: shares are even: {shares:?}");
            assert!(finished.iter().all(|&n| n == 1), "{at}: {finished:?}");
            for (tile, owners) in computed_by.chunks(steps as usize).enumerate() {
                assert_eq!(finisher[tile], owners[0], "{at}: tile {tile}");
                // A contributor adds 2, and the finishing CTA adds 1 for each contributor it expects.
                let contributions_of_tile = &contributions[tile * ctas as usize..][..ctas as usize];
                let want: Vec<u32> = (0..ctas)
                    .map(|c| 3 * u32::from(c != owners[0] && owners.contains(&c)))
                    .collect();
                assert_eq!(
                    contributions_of_tile, want,
                    "{at}: tile {tile} of {owners:?}"
                );
            }
        }
    }
}

/// Returns the contribution of one k-tile to an element of a tile.
fn term(tile: u32, step: u32, row: u32, col: u32) -> u32 {
    tile * 100 + step * 7 + row * 3 + col
}

/// Computes tiles as the sum of their k-tiles, with partial tiles from other CTAs.
fn sums(warps: u32, m: u32, n: u32) -> Kernel {
    build("sums", |k| {
        let [tiles, count] = ["tiles", "steps"].map(|name| k.param::<u32>(name));
        let to = k.pointer::<f32>("sums");
        let partials = k.partial_tiles("partials", m, n);
        let stream = Rasterization::RowMajor
            .tiles(1u32.reg(), tiles)
            .stream_k(count);
        k.role("all").warps(warps).body(|| {
            stream.each(|share| {
                let zeros = match warps {
                    1 => Frag::warp_zeros(m, n),
                    _ => Frag::zeros(m, n),
                };
                let tile = share.tile.n;
                let mine = share.k_tiles().fold(zeros, |i, sums| {
                    sums.map_with_coord(|x, at| {
                        let term = tile * 100 + i * 7 + at.row * 3 + at.col;
                        x + term.cast::<f32>()
                    })
                });
                if_else(
                    share.finishes_tile(),
                    || {
                        let all = share
                            .contributors()
                            .fold(mine.clone(), |i, x| partials.wait_and_add(i, x));
                        let first = tile * (m * n);
                        all.each_pair(|at, pair| {
                            to.store_vec(first + at.row * n + at.col, pair);
                        });
                    },
                    || partials.store(share.partial_index(), &mine),
                );
            });
        });
    })
}

/// Two launches share the memory; the flags are zero after each.
#[test]
fn partial_tiles_are_added_and_flags_are_reset() {
    for (warps, m, n) in [(4, 64, 8), (4, 128, 24), (1, 16, 32)] {
        let kernel = sums(warps, m, n);
        for (tiles, steps, ctas) in [(1, 7, 3), (3, 4, 5), (4, 3, 2), (2, 2, 6), (1, 5, 5)] {
            let want: Vec<f32> = (0..tiles * m * n)
                .map(|i| {
                    let (tile, row, col) = (i / (m * n), i / n % m, i % n);
                    (0..steps).map(|s| term(tile, s, row, col)).sum::<u32>() as f32
                })
                .collect();
            for options in timings(2) {
                let at = format!(
                    "{m} x {n}, {tiles} tiles of {steps}, {ctas} CTAs, {}, seed {}",
                    options.timing, options.seed
                );
                let mut memory = GlobalMemory::new();
                let len = want.len() * 4;
                let to = memory.alloc(len, "sums");
                let partials = memory.alloc((ctas * m * n * 4) as usize, "partials");
                let flags_len = (ctas * warps * 4) as usize;
                let flags = memory.alloc_from(&vec![0; flags_len], "flags");
                let launch = Launch {
                    grid: [ctas, 1, 1],
                    args: vec![
                        Arg::scalar(tiles),
                        Arg::scalar(steps),
                        Arg::Pointer(to),
                        Arg::Pointer(partials),
                        Arg::Pointer(flags),
                    ],
                };
                for launch_index in 0..2 {
                    let ran = warpline_cpu::run(&kernel, &launch, &memory, &options);
                    ran.unwrap_or_else(|e| panic!("{at}, launch {launch_index}: {e}"));
                    let got = memory.read(to, len).expect("every sum");
                    let want: Vec<u8> = want.iter().flat_map(|x| x.to_le_bytes()).collect();
                    assert!(got == want, "{at}, launch {launch_index}: sums are wrong");
                    let flags = memory.read(flags, flags_len).expect("every flag");
                    assert!(
                        flags.iter().all(|&b| b == 0),
                        "{at}, launch {launch_index}: {flags:?}"
                    );
                    // Overwrites the sums, so the next launch must store all of them.
                    memory.write(to, &vec![0xff; len]).expect("in bounds");
                }
            }
        }
    }
}

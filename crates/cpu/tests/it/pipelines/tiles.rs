//! Tiles: swizzled addresses match TMA, aliases share bytes.

use crate::pipelines::harness::{Input, run, run_words, timings};
use warpline_ir::builder::*;
use warpline_ir::{
    Arg, DType, FaultKind, Kernel, Launch, Swizzle, Target, TensorMapDecl, TensorMapMode,
    TensorMapValue,
};

/// Writes a tile by elements and stores it by TMA through a tensor map with the same swizzle, panel by
/// panel; the result is row-major in global memory.
#[test]
fn the_swizzle_of_a_tile_matches_tma() {
    for (swizzle, cols) in [
        (Swizzle::None, 48u32),
        (Swizzle::B32, 16),
        (Swizzle::B64, 32),
        (Swizzle::B128, 32),
        (Swizzle::B128, 96),
    ] {
        let rows = 16u32;
        let panel = swizzle.span().map_or(cols, |s| s / 4);
        let decl = TensorMapDecl {
            dtype: DType::U32,
            tile: vec![panel, rows],
            swizzle,
            mode: TensorMapMode::Tiled,
        };
        let kernel = Kernel::build("swizzled", &Target::SM_90A, |k| {
            let out = k.tensor_map("out", decl.clone());
            let tile = k.tile::<u32>("tile", rows, cols).swizzle(swizzle).declare();
            k.role("all").body(|| {
                range(lane_id(), cols).step_by(32u32).each(|col| {
                    steps(rows).each(|row| tile.whole().store(row, col, row * 1000 + col));
                });
                fence_async();
                warp_sync();
                elect(|| {
                    for col in (0..cols).step_by(panel as usize) {
                        out.store(tile.whole().slice(0..rows, col..col + panel), [col, 0]);
                    }
                    bulk_commit();
                    bulk_wait(0);
                });
            });
        })
        .expect("a valid kernel");
        for options in timings(2) {
            let mut memory = warpline_cpu::GlobalMemory::new();
            let at = memory.alloc((rows * cols * 4) as usize, "out");
            let extents = [u64::from(cols), u64::from(rows)];
            let map = TensorMapValue::dense(decl.clone(), at, &extents);
            let launch = Launch {
                grid: [1, 1, 1],
                args: vec![Arg::TensorMap(map)],
            };
            warpline_cpu::run(&kernel, &launch, &memory, &options)
                .unwrap_or_else(|e| panic!("{e}"));
            let got = memory
                .read(at, (rows * cols * 4) as usize)
                .expect("every byte");
            for (i, b) in got.chunks_exact(4).enumerate() {
                let (row, col) = (i as u32 / cols, i as u32 % cols);
                let x = u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
                assert_eq!(x, row * 1000 + col, "{swizzle:?} [{row}, {col}]");
            }
        }
    }
}

#[test]
fn aliases_need_disjoint_lifetimes() {
    let kernel = |sync: bool| {
        Kernel::build("alias", &Target::SM_90A, |k| {
            let out = k.pointer::<u32>("out");
            let first = k.tile::<u32>("first", 1, 64).unswizzled().declare();
            let second = k
                .tile::<u32>("second", 2, 32)
                .unswizzled()
                .alias(first)
                .declare();
            k.role("one").body(|| {
                first.whole().store(0u32, lane_id(), lane_id());
                first.whole().store(0u32, lane_id() + 32, lane_id() * 2);
                cta_sync();
                let x = first.whole().load(0u32, 63 - lane_id());
                if sync {
                    cta_sync();
                }
                out.store(lane_id(), x);
            });
            k.role("two").body(|| {
                cta_sync();
                if sync {
                    cta_sync();
                }
                second.whole().store(1u32, lane_id(), 7u32);
                let y = second.whole().load(1u32, lane_id());
                out.store(lane_id() + 32, y);
            });
        })
        .expect("a valid kernel")
    };
    let synchronized = kernel(true);
    assert_eq!(
        synchronized.shared_bytes, 256,
        "the second tile takes no bytes of its own"
    );
    let want: Vec<u32> = (0..64)
        .map(|i| if i < 32 { (31 - i) * 2 } else { 7 })
        .collect();
    for options in timings(5) {
        assert_eq!(
            run_words(&synchronized, 1, &[Input::Output(256)], &options),
            want
        );
    }
    // Without the second CTA barrier, the lifetimes overlap.
    let e = run(&kernel(false), 1, &[Input::Output(256)], &timings(0)[1]).expect_err("a race");
    assert_eq!(e.kind, FaultKind::Race, "{e}");
}

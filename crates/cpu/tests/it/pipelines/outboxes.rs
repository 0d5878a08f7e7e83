//! Outboxes: epilogue stores of tiles through staging buffers, clipped at the edges, several per role.

use crate::pipelines::harness::{Input, run, seeds, timings, to_floats};
use half::bf16;
use warpline_ir::builder::*;
use warpline_ir::{
    DType, Element, FaultKind, Kernel, Swizzle, Target, TensorMapDecl, TensorMapMode,
};

fn box_map<T: Element>(cols: u32, rows: u32) -> TensorMapDecl {
    let swizzle = match cols as usize * T::DTYPE.bytes() {
        128 => Swizzle::B128,
        64 => Swizzle::B64,
        32 => Swizzle::B32,
        _ => Swizzle::None,
    };
    TensorMapDecl {
        dtype: T::DTYPE,
        tile: vec![cols, rows],
        swizzle,
        mode: TensorMapMode::Tiled,
    }
}

/// Returns the expected element at a position; exact in 16 bits.
fn number(row: u32, col: u32) -> f32 {
    ((row * 31 + col * 57) % 251) as f32 - 125.0
}

/// Returns the tile whose first element is at a position.
fn tile_at(shape: Frag, row: Reg<u32>, col: Reg<u32>) -> Frag {
    shape.map_with_coord(|_, at| {
        let (row, col) = (row + at.row, col + at.col);
        ((row * 31 + col * 57) % 251).cast::<f32>() - 125.0
    })
}

/// The shapes of a test: tiles, an outbox, and the output tensor.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// Warps of the role: one (warp tiles) or four.
    warps: u32,
    stages: u32,
    /// Rows and columns of a tile.
    tile: (u32, u32),
    /// Columns of the outbox.
    outbox: u32,
    /// Columns of a box.
    box_: u32,
    /// Rows and columns of the tensor.
    tensor: (u32, u32),
}

/// Converts an output of a type to floats.
fn values<T: Element>(bytes: &[u8]) -> Vec<f32> {
    match T::DTYPE {
        DType::F32 => to_floats(bytes),
        DType::Bf16 => {
            let two = bytes.chunks_exact(2);
            two.map(|b| bf16::from_le_bytes([b[0], b[1]]).to_f32())
                .collect()
        }
        other => panic!("no output of {other}"),
    }
}

/// Asserts that every element of the tensor is as expected.
#[track_caller]
fn assert_expected<T: Element>(what: &str, bytes: &[u8], cols: u32) {
    for (i, x) in values::<T>(bytes).into_iter().enumerate() {
        let (row, col) = (i as u32 / cols, i as u32 % cols);
        assert_eq!(x, number(row, col), "{what}: at {row}, {col}");
    }
}

fn check<T: OutboxElement>(c: Case) {
    let ((m, n), (rows, cols)) = (c.tile, c.tensor);
    let what = format!("{} {c:?}", T::DTYPE);
    let kernel = Kernel::build("outbox", &Target::SM_90A, |k| {
        let out = k.tensor_map("out", box_map::<T>(c.box_, m));
        let outbox = k.outbox::<T>("out", c.stages, m, c.outbox);
        let tiles = Rasterization::RowMajor.tiles(rows.div_ceil(m).reg(), cols.div_ceil(n).reg());
        k.role("all").warps(c.warps).body(|| {
            tiles.each(|at| {
                let shape = match c.warps {
                    1 => Frag::warp_zeros(m, n),
                    _ => Frag::zeros(m, n),
                };
                let (row, col) = (at.m * m, at.n * n);
                outbox.store(&tile_at(shape, row, col), out, [col, row]);
            });
        });
    });
    let kernel = kernel.unwrap_or_else(|e| panic!("{what}: {e}"));
    let extents = vec![u64::from(cols), u64::from(rows)];
    let inputs = [Input::MapOutput(box_map::<T>(c.box_, m), extents)];
    for options in timings(seeds(2)) {
        let out = run(&kernel, 2, &inputs, &options).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_expected::<T>(&what, &out[0], cols);
    }
}

#[test]
fn an_outbox_of_one_to_three_stages_stores_every_tile() {
    for stages in [1, 2, 3] {
        let case = Case {
            warps: 4,
            stages,
            tile: (64, 32),
            outbox: 32,
            box_: 32,
            tensor: (256, 96),
        };
        check::<f32>(case);
        check::<bf16>(case);
    }
}

/// Each part takes several boxes, and the stores are clipped at the edges.
#[test]
fn a_tile_wider_than_the_outbox_is_stored_in_parts() {
    for stages in [1, 2, 3] {
        check::<f32>(Case {
            warps: 4,
            stages,
            tile: (64, 128),
            outbox: 64,
            box_: 32,
            tensor: (131, 148),
        });
        check::<bf16>(Case {
            warps: 4,
            stages,
            tile: (128, 192),
            outbox: 64,
            box_: 64,
            tensor: (133, 200),
        });
    }
}

#[test]
fn a_role_of_one_warp_stores_its_tiles() {
    for stages in [1, 2] {
        let case = Case {
            warps: 1,
            stages,
            tile: (32, 64),
            outbox: 32,
            box_: 32,
            tensor: (70, 72),
        };
        check::<f32>(case);
        check::<bf16>(case);
    }
}

#[test]
fn a_tile_is_stored_transposed() {
    let (m, n, stages) = (64u32, 32u32, 2u32);
    let (rows, cols) = (76u32, 136u32);
    let kernel = Kernel::build("transposed", &Target::SM_90A, |k| {
        let out = k.tensor_map("out", box_map::<bf16>(64, n));
        let outbox = k.outbox::<bf16>("out", stages, n, m);
        let tiles = Rasterization::RowMajor.tiles(rows.div_ceil(n).reg(), cols.div_ceil(m).reg());
        k.role("all").warpgroups(1).body(|| {
            tiles.each(|at| {
                let (row, col) = (at.m * n, at.n * m);
                let transposed = Frag::zeros(m, n).map_with_coord(|_, at| {
                    let (row, col) = (row + at.col, col + at.row);
                    ((row * 31 + col * 57) % 251).cast::<f32>() - 125.0
                });
                outbox.store_transposed(&transposed, out, [col, row]);
            });
        });
    });
    let kernel = kernel.unwrap_or_else(|e| panic!("{e}"));
    let extents = vec![u64::from(cols), u64::from(rows)];
    let inputs = [Input::MapOutput(box_map::<bf16>(64, n), extents)];
    for options in timings(seeds(2)) {
        let out = run(&kernel, 2, &inputs, &options).unwrap_or_else(|e| panic!("{e}"));
        assert_expected::<bf16>("transposed", &out[0], cols);
    }
}

/// The outboxes have different numbers of stages.
#[test]
fn one_role_may_alternate_between_two_outboxes() {
    for (first, second) in [(1, 3), (2, 1), (3, 2)] {
        let (rows, cols) = (64u32 * 5, 32u32);
        let kernel = Kernel::build("two", &Target::SM_90A, |k| {
            let wide = k.tensor_map("wide", box_map::<f32>(32, 64));
            let half = k.tensor_map("half", box_map::<bf16>(32, 64));
            let wides = k.outbox::<f32>("wides", first, 64, 32);
            let halves = k.outbox::<bf16>("halves", second, 64, 32);
            k.role("all").warpgroups(1).body(|| {
                steps(rows / 64).each(|i| {
                    let tile = tile_at(Frag::zeros(64, 32), i * 64, 0u32.reg());
                    wides.store(&tile, wide, (0u32, i * 64));
                    halves.store(&tile, half, (0u32, i * 64));
                });
            });
        });
        let kernel = kernel.unwrap_or_else(|e| panic!("{e}"));
        let extents = vec![u64::from(cols), u64::from(rows)];
        let inputs = [
            Input::MapOutput(box_map::<f32>(32, 64), extents.clone()),
            Input::MapOutput(box_map::<bf16>(32, 64), extents),
        ];
        for options in timings(seeds(3)) {
            let out = run(&kernel, 1, &inputs, &options).unwrap_or_else(|e| panic!("{e}"));
            assert_expected::<f32>("wide", &out[0], cols);
            assert_expected::<bf16>("half", &out[1], cols);
        }
    }
}

/// A store without an outbox: without the read wait, the CTA exits before the copies have read.
#[test]
fn an_exit_before_the_copies_have_read_is_detected() {
    let kernel = |waits: bool| {
        Kernel::build("leave", &Target::SM_90A, |k| {
            let out = k.tensor_map("out", box_map::<f32>(32, 64));
            let tile = k.tile::<f32>("tile", 64, 32).declare();
            k.role("all").warpgroups(1).body(|| {
                tile_at(Frag::zeros(64, 32), 0u32.reg(), 0u32.reg()).store(&tile.whole());
                fence_async();
                cta_sync();
                elect(|| {
                    out.store(tile.whole(), [0, 0]);
                    bulk_commit();
                    if waits {
                        bulk_wait_read(0);
                    }
                });
            });
        })
        .expect("a valid kernel")
    };
    let inputs = [Input::MapOutput(box_map::<f32>(32, 64), vec![32, 64])];
    for options in timings(1) {
        run(&kernel(true), 1, &inputs, &options).unwrap_or_else(|e| panic!("{e}"));
    }
    let e = run(&kernel(false), 1, &inputs, &timings(0)[1]).expect_err("the CTA exits too early");
    assert_eq!(e.kind, FaultKind::PeerExited, "{e}");
}

//! im2col loads and stores.

use super::{elements, store_tile, unswizzled_map};
use crate::ops::{kernel, values};
use crate::trial::OpTrial;
use half::bf16;
use warpline_ir::builder::*;
use warpline_ir::{DType, Swizzle, TensorMapDecl, TensorMapMode, Type};

pub(crate) fn trials() -> Vec<OpTrial> {
    vec![
        im2col_load([24, 19, 2], [3], [2]),
        im2col_load([24, 7, 5, 3], [3, 3], [1, 1]),
        im2col_load([16, 4, 3, 3, 2], [3, 2, 3], [1, 1, 2]),
        im2col_store("dense", [0, 0], [1, 1]),
        im2col_store("stepped", [0, 0], [2, 1]),
        im2col_store("cornered", [1, 0], [1, 1]),
    ]
}

/// Returns the im2col map of a convolution with padding of half a filter.
fn im2col_map<const S: usize>(filter: [u32; S], steps: [u32; S]) -> TensorMapDecl {
    let pad = filter.map(|f| f as i32 / 2);
    TensorMapDecl {
        dtype: DType::Bf16,
        tile: vec![],
        swizzle: Swizzle::B32,
        mode: TensorMapMode::Im2col {
            lower: pad.map(|p| -p).to_vec(),
            upper: (filter.iter().zip(pad))
                .map(|(&f, p)| p - (f as i32 - 1))
                .collect(),
            channels: 16,
            pixels: 11,
            element_strides: steps.to_vec(),
        },
    }
}

/// Loads from the first corner and from the interior, at two filter taps.
fn im2col_load<const R: usize, const S: usize>(
    extents: [u64; R],
    filter: [u32; S],
    steps: [u32; S],
) -> OpTrial
where
    [i32; R]: Coords<R>,
{
    let decl = im2col_map(filter, steps);
    let corner = |from: i32| -> [i32; R] {
        std::array::from_fn(|i| match i {
            0 => 8 * from,
            // A window position, relative to the first corner.
            i if i <= S => {
                let low = -(filter[i - 1] as i32 / 2);
                low + from * steps[i - 1] as i32
            }
            _ => from,
        })
    };
    let taps: [[u16; S]; 2] = [[0; S], filter.map(|f| f as u16 - 1)];
    let kernel = kernel(&format!("im2col_{R}d"), |k| {
        let map = k.tensor_map("x", decl.clone());
        let out = k.pointer::<bf16>("tiles");
        let t = k
            .tile::<bf16>("t", 11, 16)
            .swizzle(Swizzle::B32)
            .stages(4)
            .declare();
        let full = k.barrier("full", 4).arrivals(1);
        k.role("all").warps(1).body(|| {
            let copies = (0u32..).zip([(0, 0), (0, 1), (1, 0), (1, 1)]);
            elect(|| {
                for (i, (from, tap)) in copies.clone() {
                    let (coords, tap) = (corner(from), taps[tap]);
                    map.prefetch_im2col(coords, tap, None);
                    full.at(i).arrive_expect(map.bytes());
                    map.load_im2col(t.stage(i), coords, tap, full.at(i));
                }
            });
            for (i, _) in copies {
                full.at(i).wait(0);
                store_tile(t.stage(i), out, (i * 176).reg());
            }
        });
    });
    OpTrial::new(
        format!("tensor_load, im2col of rank {R}"),
        &["tensor_load", "tensor_prefetch_box"],
        kernel,
    )
    .input_map(&extents, &values(Type::Bf16, elements(&extents), 77))
    .output("tiles", Type::Bf16, 4 * 176)
}

/// Stores a tile of pixels to the window positions inside the tensor. The window is dense, has a stride, or
/// starts inside the tensor.
fn im2col_store(window: &str, lower: [i32; 2], steps: [u32; 2]) -> OpTrial {
    let decl = TensorMapDecl {
        mode: TensorMapMode::Im2col {
            lower: lower.to_vec(),
            upper: vec![0, 0],
            channels: 8,
            pixels: 13,
            element_strides: steps.to_vec(),
        },
        ..unswizzled_map(DType::Bf16, [])
    };
    let kernel = kernel(&format!("im2col_store_{window}"), |k| {
        let (x, map) = (k.pointer::<bf16>("x"), k.tensor_map("to", decl.clone()));
        let t = k.tile::<bf16>("t", 13, 8).unswizzled().declare();
        let full = k.barrier("full", 1).arrivals(1);
        k.role("all").warps(1).body(|| {
            elect(|| {
                full.at(0).arrive_expect(208u32);
                bulk_load(t.whole(), x.address(0u32), 208u32, full.at(0));
                full.at(0).wait(0);
                map.store_im2col(t.whole(), [0, lower[0], 1, 0]);
                bulk_commit();
                bulk_wait(0);
            });
        });
    });
    let extents = [8, 5, 4, 2];
    let n = elements(&extents);
    OpTrial::new(
        format!("tensor_store, im2col, {window}"),
        &["tensor_store"],
        kernel,
    )
    .input(&values(Type::Bf16, 104, 78))
    .in_out_map("tensor", Type::Bf16, &extents, &values(Type::Bf16, n, 79))
}

//! Prefetches of tensor maps and boxes.

use super::{box_coords, elements, store_tile, tile_shape, unswizzled_map};
use crate::ops::{kernel, values};
use crate::trial::OpTrial;
use warpline_ir::builder::*;
use warpline_ir::{DType, Type};

pub(crate) fn trials() -> Vec<OpTrial> {
    vec![
        map_prefetch(),
        box_prefetches([40], [32]),
        box_prefetches([20, 11], [16, 4]),
        box_prefetches([20, 7, 5], [16, 4, 2]),
        box_prefetches([20, 5, 4, 3], [16, 2, 2, 2]),
        box_prefetches([20, 3, 3, 3, 3], [16, 2, 2, 1, 2]),
    ]
}

/// A load through a prefetched tensor map.
fn map_prefetch() -> OpTrial {
    load_after(
        "tensor_prefetch",
        "tensor_prefetch",
        [32, 5],
        [32, 4],
        |map| {
            map.prefetch();
        },
    )
}

/// Prefetches of boxes at four coordinates, and a load of the first box.
fn box_prefetches<const R: usize>(extents: [u64; R], sides: [u32; R]) -> OpTrial
where
    [i32; R]: Coords<R>,
{
    let name = format!("tensor_prefetch_box, rank {R}");
    load_after(&name, "tensor_prefetch_box", extents, sides, |map| {
        for coords in box_coords(extents, sides) {
            map.prefetch_box(coords, None);
        }
    })
}

/// Calls `prefetch` and then loads the first box of a tensor.
fn load_after<const R: usize>(
    name: &str,
    covers: &'static str,
    extents: [u64; R],
    sides: [u32; R],
    prefetch: impl FnOnce(TensorMap),
) -> OpTrial
where
    [i32; R]: Coords<R>,
{
    let decl = unswizzled_map(DType::F32, sides);
    let [height, width] = tile_shape(&sides);
    let kernel = kernel(&format!("{covers}_{R}d"), |k| {
        let (map, out) = (k.tensor_map("x", decl.clone()), k.pointer::<f32>("tile"));
        let t = k.tile::<f32>("t", height, width).unswizzled().declare();
        let full = k.barrier("full", 1).arrivals(1);
        k.role("all").warps(1).body(|| {
            elect(|| {
                prefetch(map);
                full.at(0).arrive_expect(map.bytes());
                map.load(t.whole(), [0; R], full.at(0));
            });
            full.at(0).wait(0);
            store_tile(t.whole(), out, 0u32.reg());
        });
    });
    OpTrial::new(name, &[covers], kernel)
        .input_map(&extents, &values(Type::F32, elements(&extents), 80))
        .output("tile", Type::F32, (height * width) as usize)
}

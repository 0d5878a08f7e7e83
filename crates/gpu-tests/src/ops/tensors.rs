//! TMA boxes: every rank, swizzle and mode, inside a tensor and across its edges.

mod combined;
mod im2col;
mod prefetch;

use crate::trial::OpTrial;
use half::bf16;
use warpline_ir::builder::*;
use warpline_ir::{
    DType, Element, Operand, Scalar, Swizzle, TensorMapDecl, TensorMapMode, Tf32, Type,
};

pub(crate) fn trials() -> Vec<OpTrial> {
    let mut all = vec![
        box_loads([40], [32]),
        box_loads([20, 11], [16, 4]),
        box_loads([20, 7, 5], [16, 4, 2]),
        box_loads([20, 5, 4, 3], [16, 2, 2, 2]),
        box_loads([20, 3, 3, 3, 3], [16, 2, 2, 1, 2]),
        box_stores([40], [32]),
        box_stores([20, 11], [16, 4]),
        box_stores([20, 7, 5], [16, 4, 2]),
        box_stores([20, 5, 4, 3], [16, 2, 2, 2]),
        box_stores([20, 3, 3, 3, 3], [16, 2, 2, 1, 2]),
        store_outside(),
        strided_load(),
        strided_store(),
        tf32_load(),
        multicast(),
    ];
    for swizzle in [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128] {
        all.push(swizzled_copies::<u8>(swizzle));
        all.push(swizzled_copies::<bf16>(swizzle));
        all.push(swizzled_copies::<f32>(swizzle));
        all.push(swizzled_copies::<u64>(swizzle));
    }
    all.extend(prefetch::trials());
    all.extend(combined::trials());
    all.extend(im2col::trials());
    all
}

fn elements(extents: &[u64]) -> usize {
    extents.iter().product::<u64>() as usize
}

/// Returns the rows and columns of the tile of a box.
fn tile_shape(sides: &[u32]) -> [u32; 2] {
    [sides[1..].iter().product(), sides[0]]
}

/// Stores a tile to global memory.
fn store_tile<T: Element>(tile: TileRef<T>, out: Global<T>, first: Reg<u32>) {
    let count = tile.rows() * tile.cols();
    range(lane_id(), count).step_by(32u32).each(|i| {
        out.store(first + i, tile.load(i / tile.cols(), i % tile.cols()));
    });
}

/// Declares a tiled tensor map without swizzle.
fn unswizzled_map(dtype: DType, sides: impl Into<Vec<u32>>) -> TensorMapDecl {
    TensorMapDecl {
        dtype,
        tile: sides.into(),
        swizzle: Swizzle::None,
        mode: TensorMapMode::Tiled,
    }
}

/// Returns the coordinates of boxes inside a tensor, across its end, across its start, and outside of
/// it; all are aligned to 16 bytes.
fn box_coords<const R: usize>(extents: [u64; R], sides: [u32; R]) -> [[i32; R]; 4] {
    let coords: [[i32; R]; 4] = [
        [0; R],
        std::array::from_fn(|i| extents[i] as i32 - sides[i] as i32 / 2 - 1),
        std::array::from_fn(|i| -(i as i32 % 2) - 1),
        std::array::from_fn(|i| extents[i] as i32 + i as i32),
    ];
    coords.map(|mut at| {
        at[0] = at[0].div_euclid(4) * 4;
        at
    })
}

/// Loads of boxes at four coordinates.
fn box_loads<const R: usize>(extents: [u64; R], sides: [u32; R]) -> OpTrial
where
    [i32; R]: Coords<R>,
{
    let name = format!("tensor_load, rank {R}");
    let coords = box_coords(extents, sides);
    load_and_store_boxes(name, &["tensor_load"], extents, sides, &coords, &[])
}

/// Stores of boxes inside a tensor, across its end and outside of it, aligned to 16 bytes.
fn box_stores<const R: usize>(extents: [u64; R], sides: [u32; R]) -> OpTrial
where
    [i32; R]: Coords<R>,
{
    let name = format!("tensor_store, rank {R}");
    let coords = box_coords(extents, sides).map(|at| {
        let mut moved = at.map(|x| x.max(0) + 1);
        moved[0] -= 1;
        moved
    });
    load_and_store_boxes(
        name,
        &["tensor_store"],
        extents,
        sides,
        &[[0; R]; 4],
        &coords,
    )
}

/// Loads boxes from four coordinates and stores them to others.
fn load_and_store_boxes<const R: usize>(
    name: String,
    covers: &'static [&'static str],
    extents: [u64; R],
    sides: [u32; R],
    from: &[[i32; R]; 4],
    to: &[[i32; R]],
) -> OpTrial
where
    [i32; R]: Coords<R>,
{
    let decl = unswizzled_map(DType::F32, sides);
    let [height, width] = tile_shape(&sides);
    let kernel = super::kernel(&format!("{}_{R}d", covers[0]), |k| {
        let map = k.tensor_map("x", decl.clone());
        let (output_map, out) = (k.tensor_map("to", decl.clone()), k.pointer::<f32>("tiles"));
        let t = k
            .tile::<f32>("t", height, width)
            .unswizzled()
            .stages(4)
            .declare();
        let full = k.barrier("full", 4).arrivals(1);
        k.role("all").warps(1).body(|| {
            elect(|| {
                for (i, &at) in (0u32..).zip(from) {
                    full.at(i).arrive_expect(map.bytes());
                    map.load(t.stage(i), at, full.at(i));
                }
            });
            for i in 0..4u32 {
                full.at(i).wait(0);
                store_tile(t.stage(i), out, (i * height * width).reg());
            }
            elect(|| {
                for (i, &at) in (0u32..).zip(to) {
                    output_map.store(t.stage(i), at);
                    bulk_commit();
                    bulk_wait(0);
                }
            });
        });
    });
    let n = elements(&extents);
    OpTrial::new(name, covers, kernel)
        .input_map(&extents, &super::values(Type::F32, n, 70))
        .in_out_map(
            "tensor",
            Type::F32,
            &extents,
            &super::values(Type::F32, n, 71),
        )
        .output("tiles", Type::F32, (4 * height * width) as usize)
}

/// A store of a box outside of the tensor has no effect.
fn store_outside() -> OpTrial {
    let decl = unswizzled_map(DType::F32, [16, 4]);
    let kernel = super::kernel("tensor_outside", |k| {
        let map = k.tensor_map("to", decl.clone());
        let t = k.tile::<f32>("t", 4, 16).unswizzled().declare();
        k.role("all").warps(1).body(|| {
            let tile = t.whole();
            range(lane_id(), 64u32).step_by(32u32).each(|i| {
                tile.store(i / 16, i % 16, 1.0f32.reg());
            });
            fence_async();
            warp_sync();
            elect(|| {
                for at in [[20, 0], [0, 11], [24, 14]] {
                    map.store(tile, at);
                }
                bulk_commit();
                bulk_wait(0);
            });
        });
    });
    OpTrial::new("tensor_store, outside", &["tensor_store"], kernel).in_out_map(
        "tensor",
        Type::F32,
        &[20, 11],
        &super::values(Type::F32, 220, 82),
    )
}

/// Two panels of a swizzled tile, read by element.
fn swizzled_copies<T: Element>(swizzle: Swizzle) -> OpTrial {
    let (ty, dtype) = (T::Reg::TYPE, T::DTYPE);
    let inner = swizzle.span().unwrap_or(64) / dtype.bytes() as u32;
    let decl = TensorMapDecl {
        dtype,
        tile: vec![inner, 16],
        swizzle,
        mode: TensorMapMode::Tiled,
    };
    let panels = if swizzle == Swizzle::None { 1 } else { 2 };
    let span = swizzle.span().unwrap_or(0);
    let kernel = super::kernel(&format!("swizzle_{dtype}_{span}"), |k| {
        let map = k.tensor_map("x", decl.clone());
        let (to, out) = (k.tensor_map("to", decl.clone()), k.pointer::<T>("tile"));
        let t = k
            .tile::<T>("t", 16, panels * inner)
            .swizzle(swizzle)
            .declare();
        let full = k.barrier("full", 1).arrivals(1);
        k.role("all").warps(1).body(|| {
            let panel = |i: u32| t.whole().slice(0..16, i * inner..(i + 1) * inner);
            elect(|| {
                full.at(0).arrive_expect(panels * map.bytes());
                for i in 0..panels {
                    map.load(panel(i), [i * inner, 3], full.at(0));
                }
            });
            full.at(0).wait(0);
            store_tile(t.whole(), out, 0u32.reg());
            elect(|| {
                for i in 0..panels {
                    to.store(panel(i), [i * inner, 1]);
                }
                bulk_commit();
                bulk_wait(0);
            });
        });
    });
    let extents = [u64::from(panels * inner), 18];
    let n = elements(&extents);
    OpTrial::new(
        format!("tensor copies, {dtype} swizzled by {span}"),
        &["tensor_load", "tensor_store"],
        kernel,
    )
    .input_map(&extents, &super::values(ty, n, 72))
    .in_out_map("tensor", ty, &extents, &super::values(ty, n, 73))
    .output("tile", ty, (16 * panels * inner) as usize)
}

/// Loads every second row and every third plane.
fn strided_load() -> OpTrial {
    let decl = TensorMapDecl {
        dtype: DType::U32,
        tile: vec![16, 4, 2],
        swizzle: Swizzle::None,
        mode: TensorMapMode::Strided {
            element_strides: vec![1, 2, 3],
        },
    };
    let kernel = super::kernel("stepped", |k| {
        let map = k.tensor_map("x", decl.clone());
        let out = k.pointer::<u32>("tile");
        let t = k.tile::<u32>("t", 8, 16).unswizzled().stages(2).declare();
        let full = k.barrier("full", 2).arrivals(1);
        k.role("all").warps(1).body(|| {
            elect(|| {
                for (i, at) in (0u32..).zip([[0, 0, 0], [4, 3, -3]]) {
                    full.at(i).arrive_expect(map.bytes());
                    map.load(t.stage(i), at, full.at(i));
                }
            });
            for i in 0..2u32 {
                full.at(i).wait(0);
                store_tile(t.stage(i), out, (i * 128).reg());
            }
        });
    });
    let extents = [20, 9, 5];
    OpTrial::new("tensor_load, stepped", &["tensor_load"], kernel)
        .input_map(&extents, &super::words(elements(&extents), 74))
        .output("tiles", Type::U32, 256)
}

/// Stores to every second row and every third plane.
fn strided_store() -> OpTrial {
    let decl = TensorMapDecl {
        mode: TensorMapMode::Strided {
            element_strides: vec![1, 2, 3],
        },
        ..unswizzled_map(DType::U32, [16, 4, 2])
    };
    let kernel = super::kernel("stepped_store", |k| {
        let (x, map) = (k.pointer::<u32>("x"), k.tensor_map("to", decl.clone()));
        let t = k.tile::<u32>("t", 8, 16).unswizzled().declare();
        let full = k.barrier("full", 1).arrivals(1);
        k.role("all").warps(1).body(|| {
            elect(|| {
                full.at(0).arrive_expect(512u32);
                bulk_load(t.whole(), x.address(0u32), 512u32, full.at(0));
                full.at(0).wait(0);
                map.store(t.whole(), [4, 3, 1]);
                bulk_commit();
                bulk_wait(0);
            });
        });
    });
    let extents = [20, 9, 5];
    OpTrial::new("tensor_store, stepped", &["tensor_store"], kernel)
        .input(&super::words(128, 85))
        .in_out_map(
            "tensor",
            Type::U32,
            &extents,
            &super::words(elements(&extents), 86),
        )
}

/// A tf32 map clears the low 13 bits of box_loads values.
fn tf32_load() -> OpTrial {
    let decl = TensorMapDecl {
        swizzle: Swizzle::None,
        ..TensorMapDecl::tiled(DType::Tf32, [32, 8])
    };
    let kernel = super::kernel("rounded", |k| {
        let map = k.tensor_map("x", decl.clone());
        let out = k.pointer::<Tf32>("tile");
        let t = k.tile::<Tf32>("t", 8, 32).unswizzled().declare();
        let full = k.barrier("full", 1).arrivals(1);
        k.role("all").warps(1).body(|| {
            elect(|| {
                full.at(0).arrive_expect(map.bytes());
                map.load(t.whole(), [0, 0], full.at(0));
            });
            full.at(0).wait(0);
            store_tile(t.whole(), out, 0u32.reg());
        });
    });
    OpTrial::new("tensor_load, tf32", &["tensor_load"], kernel)
        .input_map(&[32, 8], &super::values(Type::F32, 256, 75))
        .output("tile", Type::U32, 256)
}

/// Each CTA of a cluster of two multicasts half of a tile to both.
fn multicast() -> OpTrial {
    let decl = TensorMapDecl::tiled(DType::Bf16, [64, 8]);
    let kernel = super::kernel("tensor_multicast", |k| {
        k.cluster(2, 1, 1);
        let map = k.tensor_map("x", decl.clone());
        let out = k.pointer::<bf16>("tiles");
        let t = k.tile::<bf16>("t", 16, 64).declare();
        let full = k.barrier("full", 1).arrivals(1);
        k.role("all").warps(1).body(|| {
            let rank = cluster_rank();
            elect(|| full.at(0).arrive_expect(2 * map.bytes()));
            elect(|| {
                for from in 0..2u32 {
                    if_(rank.eq(from), || {
                        let half = t.whole().slice(from * 8..from * 8 + 8, 0..64);
                        let cta_mask = Some(Operand::Imm(3));
                        map.load_with(half, [0, from * 8], full.at(0), cta_mask, None);
                    });
                }
            });
            full.at(0).wait_cluster(0);
            store_tile(t.whole(), out, rank * 1024);
        });
    });
    OpTrial::new("tensor_load, multicast", &["tensor_load"], kernel)
        .input_map(&[64, 16], &super::values(Type::Bf16, 1024, 76))
        .output("tiles", Type::Bf16, 2048)
}

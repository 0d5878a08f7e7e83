use warpline_ir::ops::bulk::Reduction;
use warpline_ir::ops::tensor::{TensorLoad, TensorStore};
use warpline_ir::*;
use warpline_testkit::raw::{RawKernel, bar, swizzled, view};

fn map(tile: &[u32], swizzle: Swizzle) -> TensorMapDecl {
    TensorMapDecl {
        dtype: DType::Bf16,
        tile: tile.to_vec(),
        swizzle,
        mode: TensorMapMode::Tiled,
    }
}

/// A load at line 10 of a box into a view of a 128×64 tile, with `coords` coordinates.
fn load(decl: TensorMapDecl, change: impl FnOnce(&mut View), coords: usize) -> RawKernel {
    let mut k = RawKernel::one();
    let tile = k.tile(5, "a", swizzled(128), 2);
    let full = k.barrier(6, "full", 2);
    let map = k.param(7, "a", ParamKind::TensorMap(decl));
    let mut dst = view(tile, 128, 64);
    change(&mut dst);
    let op = TensorLoad {
        map,
        dst,
        coords: vec![Operand::Imm(0); coords],
        offsets: vec![],
        bar: bar(full, 0),
        multicast: None,
        hint: None,
    };
    k.push(10, op);
    k
}

#[test]
fn a_box_that_fills_its_view_passes() {
    load(map(&[64, 128], Swizzle::B128), |_| {}, 2).passes();
    load(
        map(&[64, 64], Swizzle::B128),
        |v| (v.row, v.rows) = (64, 64),
        2,
    )
    .passes();
}

#[test]
fn an_illegal_box_is_refuted_at_its_declaration() {
    let text = load(map(&[64, 300], Swizzle::B128), |_| {}, 2).refuted("R13.map", 7);
    assert!(text.contains("box dimension 1 has 300 elements"), "{text}");
}

#[test]
fn a_box_and_a_view_of_different_sizes_are_refuted() {
    let text = load(map(&[64, 64], Swizzle::B128), |_| {}, 2).refuted("R13.bytes", 10);
    assert!(
        text.contains("8192 bytes; the view of tile `a` has 16384"),
        "{text}"
    );
}

#[test]
fn a_swizzle_that_differs_from_the_tile_is_refuted() {
    load(map(&[32, 256], Swizzle::B64), |_| {}, 2).refuted("R13.swizzle", 10);
}

#[test]
fn a_missing_coordinate_is_refuted() {
    let text = load(map(&[64, 128], Swizzle::B128), |_| {}, 1).refuted("R13.coords", 10);
    assert!(
        text.contains("2 coordinates and 0 im2col offsets; the copy passes 1 and 0"),
        "{text}"
    );
}

#[test]
fn a_view_that_is_not_atom_aligned_is_refuted() {
    let four_rows_down = |v: &mut View| (v.row, v.rows) = (4, 64);
    load(map(&[64, 64], Swizzle::B128), four_rows_down, 2).refuted("R13.view", 10);
}

#[test]
fn half_a_panel_is_refuted() {
    let left_half = |v: &mut View| v.cols = 32;
    load(map(&[32, 128], Swizzle::B128), left_half, 2).refuted("R13.view", 10);
}

/// A store of 128 rows of a tile through a map.
fn store(decl: TensorMapDecl, change: impl FnOnce(&mut TensorStore)) -> RawKernel {
    let mut k = RawKernel::one();
    let tile = k.tile(5, "a", swizzled(128), 1);
    let rank = decl.rank();
    let map = k.param(7, "a", ParamKind::TensorMap(decl));
    let mut op = TensorStore {
        map,
        src: view(tile, 128, 64),
        coords: vec![Operand::Imm(0); rank],
        im2col: false,
        reduce: None,
        hint: None,
    };
    change(&mut op);
    k.push(10, op);
    k
}

fn im2col() -> TensorMapDecl {
    TensorMapDecl {
        mode: TensorMapMode::Im2col {
            lower: vec![0, 0],
            upper: vec![0, 0],
            channels: 64,
            pixels: 128,
            element_strides: vec![1, 2],
        },
        ..map(&[], Swizzle::B128)
    }
}

#[test]
fn a_store_must_match_the_mode_of_the_map() {
    let tiled = || map(&[64, 128, 1], Swizzle::B128);
    store(im2col(), |s| s.im2col = true).passes();
    store(im2col(), |_| ()).refuted("R13.mode", 10);
    store(tiled(), |_| ()).passes();
    store(tiled(), |s| s.im2col = true).refuted("R13.mode", 10);
}

#[test]
fn a_reduction_must_support_the_element_type() {
    let tiled = || map(&[64, 128], Swizzle::B128);
    store(tiled(), |s| s.reduce = Some(Reduction::Add)).passes();
    store(tiled(), |s| s.reduce = Some(Reduction::Xor)).refuted("R13.reduce", 10);
}

#[test]
fn a_store_that_starts_before_its_tensor_is_refuted() {
    let at = |first: i32| {
        let tiled = map(&[64, 128], Swizzle::B128);
        store(tiled, |s| s.coords[1] = Operand::imm(first))
    };
    at(0).passes();
    at(-1).refuted("S.op", 10);
}

#[test]
fn a_box_that_is_not_16_byte_aligned_is_refuted() {
    let at = |first: u32| {
        let tiled = map(&[64, 128], Swizzle::B128);
        store(tiled, |s| s.coords[0] = Operand::imm(first))
    };
    at(8).passes();
    let text = at(4).refuted("R13.coords", 10);
    assert!(text.contains("element 4 of bf16, byte 8,"), "{text}");
}

#[test]
fn an_element_stride_of_the_inner_dimension_is_refuted() {
    let stepped = |steps: &[u32]| TensorMapDecl {
        mode: TensorMapMode::Strided {
            element_strides: steps.to_vec(),
        },
        ..map(&[64, 128], Swizzle::B128)
    };
    store(stepped(&[1, 2]), |_| ()).passes();
    store(stepped(&[2, 1]), |_| ()).refuted("R13.map", 7);
    store(stepped(&[1, 3]), |_| ()).refuted("R13.map", 7);
}

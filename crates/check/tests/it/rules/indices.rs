use warpline_ir::ops::{mbarrier, memory, tensor};
use warpline_ir::*;
use warpline_testkit::raw::{RawKernel, bar, plain, swizzled, view};

fn load(k: &mut RawKernel, place: SharedAddress) -> memory::Load {
    memory::Load {
        ty: Type::F32,
        dst: vec![k.reg(Type::F32)],
        at: MemoryAddress::Shared(place),
        cache: memory::LoadCache::DEFAULT,
    }
}

fn place(tile: TileId, stage: u64, offset: u32) -> SharedAddress {
    SharedAddress {
        tile,
        stage: Operand::Imm(stage),
        byte: Operand::Imm(0),
        offset,
        peer: None,
    }
}

#[test]
fn the_last_word_of_a_tile_passes() {
    let mut k = RawKernel::one();
    let t = k.tile(5, "x", plain(4, 8), 2);
    let op = load(&mut k, place(t, 1, 124));
    k.push(10, op);
    k.passes();
}

#[test]
fn a_stage_out_of_range_is_refuted() {
    let mut k = RawKernel::one();
    let t = k.tile(5, "x", plain(4, 8), 2);
    let op = load(&mut k, place(t, 2, 0));
    k.push(10, op);
    let text = k.refuted("S.stage", 10);
    assert!(
        text.contains("tile `x` has 2 stages, and the access names stage 2"),
        "{text}"
    );
}

#[test]
fn an_access_past_the_end_of_a_stage_is_refuted() {
    let mut k = RawKernel::one();
    let t = k.tile(5, "x", plain(4, 8), 2);
    let op = load(&mut k, place(t, 0, 128));
    k.push(10, op);
    let text = k.refuted("S.place", 10);
    assert!(
        text.contains("ends at byte 132, and a stage of tile"),
        "{text}"
    );
}

#[test]
fn a_view_outside_its_tile_is_refuted() {
    let mut k = RawKernel::one();
    let t = k.tile(5, "a", swizzled(64), 1);
    let decl = TensorMapDecl {
        dtype: DType::Bf16,
        tile: vec![64, 64],
        swizzle: Swizzle::B128,
        mode: TensorMapMode::Tiled,
    };
    let map = k.param(6, "a", ParamKind::TensorMap(decl));
    let mut src = view(t, 64, 64);
    src.row = 8;
    let coords = vec![Operand::Imm(0); 2];
    k.push(
        10,
        tensor::TensorStore {
            map,
            src,
            coords,
            im2col: false,
            reduce: None,
            hint: None,
        },
    );
    let text = k.refuted("S.view", 10);
    assert!(
        text.contains("the view 64×64 at row 8, column 0 is not inside"),
        "{text}"
    );
}

#[test]
fn a_barrier_index_out_of_range_is_refuted() {
    let mut k = RawKernel::one();
    let b = k.barrier(5, "full", 4);
    k.push(
        10,
        mbarrier::MbarrierInit {
            bar: bar(b, 4),
            count: 1,
        },
    );
    let text = k.refuted("S.barrier", 10);
    assert!(
        text.contains("`full[4]` does not exist; the array has 4 mbarriers"),
        "{text}"
    );
}

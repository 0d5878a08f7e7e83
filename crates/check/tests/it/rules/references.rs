use warpline_ir::ops::{arith, control, copy, mbarrier, special, tensor};
use warpline_ir::*;
use warpline_testkit::raw::{RawKernel, bar, swizzled, view};

#[test]
fn an_undeclared_register_is_refuted() {
    let mut k = RawKernel::one();
    let dst = k.reg(Type::U32);
    let src = RegId(7).into();
    k.push(
        20,
        arith::Mov {
            ty: Type::U32,
            dst,
            src,
        },
    );
    let text = k.refuted("S.reference", 20);
    assert_eq!(
        text,
        "kernel.rs:20: role `all`: undeclared name: %7 is used and not declared [S.reference]"
    );
}

#[test]
fn an_undeclared_barrier_is_refuted() {
    let mut k = RawKernel::one();
    k.push(
        21,
        mbarrier::MbarrierInit {
            bar: bar(BarId(0), 0),
            count: 1,
        },
    );
    k.refuted("S.reference", 21);
}

#[test]
fn cp_async_of_undeclared_barriers_and_tiles_is_refuted() {
    let mut k = RawKernel::one();
    let (bar, counted) = (bar(BarId(0), 0), true);
    k.push(
        23,
        copy::CopyArrive {
            bar,
            noinc: counted,
        },
    );
    k.refuted("S.reference", 23);
    let mut k = RawKernel::one();
    let (src, bytes) = (Operand::Imm(0), 16);
    let dst = SharedAddress {
        tile: TileId(2),
        stage: Operand::Imm(0),
        byte: Operand::Imm(0),
        offset: 0,
        peer: None,
    };
    k.push(
        24,
        copy::CopyAsync {
            dst,
            src,
            bytes,
            src_size: None,
            bypass_l1: true,
            l2_prefetch: None,
            hint: None,
        },
    );
    k.refuted("S.reference", 24);
}

#[test]
fn an_undeclared_named_barrier_is_refuted() {
    let mut k = RawKernel::one();
    k.push(
        22,
        control::NamedSync {
            bar: NamedId(3),
            threads: 128,
        },
    );
    k.refuted("S.reference", 22);
}

#[test]
fn an_undeclared_tile_and_tensor_map_are_refuted() {
    let mut k = RawKernel::one();
    let store = tensor::TensorStore {
        map: ParamId(0),
        src: view(TileId(0), 64, 64),
        coords: vec![Operand::Imm(0); 2],
        im2col: false,
        reduce: None,
        hint: None,
    };
    k.push(23, store);
    let codes: Vec<_> = k.diagnostics().iter().map(|r| r.text.clone()).collect();
    assert_eq!(
        codes,
        [
            "undeclared name: tile0 is used and not declared",
            "undeclared name: param0 is used and not declared"
        ]
    );
}

#[test]
fn an_alias_of_an_undeclared_tile_is_refuted() {
    let mut k = RawKernel::one();
    let tile = k.tile(9, "a", swizzled(64), 1);
    k.0.tiles[tile.index()].alias = Some(TileId(4));
    k.refuted("S.reference", 9);
}

#[test]
fn a_register_of_an_undeclared_role_is_refuted() {
    let mut k = RawKernel::one();
    let r = k.reg(Type::U32);
    k.0.regs[r.index()].role = Some(RoleId(5));
    k.0.regs[r.index()].loc = k.loc(24);
    k.refuted("S.reference", 24);
}

#[test]
fn a_parameter_read_as_another_type_is_refuted() {
    let mut k = RawKernel::one();
    let param = k.param(3, "n", ParamKind::Scalar(Type::U32));
    let dst = k.reg(Type::F32);
    k.push(
        25,
        special::ReadParam {
            dst,
            param,
            ty: Type::F32,
        },
    );
    let text = k.refuted("S.param", 25);
    assert!(text.contains("parameter `n` is declared as u32"), "{text}");
}

#[test]
fn a_pointer_used_as_a_tensor_map_is_refuted() {
    let mut k = RawKernel::one();
    let map = k.param(3, "x", ParamKind::Pointer(DType::F32));
    k.push(26, tensor::TensorPrefetch { map });
    k.refuted("S.param", 26);
}

#[test]
fn two_parameters_with_the_same_name_are_refuted() {
    let mut k = RawKernel::one();
    k.param(3, "n", ParamKind::Scalar(Type::U32));
    k.param(4, "n", ParamKind::Scalar(Type::U32));
    k.refuted("S.param-name", 4);
}

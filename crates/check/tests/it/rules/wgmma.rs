use warpline_ir::ops::wgmma::{MatrixA, MmaType, Wgmma, WgmmaFence};
use warpline_ir::*;
use warpline_testkit::raw::{RawKernel, plain, swizzled, view};

/// A kernel with a wgmma m64n64k16 at line 10 over two tiles; `change` edits it first.
fn wgmma_kernel(
    roles: &[(&str, u32)],
    change: impl FnOnce(&mut RawKernel, &mut Wgmma),
) -> RawKernel {
    let mut k = RawKernel::new(roles);
    let a = k.tile(5, "a", swizzled(64), 1);
    let b = k.tile(6, "b", swizzled(64), 1);
    let d = (0..32).map(|_| k.value(Type::F32)).collect();
    let mut op = Wgmma {
        a_ty: MmaType::Bf16,
        b_ty: MmaType::Bf16,
        n: 64,
        d,
        a: MatrixA::Shared(view(a, 64, 16), Major::K),
        b: view(b, 64, 16),
        b_major: Major::K,
        neg_a: false,
        neg_b: false,
        scale_d: Operand::Imm(1),
    };
    change(&mut k, &mut op);
    k.push(9, WgmmaFence);
    k.push(10, op);
    k
}

const ONE: &[(&str, u32)] = &[("math", 4)];

#[test]
fn a_legal_wgmma_passes() {
    wgmma_kernel(ONE, |_, _| {}).passes();
    wgmma_kernel(ONE, |_, op| op.b.col = 48).passes();
}

#[test]
fn an_illegal_shape_is_refuted() {
    wgmma_kernel(ONE, |_, op| {
        op.n = 60;
        op.d.truncate(30);
        op.b.rows = 60;
    })
    .refuted("R14.shape", 10);
}

#[test]
fn a_tile_without_swizzle_is_refuted() {
    wgmma_kernel(ONE, |k, op| {
        let b = k.tile(
            7,
            "c",
            TileLayout {
                element_bytes: 2,
                ..plain(64, 64)
            },
            1,
        );
        op.b = view(b, 64, 16);
    })
    .refuted("R14.operand", 10);
}

#[test]
fn a_tile_of_another_type_is_refuted() {
    let k = wgmma_kernel(ONE, |_, op| {
        (op.a_ty, op.b_ty) = (MmaType::F16, MmaType::F16)
    });
    let codes: Vec<_> = k.diagnostics().iter().map(|r| r.code()).collect();
    assert_eq!(codes, ["R14.operand", "R14.operand"]);
}

/// The same kernel with fp8 operands; the tile of B has type `b_tile`.
fn fp8(a_ty: MmaType, b_ty: MmaType, b_tile: DType) -> RawKernel {
    wgmma_kernel(ONE, |k, op| {
        let layout = TileLayout {
            element_bytes: 1,
            cols: 128,
            ..swizzled(64)
        };
        let (a, b) = (k.tile(7, "p", layout, 1), k.tile(8, "q", layout, 1));
        k.0.tiles[a.index()].dtype = a_ty.dtype();
        k.0.tiles[b.index()].dtype = b_tile;
        (op.a_ty, op.b_ty) = (a_ty, b_ty);
        op.a = MatrixA::Shared(view(a, 64, 32), Major::K);
        op.b = view(b, 64, 32);
    })
}

#[test]
fn mixed_fp8_operands_must_match_their_tiles() {
    let (e4, e5) = (MmaType::E4m3, MmaType::E5m2);
    fp8(e4, e5, DType::E5m2).passes();
    let text = fp8(e4, e5, DType::E4m3).refuted("R14.operand", 10);
    assert!(
        text.contains("wgmma reads e5m2, and tile `q` has e4m3"),
        "{text}"
    );
}

#[test]
fn a_view_that_is_not_atom_aligned_is_refuted() {
    wgmma_kernel(ONE, |_, op| {
        op.b.row = 4;
        op.b.rows = 56;
        op.n = 56;
        op.d.truncate(28);
    })
    .refuted("R14.operand", 10);
}

#[test]
fn a_role_of_partial_warpgroups_is_refuted() {
    let all = wgmma_kernel(&[("math", 2)], |_, _| {}).diagnostics();
    let seen: Vec<_> = all
        .iter()
        .map(|r| (r.code(), r.at.map(|f| f.line)))
        .collect();
    assert_eq!(seen, [9, 10].map(|line| ("R14.warpgroup", Some(line))));
    let text = &all[1].text;
    assert!(
        text.contains("role `math` has 2 warps from warp 0 on"),
        "{text}"
    );
}

#[test]
fn a_misaligned_warpgroup_is_refuted() {
    let mut k = RawKernel::new(&[("load", 2), ("math", 4)]);
    let stmt = k.op(10, WgmmaFence);
    k.run(1, stmt);
    k.refuted("R14.warpgroup", 10);
}

#[test]
fn a_wgmma_fence_in_a_divergent_branch_is_refuted() {
    let mut k = RawKernel::one();
    let body = Block(vec![k.op(11, WgmmaFence)]);
    let stmt = k.stmt(10, StmtKind::Elect { body });
    k.run(0, stmt);
    let codes: Vec<_> = k.diagnostics().iter().map(|r| r.code()).collect();
    assert_eq!(codes, ["R14.warpgroup", "R15.warp"]);
}

#[test]
fn a_wgmma_that_may_overwrite_needs_no_initialized_accumulators() {
    let fresh =
        |k: &mut RawKernel, op: &mut Wgmma| op.d = (0..32).map(|_| k.reg(Type::F32)).collect();
    wgmma_kernel(ONE, |k, op| {
        fresh(k, op);
        op.scale_d = k.value(Type::Pred).into();
    })
    .passes();
    wgmma_kernel(ONE, |k, op| {
        fresh(k, op);
        op.scale_d = Operand::Imm(0);
    })
    .passes();
    let diagnostics = wgmma_kernel(ONE, fresh).diagnostics();
    assert!(diagnostics.iter().all(|r| r.code() == "S.defined"));
    assert_eq!(diagnostics.len(), 32);
}

#[test]
fn a_wgmma_that_accumulates_needs_initialized_accumulators() {
    let unwritten = |k: &mut RawKernel, op: &mut Wgmma| {
        op.d = (0..32).map(|_| k.reg(Type::F32)).collect();
    };
    let diagnostics = wgmma_kernel(ONE, unwritten).diagnostics();
    assert_eq!(diagnostics.len(), 32);
    assert!(diagnostics.iter().all(|r| r.code() == "S.defined"));
    wgmma_kernel(ONE, |k, op| {
        unwritten(k, op);
        op.scale_d = Operand::Imm(0);
    })
    .passes();
    // With a predicate, the author promises that the first wgmma overwrites.
    wgmma_kernel(ONE, |k, op| {
        unwritten(k, op);
        op.scale_d = k.value(Type::Pred).into();
    })
    .passes();
}

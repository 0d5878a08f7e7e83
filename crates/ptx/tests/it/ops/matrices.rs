//! `ldmatrix`, `stmatrix`, `mma` and `wgmma`.

use crate::ops::op_kernel::{OpKernel, shared_address, view};
use warpline_ir::ops::matrix::*;
use warpline_ir::ops::mma::Mma;
use warpline_ir::ops::wgmma::*;
use warpline_ir::*;

pub(crate) fn matrix() -> OpKernel {
    let mut s = OpKernel::new("matrix");
    let tile = s.tile("c", 64, 64, Swizzle::B128, 2);
    let byte = s.value(Type::U32);
    let at = shared_address(tile, Operand::Imm(1), byte);
    for n in [1, 2, 4] {
        for trans in [false, true] {
            let dst = s.regs(Type::U32, n);
            s.op(LoadMatrix { dst, at, trans });
            let src = vec![s.value(Type::U32).into(); n];
            s.op(StoreMatrix { src, at, trans });
        }
    }
    for ty in [Type::U32, Type::F16x2, Type::Bf16x2] {
        let (dst, src) = (s.reg(ty), s.value(ty).into());
        s.op(TransposeMatrix { ty, dst, src });
    }
    s
}

/// Returns all supported operand type pairs.
fn pairs() -> impl Iterator<Item = (MmaType, MmaType)> {
    let all = MmaType::ALL.into_iter();
    all.flat_map(|a| MmaType::ALL.map(|b| (a, b)))
        .filter(|(a, b)| a.mixes(*b))
}

pub(crate) fn mma() -> OpKernel {
    let mut s = OpKernel::new("mma");
    for (a_ty, b_ty) in pairs() {
        for registers in [2, 4] {
            for c in s.reg_and_imm(Type::F32) {
                let d = s.regs(Type::F32, 4);
                let (a, b) = (s.value(a_ty.reg()).into(), s.value(b_ty.reg()).into());
                s.op(Mma {
                    a_ty,
                    b_ty,
                    d: [d[0], d[1], d[2], d[3]],
                    a: vec![a; registers],
                    b: vec![b; registers / 2],
                    c: [c; 4],
                });
            }
        }
    }
    s
}

pub(crate) fn wgmma() -> OpKernel {
    let mut s = OpKernel::new("wgmma");
    let a = s.tile("a", 64, 64, Swizzle::B128, 4);
    let b = s.tile("b", 256, 64, Swizzle::B128, 2);
    let at = s.tile("at", 64, 64, Swizzle::B64, 1);
    let bt = s.tile("bt", 64, 256, Swizzle::B128, 1);
    let h = s.tile("h", 64, 64, Swizzle::B32, 1);
    s.raw.0.tiles[h.index()].dtype = DType::F16;
    let (stage, first) = (s.value(Type::U32), Operand::Imm(0));
    let scale = s.value(Type::Pred).into();
    let accumulators = |s: &mut OpKernel, n: u32| s.regs(Type::F32, n as usize / 2);
    s.op(WgmmaFence);
    // Four k-steps in one stage, then the other layouts.
    let (n, d) = (256, accumulators(&mut s, 256));
    for k in 0..4 {
        s.op(Wgmma {
            a_ty: MmaType::Bf16,
            b_ty: MmaType::Bf16,
            n,
            d: d.clone(),
            a: MatrixA::Shared(view(a, stage, [0, 64, 16 * k, 16]), Major::K),
            b: view(b, stage, [0, n, 16 * k, 16]),
            b_major: Major::K,
            neg_a: false,
            neg_b: false,
            scale_d: scale,
        });
    }
    s.op(WgmmaCommit);
    s.op(WgmmaWait { pending: 0 });
    let (n, d) = (128, accumulators(&mut s, 128));
    s.op(WgmmaFence);
    s.op(Wgmma {
        a_ty: MmaType::Bf16,
        b_ty: MmaType::Bf16,
        n,
        d: d.clone(),
        a: MatrixA::Shared(view(at, first, [16, 16, 0, 64]), Major::Mn),
        b: view(bt, first, [16, 16, 64, n]),
        b_major: Major::Mn,
        neg_a: false,
        neg_b: false,
        scale_d: Operand::Imm(0),
    });
    let regs = s.value(Type::Bf16x2);
    s.op(Wgmma {
        a_ty: MmaType::Bf16,
        b_ty: MmaType::Bf16,
        n,
        d,
        a: MatrixA::Regs(vec![regs; 4]),
        b: view(b, Operand::Imm(1), [128, n, 32, 16]),
        b_major: Major::K,
        neg_a: false,
        neg_b: false,
        scale_d: Operand::Imm(1),
    });
    let (n, d) = (8, accumulators(&mut s, 8));
    s.op(Wgmma {
        a_ty: MmaType::F16,
        b_ty: MmaType::F16,
        n,
        d,
        a: MatrixA::Shared(view(h, first, [0, 64, 16, 16]), Major::K),
        b: view(h, first, [8, n, 32, 16]),
        b_major: Major::K,
        neg_a: false,
        neg_b: false,
        scale_d: Operand::Imm(0),
    });
    s.op(WgmmaCommit);
    s.op(WgmmaWait { pending: 1 });
    s.op(WgmmaWait { pending: 0 });
    s
}

/// Two k-steps of every type.
pub(crate) fn wgmma_types() -> OpKernel {
    let mut s = OpKernel::new("wgmma_types");
    let swizzles = [
        Swizzle::B128,
        Swizzle::B64,
        Swizzle::B32,
        Swizzle::B64,
        Swizzle::B128,
    ];
    let tiles: Vec<_> = MmaType::ALL
        .iter()
        .zip(swizzles)
        .map(|(&ty, swizzle)| {
            let name = |operand| format!("{operand}_{}", ty.name());
            let bytes = swizzle.span().map_or(64, |span| span.max(64));
            (
                tile_with_row_bytes(&mut s, &name("a"), ty, 64, bytes, swizzle),
                tile_with_row_bytes(&mut s, &name("b"), ty, 256, bytes, swizzle),
            )
        })
        .collect();
    let index = |ty| MmaType::ALL.iter().position(|&t| t == ty).unwrap();
    let d = s.regs(Type::F32, 128);
    let regs = MmaType::ALL.map(|ty| s.value(ty.reg()));
    s.op(WgmmaFence);
    for (a_ty, b_ty) in pairs() {
        let (a, b) = (tiles[index(a_ty)].0, tiles[index(b_ty)].1);
        let k = a_ty.k();
        for (n, step) in [(8, 0), (24, 1), (256, 1)] {
            let columns = [step * k, k];
            let view = |tile, rows| view(tile, Operand::Imm(0), [0, rows, columns[0], columns[1]]);
            let shared = MatrixA::Shared(view(a, 64), Major::K);
            let in_regs = MatrixA::Regs(vec![regs[index(a_ty)]; 4]);
            for (i, a) in [shared, in_regs].into_iter().enumerate() {
                s.op(Wgmma {
                    a_ty,
                    b_ty,
                    n,
                    d: d[..n as usize / 2].to_vec(),
                    a,
                    b: view(b, n),
                    b_major: Major::K,
                    neg_a: n == 24,
                    neg_b: n == 24 && i == 1,
                    scale_d: Operand::Imm(0),
                });
            }
        }
    }
    s.op(WgmmaCommit);
    s.op(WgmmaWait { pending: 0 });
    s
}

/// Operands of 16 bits, transposed or not.
pub(crate) fn wgmma_transposed() -> OpKernel {
    let mut s = OpKernel::new("wgmma_transposed");
    let d = s.regs(Type::F32, 12);
    for ty in [MmaType::Bf16, MmaType::F16] {
        let tile = tile_with_row_bytes(&mut s, ty.name(), ty, 64, 128, Swizzle::B128);
        let view = |major, mn| {
            let [rows, cols] = match major {
                Major::K => [mn, 16],
                Major::Mn => [16, mn],
            };
            view(tile, Operand::Imm(0), [0, rows, 0, cols])
        };
        let regs = MatrixA::Regs(vec![s.value(ty.reg()); 4]);
        let majors = [Major::K, Major::Mn];
        let shared = majors.map(|major| MatrixA::Shared(view(major, 64), major));
        s.op(WgmmaFence);
        for a in shared.into_iter().chain([regs]) {
            for b_major in majors {
                s.op(Wgmma {
                    a_ty: ty,
                    b_ty: ty,
                    n: 24,
                    d: d.clone(),
                    a: a.clone(),
                    b: view(b_major, 24),
                    b_major,
                    neg_a: false,
                    neg_b: false,
                    scale_d: Operand::Imm(0),
                });
            }
        }
        s.op(WgmmaCommit);
        s.op(WgmmaWait { pending: 0 });
    }
    s
}

/// Declares a tile by the bytes of a row.
fn tile_with_row_bytes(
    s: &mut OpKernel,
    name: &str,
    ty: MmaType,
    rows: u32,
    bytes: u32,
    swizzle: Swizzle,
) -> TileId {
    let id = s.tile(name, rows, bytes / 2, swizzle, 1);
    let tile = &mut s.raw.0.tiles[id.index()];
    tile.dtype = ty.dtype();
    (tile.layout.element_bytes, tile.layout.cols) = (ty.bytes(), bytes / ty.bytes());
    id
}

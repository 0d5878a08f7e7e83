//! Matrix instructions of one warp: `mma.sync` and `movmatrix`.

use super::reg::{Reg, Value};
use super::state::emit;
use crate::ops::matrix::TransposeMatrix;
use crate::ops::mma::{Mma, MmaType};
use crate::types::{Bf16x2, E4m3x4, E5m2x4, F16x2, Scalar, Tf32};

/// A 32-bit register that `ldmatrix` fills: two adjacent 16-bit elements, or other elements
/// in the same 4 bytes.
pub trait MatrixWord: Scalar {}

/// A register of two 16-bit elements.
pub trait MatrixPair: MatrixWord {}

/// A register of adjacent elements along K: an operand register of `mma.sync`.
pub trait MmaWord: MatrixWord {
    /// The element type.
    const MMA: MmaType;
}

/// An A operand register that `mma.sync` multiplies by `B`: the same type, or fp8 by fp8.
pub trait MmaWith<B: MmaWord>: MmaWord {}

impl MatrixWord for u32 {}
impl MatrixPair for u32 {}
impl MatrixPair for F16x2 {}
impl MatrixPair for Bf16x2 {}

macro_rules! fragments {
    ($($reg:ident: $ty:ident with $($b:ident),*;)*) => {$(
        impl MatrixWord for $reg {}
        impl MmaWord for $reg {
            const MMA: MmaType = MmaType::$ty;
        }
        $(impl MmaWith<$b> for $reg {})*
    )*};
}
fragments! {
    Bf16x2: Bf16 with Bf16x2;
    F16x2: F16 with F16x2;
    Tf32: Tf32 with Tf32;
    E4m3x4: E4m3 with E4m3x4, E5m2x4;
    E5m2x4: E5m2 with E4m3x4, E5m2x4;
}

/// Computes `a · b + c` with a whole warp (`mma.sync`): 16×k by k×8, where k is 32 bytes
/// ([`MmaType::k`]).
///
/// [`mma_a_at`](crate::mma_a_at), [`mma_b_at`](crate::mma_b_at) and
/// [`accumulator_at`](crate::accumulator_at) return the elements that a lane holds.
#[track_caller]
pub fn mma_sync<A: MmaWith<B>, B: MmaWord>(
    c: [impl Value<f32>; 4],
    a: [Reg<A>; 4],
    b: [Reg<B>; 2],
) -> [Reg<f32>; 4] {
    mma(c, &a, &b)
}

/// Like [`mma_sync`], with half of k, in half of the operand registers.
#[track_caller]
pub fn mma_sync_half<A: MmaWith<B>, B: MmaWord>(
    c: [impl Value<f32>; 4],
    a: [Reg<A>; 2],
    b: [Reg<B>; 1],
) -> [Reg<f32>; 4] {
    mma(c, &a, &b)
}

#[track_caller]
fn mma<A: MmaWith<B>, B: MmaWord>(
    c: [impl Value<f32>; 4],
    a: &[Reg<A>],
    b: &[Reg<B>],
) -> [Reg<f32>; 4] {
    let d: [Reg<f32>; 4] = std::array::from_fn(|_| Reg::fresh());
    emit(Mma {
        a_ty: A::MMA,
        b_ty: B::MMA,
        d: d.map(|r| r.id()),
        a: a.iter().map(|r| r.operand()).collect(),
        b: b.iter().map(|r| r.operand()).collect(),
        c: c.map(|c| c.operand()),
    });
    d
}

impl<T: MatrixPair> Reg<T> {
    /// Transposes an 8×8 matrix in the registers of the warp (`movmatrix`).
    #[track_caller]
    pub fn transpose_matrix(self) -> Reg<T> {
        let dst = Reg::fresh();
        emit(TransposeMatrix {
            ty: T::TYPE,
            dst: dst.id(),
            src: self.operand(),
        });
        dst
    }
}

//! Matrices of one warp: products in registers, and 8×8 matrices spread over the lanes.

use super::reg::{Reg, Value};
use super::state::emit;
use crate::ops::matrix::TransposeMatrix;
use crate::ops::mma::{Mma, MmaType};
use crate::types::{Bf16x2, E4m3x4, E5m2x4, F16x2, Scalar, Tf32};

/// A register of 32 bits that `ldmatrix` fills: two neighbours of 16 bits, or
/// what lies in their place.
pub trait MatrixWord: Scalar {}

/// A register of two 16-bit elements.
pub trait MatrixPair: MatrixWord {}

/// A register of neighbours along K, as products take them.
pub trait Fragment: MatrixWord {
    /// The element type.
    const MMA: MmaType;
}

/// A fragment of A that multiplies fragments `B`: of its own type, or fp8 with fp8.
pub trait Mixes<B: Fragment>: Fragment {}

impl MatrixWord for u32 {}
impl MatrixPair for u32 {}
impl MatrixPair for F16x2 {}
impl MatrixPair for Bf16x2 {}

macro_rules! fragments {
    ($($reg:ident: $ty:ident with $($b:ident),*;)*) => {$(
        impl MatrixWord for $reg {}
        impl Fragment for $reg {
            const MMA: MmaType = MmaType::$ty;
        }
        $(impl Mixes<$b> for $reg {})*
    )*};
}
fragments! {
    Bf16x2: Bf16 with Bf16x2;
    F16x2: F16 with F16x2;
    Tf32: Tf32 with Tf32;
    E4m3x4: E4m3 with E4m3x4, E5m2x4;
    E5m2x4: E5m2 with E4m3x4, E5m2x4;
}

/// `a · b + c` by a whole warp (`mma.sync`): 16×k times k×8, k being 32 bytes
/// ([`MmaType::k`]).
///
/// [`mma_a_at`](crate::mma_a_at), [`mma_b_at`](crate::mma_b_at) and
/// [`accumulator_at`](crate::accumulator_at) say which elements a lane holds.
#[track_caller]
pub fn mma_sync<A: Mixes<B>, B: Fragment>(
    c: [impl Value<f32>; 4],
    a: [Reg<A>; 4],
    b: [Reg<B>; 2],
) -> [Reg<f32>; 4] {
    mma(c, &a, &b)
}

/// As [`mma_sync`], with half of k in half of the registers.
#[track_caller]
pub fn mma_sync_half<A: Mixes<B>, B: Fragment>(
    c: [impl Value<f32>; 4],
    a: [Reg<A>; 2],
    b: [Reg<B>; 1],
) -> [Reg<f32>; 4] {
    mma(c, &a, &b)
}

#[track_caller]
fn mma<A: Mixes<B>, B: Fragment>(
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
    /// The 8×8 matrix that is spread over the warp, transposed (`movmatrix`).
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

//! Operands of `wgmma`: tiles, transposed tiles, and registers.

use super::flow::Carry;
use super::frag::{Frag, FragOwner};
use super::k_order::{KOrder, Natural, Pairs, WordLoadableOrder};
use super::mma::MatrixWord;
use super::pack::{Packed, RoundedPair};
use super::reg::{Reg, Var};
use super::slot::{Consuming, Slot};
use super::state::{caller_scope, error};
use super::tile::{Tile, TileRef};
use super::warp::{lane_id, warp_in_role};
use crate::layout::Major;
use crate::ops::wgmma::{MatrixA, MmaType};
use crate::types::{Bf16x2, DType, E4m3, E4m3x4, E5m2, E5m2x4, Element, F16x2, Scalar, Tf32};
use crate::value::{RegId, View};
use half::{bf16, f16};
use std::marker::PhantomData;

/// A B operand of `wgmma`: n × k in shared memory.
pub trait OperandB<K: KOrder> {
    /// Returns the element type.
    fn dtype(&self) -> DType;
    /// Returns n (or m) and k.
    fn shape(&self) -> (u32, u32);
    /// Returns the view of `mn_len` values of N (or M) from `mn`, and `k_len` of K from `k`.
    fn part(&self, mn: u32, mn_len: u32, k: u32, k_len: u32) -> (View, Major);
    /// Returns the element type of the matrix instruction.
    fn mma_type(&self) -> Option<MmaType> {
        MmaType::from_dtype(self.dtype())
    }
}

/// An A operand of `wgmma`: m × k in shared memory or registers.
pub trait OperandA<K: KOrder> {
    /// Returns the element type.
    fn dtype(&self) -> DType;
    /// Returns m and k.
    fn shape(&self) -> (u32, u32);
    /// Returns the operand of 64 rows from `row`, and `k_len` values of K from `k`.
    fn matrix(&self, row: u32, k: u32, k_len: u32) -> MatrixA;
    /// Returns the element type of the matrix instruction.
    fn mma_type(&self) -> Option<MmaType> {
        MmaType::from_dtype(self.dtype())
    }
}

impl<T: Element, K: KOrder> OperandB<K> for TileRef<T, K> {
    fn dtype(&self) -> DType {
        T::DTYPE
    }
    fn shape(&self) -> (u32, u32) {
        (self.rows(), self.cols())
    }
    fn part(&self, mn: u32, mn_len: u32, k: u32, k_len: u32) -> (View, Major) {
        let v = self.view;
        let view = View {
            row: v.row + mn,
            rows: mn_len,
            col: v.col + k,
            cols: k_len,
            ..v
        };
        (view, Major::K)
    }
}

/// A tile as an MN-major operand: k × m or k × n, with M or N contiguous.
#[derive(Clone, Copy, Debug)]
pub struct Transposed<T, K = Natural>(TileRef<T, K>);

impl<T: Element, K: KOrder> TileRef<T, K> {
    /// Returns the tile as a transposed (MN-major) operand, whose rows are K; 16-bit elements only.
    pub fn t(self) -> Transposed<T, K> {
        Transposed(self)
    }
}

impl<T: Element, K: KOrder> OperandB<K> for Transposed<T, K> {
    fn dtype(&self) -> DType {
        T::DTYPE
    }
    fn shape(&self) -> (u32, u32) {
        (self.0.cols(), self.0.rows())
    }
    fn part(&self, mn: u32, mn_len: u32, k: u32, k_len: u32) -> (View, Major) {
        let (view, _) = OperandB::<K>::part(&self.0, k, k_len, mn, mn_len);
        (view, Major::Mn)
    }
}

macro_rules! a_in_shared_memory {
    ($($t:ident),*) => {$(
        impl<T: Element, K: KOrder> OperandA<K> for $t<T, K> {
            fn dtype(&self) -> DType {
                T::DTYPE
            }
            fn shape(&self) -> (u32, u32) {
                OperandB::<K>::shape(self)
            }
            fn matrix(&self, row: u32, k: u32, k_len: u32) -> MatrixA {
                let (view, major) = self.part(row, 64, k, k_len);
                MatrixA::Shared(view, major)
            }
        }
    )*};
}
a_in_shared_memory!(TileRef, Transposed);

/// An element type of an A operand in registers.
pub trait MmaElement: Element {
    /// The 32-bit register that holds adjacent elements along K.
    type Word: Scalar;
}
macro_rules! mma_elements {
    ($($t:ty: $word:ty;)*) => {$(impl MmaElement for $t { type Word = $word; })*};
}
mma_elements! {
    bf16: Bf16x2;
    f16: F16x2;
    Tf32: Tf32;
    E4m3: E4m3x4;
    E5m2: E5m2x4;
}

/// A 16-bit floating-point element: `f16` or `bf16`.
pub trait Half: Element + MmaElement<Word = Self::Pair> {
    /// The register of two elements.
    type Pair: Packed<Half = Self::Reg> + RoundedPair + MatrixWord;
}
impl Half for bf16 {
    type Pair = Bf16x2;
}
impl Half for f16 {
    type Pair = F16x2;
}

/// An A operand in the registers of a warpgroup: m × k, with K in order `K`.
///
/// No instruction may write its registers while `wgmma` reads them. The registers are
/// immutable, so this always holds.
#[derive(Clone, Debug)]
pub struct RegOperand<T, K = Natural> {
    m: u32,
    k: u32,
    /// Four registers for each 64 rows and instruction K, in K order within a row block.
    regs: Vec<RegId>,
    ty: PhantomData<fn() -> (T, K)>,
}

impl<T: MmaElement, K: KOrder> RegOperand<T, K> {
    pub(super) fn new(m: u32, k: u32, regs: Vec<RegId>) -> Self {
        Self {
            m,
            k,
            regs,
            ty: PhantomData,
        }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u32 {
        self.m
    }

    /// Returns the number of columns, which are K.
    pub fn cols(&self) -> u32 {
        self.k
    }

    /// Applies `f` to every register, to scale or convert the operand.
    #[track_caller]
    pub fn map(&self, mut f: impl FnMut(Reg<T::Word>) -> Reg<T::Word>) -> Self {
        let _caller = caller_scope();
        let regs = self.regs.iter().map(|&r| f(Reg::of(r)).id()).collect();
        Self::new(self.m, self.k, regs)
    }
}

impl<T: MmaElement, K: KOrder> OperandA<K> for RegOperand<T, K> {
    fn dtype(&self) -> DType {
        T::DTYPE
    }
    fn shape(&self) -> (u32, u32) {
        (self.m, self.k)
    }
    fn matrix(&self, row: u32, k: u32, k_len: u32) -> MatrixA {
        let step = row / 64 * (self.k / k_len) + k / k_len;
        let first = 4 * step as usize;
        // A rejected operand has no registers.
        MatrixA::Regs(self.regs.get(first..first + 4).unwrap_or_default().to_vec())
    }
}

/// Returns the first row of the warp in an A operand, and the lane.
#[track_caller]
pub(super) fn warp_row_and_lane() -> (Reg<u32>, Reg<u32>) {
    ((warp_in_role() & 3) * 16, lane_id())
}

impl<T: MmaElement<Word: MatrixWord>, K: KOrder> RegOperand<T, K> {
    /// Loads a tile of m × k from shared memory (`ldmatrix`, for any element size).
    #[track_caller]
    pub fn load(from: &TileRef<T, K>) -> Self {
        let _caller = caller_scope();
        let (m, k) = (from.rows(), from.cols());
        let matrix_cols = 16 / T::DTYPE.bytes() as u32;
        if !check_shape("a register operand", m, k, 2 * matrix_cols) {
            return Self::new(m, k, Vec::new());
        }
        let (warp, lane) = warp_row_and_lane();
        let (row, col) = (warp + (lane & 15), (lane >> 4) * matrix_cols);
        let mut regs = Vec::new();
        for r in (0..m).step_by(64) {
            for k in (0..k).step_by(2 * matrix_cols as usize) {
                let words: [Reg<T::Word>; 4] = from.load_matrix(row + r, col + k, false);
                regs.extend(words.map(|w| w.id()));
            }
        }
        Self::new(m, k, regs)
    }
}

/// One-byte codes in the registers of a warpgroup, m × k, four adjacent codes per register;
/// [`decode`](Self::decode) converts them to an A operand.
#[derive(Clone, Debug)]
pub struct RegBytes<K = Natural> {
    m: u32,
    k: u32,
    /// Two words for each 64 rows and 16 values of K: one in row `lane / 4`, one in the row 8 below.
    words: Vec<Reg<u32>>,
    order: PhantomData<fn() -> K>,
}

impl<K: WordLoadableOrder> RegBytes<K> {
    fn new(m: u32, k: u32, words: Vec<Reg<u32>>) -> Self {
        Self {
            m,
            k,
            words,
            order: PhantomData,
        }
    }

    /// Loads a tile of 1-byte elements from shared memory.
    #[track_caller]
    pub fn load<U: Element>(from: &TileRef<U, K>) -> Self {
        let _caller = caller_scope();
        let (m, k) = (from.rows(), from.cols());
        if U::DTYPE.bytes() != 1 {
            error(
                "operand-bytes",
                format!(
                    "RegBytes::load needs a tile of 1-byte elements; this tile has {}",
                    U::DTYPE
                ),
            );
        }
        if !check_shape("a decoded operand", m, k, 16) {
            return Self::new(m, k, Vec::new());
        }
        let (warp, lane) = warp_row_and_lane();
        let (row, col) = (warp + (lane >> 2), (lane & 3) * 4);
        let mut words = Vec::new();
        for r in (0..m).step_by(64) {
            for k in (0..k).step_by(16) {
                for down in [0, 8] {
                    words.extend(from.load_as::<u32, 1>(row + (r + down), col + k));
                }
            }
        }
        Self::new(m, k, words)
    }

    /// Decodes the bytes to an A operand: `f` receives four adjacent codes of a row, the first
    /// in the low byte, and returns them as two pairs.
    ///
    /// The operand holds K in another order than the bytes ([`WordLoadableOrder`]). Decode
    /// after the wait for the previous `wgmma`, whose operand may use the same registers.
    #[track_caller]
    pub fn decode<T: Half>(
        &self,
        mut f: impl FnMut(Reg<u32>) -> [Reg<T::Pair>; 2],
    ) -> RegOperand<T, K::Loaded> {
        let _caller = caller_scope();
        let regs = self.words.chunks(2).flat_map(|rows| {
            let (upper, lower) = (f(rows[0]), f(rows[1]));
            // Odd registers hold the row 8 below; the last two hold the second pair.
            [upper[0], lower[0], upper[1], lower[1]].map(|r| r.id())
        });
        let regs = regs.collect();
        RegOperand::new(self.m, self.k, regs)
    }
}

impl<K: WordLoadableOrder> Carry for RegBytes<K> {
    type Vars = (u32, u32, Vec<Var<u32>>);
    #[track_caller]
    fn open(self) -> Self::Vars {
        (self.m, self.k, self.words.open())
    }
    #[track_caller]
    fn load(vars: &Self::Vars) -> Self {
        Self::new(vars.0, vars.1, Carry::load(&vars.2))
    }
    #[track_caller]
    fn store(vars: &Self::Vars, value: Self) {
        Carry::store(&vars.2, value.words);
    }
}

/// Checks that an operand consists of blocks of 64 × `step`.
#[track_caller]
pub(super) fn check_shape(operand: &str, m: u32, k: u32, step: u32) -> bool {
    let is_valid = m.is_multiple_of(64) && k.is_multiple_of(step) && m > 0 && k > 0;
    if !is_valid {
        error(
            "operand-shape",
            format!(
                "{operand} of {m} x {k} is invalid; rows must be a multiple of 64, columns of {step}"
            ),
        );
    }
    is_valid
}

/// An element type that a fragment can be rounded to as an A operand.
pub trait FragOperand: MmaElement {
    /// The order of K in the operand.
    type Order: KOrder;
    /// Rounds a fragment to an operand.
    fn operand(from: &Frag) -> RegOperand<Self, Self::Order>;
}

/// Checks the shape of a fragment and rounds its values to operand registers.
#[track_caller]
fn round_fragment<T: MmaElement, K: KOrder>(
    from: &Frag,
    step: u32,
    f: impl FnMut(&[Reg<f32>]) -> [RegId; 4],
) -> RegOperand<T, K> {
    let (m, k) = (from.rows(), from.cols());
    if !k.is_multiple_of(step) || from.owner() != FragOwner::Warpgroup {
        error(
            "operand-shape",
            format!(
                "a fragment of {m} x {k} cannot become an operand of {}; it needs a warpgroup fragment with a multiple of {step} columns",
                T::DTYPE
            ),
        );
        return RegOperand::new(m, k, Vec::new());
    }
    let regs = from.values().chunks(step as usize / 2).flat_map(f);
    RegOperand::new(m, k, regs.collect())
}

macro_rules! half_words {
    ($($t:ty: $pair:ty;)*) => {$(
        impl FragOperand for $t {
            type Order = Natural;
            #[track_caller]
            fn operand(from: &Frag) -> RegOperand<Self, Natural> {
                round_fragment(from, 16, |v| {
                    std::array::from_fn(|i| Reg::<$pair>::round(v[2 * i], v[2 * i + 1]).id())
                })
            }
        }
    )*};
}
half_words! { bf16: Bf16x2; f16: F16x2; }

macro_rules! byte_words {
    ($($t:ty: $word:ty;)*) => {$(
        impl FragOperand for $t {
            type Order = Pairs;
            #[track_caller]
            fn operand(from: &Frag) -> RegOperand<Self, Pairs> {
                // A lane holds one pair of each of four blocks of 8 columns, in two rows;
                // a register takes the pairs of two blocks.
                round_fragment(from, 32, |v| {
                    let register = |i: usize| Reg::<$word>::round4([v[i], v[i + 1], v[i + 4], v[i + 5]]);
                    [0, 2, 8, 10].map(|i| register(i).id())
                })
            }
        }
    )*};
}
byte_words! { E4m3: E4m3x4; E5m2: E5m2x4; }

impl<T: MmaElement, K: KOrder> Carry for RegOperand<T, K> {
    type Vars = (u32, u32, Vec<Var<T::Word>>);
    #[track_caller]
    fn open(self) -> Self::Vars {
        let vars = self.regs.iter().map(|&r| Var::new(Reg::of(r))).collect();
        (self.m, self.k, vars)
    }
    #[track_caller]
    fn load(vars: &Self::Vars) -> Self {
        let regs = vars.2.iter().map(|v| v.get().id()).collect();
        Self::new(vars.0, vars.1, regs)
    }
    #[track_caller]
    fn store(vars: &Self::Vars, value: Self) {
        for (v, &r) in vars.2.iter().zip(&value.regs) {
            v.set(Reg::of(r));
        }
    }
}

/// The tile of a slot with one tile.
impl<T: Element> OperandB<Natural> for Slot<Tile<T>, Consuming> {
    fn dtype(&self) -> DType {
        T::DTYPE
    }
    fn shape(&self) -> (u32, u32) {
        OperandB::<Natural>::shape(&self.tiles())
    }
    fn part(&self, mn: u32, mn_len: u32, k: u32, k_len: u32) -> (View, Major) {
        OperandB::<Natural>::part(&self.tiles(), mn, mn_len, k, k_len)
    }
}

impl<T: Element> OperandA<Natural> for Slot<Tile<T>, Consuming> {
    fn dtype(&self) -> DType {
        T::DTYPE
    }
    fn shape(&self) -> (u32, u32) {
        OperandB::<Natural>::shape(&self.tiles())
    }
    fn matrix(&self, row: u32, k: u32, k_len: u32) -> MatrixA {
        OperandA::<Natural>::matrix(&self.tiles(), row, k, k_len)
    }
}

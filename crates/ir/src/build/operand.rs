//! Operands of warpgroup products: tiles, transposed tiles, and registers.

use super::flow::Carry;
use super::frag::{Frag, Team};
use super::korder::{ByWords, KOrder, Natural, Pairs};
use super::mma::MatrixWord;
use super::pack::{Packed, Rounded};
use super::reg::{Reg, Var};
use super::slot::{Reading, Slot};
use super::state::{error, here};
use super::tile::{Tile, TileRef};
use super::warp::{lane_id, warp_in_role};
use crate::layout::Major;
use crate::ops::wgmma::{MatrixA, MmaType};
use crate::types::{Bf16x2, DType, E4m3, E4m3x4, E5m2, E5m2x4, Element, F16x2, Scalar, Tf32};
use crate::value::{RegId, View};
use half::{bf16, f16};
use std::marker::PhantomData;

/// A right operand of a product, B: n × k in shared memory.
pub trait Right<K: KOrder> {
    /// Element type.
    fn dtype(&self) -> DType;
    /// n (or m) and k.
    fn shape(&self) -> (u32, u32);
    /// The rectangle of `mns` of n (or m) from `mn` on and `ks` of k from `k` on.
    fn part(&self, mn: u32, mns: u32, k: u32, ks: u32) -> (View, Major);
    /// As the matrix unit names the element type.
    fn mma_type(&self) -> Option<MmaType> {
        MmaType::of(self.dtype())
    }
}

/// A left operand of a product, A: m × k in shared memory or registers.
pub trait Left<K: KOrder> {
    /// Element type.
    fn dtype(&self) -> DType;
    /// m and k.
    fn shape(&self) -> (u32, u32);
    /// The 64 rows from `row` on and `ks` of k from `k` on.
    fn matrix(&self, row: u32, k: u32, ks: u32) -> MatrixA;
    /// As the matrix unit names the element type.
    fn mma_type(&self) -> Option<MmaType> {
        MmaType::of(self.dtype())
    }
}

impl<T: Element, K: KOrder> Right<K> for TileRef<T, K> {
    fn dtype(&self) -> DType {
        T::DTYPE
    }
    fn shape(&self) -> (u32, u32) {
        (self.rows(), self.cols())
    }
    fn part(&self, mn: u32, mns: u32, k: u32, ks: u32) -> (View, Major) {
        let v = self.view;
        let view = View {
            row: v.row + mn,
            rows: mns,
            col: v.col + k,
            cols: ks,
            ..v
        };
        (view, Major::K)
    }
}

/// A tile read the other way: k × m, or k × n, with M or N contiguous.
#[derive(Clone, Copy, Debug)]
pub struct Transposed<T, K = Natural>(TileRef<T, K>);

impl<T: Element, K: KOrder> TileRef<T, K> {
    /// The tile as an operand whose rows are K: 16-bit elements only.
    pub fn t(self) -> Transposed<T, K> {
        Transposed(self)
    }
}

impl<T: Element, K: KOrder> Right<K> for Transposed<T, K> {
    fn dtype(&self) -> DType {
        T::DTYPE
    }
    fn shape(&self) -> (u32, u32) {
        (self.0.cols(), self.0.rows())
    }
    fn part(&self, mn: u32, mns: u32, k: u32, ks: u32) -> (View, Major) {
        let (view, _) = Right::<K>::part(&self.0, k, ks, mn, mns);
        (view, Major::Mn)
    }
}

macro_rules! left_in_shared_memory {
    ($($t:ident),*) => {$(
        impl<T: Element, K: KOrder> Left<K> for $t<T, K> {
            fn dtype(&self) -> DType {
                T::DTYPE
            }
            fn shape(&self) -> (u32, u32) {
                Right::<K>::shape(self)
            }
            fn matrix(&self, row: u32, k: u32, ks: u32) -> MatrixA {
                let (view, major) = self.part(row, 64, k, ks);
                MatrixA::Shared(view, major)
            }
        }
    )*};
}
left_in_shared_memory!(TileRef, Transposed);

/// An element type that products take from registers.
pub trait Multiplied: Element {
    /// The register that holds neighbours of K.
    type Word: Scalar;
}
macro_rules! multiplied {
    ($($t:ty: $word:ty;)*) => {$(impl Multiplied for $t { type Word = $word; })*};
}
multiplied! {
    bf16: Bf16x2;
    f16: F16x2;
    Tf32: Tf32;
    E4m3: E4m3x4;
    E5m2: E5m2x4;
}

/// A 16-bit floating-point element.
pub trait Half: Element + Multiplied<Word = Self::Pair> {
    /// Two of them in a register.
    type Pair: Packed<Half = Self::Reg> + Rounded + MatrixWord;
}
impl Half for bf16 {
    type Pair = Bf16x2;
}
impl Half for f16 {
    type Pair = F16x2;
}

/// A left operand in the registers of a warpgroup: m × k, K in a known order.
///
/// While products that read it are in flight nothing may write its registers;
/// as it is made of values that never change, nothing can.
#[derive(Clone, Debug)]
pub struct RegOperand<T, K = Natural> {
    m: u32,
    k: u32,
    /// Four for each 64 rows and step of K, the steps of a row block side by side.
    regs: Vec<RegId>,
    ty: PhantomData<fn() -> (T, K)>,
}

impl<T: Multiplied, K: KOrder> RegOperand<T, K> {
    pub(super) fn new(m: u32, k: u32, regs: Vec<RegId>) -> Self {
        Self {
            m,
            k,
            regs,
            ty: PhantomData,
        }
    }

    /// Rows.
    pub fn rows(&self) -> u32 {
        self.m
    }

    /// Columns: K.
    pub fn cols(&self) -> u32 {
        self.k
    }

    /// Applies `f` to every register: scale, convert in place.
    #[track_caller]
    pub fn map(&self, mut f: impl FnMut(Reg<T::Word>) -> Reg<T::Word>) -> Self {
        let _at = here();
        let regs = self.regs.iter().map(|&r| f(Reg::of(r)).id()).collect();
        Self::new(self.m, self.k, regs)
    }
}

impl<T: Multiplied, K: KOrder> Left<K> for RegOperand<T, K> {
    fn dtype(&self) -> DType {
        T::DTYPE
    }
    fn shape(&self) -> (u32, u32) {
        (self.m, self.k)
    }
    fn matrix(&self, row: u32, k: u32, ks: u32) -> MatrixA {
        let step = row / 64 * (self.k / ks) + k / ks;
        let at = 4 * step as usize;
        // What was refused has none.
        MatrixA::Regs(self.regs.get(at..at + 4).unwrap_or_default().to_vec())
    }
}

/// The lane's place in a left operand: its warp's first row, and the lane.
#[track_caller]
pub(super) fn seat() -> (Reg<u32>, Reg<u32>) {
    ((warp_in_role() & 3) * 16, lane_id())
}

impl<T: Multiplied<Word: MatrixWord>, K: KOrder> RegOperand<T, K> {
    /// Reads a tile of m × k from shared memory (`ldmatrix`, which takes 16
    /// bytes of a row for whatever they are).
    #[track_caller]
    pub fn load(from: &TileRef<T, K>) -> Self {
        let _at = here();
        let (m, k) = (from.rows(), from.cols());
        let half = 16 / T::DTYPE.bytes() as u32;
        if !whole("a register operand", m, k, 2 * half) {
            return Self::new(m, k, Vec::new());
        }
        let (warp, lane) = seat();
        let (row, col) = (warp + (lane & 15), (lane >> 4) * half);
        let mut regs = Vec::new();
        for r in (0..m).step_by(64) {
            for k in (0..k).step_by(2 * half as usize) {
                let words: [Reg<T::Word>; 4] = from.load_matrix(row + r, col + k, false);
                regs.extend(words.map(|w| w.id()));
            }
        }
        Self::new(m, k, regs)
    }
}

/// Bytes in the registers of a warpgroup, m × k in words of four neighbours:
/// what a left operand is [decoded](Self::decode) from.
#[derive(Clone, Debug)]
pub struct RegBytes<K = Natural> {
    m: u32,
    k: u32,
    /// Two for each 64 rows and 16 of K: of row `lane / 4`, and of eight rows below.
    words: Vec<Reg<u32>>,
    order: PhantomData<fn() -> K>,
}

impl<K: ByWords> RegBytes<K> {
    fn new(m: u32, k: u32, words: Vec<Reg<u32>>) -> Self {
        Self {
            m,
            k,
            words,
            order: PhantomData,
        }
    }

    /// Reads a tile of 1-byte elements from shared memory.
    #[track_caller]
    pub fn load<U: Element>(from: &TileRef<U, K>) -> Self {
        let _at = here();
        let (m, k) = (from.rows(), from.cols());
        if U::DTYPE.bytes() != 1 {
            error(
                "operand-bytes",
                format!("a tile of bytes is decoded, not of {}", U::DTYPE),
            );
        }
        if !whole("a decoded operand", m, k, 16) {
            return Self::new(m, k, Vec::new());
        }
        let (warp, lane) = seat();
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

    /// Makes numbers of the bytes: `f` gets four neighbours of a row, the
    /// first in the low byte, and gives them as two pairs.
    ///
    /// The operand has K in another order than the bytes: [`ByWords`].
    /// Decode after the wait for the products before: their operand may be in
    /// the same registers.
    #[track_caller]
    pub fn decode<T: Half>(
        &self,
        mut f: impl FnMut(Reg<u32>) -> [Reg<T::Pair>; 2],
    ) -> RegOperand<T, K::Loaded> {
        let _at = here();
        let regs = self.words.chunks(2).flat_map(|rows| {
            let (upper, lower) = (f(rows[0]), f(rows[1]));
            // Rows +8 for odd registers, the second pair for the last two.
            [upper[0], lower[0], upper[1], lower[1]].map(|r| r.id())
        });
        let regs = regs.collect();
        RegOperand::new(self.m, self.k, regs)
    }
}

impl<K: ByWords> Carry for RegBytes<K> {
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

/// Refuses what is not made of blocks of 64 × `step`.
#[track_caller]
pub(super) fn whole(what: &str, m: u32, k: u32, step: u32) -> bool {
    let fine = m.is_multiple_of(64) && k.is_multiple_of(step) && m > 0 && k > 0;
    if !fine {
        error(
            "operand-shape",
            format!("{what} has a multiple of 64 rows and of {step} columns, not {m} x {k}"),
        );
    }
    fine
}

/// An element type that a register tile can be rounded to, as an operand.
pub trait Words: Multiplied {
    /// The order of K that comes out.
    type Order: KOrder;
    /// The operand.
    fn operand(from: &Frag) -> RegOperand<Self, Self::Order>;
}

/// Refuses a tile that is no operand, and gives its registers otherwise.
#[track_caller]
fn words<T: Multiplied, K: KOrder>(
    from: &Frag,
    step: u32,
    f: impl FnMut(&[Reg<f32>]) -> [RegId; 4],
) -> RegOperand<T, K> {
    let (m, k) = (from.rows(), from.cols());
    if !k.is_multiple_of(step) || from.team() != Team::Warpgroup {
        error(
            "operand-shape",
            format!(
                "a warpgroup's tile with a multiple of {step} columns becomes an operand of {}, not {m} x {k}",
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
        impl Words for $t {
            type Order = Natural;
            #[track_caller]
            fn operand(from: &Frag) -> RegOperand<Self, Natural> {
                words(from, 16, |v| {
                    std::array::from_fn(|i| Reg::<$pair>::round(v[2 * i], v[2 * i + 1]).id())
                })
            }
        }
    )*};
}
half_words! { bf16: Bf16x2; f16: F16x2; }

macro_rules! byte_words {
    ($($t:ty: $four:ty;)*) => {$(
        impl Words for $t {
            type Order = Pairs;
            #[track_caller]
            fn operand(from: &Frag) -> RegOperand<Self, Pairs> {
                // Of four blocks of 8 columns a lane has a pair each, in two rows:
                // a register takes the pairs of two blocks.
                words(from, 32, |v| {
                    let four = |i: usize| Reg::<$four>::round4([v[i], v[i + 1], v[i + 4], v[i + 5]]);
                    [0, 2, 8, 10].map(|i| four(i).id())
                })
            }
        }
    )*};
}
byte_words! { E4m3: E4m3x4; E5m2: E5m2x4; }

impl<T: Multiplied, K: KOrder> Carry for RegOperand<T, K> {
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

/// A slot of one tile is the tile.
impl<T: Element> Right<Natural> for Slot<Tile<T>, Reading> {
    fn dtype(&self) -> DType {
        T::DTYPE
    }
    fn shape(&self) -> (u32, u32) {
        Right::<Natural>::shape(&self.tiles())
    }
    fn part(&self, mn: u32, mns: u32, k: u32, ks: u32) -> (View, Major) {
        Right::<Natural>::part(&self.tiles(), mn, mns, k, ks)
    }
}

impl<T: Element> Left<Natural> for Slot<Tile<T>, Reading> {
    fn dtype(&self) -> DType {
        T::DTYPE
    }
    fn shape(&self) -> (u32, u32) {
        Right::<Natural>::shape(&self.tiles())
    }
    fn matrix(&self, row: u32, k: u32, ks: u32) -> MatrixA {
        Left::<Natural>::matrix(&self.tiles(), row, k, ks)
    }
}

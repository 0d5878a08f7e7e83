//! Fragments: f32 tiles in the registers of a warpgroup or a warp, in the accumulator layout.

use super::acc::Acc;
use super::flow::{Carry, select};
use super::operand::{FragOperand, Half, RegOperand};
use super::raw::store_async;
use super::reg::{Reg, Value, Var};
use super::row_vector::{RowVector, row_in_lane};
use super::slot::{Producing, Slot};
use super::state::{caller_scope, error};
use super::tile::{Tile, TileRef};
use super::warp::{lane_id, shuffle_xor, thread_in_role, warp_in_role};
use std::ops::Range;

/// The threads that hold a fragment together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FragOwner {
    /// A warpgroup: blocks of 64 rows, 16 for each warp.
    Warpgroup,
    /// A warp: blocks of 16 rows.
    Warp,
}

impl FragOwner {
    /// Returns the name for messages.
    pub(super) const fn name(self) -> &'static str {
        match self {
            FragOwner::Warpgroup => "warpgroup",
            FragOwner::Warp => "warp",
        }
    }

    /// Returns the rows of a block.
    pub(super) const fn block_rows(self) -> u32 {
        match self {
            FragOwner::Warpgroup => 64,
            FragOwner::Warp => 16,
        }
    }

    /// Returns the first row that the lane holds.
    #[track_caller]
    pub(super) fn first_row(self) -> Reg<u32> {
        let row = lane_id() >> 2;
        match self {
            FragOwner::Warpgroup => (warp_in_role() & 3) * 16 + row,
            FragOwner::Warp => row,
        }
    }
}

/// The coordinate of a value inside a fragment.
#[derive(Clone, Copy, Debug)]
pub struct FragCoord {
    /// The row.
    pub row: Reg<u32>,
    /// The column.
    pub col: Reg<u32>,
}

/// A fragment: a tile of `f32` in registers, in the accumulator layout of `wgmma` and
/// `mma.sync`.
#[derive(Clone, Debug)]
pub struct Frag {
    owner: FragOwner,
    m: u32,
    n: u32,
    values: Vec<Reg<f32>>,
}

/// Calls `f` with the first column of each adjacent column pair that a thread holds in a
/// fragment of `cols` columns, and returns the results.
#[track_caller]
pub fn map_col_pairs<V>(cols: u32, mut f: impl FnMut(Reg<u32>) -> V) -> Vec<V> {
    let _caller = caller_scope();
    let first = (lane_id() & 3) * 2;
    (0..cols / 8).map(|i| f(first + i * 8)).collect()
}

impl Frag {
    pub(super) fn new(owner: FragOwner, m: u32, n: u32, values: Vec<Reg<f32>>) -> Self {
        Self {
            owner,
            m,
            n,
            values,
        }
    }

    /// Returns an `m` × `n` fragment of zeros in a warpgroup; `m` is a multiple of 64, `n` of 8.
    #[track_caller]
    pub fn zeros(m: u32, n: u32) -> Self {
        let _caller = caller_scope();
        if m == 0 || n == 0 || !m.is_multiple_of(64) || !n.is_multiple_of(8) {
            error(
                "fragment-shape",
                format!(
                    "a warpgroup fragment of {m} x {n} is invalid; rows must be a multiple of 64, columns of 8"
                ),
            );
            return Self::zeros(64, 8);
        }
        let values = (0..m / 64 * n / 2).map(|_| 0.0f32.reg()).collect();
        Self::new(FragOwner::Warpgroup, m, n, values)
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u32 {
        self.m
    }

    /// Returns the number of columns.
    pub fn cols(&self) -> u32 {
        self.n
    }

    pub(super) fn owner(&self) -> FragOwner {
        self.owner
    }

    pub(super) fn values(&self) -> &[Reg<f32>] {
        &self.values
    }

    /// Returns the number of values that a lane holds of one row block.
    fn per_block(&self) -> usize {
        self.n as usize / 2
    }

    /// Returns a fragment of the same shape with other values.
    fn with_values(&self, values: Vec<Reg<f32>>) -> Frag {
        Frag::new(self.owner, self.m, self.n, values)
    }

    /// Returns a function from the index of a value to its coordinate.
    fn coord_of(&self) -> impl Fn(usize) -> FragCoord + use<> {
        let (row, col) = (self.owner.first_row(), (lane_id() & 3) * 2);
        let (per_block, rows) = (self.per_block(), self.owner.block_rows() as usize);
        move |i| {
            let (block, i) = (i / per_block, i % per_block);
            FragCoord {
                row: row + (block * rows + i / 2 % 2 * 8) as u32,
                col: col + (i / 4 * 8 + i % 2) as u32,
            }
        }
    }

    /// Applies `f` to every value.
    #[track_caller]
    pub fn map(self, f: impl FnMut(Reg<f32>) -> Reg<f32>) -> Frag {
        let _caller = caller_scope();
        self.with_values(self.values.iter().copied().map(f).collect())
    }

    /// Applies `f` to every value and its coordinate.
    #[track_caller]
    pub fn map_with_coord(self, mut f: impl FnMut(Reg<f32>, FragCoord) -> Reg<f32>) -> Frag {
        let _caller = caller_scope();
        let coord_of = self.coord_of();
        let values = self.values.iter().enumerate();
        self.with_values(values.map(|(i, &x)| f(x, coord_of(i))).collect())
    }

    /// Combines two fragments of the same shape, value by value.
    #[track_caller]
    pub fn zip(self, other: &Frag, mut f: impl FnMut(Reg<f32>, Reg<f32>) -> Reg<f32>) -> Frag {
        let _caller = caller_scope();
        if (self.owner, self.m, self.n) != (other.owner, other.m, other.n) {
            error(
                "fragment-shape",
                format!(
                    "zip() combines {} x {} of a {} with {} x {} of a {}; the shapes must be equal",
                    self.m,
                    self.n,
                    self.owner.name(),
                    other.m,
                    other.n,
                    other.owner.name()
                ),
            );
            return self;
        }
        let pairs = self.values.iter().zip(&other.values);
        self.with_values(pairs.map(|(&x, &y)| f(x, y)).collect())
    }

    /// Combines every value with the row vector's value for its row.
    #[track_caller]
    pub fn zip_rows(
        self,
        rows: &RowVector,
        mut f: impl FnMut(Reg<f32>, Reg<f32>) -> Reg<f32>,
    ) -> Frag {
        let _caller = caller_scope();
        if !rows.check_fragment(self.owner, self.m) {
            return self;
        }
        let values = self.values.iter().enumerate();
        self.with_values(
            values
                .map(|(i, &x)| f(x, rows.value_for(i, self.n)))
                .collect(),
        )
    }

    /// Multiplies every row by the row vector's value.
    #[track_caller]
    pub fn rescale(self, by: &RowVector) -> Frag {
        let _caller = caller_scope();
        self.zip_rows(by, |x, r| x * r)
    }

    /// Combines every value with `column(col)`, which is called once for each column.
    #[track_caller]
    pub fn zip_cols(
        self,
        mut column: impl FnMut(Reg<u32>) -> Reg<f32>,
        mut f: impl FnMut(Reg<f32>, Reg<f32>) -> Reg<f32>,
    ) -> Frag {
        let _caller = caller_scope();
        let first = (lane_id() & 3) * 2;
        let cols: Vec<Reg<f32>> = (0..self.n / 4)
            .map(|i| column(first + (i / 2 * 8 + i % 2)))
            .collect();
        let per_block = self.per_block();
        let values = self.values.iter().enumerate();
        let column_value = |i: usize| cols[i % per_block / 4 * 2 + i % 2];
        self.with_values(values.map(|(i, &x)| f(x, column_value(i))).collect())
    }

    /// Combines every value with the value for its column; `columns` has one pair for each
    /// column pair that a thread holds ([`map_col_pairs`]).
    #[track_caller]
    pub fn zip_col_pairs(
        self,
        columns: &[[Reg<f32>; 2]],
        mut f: impl FnMut(Reg<f32>, Reg<f32>) -> Reg<f32>,
    ) -> Frag {
        let _caller = caller_scope();
        let (have, needed) = (columns.len(), self.n as usize / 8);
        if have != needed {
            let text = format!(
                "zip_col_pairs() got {have} pairs; a thread holds {needed} pairs of {} columns",
                self.n
            );
            error("fragment-columns", text);
            return self;
        }
        let per_block = self.per_block();
        let values = self.values.iter().enumerate();
        let column_value = |i: usize| columns[i % per_block / 4][i % 2];
        self.with_values(values.map(|(i, &x)| f(x, column_value(i))).collect())
    }

    /// Applies `f` to every adjacent pair of a row and the coordinate of its first value.
    #[track_caller]
    pub fn map_pairs(self, mut f: impl FnMut(FragCoord, [Reg<f32>; 2]) -> [Reg<f32>; 2]) -> Frag {
        let _caller = caller_scope();
        let coord_of = self.coord_of();
        let pairs = self.values.chunks(2).enumerate();
        self.with_values(
            pairs
                .flat_map(|(i, pair)| f(coord_of(2 * i), [pair[0], pair[1]]))
                .collect(),
        )
    }

    /// Masks the fragment: keeps the values where `keep` is true and sets the others to `other`.
    #[track_caller]
    pub fn mask(
        self,
        mut keep: impl FnMut(FragCoord) -> Reg<bool>,
        other: impl Value<f32>,
    ) -> Frag {
        let _caller = caller_scope();
        self.map_with_coord(|x, at| select(keep(at), x, other))
    }

    /// Returns the number of rows that a lane holds values of.
    fn rows_per_lane(&self) -> usize {
        (self.m / self.owner.block_rows() * 2) as usize
    }

    /// Reduces each row with `f`; all lanes that hold the row receive the result.
    #[track_caller]
    pub fn row_reduce(&self, mut f: impl FnMut(Reg<f32>, Reg<f32>) -> Reg<f32>) -> RowVector {
        let _caller = caller_scope();
        self.row_reduce_partial(&mut f).reduce_lanes(f)
    }

    /// Reduces the values of each row within a lane.
    ///
    /// [`RowVector::reduce_lanes`] completes the reduction, once for many fragments.
    #[track_caller]
    pub fn row_reduce_partial(
        &self,
        mut f: impl FnMut(Reg<f32>, Reg<f32>) -> Reg<f32>,
    ) -> RowVector {
        let _caller = caller_scope();
        let mut rows: Vec<Option<Reg<f32>>> = vec![None; self.rows_per_lane()];
        for (i, &x) in self.values.iter().enumerate() {
            let row = &mut rows[row_in_lane(i, self.n)];
            *row = Some(row.map_or(x, |r| f(r, x)));
        }
        RowVector::new(self.owner, rows.into_iter().flatten().collect())
    }

    /// Returns the maximum of each row.
    #[track_caller]
    pub fn row_max(&self) -> RowVector {
        let _caller = caller_scope();
        self.row_reduce(|x, y| x.max(y))
    }

    /// Returns the sum of each row.
    #[track_caller]
    pub fn row_sum(&self) -> RowVector {
        let _caller = caller_scope();
        self.row_reduce(|x, y| x + y)
    }

    /// Reduces each column with `f` over the rows of a warp; the eight lanes of a column receive
    /// the result. The pairs are in the order of [`map_col_pairs`].
    #[track_caller]
    pub fn col_reduce(
        &self,
        mut f: impl FnMut(Reg<f32>, Reg<f32>) -> Reg<f32>,
    ) -> Vec<[Reg<f32>; 2]> {
        let _caller = caller_scope();
        let half = self.n as usize / 2;
        let mut cols: Vec<[Option<Reg<f32>>; 2]> = vec![[None; 2]; half / 4];
        for (i, &x) in self.values.iter().enumerate() {
            let col = &mut cols[i % half / 4][i % 2];
            *col = Some(col.map_or(x, |y| f(y, x)));
        }
        let mut reduce_lanes = |x: Option<Reg<f32>>| {
            let x = x.unwrap_or_else(|| 0.0f32.reg());
            [4u32, 8, 16]
                .into_iter()
                .fold(x, |x, lanes| f(x, shuffle_xor(x, lanes)))
        };
        cols.into_iter()
            .map(|pair| pair.map(&mut reduce_lanes))
            .collect()
    }

    /// Shifts the columns left by `by`, a multiple of 8; the last `by` columns are unspecified.
    ///
    /// A loop that carries the fragment and shifts it handles all columns with one copy of its
    /// code.
    #[track_caller]
    pub fn shift_cols(&self, by: u32) -> Frag {
        let mut values = Vec::with_capacity(self.values.len());
        let rest = self.slice(by..self.n);
        for (old, shifted) in
            (self.values.chunks(self.per_block())).zip(rest.values.chunks(rest.per_block()))
        {
            values.extend_from_slice(shifted);
            values.extend_from_slice(&old[shifted.len()..]);
        }
        Frag::new(self.owner, self.m, self.n, values)
    }

    /// Returns a range of columns, whose ends are multiples of 8.
    #[track_caller]
    pub fn slice(&self, cols: Range<u32>) -> Frag {
        let fits = cols.start < cols.end && cols.end <= self.n;
        if !fits || !cols.start.is_multiple_of(8) || !cols.end.is_multiple_of(8) {
            error(
                "fragment-slice",
                format!(
                    "columns {cols:?} of a fragment of {} x {} are not a range of whole blocks of 8",
                    self.m, self.n
                ),
            );
            return self.clone();
        }
        let range = cols.start as usize / 2..cols.end as usize / 2;
        let blocks = self.values.chunks(self.per_block());
        let values = blocks.flat_map(|b| b[range.clone()].to_vec()).collect();
        Frag::new(self.owner, self.m, cols.end - cols.start, values)
    }

    /// Splits the rows at `at`, a multiple of 64 (16 in a warp).
    #[track_caller]
    pub fn split_rows(&self, at: u32) -> (Frag, Frag) {
        let _caller = caller_scope();
        let block = self.owner.block_rows();
        if at == 0 || at >= self.m || !at.is_multiple_of(block) {
            error(
                "fragment-slice",
                format!(
                    "a fragment of {} x {} in a {} is split at row {at}; use a multiple of {block} inside of it",
                    self.m,
                    self.n,
                    self.owner.name()
                ),
            );
            return (self.clone(), self.clone());
        }
        let (first, second) = self
            .values
            .split_at((at / block) as usize * self.per_block());
        (
            Frag::new(self.owner, at, self.n, first.to_vec()),
            Frag::new(self.owner, self.m - at, self.n, second.to_vec()),
        )
    }

    /// Splits the columns at `at`, a multiple of 8.
    #[track_caller]
    pub fn split_cols(&self, at: u32) -> (Frag, Frag) {
        (self.slice(0..at), self.slice(at..self.n))
    }

    /// Waits for an accumulator and adds it in full `f32` precision.
    ///
    /// FP8 `wgmma` loses low bits in long accumulations. Promoting a short accumulator to
    /// `f32` every few k-tiles keeps them.
    #[track_caller]
    pub fn promote(self, acc: Acc) -> Frag {
        let _caller = caller_scope();
        let addend = acc.into_frag();
        self.zip(&addend, |x, y| x + y)
    }

    /// Calls `f` for every adjacent pair of a row with the coordinate of its first value.
    #[track_caller]
    pub fn each_pair(&self, mut f: impl FnMut(FragCoord, [Reg<f32>; 2])) {
        let _caller = caller_scope();
        let coord_of = self.coord_of();
        for (i, pair) in self.values.chunks(2).enumerate() {
            f(coord_of(2 * i), [pair[0], pair[1]]);
        }
    }

    /// Calls `f` for every row that a lane holds values of. `f` takes the row and the lane's adjacent pairs:
    /// the first column and the two values of each.
    ///
    /// Use it instead of [`each_pair`](Self::each_pair) if a condition or an address is the same for the
    /// whole row.
    #[track_caller]
    pub fn each_row(&self, mut f: impl FnMut(Reg<u32>, &[(Reg<u32>, [Reg<f32>; 2])])) {
        let _caller = caller_scope();
        let coord_of = self.coord_of();
        for row in 0..self.rows_per_lane() {
            let own = (0..self.values.len()).step_by(2);
            let own: Vec<_> = own.filter(|&i| row_in_lane(i, self.n) == row).collect();
            let Some(&first) = own.first() else { continue };
            let pair = |&i: &usize| (coord_of(i).col, [self.values[i], self.values[i + 1]]);
            f(
                coord_of(first).row,
                &own.iter().map(pair).collect::<Vec<_>>(),
            );
        }
    }

    /// Rounds the fragment to an A operand in registers, with its columns as K.
    #[track_caller]
    pub fn operand<T: FragOperand>(&self) -> RegOperand<T, T::Order> {
        let _caller = caller_scope();
        T::operand(self)
    }

    /// Stores the fragment to shared memory in f32, in this CTA or in a peer.
    #[track_caller]
    pub fn store(&self, to: &TileRef<f32>) {
        let _caller = caller_scope();
        if self.has_view_shape(to.rows(), to.cols(), 8) {
            self.each_pair(|at, pair| to.store_vec(at.row, at.col, pair));
        }
    }

    /// Loads a warpgroup fragment from shared memory.
    #[track_caller]
    pub fn load(from: &TileRef<f32>) -> Frag {
        let _caller = caller_scope();
        let zeros = Frag::zeros(from.rows(), from.cols());
        let coord_of = zeros.coord_of();
        let values = (0..zeros.values.len() / 2).flat_map(|i| {
            let at = coord_of(2 * i);
            from.load_vec::<2>(at.row, at.col)
        });
        zeros.with_values(values.collect())
    }

    /// Stores a warpgroup fragment to shared memory in thread-major order, in this CTA or in a
    /// peer: rows of 512 values, 4 consecutive values for each thread.
    #[track_caller]
    pub fn store_thread_major(&self, to: &TileRef<f32>) {
        let _caller = caller_scope();
        if self.is_thread_major_view(to) {
            let col = thread_in_role() * 4;
            for (row, v) in (0u32..).zip(self.values.chunks(4)) {
                to.store_vec(row, col, [v[0], v[1], v[2], v[3]]);
            }
        }
    }

    /// Like [`store_thread_major`](Self::store_thread_major), by `st.async` to a slot of a ring
    /// with [`async_stores`](super::Ring::async_stores); the stores complete on its full barrier.
    #[track_caller]
    pub fn store_async_thread_major(&self, slot: &Slot<Tile<f32>, Producing>) {
        let _caller = caller_scope();
        if !slot.has_async_stores() {
            error(
                "slot-async-stores",
                "store_async_thread_major() needs a ring with async_stores()\nhelp: declare the ring with async_stores()",
            );
            return;
        }
        let to = slot.tiles();
        if self.is_thread_major_view(&to) {
            let col = thread_in_role() * 4;
            for (row, v) in (0u32..).zip(self.values.chunks(4)) {
                store_async(to, row, col, [v[0], v[1], v[2], v[3]], slot.full_barrier());
            }
        }
    }

    /// Loads a fragment of this shape that [`store_thread_major`](Self::store_thread_major) stored.
    #[track_caller]
    pub fn load_thread_major(&self, from: &TileRef<f32>) -> Frag {
        let _caller = caller_scope();
        if !self.is_thread_major_view(from) {
            return self.clone();
        }
        let col = thread_in_role() * 4;
        let rows = 0..from.rows();
        let values = rows.flat_map(|row| from.load_vec::<4>(row, col));
        self.with_values(values.collect())
    }

    /// Checks that a view has the thread-major shape of this fragment.
    #[track_caller]
    fn is_thread_major_view(&self, view: &TileRef<f32>) -> bool {
        let rows = self.values.len() as u32 / 4;
        let matches =
            self.owner == FragOwner::Warpgroup && (view.rows(), view.cols()) == (rows, 512);
        if !matches {
            error(
                "fragment-store",
                format!(
                    "a warpgroup fragment of {} x {} needs a thread-major view of {rows} x 512; this view has {} x {}",
                    self.m,
                    self.n,
                    view.rows(),
                    view.cols()
                ),
            );
        }
        matches
    }

    /// Rounds the fragment to 16 bits and stores it to shared memory (`stmatrix`).
    #[track_caller]
    pub fn store_matrix<T: Half>(&self, to: &TileRef<T>) {
        let _caller = caller_scope();
        if !self.has_view_shape(to.rows(), to.cols(), 8) {
            return;
        }
        // Lane l addresses row l % 16 of the left or right half of a 16 × 16 block.
        let lane = lane_id();
        let (row, col) = (self.first_block_row() + (lane & 15), (lane >> 4) * 8);
        let paired_cols = self.n / 16 * 16;
        if paired_cols > 0 {
            self.slice(0..paired_cols)
                .each_block::<T>(|block, j, pairs| {
                    to.store_matrix(row + block, col + j, pairs, false);
                });
        }
        if paired_cols < self.n {
            // Half a block remains: two 8 × 8 matrices, addressed by the first 16 lanes.
            let rest = self.slice(paired_cols..self.n);
            for (block, v) in (0..).zip(rest.values.chunks(4)) {
                let pairs: [_; 2] =
                    std::array::from_fn(|p| Reg::<T::Pair>::round(v[2 * p], v[2 * p + 1]));
                to.store_matrix(
                    row + block * self.owner.block_rows(),
                    paired_cols,
                    pairs,
                    false,
                );
            }
        }
    }

    /// Like [`store_matrix`](Self::store_matrix), transposed: `to` is n × m.
    #[track_caller]
    pub fn store_transposed<T: Half>(&self, to: &TileRef<T>) {
        let _caller = caller_scope();
        if !self.has_view_shape(to.cols(), to.rows(), 16) {
            return;
        }
        // Lane l addresses a column of the fragment, which is a row of `to`.
        let lane = lane_id();
        let row = (lane >> 4) * 8 + (lane & 7);
        let col = self.first_block_row() + ((lane >> 3) & 1) * 8;
        self.each_block::<T>(|block, j, pairs| {
            to.store_matrix(row + j, col + block, pairs, true);
        });
    }

    /// Returns the first of the warp's 16 rows.
    #[track_caller]
    fn first_block_row(&self) -> Reg<u32> {
        match self.owner {
            FragOwner::Warpgroup => (warp_in_role() & 3) * 16,
            FragOwner::Warp => 0u32.reg(),
        }
    }

    /// Rounds each 16 × 16 block and calls `f` with its row block offset, its first column and
    /// the lane's four pairs.
    #[track_caller]
    fn each_block<T: Half>(&self, mut f: impl FnMut(u32, u32, [Reg<T::Pair>; 4])) {
        let per_row = (self.n / 16) as usize;
        for (i, v) in self.values.chunks(8).enumerate() {
            // Registers 0..8 of a block: (left: 0,1 | 2,3), (right: 4,5 | 6,7).
            let pairs = std::array::from_fn(|p| Reg::round(v[2 * p], v[2 * p + 1]));
            let (block, j) = (i / per_row, i % per_row);
            f(block as u32 * self.owner.block_rows(), 16 * j as u32, pairs);
        }
    }

    /// Checks that the fragment has the shape of a view.
    #[track_caller]
    fn has_view_shape(&self, rows: u32, cols: u32, multiple: u32) -> bool {
        let matches = (rows, cols) == (self.m, self.n) && self.n.is_multiple_of(multiple);
        if !matches {
            error(
                "fragment-store",
                format!(
                    "a fragment of {} x {} is stored to a view of {rows} x {cols}; the shapes must be equal, columns a multiple of {multiple}",
                    self.m, self.n
                ),
            );
        }
        matches
    }
}

impl Carry for Frag {
    type Vars = (FragOwner, u32, u32, Vec<Var<f32>>);
    #[track_caller]
    fn open(self) -> Self::Vars {
        (self.owner, self.m, self.n, self.values.open())
    }
    #[track_caller]
    fn load(vars: &Self::Vars) -> Self {
        Self::new(vars.0, vars.1, vars.2, Carry::load(&vars.3))
    }
    #[track_caller]
    fn store(vars: &Self::Vars, value: Self) {
        Carry::store(&vars.3, value.values);
    }
}

//! Register tiles: numbers spread over a warpgroup or a warp as products leave them.

use super::acc::Acc;
use super::flow::{Carry, select};
use super::operand::{Half, RegOperand, Words};
use super::raw::store_async;
use super::reg::{Reg, Value, Var};
use super::rows::{Rows, row_slot};
use super::slot::{Filling, Slot};
use super::state::{error, here};
use super::tile::{Tile, TileRef};
use super::warp::{lane_id, shuffle_xor, thread_in_role, warp_in_role};
use std::ops::Range;

/// Whose registers hold a tile.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Team {
    /// One warpgroup: blocks of 64 rows, 16 for each warp.
    Warpgroup,
    /// One warp: blocks of 16 rows.
    Warp,
}

impl Team {
    /// Its name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Team::Warpgroup => "warpgroup",
            Team::Warp => "warp",
        }
    }

    /// Rows of a block.
    pub(super) const fn block(self) -> u32 {
        match self {
            Team::Warpgroup => 64,
            Team::Warp => 16,
        }
    }

    /// The lane's first row.
    #[track_caller]
    pub(super) fn first_row(self) -> Reg<u32> {
        let row = lane_id() >> 2;
        match self {
            Team::Warpgroup => (warp_in_role() & 3) * 16 + row,
            Team::Warp => row,
        }
    }
}

/// Where one value of a register tile stands.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// The row inside the tile.
    pub row: Reg<u32>,
    /// The column inside the tile.
    pub col: Reg<u32>,
}

/// A tile of `f32` in registers, laid out as products leave it.
#[derive(Clone, Debug)]
pub struct Frag {
    team: Team,
    m: u32,
    n: u32,
    values: Vec<Reg<f32>>,
}

/// What `f` gives for each pair of columns that a thread holds of a tile of so
/// many columns: it is asked for the first of them.
#[track_caller]
pub fn col_pairs<V>(cols: u32, mut f: impl FnMut(Reg<u32>) -> V) -> Vec<V> {
    let _at = here();
    let first = (lane_id() & 3) * 2;
    (0..cols / 8).map(|i| f(first + i * 8)).collect()
}

impl Frag {
    pub(super) fn new(team: Team, m: u32, n: u32, values: Vec<Reg<f32>>) -> Self {
        Self { team, m, n, values }
    }

    /// `m` × `n` zeros in a warpgroup: `m` a multiple of 64, `n` of 8.
    #[track_caller]
    pub fn zeros(m: u32, n: u32) -> Self {
        let _at = here();
        if m == 0 || n == 0 || !m.is_multiple_of(64) || !n.is_multiple_of(8) {
            error(
                "fragment-shape",
                format!(
                    "a warpgroup's tile has a multiple of 64 rows and a multiple of 8 columns, not {m} x {n}"
                ),
            );
            return Self::zeros(64, 8);
        }
        let values = (0..m / 64 * n / 2).map(|_| 0.0f32.reg()).collect();
        Self::new(Team::Warpgroup, m, n, values)
    }

    /// Rows.
    pub fn rows(&self) -> u32 {
        self.m
    }

    /// Columns.
    pub fn cols(&self) -> u32 {
        self.n
    }

    pub(super) fn team(&self) -> Team {
        self.team
    }

    pub(super) fn values(&self) -> &[Reg<f32>] {
        &self.values
    }

    /// Values of one row block held by a lane.
    fn per_block(&self) -> usize {
        self.n as usize / 2
    }

    /// Another tile of the same shape.
    fn with(&self, values: Vec<Reg<f32>>) -> Frag {
        Frag::new(self.team, self.m, self.n, values)
    }

    /// Row and column of every value: a register plus a constant each.
    fn cells(&self) -> impl Fn(usize) -> Cell + use<> {
        let (row, col) = (self.team.first_row(), (lane_id() & 3) * 2);
        let (per_block, rows) = (self.per_block(), self.team.block() as usize);
        move |i| {
            let (block, i) = (i / per_block, i % per_block);
            Cell {
                row: row + (block * rows + i / 2 % 2 * 8) as u32,
                col: col + (i / 4 * 8 + i % 2) as u32,
            }
        }
    }

    /// Applies `f` to every value.
    #[track_caller]
    pub fn map(self, f: impl FnMut(Reg<f32>) -> Reg<f32>) -> Frag {
        let _at = here();
        self.with(self.values.iter().copied().map(f).collect())
    }

    /// Applies `f` to every value and its place.
    #[track_caller]
    pub fn map_at(self, mut f: impl FnMut(Reg<f32>, Cell) -> Reg<f32>) -> Frag {
        let _at = here();
        let cells = self.cells();
        let values = self.values.iter().enumerate();
        self.with(values.map(|(i, &x)| f(x, cells(i))).collect())
    }

    /// Combines two tiles of one shape, value by value.
    #[track_caller]
    pub fn zip(self, other: &Frag, mut f: impl FnMut(Reg<f32>, Reg<f32>) -> Reg<f32>) -> Frag {
        let _at = here();
        if (self.team, self.m, self.n) != (other.team, other.m, other.n) {
            error(
                "fragment-shape",
                format!(
                    "tiles of one shape are combined, not {} x {} of a {} with {} x {} of a {}",
                    self.m,
                    self.n,
                    self.team.name(),
                    other.m,
                    other.n,
                    other.team.name()
                ),
            );
            return self;
        }
        let pairs = self.values.iter().zip(&other.values);
        self.with(pairs.map(|(&x, &y)| f(x, y)).collect())
    }

    /// Combines every value with the number of its row.
    #[track_caller]
    pub fn zip_rows(self, rows: &Rows, mut f: impl FnMut(Reg<f32>, Reg<f32>) -> Reg<f32>) -> Frag {
        let _at = here();
        if !rows.fit(self.team, self.m) {
            return self;
        }
        let values = self.values.iter().enumerate();
        self.with(
            values
                .map(|(i, &x)| f(x, rows.of_value(i, self.n)))
                .collect(),
        )
    }

    /// Multiplies every row by its own number.
    #[track_caller]
    pub fn rescale(self, by: &Rows) -> Frag {
        let _at = here();
        self.zip_rows(by, |x, r| x * r)
    }

    /// Combines every value with the number of its column; `column` is asked once for each.
    #[track_caller]
    pub fn zip_cols(
        self,
        mut column: impl FnMut(Reg<u32>) -> Reg<f32>,
        mut f: impl FnMut(Reg<f32>, Reg<f32>) -> Reg<f32>,
    ) -> Frag {
        let _at = here();
        let first = (lane_id() & 3) * 2;
        let cols: Vec<Reg<f32>> = (0..self.n / 4)
            .map(|i| column(first + (i / 2 * 8 + i % 2)))
            .collect();
        let per_block = self.per_block();
        let values = self.values.iter().enumerate();
        let of = |i: usize| cols[i % per_block / 4 * 2 + i % 2];
        self.with(values.map(|(i, &x)| f(x, of(i))).collect())
    }

    /// Combines every value with the number of its column, from those of all
    /// pairs of columns that a thread holds ([`col_pairs`]).
    #[track_caller]
    pub fn zip_col_pairs(
        self,
        columns: &[[Reg<f32>; 2]],
        mut f: impl FnMut(Reg<f32>, Reg<f32>) -> Reg<f32>,
    ) -> Frag {
        let _at = here();
        let (have, needed) = (columns.len(), self.n as usize / 8);
        if have != needed {
            let text = format!(
                "a thread holds {needed} pairs of {} columns; they are combined with as many, not with {have}",
                self.n
            );
            error("fragment-columns", text);
            return self;
        }
        let per_block = self.per_block();
        let values = self.values.iter().enumerate();
        let of = |i: usize| columns[i % per_block / 4][i % 2];
        self.with(values.map(|(i, &x)| f(x, of(i))).collect())
    }

    /// Applies `f` to every pair of neighbours in a row, and the place of the first.
    #[track_caller]
    pub fn map_pairs(self, mut f: impl FnMut(Cell, [Reg<f32>; 2]) -> [Reg<f32>; 2]) -> Frag {
        let _at = here();
        let cells = self.cells();
        let pairs = self.values.chunks(2).enumerate();
        self.with(
            pairs
                .flat_map(|(i, pair)| f(cells(2 * i), [pair[0], pair[1]]))
                .collect(),
        )
    }

    /// Keeps the values whose place satisfies `keep`; the others become `other`.
    #[track_caller]
    pub fn keep(self, mut keep: impl FnMut(Cell) -> Reg<bool>, other: impl Value<f32>) -> Frag {
        let _at = here();
        self.map_at(|x, at| select(keep(at), x, other))
    }

    fn row_slots(&self) -> usize {
        (self.m / self.team.block() * 2) as usize
    }

    /// Combines the values of each row: all lanes of the row get the result.
    #[track_caller]
    pub fn row_reduce(&self, mut f: impl FnMut(Reg<f32>, Reg<f32>) -> Reg<f32>) -> Rows {
        let _at = here();
        self.row_parts(&mut f).across(f)
    }

    /// As [`row_reduce`](Self::row_reduce), each lane for its own values only:
    /// [`Rows::across`] completes it, once for many tiles.
    #[track_caller]
    pub fn row_parts(&self, mut f: impl FnMut(Reg<f32>, Reg<f32>) -> Reg<f32>) -> Rows {
        let _at = here();
        let mut rows: Vec<Option<Reg<f32>>> = vec![None; self.row_slots()];
        for (i, &x) in self.values.iter().enumerate() {
            let row = &mut rows[row_slot(i, self.n)];
            *row = Some(row.map_or(x, |r| f(r, x)));
        }
        Rows::new(self.team, rows.into_iter().flatten().collect())
    }

    /// The greatest value of each row.
    #[track_caller]
    pub fn row_max(&self) -> Rows {
        let _at = here();
        self.row_reduce(|x, y| x.max(y))
    }

    /// The sum of each row.
    #[track_caller]
    pub fn row_sum(&self) -> Rows {
        let _at = here();
        self.row_reduce(|x, y| x + y)
    }

    /// Combines the values of each column over the rows of a warp: the eight lanes of a column get
    /// the result. In the order of [`col_pairs`].
    #[track_caller]
    pub fn col_reduce(
        &self,
        mut f: impl FnMut(Reg<f32>, Reg<f32>) -> Reg<f32>,
    ) -> Vec<[Reg<f32>; 2]> {
        let _at = here();
        let half = self.n as usize / 2;
        let mut cols: Vec<[Option<Reg<f32>>; 2]> = vec![[None; 2]; half / 4];
        for (i, &x) in self.values.iter().enumerate() {
            let col = &mut cols[i % half / 4][i % 2];
            *col = Some(col.map_or(x, |y| f(y, x)));
        }
        let mut across = |x: Option<Reg<f32>>| {
            let x = x.unwrap_or_else(|| 0.0f32.reg());
            [4u32, 8, 16]
                .into_iter()
                .fold(x, |x, lanes| f(x, shuffle_xor(x, lanes)))
        };
        cols.into_iter().map(|pair| pair.map(&mut across)).collect()
    }

    /// As many columns, of which the first are those from `by` on, a multiple
    /// of 8; the last ones are any numbers. A loop that works on the first
    /// columns and carries the rest so reaches all of them with one text.
    #[track_caller]
    pub fn shift(&self, by: u32) -> Frag {
        let mut values = Vec::with_capacity(self.values.len());
        let rest = self.slice(by..self.n);
        for (all, rest) in
            (self.values.chunks(self.per_block())).zip(rest.values.chunks(rest.per_block()))
        {
            values.extend_from_slice(rest);
            values.extend_from_slice(&all[rest.len()..]);
        }
        Frag::new(self.team, self.m, self.n, values)
    }

    /// The columns of a range: its ends are multiples of 8.
    #[track_caller]
    pub fn slice(&self, cols: Range<u32>) -> Frag {
        let fits = cols.start < cols.end && cols.end <= self.n;
        if !fits || !cols.start.is_multiple_of(8) || !cols.end.is_multiple_of(8) {
            error(
                "fragment-slice",
                format!(
                    "columns {cols:?} of a tile of {} x {} are not a range of whole blocks of 8",
                    self.m, self.n
                ),
            );
            return self.clone();
        }
        let part = cols.start as usize / 2..cols.end as usize / 2;
        let blocks = self.values.chunks(self.per_block());
        let values = blocks.flat_map(|b| b[part.clone()].to_vec()).collect();
        Frag::new(self.team, self.m, cols.end - cols.start, values)
    }

    /// The rows before `at`, a multiple of 64 (of 16 in a warp), and those from `at` on.
    #[track_caller]
    pub fn split_rows(&self, at: u32) -> (Frag, Frag) {
        let _at = here();
        let block = self.team.block();
        if at == 0 || at >= self.m || !at.is_multiple_of(block) {
            error(
                "fragment-slice",
                format!(
                    "a tile of {} x {} in a {} is split at a multiple of {block} rows inside of it, not at {at}",
                    self.m,
                    self.n,
                    self.team.name()
                ),
            );
            return (self.clone(), self.clone());
        }
        let (first, second) = self
            .values
            .split_at((at / block) as usize * self.per_block());
        (
            Frag::new(self.team, at, self.n, first.to_vec()),
            Frag::new(self.team, self.m - at, self.n, second.to_vec()),
        )
    }

    /// The columns before `at`, and those from `at` on.
    #[track_caller]
    pub fn split(&self, at: u32) -> (Frag, Frag) {
        (self.slice(0..at), self.slice(at..self.n))
    }

    /// Adds the sums of an accumulator, in full precision, when its products are done.
    ///
    /// An 8-bit product keeps few bits of a long sum: a short one, promoted
    /// to `f32` every few steps, keeps them.
    #[track_caller]
    pub fn promote(self, part: Acc) -> Frag {
        let _at = here();
        let part = part.finish();
        self.zip(&part, |x, y| x + y)
    }

    /// Runs `f` for every pair of neighbours in a row: the place of the first, and both.
    #[track_caller]
    pub fn each_pair(&self, mut f: impl FnMut(Cell, [Reg<f32>; 2])) {
        let _at = here();
        let cells = self.cells();
        for (i, pair) in self.values.chunks(2).enumerate() {
            f(cells(2 * i), [pair[0], pair[1]]);
        }
    }

    /// As the left operand of a product: rounded, with the columns as K.
    #[track_caller]
    pub fn operand<T: Words>(&self) -> RegOperand<T, T::Order> {
        let _at = here();
        T::operand(self)
    }

    /// Writes the tile to shared memory, here or in a peer, as it is.
    #[track_caller]
    pub fn store(&self, to: &TileRef<f32>) {
        let _at = here();
        if self.fills(to.rows(), to.cols(), 8) {
            self.each_pair(|at, pair| to.store_vec(at.row, at.col, pair));
        }
    }

    /// Reads a warpgroup's tile from shared memory.
    #[track_caller]
    pub fn load(from: &TileRef<f32>) -> Frag {
        let _at = here();
        let zeros = Frag::zeros(from.rows(), from.cols());
        let cells = zeros.cells();
        let values = (0..zeros.values.len() / 2).flat_map(|i| {
            let at = cells(2 * i);
            from.load_vec::<2>(at.row, at.col)
        });
        zeros.with(values.collect())
    }

    /// Writes a warpgroup's tile to shared memory, here or in a peer, as its
    /// threads hold it: to rows of 512, in which every thread has four values.
    #[track_caller]
    pub fn store_lanes(&self, to: &TileRef<f32>) {
        let _at = here();
        if self.in_lanes(to) {
            let col = thread_in_role() * 4;
            for (row, v) in (0u32..).zip(self.values.chunks(4)) {
                to.store_vec(row, col, [v[0], v[1], v[2], v[3]]);
            }
        }
    }

    /// As [`store_lanes`](Self::store_lanes), to a slot that is
    /// [posted](super::Ring::posted): the stores complete on its barrier.
    #[track_caller]
    pub fn post_lanes(&self, slot: &Slot<Tile<f32>, Filling>) {
        let _at = here();
        if !slot.is_posted() {
            error(
                "slot-posted",
                "values are posted to slots of a ring that says posted()",
            );
            return;
        }
        let to = slot.tiles();
        if self.in_lanes(&to) {
            let col = thread_in_role() * 4;
            for (row, v) in (0u32..).zip(self.values.chunks(4)) {
                store_async(to, row, col, [v[0], v[1], v[2], v[3]], slot.full());
            }
        }
    }

    /// Reads what [`store_lanes`](Self::store_lanes) wrote of a tile of this shape.
    #[track_caller]
    pub fn load_lanes(&self, from: &TileRef<f32>) -> Frag {
        let _at = here();
        if !self.in_lanes(from) {
            return self.clone();
        }
        let col = thread_in_role() * 4;
        let rows = 0..from.rows();
        let values = rows.flat_map(|row| from.load_vec::<4>(row, col));
        self.with(values.collect())
    }

    /// Does it fill a view as its threads hold it?
    #[track_caller]
    fn in_lanes(&self, view: &TileRef<f32>) -> bool {
        let rows = self.values.len() as u32 / 4;
        let fine = self.team == Team::Warpgroup && (view.rows(), view.cols()) == (rows, 512);
        if !fine {
            error(
                "fragment-store",
                format!(
                    "a tile of {} x {} is stored as a warpgroup holds it to a view of {rows} x 512, not {} x {}",
                    self.m,
                    self.n,
                    view.rows(),
                    view.cols()
                ),
            );
        }
        fine
    }

    /// Rounds to 16 bits and writes the tile to shared memory (`stmatrix`).
    #[track_caller]
    pub fn store_matrix<T: Half>(&self, to: &TileRef<T>) {
        let _at = here();
        if !self.fills(to.rows(), to.cols(), 8) {
            return;
        }
        // Lane l names row l % 16 of the left or right half of a 16 × 16 block.
        let lane = lane_id();
        let (row, col) = (self.first_block_row() + (lane & 15), (lane >> 4) * 8);
        let whole = self.n / 16 * 16;
        if whole > 0 {
            self.slice(0..whole).each_block::<T>(|block, j, pairs| {
                to.store_matrix(row + block, col + j, pairs, false);
            });
        }
        if whole < self.n {
            // Half a block is left: two of its four parts, named by the first 16 lanes.
            let rest = self.slice(whole..self.n);
            for (block, v) in (0..).zip(rest.values.chunks(4)) {
                let pairs: [_; 2] =
                    std::array::from_fn(|p| Reg::<T::Pair>::round(v[2 * p], v[2 * p + 1]));
                to.store_matrix(row + block * self.team.block(), whole, pairs, false);
            }
        }
    }

    /// As [`store_matrix`](Self::store_matrix), with rows and columns exchanged: `to` is n × m.
    #[track_caller]
    pub fn store_transposed<T: Half>(&self, to: &TileRef<T>) {
        let _at = here();
        if !self.fills(to.cols(), to.rows(), 16) {
            return;
        }
        // Lane l names a column of the tile: which is a row of what is stored.
        let lane = lane_id();
        let row = (lane >> 4) * 8 + (lane & 7);
        let col = self.first_block_row() + ((lane >> 3) & 1) * 8;
        self.each_block::<T>(|block, j, pairs| {
            to.store_matrix(row + j, col + block, pairs, true);
        });
    }

    /// The first of the warp's 16 rows.
    #[track_caller]
    fn first_block_row(&self) -> Reg<u32> {
        match self.team {
            Team::Warpgroup => (warp_in_role() & 3) * 16,
            Team::Warp => 0u32.reg(),
        }
    }

    /// Rounds each 16 × 16 block: its first row (of its row block) and column, and four pairs per lane.
    #[track_caller]
    fn each_block<T: Half>(&self, mut f: impl FnMut(u32, u32, [Reg<T::Pair>; 4])) {
        let per_row = (self.n / 16) as usize;
        for (i, v) in self.values.chunks(8).enumerate() {
            // Registers 0..8 of a block: (left: 0,1 | 2,3), (right: 4,5 | 6,7).
            let pairs = std::array::from_fn(|p| Reg::round(v[2 * p], v[2 * p + 1]));
            let (block, j) = (i / per_row, i % per_row);
            f(block as u32 * self.team.block(), 16 * j as u32, pairs);
        }
    }

    /// Does it fill a view of this shape?
    #[track_caller]
    fn fills(&self, rows: u32, cols: u32, multiple: u32) -> bool {
        let fine = (rows, cols) == (self.m, self.n) && self.n.is_multiple_of(multiple);
        if !fine {
            error(
                "fragment-store",
                format!(
                    "a tile of {} x {} is stored to a view of that shape with a multiple of {multiple} columns, not {rows} x {cols}",
                    self.m, self.n
                ),
            );
        }
        fine
    }
}

impl Carry for Frag {
    type Vars = (Team, u32, u32, Vec<Var<f32>>);
    #[track_caller]
    fn open(self) -> Self::Vars {
        (self.team, self.m, self.n, self.values.open())
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

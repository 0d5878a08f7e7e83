//! Row vectors: one value for each row of a fragment.

use super::flow::{Carry, if_};
use super::frag::FragOwner;
use super::reg::{Reg, Value, Var};
use super::state::{caller_scope, error};
use super::warp::{lane_id, shuffle_xor};

/// One f32 value for each row of a fragment, the same in the four lanes that share a row.
#[derive(Clone, Debug)]
pub struct RowVector {
    owner: FragOwner,
    /// Two values for each block of rows: of row `lane / 4`, and of the row 8 below.
    values: Vec<Reg<f32>>,
}

impl RowVector {
    pub(super) fn new(owner: FragOwner, values: Vec<Reg<f32>>) -> Self {
        Self { owner, values }
    }

    /// Returns a row vector with the same value for each of `m` rows of a warpgroup fragment.
    #[track_caller]
    pub fn splat(m: u32, x: impl Value<f32>) -> Self {
        let _caller = caller_scope();
        let values = (0..m / 32).map(|_| x.reg()).collect();
        Self::new(FragOwner::Warpgroup, values)
    }

    /// Returns a row vector with `f(row)` for each of `m` rows of a warpgroup fragment.
    #[track_caller]
    pub fn from_fn(m: u32, mut f: impl FnMut(Reg<u32>) -> Reg<f32>) -> Self {
        let _caller = caller_scope();
        let row = FragOwner::Warpgroup.first_row();
        let values = (0..m / 32)
            .map(|i| f(row + (i / 2 * 64 + i % 2 * 8)))
            .collect();
        Self::new(FragOwner::Warpgroup, values)
    }

    /// Returns the number of rows.
    fn rows(&self) -> u32 {
        self.values.len() as u32 / 2 * self.owner.block_rows()
    }

    /// Checks that the row vector belongs to a fragment of `m` rows.
    #[track_caller]
    pub(super) fn check_fragment(&self, owner: FragOwner, m: u32) -> bool {
        let matches = (self.owner, self.rows()) == (owner, m);
        if !matches {
            error(
                "fragment-rows",
                format!(
                    "a {} fragment of {m} rows is combined with a {} row vector of {} rows; both must be equal",
                    owner.name(),
                    self.owner.name(),
                    self.rows()
                ),
            );
        }
        matches
    }

    /// Returns the value for the row of value `i` of a fragment with `n` columns.
    pub(super) fn value_for(&self, i: usize, n: u32) -> Reg<f32> {
        self.values[row_in_lane(i, n)]
    }

    /// Applies `f` to every value.
    #[track_caller]
    pub fn map(&self, f: impl FnMut(Reg<f32>) -> Reg<f32>) -> RowVector {
        let _caller = caller_scope();
        let values = self.values.iter().copied().map(f).collect();
        Self::new(self.owner, values)
    }

    /// Combines two row vectors, row by row.
    #[track_caller]
    pub fn zip(
        &self,
        other: &RowVector,
        mut f: impl FnMut(Reg<f32>, Reg<f32>) -> Reg<f32>,
    ) -> RowVector {
        let _caller = caller_scope();
        if !other.check_fragment(self.owner, self.rows()) {
            return self.clone();
        }
        let pairs = self.values.iter().zip(&other.values);
        Self::new(self.owner, pairs.map(|(&x, &y)| f(x, y)).collect())
    }

    /// Reduces the partial values of the four lanes that share a row (two shuffles).
    #[track_caller]
    pub fn reduce_lanes(&self, mut f: impl FnMut(Reg<f32>, Reg<f32>) -> Reg<f32>) -> RowVector {
        let _caller = caller_scope();
        self.map(|x| {
            let x = f(x, shuffle_xor(x, 1u32));
            f(x, shuffle_xor(x, 2u32))
        })
    }

    /// Calls `f` with every row and its value, in one of the four lanes of the row.
    #[track_caller]
    pub fn each(&self, mut f: impl FnMut(Reg<u32>, Reg<f32>)) {
        let _caller = caller_scope();
        let row = self.owner.first_row();
        if_((lane_id() & 3).eq(0u32), || {
            for (i, &x) in self.values.iter().enumerate() {
                f(
                    row + (i / 2 * self.owner.block_rows() as usize + i % 2 * 8) as u32,
                    x,
                );
            }
        });
    }
}

/// Returns the row of value `i` of a fragment with `n` columns, counted among the lane's rows.
pub(super) fn row_in_lane(i: usize, n: u32) -> usize {
    let half = n as usize / 2;
    i / half * 2 + i % half / 2 % 2
}

impl Carry for RowVector {
    type Vars = (FragOwner, Vec<Var<f32>>);
    #[track_caller]
    fn open(self) -> Self::Vars {
        (self.owner, self.values.open())
    }
    #[track_caller]
    fn load(vars: &Self::Vars) -> Self {
        Self::new(vars.0, Carry::load(&vars.1))
    }
    #[track_caller]
    fn store(vars: &Self::Vars, value: Self) {
        Carry::store(&vars.1, value.values);
    }
}

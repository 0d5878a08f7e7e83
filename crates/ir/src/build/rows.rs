//! One number for each row of a register tile.

use super::flow::{Carry, if_};
use super::frag::Team;
use super::reg::{Reg, Value, Var};
use super::state::{error, here};
use super::warp::{lane_id, shuffle_xor};

/// One number for each row of a register tile, the same in the four lanes that share a row.
#[derive(Clone, Debug)]
pub struct Rows {
    team: Team,
    /// Two for each block of rows: of row `lane / 4`, and of eight rows below.
    values: Vec<Reg<f32>>,
}

impl Rows {
    pub(super) fn new(team: Team, values: Vec<Reg<f32>>) -> Self {
        Self { team, values }
    }

    /// The same number for each of `m` rows of a warpgroup's tile.
    #[track_caller]
    pub fn splat(m: u32, x: impl Value<f32>) -> Self {
        let _at = here();
        let values = (0..m / 32).map(|_| x.reg()).collect();
        Self::new(Team::Warpgroup, values)
    }

    /// The numbers that `f` gives for each of `m` rows of a warpgroup's tile.
    #[track_caller]
    pub fn of(m: u32, mut f: impl FnMut(Reg<u32>) -> Reg<f32>) -> Self {
        let _at = here();
        let row = Team::Warpgroup.first_row();
        let values = (0..m / 32)
            .map(|i| f(row + (i / 2 * 64 + i % 2 * 8)))
            .collect();
        Self::new(Team::Warpgroup, values)
    }

    /// Rows.
    fn rows(&self) -> u32 {
        self.values.len() as u32 / 2 * self.team.block()
    }

    /// Are they the rows of such a tile? Refuses them otherwise.
    #[track_caller]
    pub(super) fn fit(&self, team: Team, m: u32) -> bool {
        let fine = (self.team, self.rows()) == (team, m);
        if !fine {
            error(
                "fragment-rows",
                format!(
                    "{m} rows of a {} are combined with as many numbers of its own, not with {} of a {}",
                    team.name(),
                    self.rows(),
                    self.team.name()
                ),
            );
        }
        fine
    }

    /// The number of the row of value `i` of a tile with `n` columns.
    pub(super) fn of_value(&self, i: usize, n: u32) -> Reg<f32> {
        self.values[row_slot(i, n)]
    }

    /// Applies `f` to every number.
    #[track_caller]
    pub fn map(&self, f: impl FnMut(Reg<f32>) -> Reg<f32>) -> Rows {
        let _at = here();
        let values = self.values.iter().copied().map(f).collect();
        Self::new(self.team, values)
    }

    /// Combines two, row by row.
    #[track_caller]
    pub fn zip(&self, other: &Rows, mut f: impl FnMut(Reg<f32>, Reg<f32>) -> Reg<f32>) -> Rows {
        let _at = here();
        if !other.fit(self.team, self.rows()) {
            return self.clone();
        }
        let pairs = self.values.iter().zip(&other.values);
        Self::new(self.team, pairs.map(|(&x, &y)| f(x, y)).collect())
    }

    /// Combines what the four lanes of a row hold, each a part.
    #[track_caller]
    pub fn across(&self, mut f: impl FnMut(Reg<f32>, Reg<f32>) -> Reg<f32>) -> Rows {
        let _at = here();
        self.map(|x| {
            let x = f(x, shuffle_xor(x, 1u32));
            f(x, shuffle_xor(x, 2u32))
        })
    }

    /// Runs `f` once for every row, in one of its lanes: the row, and its number.
    #[track_caller]
    pub fn each(&self, mut f: impl FnMut(Reg<u32>, Reg<f32>)) {
        let _at = here();
        let row = self.team.first_row();
        if_((lane_id() & 3).eq(0u32), || {
            for (i, &x) in self.values.iter().enumerate() {
                f(
                    row + (i / 2 * self.team.block() as usize + i % 2 * 8) as u32,
                    x,
                );
            }
        });
    }
}

/// Which of a lane's row numbers belongs to value `i` of a tile with `n` columns.
pub(super) fn row_slot(i: usize, n: u32) -> usize {
    let half = n as usize / 2;
    i / half * 2 + i % half / 2 % 2
}

impl Carry for Rows {
    type Vars = (Team, Vec<Var<f32>>);
    #[track_caller]
    fn open(self) -> Self::Vars {
        (self.team, self.values.open())
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

//! Rasterization: the order in which the CTAs compute the output tiles.
//!
//! A rasterization maps each index below `m_tiles · n_tiles` to one tile. CTAs
//! with adjacent indices run at the same time, so the rasterization decides
//! which operand tiles they share in L2.

use super::divisor::FastDivisor;
use super::flow::{if_, if_else, range, select, while_};
use super::reg::{Reg, Value, Var};
use super::state::{caller_scope, error};
use super::warp::{cluster_id, cta_id, grid_clusters, grid_ctas};

/// The order in which the output tiles are computed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Rasterization {
    /// Row by row: N varies fastest.
    #[default]
    RowMajor,
    /// Groups of this many tile rows, column by column inside a group (Triton's `GROUP_SIZE_M`).
    Grouped(u32),
    /// A generalized Hilbert curve, for any rectangle.
    Hilbert,
}

/// The index of an output tile along M and N.
#[derive(Clone, Copy, Debug)]
pub struct TileIndex {
    /// The tile row.
    pub m: Reg<u32>,
    /// The tile column.
    pub n: Reg<u32>,
}

/// The grid of output tiles in a [`Rasterization`].
#[derive(Clone, Copy, Debug)]
pub struct TileGrid {
    order: Rasterization,
    rows: Reg<u32>,
    cols: Reg<u32>,
    count: Reg<u32>,
    divisors: Option<[FastDivisor; 2]>,
}

impl Rasterization {
    /// Returns the divisors for a grid of `rows` × `cols` tiles: the tiles of a group, and the
    /// rows of the last group. The launch passes them, encoded, for [`TileGrid::with_divisors`].
    pub fn divisors(self, rows: u32, cols: u32) -> [u32; 2] {
        match self {
            Rasterization::RowMajor => [cols, 1],
            Rasterization::Grouped(g) => {
                let g = g.max(1);
                [cols.saturating_mul(g), rows.saturating_sub(1) % g + 1]
            }
            Rasterization::Hilbert => [1, 1],
        }
    }

    /// Returns the grid of `rows` × `cols` output tiles.
    #[track_caller]
    pub fn tiles(self, rows: Reg<u32>, cols: Reg<u32>) -> TileGrid {
        let _caller = caller_scope();
        if self == Rasterization::Grouped(0) {
            error(
                "raster-group",
                "Rasterization::Grouped has groups of 0 rows; a group needs at least 1",
            );
        }
        TileGrid {
            order: self,
            rows,
            cols,
            count: rows * cols,
            divisors: None,
        }
    }
}

impl TileGrid {
    /// Returns the number of tiles.
    pub fn count(self) -> Reg<u32> {
        self.count
    }

    /// Replaces integer divisions by multiplications with launch parameters for the
    /// [divisors](Rasterization::divisors).
    pub fn with_divisors(self, divisors: [FastDivisor; 2]) -> Self {
        Self {
            divisors: Some(divisors),
            ..self
        }
    }

    /// Returns the tile at index `i`, which is below [`count`](Self::count).
    #[track_caller]
    pub fn at(self, i: impl Value<u32>) -> TileIndex {
        let _caller = caller_scope();
        let i = i.reg();
        match self.order {
            Rasterization::RowMajor => {
                let m = match self.divisors {
                    Some([row, _]) => row.divide(i),
                    None => i / self.cols,
                };
                TileIndex {
                    m,
                    n: i - m * self.cols,
                }
            }
            Rasterization::Grouped(g) => {
                let g = g.max(1);
                let per_group = self.cols * g;
                let group = match self.divisors {
                    Some([tiles, _]) => tiles.divide(i),
                    None => i / per_group,
                };
                let offset = i - group * per_group;
                let first = group * g;
                // The last group may have fewer rows.
                let height = (self.rows - first).min(g);
                let n = match self.divisors {
                    Some([_, last]) => {
                        let full_group_col = match g.is_power_of_two() {
                            true => offset >> g.trailing_zeros(),
                            false => offset / g,
                        };
                        select(height.eq(g), full_group_col, last.divide(offset))
                    }
                    None => offset / height,
                };
                TileIndex {
                    m: first + (offset - n * height),
                    n,
                }
            }
            Rasterization::Hilbert => hilbert(i, self.rows, self.cols),
        }
    }

    /// Runs `body` for each tile of this CTA in a persistent grid: `cta_id(), cta_id() + grid, …`.
    #[track_caller]
    pub fn each(self, body: impl FnOnce(TileIndex)) {
        let _caller = caller_scope();
        range(cta_id(), self.count)
            .step_by(grid_ctas())
            .each(|i| body(self.at(i)));
    }

    /// Like [`each`](Self::each), with one tile for all CTAs of a cluster.
    #[track_caller]
    pub fn each_cluster(self, body: impl FnOnce(TileIndex)) {
        let _caller = caller_scope();
        range(cluster_id(), self.count)
            .step_by(grid_clusters())
            .each(|i| body(self.at(i)));
    }

    /// Distributes the tiles of this CTA over `role_count` roles in turn. The role with index
    /// `role_index` computes its own tiles and runs `skip` for the others.
    pub fn round_robin<F: FnOnce(TileIndex)>(
        self,
        role_index: u32,
        role_count: u32,
        skip: F,
    ) -> RoundRobinTiles<F> {
        let tiles = self;
        RoundRobinTiles {
            tiles,
            role_index,
            role_count,
            skip,
        }
    }
}

/// The tiles of one role in a round-robin distribution.
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing runs until `each`"]
pub struct RoundRobinTiles<F> {
    tiles: TileGrid,
    role_index: u32,
    role_count: u32,
    skip: F,
}

impl<F: FnOnce(TileIndex)> RoundRobinTiles<F> {
    /// Runs `body` for each tile of the role.
    #[track_caller]
    pub fn each(self, body: impl FnOnce(TileIndex)) {
        let _caller = caller_scope();
        let tiles = self.tiles;
        let current_role = Var::new(0u32);
        range(cta_id(), tiles.count).step_by(grid_ctas()).each(|i| {
            let role = current_role.get();
            let tile = tiles.at(i);
            if_else(
                role.eq(self.role_index),
                || body(tile),
                || (self.skip)(tile),
            );
            let next = role + 1;
            current_role.set(select(next.eq(self.role_count), 0u32, next));
        });
    }
}

/// Returns the `i`-th tile of a generalized Hilbert curve over `rows` × `cols`.
///
/// The vectors `a` (along) and `b` (across) span the rectangle. A rectangle that is much
/// longer than wide splits into two halves, any other into three parts: up, along and
/// down. Each iteration descends into the part that contains `i`; a line ends the descent.
#[track_caller]
fn hilbert(i: Reg<u32>, rows: Reg<u32>, cols: Reg<u32>) -> TileIndex {
    let (rows, cols) = (rows.bitcast::<i32>(), cols.bitcast::<i32>());
    let wide = cols.ge(rows);
    let var = |x: Reg<i32>| Var::new(x);
    let zero = || Var::new(0i32);
    let index = var(i.bitcast());
    let (x, y) = (zero(), zero());
    let (ax, ay) = (var(select(wide, cols, 0)), var(select(wide, 0, rows)));
    let (bx, by) = (var(select(wide, 0, cols)), var(select(wide, rows, 0)));
    while_(
        || {
            let (w, h) = (len(ax.get() + ay.get()), len(bx.get() + by.get()));
            w.gt(1) & h.gt(1)
        },
        || {
            let (a, b) = ([ax.get(), ay.get()], [bx.get(), by.get()]);
            let (w, h) = (len(a[0] + a[1]), len(b[0] + b[1]));
            let (da, db) = (a.map(sign), b.map(sign));
            // Rounds the halves to even lengths where that keeps the curve connected.
            let half = |v: [Reg<i32>; 2], d: [Reg<i32>; 2], length: Reg<i32>| {
                let (hx, hy) = (v[0] >> 1, v[1] >> 1);
                let odd = (len(hx + hy) & 1).eq(1) & length.gt(2);
                [select(odd, hx + d[0], hx), select(odd, hy + d[1], hy)]
            };
            let descend = |from: [Reg<i32>; 2], na: [Reg<i32>; 2], nb: [Reg<i32>; 2]| {
                x.set(x.get() + from[0]);
                y.set(y.get() + from[1]);
                ax.set(na[0]);
                ay.set(na[1]);
                bx.set(nb[0]);
                by.set(nb[1]);
            };
            let minus = |u: [Reg<i32>; 2], v: [Reg<i32>; 2]| [u[0] - v[0], u[1] - v[1]];
            let plus = |u: [Reg<i32>; 2], v: [Reg<i32>; 2]| [u[0] + v[0], u[1] + v[1]];
            let origin = [0i32.reg(), 0i32.reg()];
            let i = index.get();
            if_else(
                (w * 2).gt(h * 3),
                || {
                    let a2 = half(a, da, w);
                    let first = len(a2[0] + a2[1]) * h;
                    if_else(
                        i.lt(first),
                        || descend(origin, a2, b),
                        || {
                            index.set(i - first);
                            descend(a2, minus(a, a2), b);
                        },
                    );
                },
                || {
                    let a2 = [a[0] >> 1, a[1] >> 1];
                    let b2 = half(b, db, h);
                    let (la, lb) = (len(a2[0] + a2[1]), len(b2[0] + b2[1]));
                    let first = la * lb;
                    let second = first + w * (h - lb);
                    if_(i.lt(first), || descend(origin, b2, a2));
                    if_(i.ge(first) & i.lt(second), || {
                        index.set(i - first);
                        descend(b2, a, minus(b, b2));
                    });
                    if_(i.ge(second), || {
                        index.set(i - second);
                        let corner = plus(minus(a, da), minus(b2, db));
                        let neg = |v: [Reg<i32>; 2]| [-v[0], -v[1]];
                        descend(corner, neg(b2), neg(minus(a, a2)));
                    });
                },
            );
        },
    );
    // The part is a line: along `a` if it is one tile across, else along `b`.
    let is_along_a = len(bx.get() + by.get()).eq(1);
    let direction = |a: Var<i32>, b: Var<i32>| select(is_along_a, sign(a.get()), sign(b.get()));
    let n = x.get() + direction(ax, bx) * index.get();
    let m = y.get() + direction(ay, by) * index.get();
    TileIndex {
        m: m.bitcast(),
        n: n.bitcast(),
    }
}

/// Returns |v|.
#[track_caller]
fn len(v: Reg<i32>) -> Reg<i32> {
    v.max(-v)
}

/// Returns −1, 0 or 1.
#[track_caller]
fn sign(v: Reg<i32>) -> Reg<i32> {
    v.max(-1).min(1)
}

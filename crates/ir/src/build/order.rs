//! Tile orders: in which sequence the tiles of an output are worked on.
//!
//! An order maps a number below `rows · cols` to a tile, each tile exactly
//! once. Neighbouring numbers run at the same time on neighbouring SMs, so an
//! order decides what they find in L2.

use super::divisor::Divisor;
use super::flow::{if_, if_else, range, select, while_};
use super::reg::{Reg, Value, Var};
use super::state::{error, here};
use super::warp::{cluster_id, cta_id, grid_clusters, grid_ctas};

/// A sequence of tiles.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Order {
    /// Row by row.
    #[default]
    RowMajor,
    /// Bands of this many rows, column by column inside a band.
    Grouped(u32),
    /// A curve that keeps neighbours near in both directions, for any rectangle.
    Hilbert,
}

/// One tile of an output.
#[derive(Clone, Copy, Debug)]
pub struct TileAt {
    /// The tile's row, in tiles.
    pub m: Reg<u32>,
    /// The tile's column, in tiles.
    pub n: Reg<u32>,
}

/// The tiles of an output, in an order.
#[derive(Clone, Copy, Debug)]
pub struct Tiles {
    order: Order,
    rows: Reg<u32>,
    cols: Reg<u32>,
    count: Reg<u32>,
    by: Option<[Divisor; 2]>,
}

impl Order {
    /// What numbers of tiles are divided by, for an output of so many rows and
    /// columns of tiles: the tiles of a band, and the rows of the last one. A
    /// launch passes them for [`Tiles::by`].
    pub fn divisors(self, rows: u32, cols: u32) -> [u32; 2] {
        match self {
            Order::RowMajor => [cols, 1],
            Order::Grouped(g) => {
                let g = g.max(1);
                [cols.saturating_mul(g), rows.saturating_sub(1) % g + 1]
            }
            Order::Hilbert => [1, 1],
        }
    }

    /// The tiles of an output of `rows` × `cols` tiles.
    #[track_caller]
    pub fn tiles(self, rows: Reg<u32>, cols: Reg<u32>) -> Tiles {
        let _at = here();
        if self == Order::Grouped(0) {
            error(
                "order-group",
                "a grouped order has bands of at least 1 row, not 0",
            );
        }
        Tiles {
            order: self,
            rows,
            cols,
            count: rows * cols,
            by: None,
        }
    }
}

impl Tiles {
    /// How many.
    pub fn count(self) -> Reg<u32> {
        self.count
    }

    /// The same, found without divisions: by what the launch passes for the
    /// order's [divisors](Order::divisors).
    pub fn by(self, divisors: [Divisor; 2]) -> Self {
        Self {
            by: Some(divisors),
            ..self
        }
    }

    /// The tile of a number below [`count`](Self::count).
    #[track_caller]
    pub fn at(self, i: impl Value<u32>) -> TileAt {
        let _at = here();
        let i = i.reg();
        match self.order {
            Order::RowMajor => {
                let m = match self.by {
                    Some([row, _]) => row.of(i),
                    None => i / self.cols,
                };
                TileAt {
                    m,
                    n: i - m * self.cols,
                }
            }
            Order::Grouped(g) => {
                let g = g.max(1);
                let per_band = self.cols * g;
                let band = match self.by {
                    Some([tiles, _]) => tiles.of(i),
                    None => i / per_band,
                };
                let inside = i - band * per_band;
                let first = band * g;
                // The last band may be thinner.
                let height = (self.rows - first).min(g);
                let n = match self.by {
                    Some([_, last]) => {
                        let whole = match g.is_power_of_two() {
                            true => inside >> g.trailing_zeros(),
                            false => inside / g,
                        };
                        select(height.eq(g), whole, last.of(inside))
                    }
                    None => inside / height,
                };
                TileAt {
                    m: first + (inside - n * height),
                    n,
                }
            }
            Order::Hilbert => hilbert(i, self.rows, self.cols),
        }
    }

    /// The tiles of this CTA of a persistent grid: every `grid`-th one.
    #[track_caller]
    pub fn each(self, body: impl FnOnce(TileAt)) {
        let _at = here();
        range(cta_id(), self.count)
            .by(grid_ctas())
            .each(|i| body(self.at(i)));
    }

    /// As [`each`](Self::each), for a cluster whose CTAs work on the same tile.
    #[track_caller]
    pub fn each_cluster(self, body: impl FnOnce(TileAt)) {
        let _at = here();
        range(cluster_id(), self.count)
            .by(grid_clusters())
            .each(|i| body(self.at(i)));
    }

    /// Of the tiles of this CTA, those that role `who` of `of` takes in turn;
    /// `skip` runs for the others.
    pub fn dealt<F: FnOnce(TileAt)>(self, who: u32, of: u32, skip: F) -> DealtTiles<F> {
        let tiles = self;
        DealtTiles {
            tiles,
            who,
            of,
            skip,
        }
    }
}

/// The tiles that one role takes of several.
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing runs until `each`"]
pub struct DealtTiles<F> {
    tiles: Tiles,
    who: u32,
    of: u32,
    skip: F,
}

impl<F: FnOnce(TileAt)> DealtTiles<F> {
    /// Runs `body` for each.
    #[track_caller]
    pub fn each(self, body: impl FnOnce(TileAt)) {
        let _at = here();
        let tiles = self.tiles;
        let turn = Var::new(0u32);
        range(cta_id(), tiles.count).by(grid_ctas()).each(|i| {
            let now = turn.get();
            let tile = tiles.at(i);
            if_else(now.eq(self.who), || body(tile), || (self.skip)(tile));
            let next = now + 1;
            turn.set(select(next.eq(self.of), 0u32, next));
        });
    }
}

/// The `i`-th tile of a generalised Hilbert curve over `rows` × `cols`.
///
/// The curve over a rectangle spanned by the steps `a` (along) and `b`
/// (across) is made of the curves over two halves, if it is much longer than
/// wide, or else over three parts: up, along and down. Each round descends
/// into the part that holds `i`, until the part is a line.
#[track_caller]
fn hilbert(i: Reg<u32>, rows: Reg<u32>, cols: Reg<u32>) -> TileAt {
    let (rows, cols) = (rows.bitcast::<i32>(), cols.bitcast::<i32>());
    let wide = cols.ge(rows);
    let var = |x: Reg<i32>| Var::new(x);
    let zero = || Var::new(0i32);
    let left = var(i.bitcast());
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
            // Halves, made even where that keeps the curve connected.
            let half = |v: [Reg<i32>; 2], d: [Reg<i32>; 2], whole: Reg<i32>| {
                let (hx, hy) = (v[0] >> 1, v[1] >> 1);
                let odd = (len(hx + hy) & 1).eq(1) & whole.gt(2);
                [select(odd, hx + d[0], hx), select(odd, hy + d[1], hy)]
            };
            let go = |from: [Reg<i32>; 2], na: [Reg<i32>; 2], nb: [Reg<i32>; 2]| {
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
            let now = left.get();
            if_else(
                (w * 2).gt(h * 3),
                || {
                    let a2 = half(a, da, w);
                    let first = len(a2[0] + a2[1]) * h;
                    if_else(
                        now.lt(first),
                        || go(origin, a2, b),
                        || {
                            left.set(now - first);
                            go(a2, minus(a, a2), b);
                        },
                    );
                },
                || {
                    let a2 = [a[0] >> 1, a[1] >> 1];
                    let b2 = half(b, db, h);
                    let (la, lb) = (len(a2[0] + a2[1]), len(b2[0] + b2[1]));
                    let first = la * lb;
                    let second = first + w * (h - lb);
                    if_(now.lt(first), || go(origin, b2, a2));
                    if_(now.ge(first) & now.lt(second), || {
                        left.set(now - first);
                        go(b2, a, minus(b, b2));
                    });
                    if_(now.ge(second), || {
                        left.set(now - second);
                        let corner = plus(minus(a, da), minus(b2, db));
                        let neg = |v: [Reg<i32>; 2]| [-v[0], -v[1]];
                        go(corner, neg(b2), neg(minus(a, a2)));
                    });
                },
            );
        },
    );
    // A line: along a if the part is one tile across, else along b.
    let flat = len(bx.get() + by.get()).eq(1);
    let d = |a: Var<i32>, b: Var<i32>| select(flat, sign(a.get()), sign(b.get()));
    let n = x.get() + d(ax, bx) * left.get();
    let m = y.get() + d(ay, by) * left.get();
    TileAt {
        m: m.bitcast(),
        n: n.bitcast(),
    }
}

/// |v|.
#[track_caller]
fn len(v: Reg<i32>) -> Reg<i32> {
    v.max(-v)
}

/// −1, 0 or 1.
#[track_caller]
fn sign(v: Reg<i32>) -> Reg<i32> {
    v.max(-1).min(1)
}

//! O and the logarithms: where each row of a tile is stored.
//!
//! | rows of a tile | O |
//! |---|---|
//! | queries of one head | by TMA, from shared memory |
//! | queries of all heads that share a head of K and V | row by row, from registers |
//! | any, for a part of the keys | in f32, row by row, to the workspace; [`combine`](super::combine) adds the parts |

use super::config::Config;
use super::context::{Half16, ROWS};
use super::problem::{Class, MAX_HEADS, Problem};
use super::spans::{Span, Spans};
use super::work::QueryTile;
use super::workspace::{Workspace, ZEROS};
use warpline_family::error::FamilyError;
use warpline_family::plan::{Buffer, LaunchStep};
use warpline_ir::TensorMapDecl;
use warpline_ir::builder::*;

/// Where O and the logarithms are stored.
#[derive(Clone, Copy)]
pub(super) struct Output<T> {
    to: Destination<T>,
    lse: Option<Global<f32>>,
    /// The extents of the logarithms and of parts of O.
    extents: Option<Extents>,
    is_packed: bool,
    /// Heads of Q in a tile.
    tile_heads: u32,
    /// Queries of a tile, if rows are left behind them.
    tile_queries: Option<u32>,
}

#[derive(Clone, Copy)]
enum Destination<T> {
    Tensor(TensorMap),
    Spans(Spans),
    /// Rows in the type of O: the first one, and the strides of rows, heads and batches.
    Rows(Global<T>, [Reg<u64>; 3]),
    /// Rows of f32: parts of the keys, batches, heads, queries.
    Parts(Global<f32>),
}

#[derive(Clone, Copy)]
struct Extents {
    queries: Reg<u32>,
    heads: Reg<u32>,
    /// Rows of all batches and heads.
    rows: Reg<u64>,
    /// Elements of a row of O, if rows are stored one by one.
    dim: Option<Reg<u32>>,
}

/// A row of a tile.
#[derive(Clone, Copy)]
pub(super) struct TileRow {
    /// The query of its batch or sequence.
    pub(super) query: Reg<u32>,
    pub(super) head: Reg<u32>,
}

/// Names of the parameters.
const STRIDES: [&str; 3] = ["o_row", "o_head", "o_batch"];

/// Returns whether the kernel needs the extents of rows.
fn needs_extents(class: &Class, c: &Config) -> bool {
    class.lse || c.stores_rows()
}

impl<T: Half16> Output<T> {
    /// Declares the parameters. `queries` is the number of queries of a head, of all sequences if they are
    /// packed.
    pub(super) fn declare(
        k: Builder,
        class: &Class,
        c: &Config,
        queries: Option<Reg<u32>>,
    ) -> Self {
        let is_packed = class.sequences.is_some_and(|class| class.packed_queries);
        let extents = queries
            .filter(|_| needs_extents(class, c))
            .map(|queries| Extents {
                queries,
                heads: k
                    .param::<u32>("heads")
                    .at_least(1)
                    .at_most(MAX_HEADS as u32),
                rows: k.param::<u64>("lse_len"),
                dim: (c.stores_rows())
                    .then(|| k.param::<u32>("dim_v").at_least(8).at_most(class.cols_v)),
            });
        let rows = extents.map(|extents| extents.rows);
        let lse = |rows| match c.is_split() {
            true => k.pointer::<f32>("lse"),
            false => k.pointer::<f32>("lse").elements(rows),
        };
        let map = || {
            let mut decl = TensorMapDecl::tiled(T::DTYPE, [class.out_box(), ROWS]);
            decl.tile.extend([1, 1]);
            k.tensor_map("o", decl)
        };
        Self {
            to: match (c.is_split(), c.tile_heads) {
                (true, _) => Destination::Parts(k.pointer("parts")),
                (false, 2..) => {
                    let strides = STRIDES.map(|name| k.param::<u64>(name));
                    Destination::Rows(k.pointer("o"), strides)
                }
                _ if is_packed => Destination::Spans(Spans::declare(k, "o", map())),
                _ => Destination::Tensor(map()),
            },
            lse: rows.filter(|_| class.lse || c.is_split()).map(lse),
            extents,
            is_packed,
            tile_heads: c.tile_heads,
            tile_queries: (!ROWS.is_multiple_of(c.tile_heads)).then(|| c.tile_queries()),
        }
    }

    /// Binds the parameters.
    pub(super) fn bind(
        step: LaunchStep,
        p: &Problem,
        c: &Config,
        workspace: &Workspace,
    ) -> Result<LaunchStep, FamilyError> {
        let class = p.class();
        let [_, _, _, o] = p.rows();
        let at = Buffer::Output(0);
        let step = match (c.is_split(), c.tile_heads) {
            (true, _) => step.pointer("parts", workspace.parts),
            (false, 2..) => {
                let strides = [o.strides.row, o.strides.head, o.strides.batch];
                let strides = STRIDES.iter().zip(strides);
                let step = step.pointer("o", at);
                strides.fold(step, |step, (name, stride)| step.scalar(name, stride))
            }
            _ if p.packed_queries => Spans::bind(step, &o, at.into(), ZEROS, p.dtype.dtype())?,
            _ => step.tensor("o", o.tensor(at.into(), ZEROS, p.dtype.dtype())),
        };
        let step = match (c.is_split(), class.lse) {
            (true, _) => step.pointer("lse", workspace.logs),
            (false, true) => step.pointer("lse", Buffer::Output(1)),
            (false, false) => step,
        };
        if !needs_extents(&class, c) {
            return Ok(step);
        }
        let step = step.scalar("lse_len", o.rows()).scalar("heads", p.heads);
        Ok(match c.stores_rows() {
            true => step.scalar("dim_v", p.dim_v()),
            false => step,
        })
    }

    /// Returns the staging buffer of a consumer, if TMA stores its rows.
    pub(super) fn outbox(&self, k: Builder, name: &str, c: &Config) -> Option<Outbox<T>> {
        let is_staged = matches!(self.to, Destination::Tensor(_) | Destination::Spans(_));
        is_staged.then(|| k.outbox::<T>(name, 1, ROWS, c.out_cols))
    }

    /// Stores O and the logarithms of a tile; `first_query` is its first row's query.
    pub(super) fn store(
        &self,
        tile: &QueryTile,
        first_query: Reg<u32>,
        row: impl Fn(Reg<u32>) -> TileRow,
        outbox: Option<Outbox<T>>,
        (o, log): (&Frag, &RowVector),
    ) {
        match (self.to, outbox, self.extents) {
            (Destination::Tensor(map), Some(outbox), _) => {
                outbox.store(o, map, (0u32, first_query, tile.head, tile.batch));
            }
            (Destination::Spans(spans), Some(outbox), _) => {
                if let Some(sequence) = tile.sequence {
                    let span = Span {
                        start: [sequence.query_start, tile.head, 0u32.reg()],
                        rows: sequence.queries,
                    };
                    let (col, row, units, wrap) = spans.at(&span, 0, first_query);
                    outbox.store(o, spans.map(), (col, row, units, wrap));
                }
            }
            (to, _, Some(extents)) => {
                if let Some(dim) = extents.dim {
                    self.store_rows(to, tile, (extents, dim), &row, o);
                }
            }
            _ => {}
        }
        self.store_logs(tile, row, log);
    }

    /// Stores the rows of a tile from registers.
    fn store_rows(
        &self,
        to: Destination<T>,
        tile: &QueryTile,
        (extents, dim): (Extents, Reg<u32>),
        row: &impl Fn(Reg<u32>) -> TileRow,
        o: &Frag,
    ) {
        let queries = self.queries(tile, extents);
        o.each_row(|i, pairs| {
            let row = row(i);
            if_(row.query.lt(queries), || {
                let position = self.position(tile, row.query).cast::<u64>();
                match to {
                    Destination::Rows(first, [rows, heads, batches]) => {
                        let mut start = position * rows + row.head.cast::<u64>() * heads;
                        if !self.is_packed {
                            start = start + tile.batch.cast::<u64>() * batches;
                        }
                        let to = first.offset(start);
                        each_column(pairs, dim, |col, [a, b]| {
                            to.store_as(col, [Reg::<T::Pair>::round(a, b)]);
                        });
                    }
                    Destination::Parts(parts) => {
                        let head = self.outer_head(tile, row.head, extents);
                        let index = self.log_start(tile, head, extents) + position;
                        let to = parts.offset(index * dim.cast::<u64>());
                        each_column(pairs, dim, |col, pair| to.store_vec(col, pair));
                    }
                    Destination::Tensor(_) | Destination::Spans(_) => {}
                }
            });
        });
    }

    fn store_logs(&self, tile: &QueryTile, row: impl Fn(Reg<u32>) -> TileRow, log: &RowVector) {
        let (Some(to), Some(extents)) = (self.lse, self.extents) else {
            return;
        };
        let queries = self.queries(tile, extents);
        // All rows may have the same head.
        let head = (self.tile_heads == 1).then(|| self.outer_head(tile, tile.head, extents));
        log.each(|i, x| {
            let row = row(i);
            if_(row.query.lt(queries), || {
                let head = head.unwrap_or_else(|| self.outer_head(tile, row.head, extents));
                let start = self.log_start(tile, head, extents);
                to.offset(start).store(self.position(tile, row.query), x);
            });
        });
    }

    /// Returns the end of the queries that a tile stores.
    fn queries(&self, tile: &QueryTile, extents: Extents) -> Reg<u32> {
        let end = tile
            .sequence
            .map_or(extents.queries, |sequence| sequence.queries);
        match self.tile_queries {
            None => end,
            // The next tile has the query of the rows that are left.
            Some(queries) => end.min(tile.query + queries),
        }
    }

    /// Returns the row of a query in Q and O.
    fn position(&self, tile: &QueryTile, query: Reg<u32>) -> Reg<u32> {
        match tile.sequence.filter(|_| self.is_packed) {
            Some(sequence) => sequence.query_start + query,
            None => query,
        }
    }

    /// Returns the index of a head among the heads of all batches.
    fn outer_head(&self, tile: &QueryTile, head: Reg<u32>, extents: Extents) -> Reg<u32> {
        match self.is_packed {
            true => head,
            false => tile.batch * extents.heads + head,
        }
    }

    /// Returns the index of a head's first logarithm: parts, batches, heads, queries.
    fn log_start(&self, tile: &QueryTile, head: Reg<u32>, extents: Extents) -> Reg<u64> {
        let start = head.mul_wide(extents.queries);
        match tile.split {
            None => start,
            Some(split) => start + split.index.cast::<u64>() * extents.rows,
        }
    }
}

/// Calls `store` with the columns of a row that exist.
fn each_column(
    pairs: &[(Reg<u32>, [Reg<f32>; 2])],
    dim: Reg<u32>,
    store: impl Fn(Reg<u32>, [Reg<f32>; 2]),
) {
    for &(col, pair) in pairs {
        if_(col.lt(dim), || store(col, pair));
    }
}

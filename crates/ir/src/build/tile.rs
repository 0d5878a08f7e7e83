//! Tiles of shared memory, views of them, and accesses to them.

use super::korder::{KOrder, Natural};
use super::mma::MatrixWord;
use super::reg::{Coord, Reg, Value};
use super::state::{emit, error, here, with};
use crate::layout::{Swizzle, TileLayout};
use crate::loc::Frame;
use crate::ops::matrix::{LoadMatrix, StoreMatrix};
use crate::ops::memory::{Load, LoadCache, Store, StoreCache};
use crate::program;
use crate::types::{Element, Scalar};
use crate::value::{At, Operand, Place, TileId, View};
use std::marker::PhantomData;
use std::ops::Range;

/// A tile that is being declared.
#[derive(Clone, Debug)]
#[must_use = "a tile exists once `declare` is called"]
pub struct TileDecl<T> {
    name: String,
    rows: u32,
    cols: u32,
    swizzle: Swizzle,
    stages: u32,
    alias: Option<TileId>,
    frame: Frame,
    ty: PhantomData<fn() -> T>,
}

/// The widest swizzle whose span divides a row.
pub(crate) fn widest_swizzle(row_bytes: u32) -> Swizzle {
    [Swizzle::B128, Swizzle::B64, Swizzle::B32]
        .into_iter()
        .find(|s| s.span().is_some_and(|span| row_bytes.is_multiple_of(span)))
        .unwrap_or(Swizzle::None)
}

impl<T: Element> TileDecl<T> {
    #[track_caller]
    pub(crate) fn new(name: &str, rows: u32, cols: u32) -> Self {
        Self {
            name: name.to_owned(),
            rows,
            cols,
            swizzle: widest_swizzle(cols * T::DTYPE.bytes() as u32),
            stages: 1,
            alias: None,
            frame: Frame::caller(),
            ty: PhantomData,
        }
    }

    /// Another swizzle than the widest that fits.
    pub fn swizzle(mut self, s: Swizzle) -> Self {
        self.swizzle = s;
        self
    }

    /// Plain rows.
    pub fn plain(self) -> Self {
        self.swizzle(Swizzle::None)
    }

    /// Copies of it, addressed by [`Tile::stage`].
    pub fn stages(mut self, n: u32) -> Self {
        self.stages = n;
        self
    }

    /// Shares the bytes of another tile; their lifetimes must be apart.
    pub fn alias<U>(mut self, of: Tile<U>) -> Self {
        self.alias = Some(of.id);
        self
    }

    /// Declares it.
    pub fn declare(self) -> Tile<T> {
        let layout = TileLayout {
            element: T::DTYPE.bytes() as u32,
            rows: self.rows,
            cols: self.cols,
            swizzle: self.swizzle,
        };
        let name = self.name;
        let id = with(|s| {
            let problem = if self.rows == 0 || self.cols == 0 || self.stages == 0 {
                Some(format!(
                    "tile {name} needs rows, columns and stages of at least 1, not {} x {} in {} stages",
                    self.rows, self.cols, self.stages
                ))
            } else {
                match self.swizzle.span() {
                    Some(span) if !layout.row_bytes().is_multiple_of(span) => Some(format!(
                        "a row of tile {name} is a multiple of its swizzle span of {span} bytes, not {}",
                        layout.row_bytes()
                    )),
                    _ => None,
                }
            };
            if let Some(text) = problem {
                s.error("tile-shape", text, self.frame, None);
            }
            if let Some(of) = self.alias {
                let of = &s.tiles[of.index()];
                let needed = self.stages as u64 * layout.stage_bytes() as u64;
                if needed > u64::from(of.bytes()) {
                    let text = format!(
                        "tile {name} of {needed} bytes cannot share the {} bytes of tile {}",
                        of.bytes(),
                        of.name
                    );
                    s.error("tile-alias", text, self.frame, None);
                }
            }
            let loc = s.loc(self.frame);
            s.tiles.push(program::Tile {
                name,
                dtype: T::DTYPE,
                layout,
                stages: self.stages,
                offset: 0,
                alias: self.alias,
                loc,
            });
            Some(s.tiles.len() as u32 - 1)
        });
        Tile {
            id: TileId(id.unwrap_or(0)),
            layout,
            ty: PhantomData,
        }
    }
}

/// A declared tile.
#[derive(Debug)]
pub struct Tile<T> {
    pub(crate) id: TileId,
    pub(crate) layout: TileLayout,
    ty: PhantomData<fn() -> T>,
}

impl<T> Clone for Tile<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Tile<T> {}

impl<T: Element> Tile<T> {
    /// One stage of it.
    #[track_caller]
    pub fn stage(self, stage: impl Value<u32>) -> TileRef<T> {
        TileRef {
            view: View {
                tile: self.id,
                stage: stage.operand(),
                row: 0,
                rows: self.layout.rows,
                col: 0,
                cols: self.layout.cols,
                peer: None,
            },
            layout: self.layout,
            ty: PhantomData,
        }
    }

    /// Its first stage.
    #[track_caller]
    pub fn whole(self) -> TileRef<T> {
        self.stage(0u32)
    }
}

/// Where a thread reads or writes in panels of one swizzle, worked out once and
/// used in any stage, and in any view that starts with a panel: what stands in
/// front of a loop is not computed in it.
///
/// ```
/// use warpline_ir::build::*;
/// use warpline_ir::{Kernel, Swizzle, Target};
///
/// Kernel::build("spots", &Target::SM_90A, |k| {
///     let out = k.pointer::<u32>("out");
///     let tile = k.tile::<u32>("tile", 32, 32).stages(2).declare();
///     k.role("all").warps(1).body(|| {
///         let spot = Spot::new(Swizzle::B128, lane_id(), 16u32);
///         tile.stage(0).store_spot(spot, [lane_id()]);
///         tile.stage(1).store_spot(spot, [lane_id() + 1]);
///         let [x] = tile.stage(1).load_spot::<u32, 1>(spot);
///         out.store(lane_id(), x + tile.stage(0).load(lane_id(), 4));
///     });
/// })?;
/// # Ok::<(), warpline_ir::BuildErrors>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    swizzle: Swizzle,
    byte: Reg<u32>,
}

impl Spot {
    /// A byte of a row of a panel, which is as wide as the swizzle.
    #[track_caller]
    pub fn new(swizzle: Swizzle, row: impl Value<u32>, byte: impl Value<u32>) -> Self {
        let _at = here();
        let Some(span) = swizzle.span() else {
            error("spot", "panels with spots have a swizzle".to_owned());
            return Self {
                swizzle,
                byte: Reg::fresh(),
            };
        };
        let linear = row.reg().mad(span, byte.reg());
        Self {
            swizzle,
            byte: linear ^ ((linear >> 3) & swizzle.mask()),
        }
    }

    /// As many bytes further on: whole panels.
    #[track_caller]
    pub fn plus(self, bytes: impl Value<u32>) -> Self {
        let _at = here();
        Self {
            byte: self.byte + bytes.reg(),
            ..self
        }
    }
}

/// A stage of a tile, or a rectangle of it, with K in an order `K` where it is an operand.
#[derive(Debug)]
pub struct TileRef<T, K = Natural> {
    pub(crate) view: View,
    pub(crate) layout: TileLayout,
    ty: PhantomData<fn() -> (T, K)>,
}

impl<T, K> Clone for TileRef<T, K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, K> Copy for TileRef<T, K> {}

impl<T: Element, K: KOrder> TileRef<T, K> {
    /// The same bytes, said to hold K in another order: whoever fills the tile sees to it.
    pub fn in_order<L: KOrder>(self) -> TileRef<T, L> {
        TileRef {
            view: self.view,
            layout: self.layout,
            ty: PhantomData,
        }
    }

    /// Rows of the rectangle.
    pub fn rows(&self) -> u32 {
        self.view.rows
    }

    /// Columns of the rectangle.
    pub fn cols(&self) -> u32 {
        self.view.cols
    }

    /// Bytes of the rectangle.
    pub fn bytes(&self) -> u32 {
        self.view.rows * self.view.cols * self.layout.element
    }

    /// The rectangle of these rows and columns, counted inside this one.
    #[track_caller]
    pub fn slice(mut self, rows: Range<u32>, cols: Range<u32>) -> Self {
        let v = &mut self.view;
        let fits = rows.start < rows.end
            && cols.start < cols.end
            && rows.end <= v.rows
            && cols.end <= v.cols;
        if !fits {
            error(
                "view-bounds",
                format!(
                    "rows {rows:?}, columns {cols:?} do not lie in a view of {} x {}",
                    v.rows, v.cols
                ),
            );
            return self;
        }
        (v.row, v.rows) = (v.row + rows.start, rows.end - rows.start);
        (v.col, v.cols) = (v.col + cols.start, cols.end - cols.start);
        if !self.layout.is_atomic(v.row, v.rows, v.col, v.cols) {
            error(
                "view-atoms",
                format!(
                    "a view lies on swizzle-atom boundaries (8 rows, 16 bytes inside one span or whole spans); rows {rows:?}, columns {cols:?} do not"
                ),
            );
        }
        self
    }

    /// The same rectangle in another CTA of the cluster.
    #[track_caller]
    pub fn peer(mut self, rank: impl Value<u32>) -> Self {
        self.view.peer = Some(rank.operand());
        with(|s| s.remote = true);
        self
    }

    /// The place of an element.
    #[track_caller]
    pub fn place(self, row: impl Coord, col: impl Coord) -> Place {
        let _at = here();
        let l = self.layout;
        let base = Place {
            tile: self.view.tile,
            stage: self.view.stage,
            byte: Operand::Imm(0),
            offset: 0,
            peer: self.view.peer,
        };
        let (v, es) = (self.view, l.element);
        match (row.coord(), col.coord()) {
            (Operand::Imm(r), Operand::Imm(c)) => Place {
                offset: l.offset(v.row + r as u32, v.col + c as u32),
                ..base
            },
            (Operand::Imm(0), Operand::Reg(c)) if l.swizzle == Swizzle::None && v.row == 0 => {
                Place {
                    byte: (Reg::<u32>::of(c) * es).operand(),
                    offset: v.col * es,
                    ..base
                }
            }
            (r, c) => Place {
                byte: swizzled(l, add(r, v.row), add(c, v.col)).operand(),
                ..base
            },
        }
    }

    /// Reads one element.
    #[track_caller]
    pub fn load(self, row: impl Coord, col: impl Coord) -> Reg<T::Reg> {
        let [x] = self.load_vec(row, col);
        x
    }

    /// Reads `N` elements of a row, at most 16 bytes, aligned to their size.
    #[track_caller]
    pub fn load_vec<const N: usize>(self, row: impl Coord, col: impl Coord) -> [Reg<T::Reg>; N] {
        self.load_as(row, col)
    }

    /// Writes one element.
    #[track_caller]
    pub fn store(self, row: impl Coord, col: impl Coord, value: impl Value<T::Reg>) {
        self.store_vec(row, col, [value]);
    }

    /// Writes `N` elements of a row, at most 16 bytes, aligned to their size.
    #[track_caller]
    pub fn store_vec<const N: usize>(
        self,
        row: impl Coord,
        col: impl Coord,
        values: [impl Value<T::Reg>; N],
    ) {
        self.store_as(row, col, values);
    }

    /// Reads `N` registers of any type from the bytes of an element on.
    #[track_caller]
    pub fn load_as<U: Scalar, const N: usize>(
        self,
        row: impl Coord,
        col: impl Coord,
    ) -> [Reg<U>; N] {
        let at = At::Shared(self.place(row, col));
        let dst: [Reg<U>; N] = std::array::from_fn(|_| Reg::fresh());
        emit(Load {
            ty: U::TYPE,
            dst: dst.iter().map(|r| r.id()).collect(),
            at,
            cache: LoadCache::DEFAULT,
        });
        super::ring::generic_use(self.view.tile);
        dst
    }

    /// Writes `N` registers of any type to the bytes of an element on.
    #[track_caller]
    pub fn store_as<U: Scalar, const N: usize>(
        self,
        row: impl Coord,
        col: impl Coord,
        values: [impl Value<U>; N],
    ) {
        let at = At::Shared(self.place(row, col));
        emit(Store {
            ty: U::TYPE,
            src: values.iter().map(|v| v.operand()).collect(),
            at,
            cache: StoreCache::DEFAULT,
        });
        super::ring::generic_use(self.view.tile);
    }

    /// As [`load_as`](Self::load_as), from a byte of a tile without swizzle on.
    #[track_caller]
    pub fn load_byte<U: Scalar, const N: usize>(self, byte: Reg<u32>) -> [Reg<U>; N] {
        let _at = here();
        let (l, v) = (self.layout, self.view);
        if l.swizzle != Swizzle::None {
            error(
                "byte",
                format!(
                    "bytes are counted in a tile without swizzle, not with {:?}",
                    l.swizzle
                ),
            );
        }
        let dst: [Reg<U>; N] = std::array::from_fn(|_| Reg::fresh());
        emit(Load {
            ty: U::TYPE,
            dst: dst.iter().map(|r| r.id()).collect(),
            at: At::Shared(Place {
                tile: v.tile,
                stage: v.stage,
                byte: byte.operand(),
                offset: l.offset(v.row, v.col),
                peer: v.peer,
            }),
            cache: LoadCache::DEFAULT,
        });
        super::ring::generic_use(self.view.tile);
        dst
    }

    /// As [`load_as`](Self::load_as), from a spot of a panel on.
    #[track_caller]
    pub fn load_spot<U: Scalar, const N: usize>(self, spot: Spot) -> [Reg<U>; N] {
        let _at = here();
        let dst: [Reg<U>; N] = std::array::from_fn(|_| Reg::fresh());
        emit(Load {
            ty: U::TYPE,
            dst: dst.iter().map(|r| r.id()).collect(),
            at: At::Shared(self.spot_place(spot)),
            cache: LoadCache::DEFAULT,
        });
        super::ring::generic_use(self.view.tile);
        dst
    }

    /// As [`store_as`](Self::store_as), from a spot of a panel on.
    #[track_caller]
    pub fn store_spot<U: Scalar, const N: usize>(self, spot: Spot, values: [impl Value<U>; N]) {
        let _at = here();
        emit(Store {
            ty: U::TYPE,
            src: values.iter().map(|v| v.operand()).collect(),
            at: At::Shared(self.spot_place(spot)),
            cache: StoreCache::DEFAULT,
        });
        super::ring::generic_use(self.view.tile);
    }

    /// The place of a spot of the panel that the view starts with.
    #[track_caller]
    fn spot_place(self, spot: Spot) -> Place {
        let (l, v) = (self.layout, self.view);
        if l.swizzle != spot.swizzle || !v.col.is_multiple_of(l.panel_cols()) {
            error(
                "spot",
                format!(
                    "a spot of panels with swizzle {:?} is looked up in a view that starts with such a panel, not with {:?} at column {}",
                    spot.swizzle, l.swizzle, v.col
                ),
            );
        }
        Place {
            tile: v.tile,
            stage: v.stage,
            byte: spot.byte.operand(),
            offset: l.offset(v.row, v.col),
            peer: v.peer,
        }
    }

    /// `ldmatrix`: `N` (1, 2 or 4) 8×8 matrices of 16-bit elements. Lane
    /// 8j + r names row r of matrix j, 16 bytes from an element on; the lane
    /// gets two neighbours of row lane/4 (`trans`: of column lane/4) of each.
    #[track_caller]
    pub fn load_matrix<U: MatrixWord, const N: usize>(
        self,
        row: impl Coord,
        col: impl Coord,
        trans: bool,
    ) -> [Reg<U>; N] {
        let at = self.place(row, col);
        let dst: [Reg<U>; N] = std::array::from_fn(|_| Reg::fresh());
        emit(LoadMatrix {
            dst: dst.iter().map(|r| r.id()).collect(),
            at,
            trans,
        });
        super::ring::generic_use(self.view.tile);
        dst
    }

    /// `stmatrix`: writes `N` (1, 2 or 4) 8×8 matrices, as [`load_matrix`](Self::load_matrix) reads them.
    #[track_caller]
    pub fn store_matrix<U: Scalar, const N: usize>(
        self,
        row: impl Coord,
        col: impl Coord,
        values: [Reg<U>; N],
        trans: bool,
    ) {
        let at = self.place(row, col);
        let values = values.map(|v| v.bitcast::<u32>());
        emit(StoreMatrix {
            src: values.iter().map(|v| v.operand()).collect(),
            at,
            trans,
        });
        super::ring::generic_use(self.view.tile);
    }
}

/// An operand plus a constant.
#[track_caller]
pub(super) fn add(o: Operand, by: u32) -> Reg<u32> {
    match o {
        Operand::Imm(x) => (x as u32 + by).reg(),
        Operand::Reg(r) if by == 0 => Reg::of(r),
        Operand::Reg(r) => Reg::<u32>::of(r) + by,
    }
}

/// The byte of an element whose row and column are registers.
#[track_caller]
fn swizzled(l: TileLayout, row: Reg<u32>, col: Reg<u32>) -> Reg<u32> {
    let byte = col * l.element;
    if l.swizzle == Swizzle::None {
        return row.mad(l.row_bytes(), byte);
    }
    let span = l.span();
    let mut linear = row.mad(span, byte & (span - 1));
    if l.panels() > 1 {
        linear = (byte >> span.trailing_zeros()).mad(l.panel_bytes(), linear);
    }
    linear ^ ((linear >> 3) & l.swizzle.mask())
}

//! Shared-memory tiles, views of them, and accesses to them.

use super::k_order::{KOrder, Natural};
use super::mma::MatrixWord;
use super::reg::{Coord, Reg, Value};
use super::state::{caller_scope, emit, error, with};
use crate::layout::{Swizzle, TileLayout};
use crate::loc::Frame;
use crate::ops::matrix::{LoadMatrix, StoreMatrix};
use crate::ops::memory::{Load, LoadCache, Store, StoreCache};
use crate::program;
use crate::types::{Element, Scalar};
use crate::value::{MemoryAddress, Operand, SharedAddress, TileId, View};
use std::marker::PhantomData;
use std::ops::Range;

/// A tile declaration, completed by [`declare`](Self::declare).
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

/// Returns the widest swizzle whose span divides a row.
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

    /// Sets the swizzle; the default is the widest that fits a row.
    pub fn swizzle(mut self, s: Swizzle) -> Self {
        self.swizzle = s;
        self
    }

    /// Removes the swizzle: the tile is row-major.
    pub fn unswizzled(self) -> Self {
        self.swizzle(Swizzle::None)
    }

    /// Sets the number of stages; [`Tile::stage`] selects one.
    pub fn stages(mut self, n: u32) -> Self {
        self.stages = n;
        self
    }

    /// Places the tile on the bytes of another tile. Their lifetimes must not overlap.
    pub fn alias<U>(mut self, target: Tile<U>) -> Self {
        self.alias = Some(target.id);
        self
    }

    /// Declares the tile.
    pub fn declare(self) -> Tile<T> {
        let layout = TileLayout {
            element_bytes: T::DTYPE.bytes() as u32,
            rows: self.rows,
            cols: self.cols,
            swizzle: self.swizzle,
        };
        let name = self.name;
        let id = with(|s| {
            let problem = if self.rows == 0 || self.cols == 0 || self.stages == 0 {
                Some(format!(
                    "tile {name} has {} x {} elements in {} stages; each must be at least 1",
                    self.rows, self.cols, self.stages
                ))
            } else {
                match self.swizzle.span() {
                    Some(span) if !layout.row_bytes().is_multiple_of(span) => Some(format!(
                        "a row of tile {name} has {} bytes; it must be a multiple of the swizzle span, {span} bytes",
                        layout.row_bytes()
                    )),
                    _ => None,
                }
            };
            if let Some(text) = problem {
                s.error("tile-shape", text, self.frame, None);
            }
            if let Some(target) = self.alias {
                let target = &s.tiles[target.index()];
                let needed = self.stages as u64 * layout.stage_bytes() as u64;
                if needed > u64::from(target.bytes()) {
                    let text = format!(
                        "tile {name} needs {needed} bytes, but aliases only the {} bytes of tile {}",
                        target.bytes(),
                        target.name
                    );
                    s.error("tile-alias", text, self.frame, None);
                }
            }
            let loc = s.loc(self.frame);
            s.tiles.push(program::TileInfo {
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

/// A tile in shared memory, with its stages.
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
    /// Returns one stage of the tile.
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

    /// Returns the whole tile, which is its first stage.
    #[track_caller]
    pub fn whole(self) -> TileRef<T> {
        self.stage(0u32)
    }
}

/// A thread's swizzled byte offset inside a panel, computed once before a loop.
///
/// It applies to any stage and to any view that starts at a panel of the same swizzle.
///
/// ```
/// use warpline_ir::builder::*;
/// use warpline_ir::{Kernel, Swizzle, Target};
///
/// Kernel::build("offsets", &Target::SM_90A, |k| {
///     let out = k.pointer::<u32>("out");
///     let tile = k.tile::<u32>("tile", 32, 32).stages(2).declare();
///     k.role("all").warps(1).body(|| {
///         let offset = SwizzledOffset::new(Swizzle::B128, lane_id(), 16u32);
///         tile.stage(0).store_swizzled(offset, [lane_id()]);
///         tile.stage(1).store_swizzled(offset, [lane_id() + 1]);
///         let [x] = tile.stage(1).load_swizzled::<u32, 1>(offset);
///         out.store(lane_id(), x + tile.stage(0).load(lane_id(), 4));
///     });
/// })?;
/// # Ok::<(), warpline_ir::BuildErrors>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SwizzledOffset {
    swizzle: Swizzle,
    byte: Reg<u32>,
}

impl SwizzledOffset {
    /// Computes the offset of a byte of a panel row; a panel is as wide as the swizzle span.
    #[track_caller]
    pub fn new(swizzle: Swizzle, row: impl Value<u32>, byte: impl Value<u32>) -> Self {
        let _caller = caller_scope();
        let Some(span) = swizzle.span() else {
            error(
                "swizzled-offset",
                "SwizzledOffset::new needs a swizzle; Swizzle::None has no panels".to_owned(),
            );
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

    /// Adds `bytes`, a multiple of the panel size.
    #[track_caller]
    pub fn plus_bytes(self, bytes: impl Value<u32>) -> Self {
        let _caller = caller_scope();
        Self {
            byte: self.byte + bytes.reg(),
            ..self
        }
    }
}

/// A view of one stage of a tile: all of it or a rectangle.
///
/// The type parameter `K` is the K order of the view as a matrix operand.
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
    /// Declares that the tile holds K in order `L`; the role that fills the tile must use it.
    pub fn with_k_order<L: KOrder>(self) -> TileRef<T, L> {
        TileRef {
            view: self.view,
            layout: self.layout,
            ty: PhantomData,
        }
    }

    /// Returns the number of rows of the view.
    pub fn rows(&self) -> u32 {
        self.view.rows
    }

    /// Returns the number of columns of the view.
    pub fn cols(&self) -> u32 {
        self.view.cols
    }

    /// Returns the number of bytes of the view.
    pub fn bytes(&self) -> u32 {
        self.view.rows * self.view.cols * self.layout.element_bytes
    }

    /// Returns the sub-view of these rows and columns, counted from the start of this view.
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
                    "rows {rows:?}, columns {cols:?} are outside of a view of {} x {}",
                    v.rows, v.cols
                ),
            );
            return self;
        }
        (v.row, v.rows) = (v.row + rows.start, rows.end - rows.start);
        (v.col, v.cols) = (v.col + cols.start, cols.end - cols.start);
        if !self.layout.is_atom_aligned(v.row, v.rows, v.col, v.cols) {
            error(
                "view-atoms",
                format!(
                    "rows {rows:?}, columns {cols:?} cross a swizzle atom; a view needs multiples of 8 rows and of 16 bytes, and starts at a span or stays inside one"
                ),
            );
        }
        self
    }

    /// Returns the same view in the CTA with cluster rank `rank` (distributed shared memory).
    #[track_caller]
    pub fn peer(mut self, rank: impl Value<u32>) -> Self {
        self.view.peer = Some(rank.operand());
        with(|s| s.accesses_peers = true);
        self
    }

    /// Returns the shared-memory address of an element.
    #[track_caller]
    pub fn address(self, row: impl Coord, col: impl Coord) -> SharedAddress {
        let _caller = caller_scope();
        let l = self.layout;
        let base = SharedAddress {
            tile: self.view.tile,
            stage: self.view.stage,
            byte: Operand::Imm(0),
            offset: 0,
            peer: self.view.peer,
        };
        let (v, element_bytes) = (self.view, l.element_bytes);
        match (row.coord(), col.coord()) {
            (Operand::Imm(r), Operand::Imm(c)) => SharedAddress {
                offset: l.offset(v.row + r as u32, v.col + c as u32),
                ..base
            },
            (Operand::Imm(0), Operand::Reg(c)) if l.swizzle == Swizzle::None && v.row == 0 => {
                SharedAddress {
                    byte: (Reg::<u32>::of(c) * element_bytes).operand(),
                    offset: v.col * element_bytes,
                    ..base
                }
            }
            (r, c) => SharedAddress {
                byte: swizzled_offset(l, add_constant(r, v.row), add_constant(c, v.col)).operand(),
                ..base
            },
        }
    }

    /// Loads one element.
    #[track_caller]
    pub fn load(self, row: impl Coord, col: impl Coord) -> Reg<T::Reg> {
        let [x] = self.load_vec(row, col);
        x
    }

    /// Loads `N` consecutive elements of a row: at most 16 bytes, aligned to their size.
    #[track_caller]
    pub fn load_vec<const N: usize>(self, row: impl Coord, col: impl Coord) -> [Reg<T::Reg>; N] {
        self.load_as(row, col)
    }

    /// Stores one element.
    #[track_caller]
    pub fn store(self, row: impl Coord, col: impl Coord, value: impl Value<T::Reg>) {
        self.store_vec(row, col, [value]);
    }

    /// Stores `N` consecutive elements of a row: at most 16 bytes, aligned to their size.
    #[track_caller]
    pub fn store_vec<const N: usize>(
        self,
        row: impl Coord,
        col: impl Coord,
        values: [impl Value<T::Reg>; N],
    ) {
        self.store_as(row, col, values);
    }

    /// Loads `N` registers of type `U` from the address of an element.
    #[track_caller]
    pub fn load_as<U: Scalar, const N: usize>(
        self,
        row: impl Coord,
        col: impl Coord,
    ) -> [Reg<U>; N] {
        let at = MemoryAddress::Shared(self.address(row, col));
        let dst: [Reg<U>; N] = std::array::from_fn(|_| Reg::fresh());
        emit(Load {
            ty: U::TYPE,
            dst: dst.iter().map(|r| r.id()).collect(),
            at,
            cache: LoadCache::DEFAULT,
        });
        super::ring::record_generic_access(self.view.tile);
        dst
    }

    /// Stores `N` registers of type `U` to the address of an element.
    #[track_caller]
    pub fn store_as<U: Scalar, const N: usize>(
        self,
        row: impl Coord,
        col: impl Coord,
        values: [impl Value<U>; N],
    ) {
        let at = MemoryAddress::Shared(self.address(row, col));
        emit(Store {
            ty: U::TYPE,
            src: values.iter().map(|v| v.operand()).collect(),
            at,
            cache: StoreCache::DEFAULT,
        });
        super::ring::record_generic_access(self.view.tile);
    }

    /// Like [`load_as`](Self::load_as), from a byte offset in a tile without a swizzle.
    #[track_caller]
    pub fn load_at_byte<U: Scalar, const N: usize>(self, byte: Reg<u32>) -> [Reg<U>; N] {
        let _caller = caller_scope();
        let (l, v) = (self.layout, self.view);
        if l.swizzle != Swizzle::None {
            error(
                "byte-offset",
                format!(
                    "load_at_byte() needs a tile without a swizzle; this tile has {}",
                    l.swizzle
                ),
            );
        }
        let dst: [Reg<U>; N] = std::array::from_fn(|_| Reg::fresh());
        emit(Load {
            ty: U::TYPE,
            dst: dst.iter().map(|r| r.id()).collect(),
            at: MemoryAddress::Shared(SharedAddress {
                tile: v.tile,
                stage: v.stage,
                byte: byte.operand(),
                offset: l.offset(v.row, v.col),
                peer: v.peer,
            }),
            cache: LoadCache::DEFAULT,
        });
        super::ring::record_generic_access(self.view.tile);
        dst
    }

    /// Like [`load_as`](Self::load_as), from a precomputed swizzled offset.
    #[track_caller]
    pub fn load_swizzled<U: Scalar, const N: usize>(self, offset: SwizzledOffset) -> [Reg<U>; N] {
        let _caller = caller_scope();
        let dst: [Reg<U>; N] = std::array::from_fn(|_| Reg::fresh());
        emit(Load {
            ty: U::TYPE,
            dst: dst.iter().map(|r| r.id()).collect(),
            at: MemoryAddress::Shared(self.swizzled_address(offset)),
            cache: LoadCache::DEFAULT,
        });
        super::ring::record_generic_access(self.view.tile);
        dst
    }

    /// Like [`store_as`](Self::store_as), to a precomputed swizzled offset.
    #[track_caller]
    pub fn store_swizzled<U: Scalar, const N: usize>(
        self,
        offset: SwizzledOffset,
        values: [impl Value<U>; N],
    ) {
        let _caller = caller_scope();
        emit(Store {
            ty: U::TYPE,
            src: values.iter().map(|v| v.operand()).collect(),
            at: MemoryAddress::Shared(self.swizzled_address(offset)),
            cache: StoreCache::DEFAULT,
        });
        super::ring::record_generic_access(self.view.tile);
    }

    /// Returns the address of an offset inside the first panel of the view.
    #[track_caller]
    fn swizzled_address(self, offset: SwizzledOffset) -> SharedAddress {
        let (l, v) = (self.layout, self.view);
        if l.swizzle != offset.swizzle || !v.col.is_multiple_of(l.panel_cols()) {
            error(
                "swizzled-offset",
                format!(
                    "a swizzled offset for {:?} is used in a view with {:?} that starts at column {}; the view must start at a panel of the same swizzle",
                    offset.swizzle, l.swizzle, v.col
                ),
            );
        }
        SharedAddress {
            tile: v.tile,
            stage: v.stage,
            byte: offset.byte.operand(),
            offset: l.offset(v.row, v.col),
            peer: v.peer,
        }
    }

    /// Loads `N` (1, 2 or 4) 8×8 matrices of 16-bit elements (`ldmatrix`).
    ///
    /// Lane 8j + r passes the address of row r of matrix j, 16 bytes. Each lane receives two
    /// adjacent elements of row lane/4 (with `trans`: of column lane/4) of each matrix.
    #[track_caller]
    pub fn load_matrix<U: MatrixWord, const N: usize>(
        self,
        row: impl Coord,
        col: impl Coord,
        trans: bool,
    ) -> [Reg<U>; N] {
        let at = self.address(row, col);
        let dst: [Reg<U>; N] = std::array::from_fn(|_| Reg::fresh());
        emit(LoadMatrix {
            dst: dst.iter().map(|r| r.id()).collect(),
            at,
            trans,
        });
        super::ring::record_generic_access(self.view.tile);
        dst
    }

    /// Stores `N` (1, 2 or 4) 8×8 matrices (`stmatrix`), in the layout of
    /// [`load_matrix`](Self::load_matrix).
    #[track_caller]
    pub fn store_matrix<U: Scalar, const N: usize>(
        self,
        row: impl Coord,
        col: impl Coord,
        values: [Reg<U>; N],
        trans: bool,
    ) {
        let at = self.address(row, col);
        let values = values.map(|v| v.bitcast::<u32>());
        emit(StoreMatrix {
            src: values.iter().map(|v| v.operand()).collect(),
            at,
            trans,
        });
        super::ring::record_generic_access(self.view.tile);
    }
}

/// Adds a constant to an operand.
#[track_caller]
pub(super) fn add_constant(o: Operand, by: u32) -> Reg<u32> {
    match o {
        Operand::Imm(x) => (x as u32 + by).reg(),
        Operand::Reg(r) if by == 0 => Reg::of(r),
        Operand::Reg(r) => Reg::<u32>::of(r) + by,
    }
}

/// Computes the byte offset of an element whose row and column are registers.
#[track_caller]
fn swizzled_offset(l: TileLayout, row: Reg<u32>, col: Reg<u32>) -> Reg<u32> {
    let byte = col * l.element_bytes;
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

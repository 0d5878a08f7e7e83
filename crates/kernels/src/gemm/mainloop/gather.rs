//! Gather: the producer's warps load an operand by ordinary loads and store it to the slot.
//!
//! It serves operands that TMA cannot address: rows that do not start on 16 bytes, rows that overlap,
//! and elements that are not consecutive. Out-of-bounds rows and columns are clamped to the last one,
//! because their results are never stored. Out-of-bounds elements of K become zeros, as in TMA.
//!
//! | operand in global memory | one lane loads | one lane stores |
//! |---|---|---|
//! | dense rows | 4, 8 or 16 bytes, or single elements if those are not aligned | 4, 8 or 16 bytes |
//! | elements at any distance | single elements of a row; the lanes of a warp have 32 rows | 16 bytes |

use crate::gemm::access::GatherUnit;
use crate::gemm::problem::Matrix;
use warpline_family::plan::{Address, LaunchStep};
use warpline_ir::builder::*;
use warpline_ir::{DType, Element, Swizzle};

/// Warps of a producer that gathers.
const WARPS: u32 = 4;
/// Bytes of a tile row in one panel: the swizzle span.
const SPAN: u32 = 128;
/// Rows of a swizzle atom.
const ATOM_ROWS: u32 = 8;
/// Bytes that one lane stores of an operand whose elements are not consecutive.
const STRIDED_BYTES: u32 = 16;
/// The maximum number of registers of loads in flight.
const MAX_REGISTERS: u32 = 48;

/// The dimension of a tile in shared memory that is K.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum KDim {
    Rows,
    Cols,
}

/// An operand that the producer gathers.
#[derive(Clone, Copy)]
pub(super) struct Gather {
    unit: GatherUnit,
    first: Elements,
    row_stride: Reg<u32>,
    /// Distance of columns; `None`: they are consecutive.
    col_stride: Option<Reg<u32>>,
    batch_stride: Option<Reg<u64>>,
    /// Rows and columns of a matrix.
    extents: [Reg<u32>; 2],
    /// Whether the rows alternate with those of another matrix, in blocks of 8.
    interleaved: bool,
}

/// A pointer to elements of one size.
#[derive(Clone, Copy)]
enum Elements {
    Bytes(Global<u8>),
    Halves(Global<u16>),
    Words(Global<u32>),
}

impl Elements {
    /// Returns a pointer to element `i`.
    #[track_caller]
    fn offset(self, i: Reg<u64>) -> Self {
        match self {
            Elements::Bytes(x) => Elements::Bytes(x.offset(i)),
            Elements::Halves(x) => Elements::Halves(x.offset(i)),
            Elements::Words(x) => Elements::Words(x.offset(i)),
        }
    }

    /// Loads one element, zero-extended.
    #[track_caller]
    fn load(self, i: impl ElementIndex) -> Reg<u32> {
        match self {
            Elements::Bytes(x) => x.load(i).cast(),
            Elements::Halves(x) => x.load(i).cast(),
            Elements::Words(x) => x.load(i),
        }
    }

    /// Loads consecutive words from element `i` on.
    #[track_caller]
    fn load_words<const N: usize>(self, i: Reg<u32>) -> Vec<Reg<u32>> {
        let words: [Reg<u32>; N] = match self {
            Elements::Bytes(x) => x.load_as(i),
            Elements::Halves(x) => x.load_as(i),
            Elements::Words(x) => x.load_as(i),
        };
        words.into()
    }
}

impl Gather {
    /// Declares the parameters of an operand: its matrices have `extents` rows and columns in the
    /// orientation of the tile.
    pub(super) fn declare(
        k: Builder,
        name: &str,
        dtype: DType,
        unit: GatherUnit,
        extents: [Reg<u32>; 2],
        batch: Option<Reg<u32>>,
    ) -> Self {
        let size = dtype.bytes() as u32;
        let (alignment, unit_len) = (unit.bytes(size), u64::from(unit.bytes(size) / size));
        let [rows, cols] = [extents[0], extents[1].multiple_of(unit_len)];
        let param = |what: &str| k.param::<u32>(&format!("{name}_{what}"));
        let row_stride = param("row_stride").multiple_of(unit_len);
        let col_stride = (unit == GatherUnit::Strided).then(|| param("col_stride"));
        let batch_stride = batch.map(|_| {
            let stride = k.param::<u64>(&format!("{name}_batch_stride"));
            stride.multiple_of(unit_len)
        });
        let row_len = match col_stride {
            None => extent(cols),
            Some(stride) => (extent(cols) - 1u32) * stride + 1u32,
        };
        let matrix = (extent(rows) - 1u32) * row_stride + row_len;
        let len = match batch_stride.zip(batch) {
            None => matrix,
            Some((stride, batch)) => (extent(batch) - 1u32) * stride + matrix,
        };
        let first = match size {
            1 => Elements::Bytes(k.pointer(name).elements(len).aligned_to(alignment.into())),
            2 => Elements::Halves(k.pointer(name).elements(len).aligned_to(alignment.into())),
            _ => Elements::Words(k.pointer(name).elements(len).aligned_to(alignment.into())),
        };
        Self {
            unit,
            first,
            row_stride,
            col_stride,
            batch_stride,
            extents: [rows, cols],
            interleaved: false,
        }
    }

    /// Returns the gather of a matrix whose rows alternate with those of another one, in blocks of 8.
    pub(super) fn with_interleaved_rows(self) -> Self {
        Self {
            interleaved: true,
            ..self
        }
    }

    /// Binds the parameters. A row of the tile is a column of the matrix if `is_transposed`.
    pub(super) fn bind_args(
        step: LaunchStep,
        name: &str,
        unit: GatherUnit,
        (address, m): (Address, Matrix),
        is_transposed: bool,
        batched: bool,
    ) -> LaunchStep {
        // A single row has no next row. `Problem::check` rejects strides of more than 32 bits.
        let stride = |stride: u64, extent: u64| if extent > 1 { stride as u32 } else { 0 };
        let strides = [stride(m.stride, m.rows), stride(m.inner_stride, m.cols)];
        let [row_stride, col_stride] = match is_transposed {
            false => strides,
            true => [strides[1], strides[0]],
        };
        let mut step = step
            .pointer(name, address)
            .scalar(&format!("{name}_row_stride"), row_stride);
        if unit == GatherUnit::Strided {
            step = step.scalar(&format!("{name}_col_stride"), col_stride);
        }
        match batched {
            true => step.scalar(&format!("{name}_batch_stride"), m.batch_stride),
            false => step,
        }
    }

    /// Gathers the elements from row and column `origin` on into a tile whose rows have one swizzle
    /// span. All threads of the role call it.
    #[track_caller]
    pub(super) fn load<E: Element>(
        &self,
        to: TileRef<E>,
        origin: [Reg<u32>; 2],
        batch: Option<Reg<u32>>,
        k_dim: KDim,
    ) {
        let matrix = match self.batch_stride.zip(batch) {
            None => self.first,
            Some((stride, z)) => self.first.offset(z.cast::<u64>() * stride),
        };
        match self.col_stride {
            None => self.dense_rows(matrix, to, origin, k_dim),
            Some(col_stride) => self.strided(matrix, to, origin, col_stride),
        }
    }

    /// Returns a row, clamped to the last one.
    #[track_caller]
    fn row(&self, matrix: Elements, row: Reg<u32>) -> Elements {
        let row = row.min(self.extents[0] - 1);
        let row = match self.interleaved {
            true => row + (row & !7u32),
            false => row,
        };
        matrix.offset(row.mul_wide(self.row_stride))
    }

    /// Gathers dense rows: consecutive lanes load consecutive parts of a row.
    #[track_caller]
    fn dense_rows<E: Element>(
        &self,
        matrix: Elements,
        to: TileRef<E>,
        [row, col]: [Reg<u32>; 2],
        k_dim: KDim,
    ) {
        let size = E::DTYPE.bytes() as u32;
        let by_element = self.unit == GatherUnit::Element;
        let bytes = self.unit.bytes(size).max(4);
        let (words, len) = (bytes / 4, bytes / size);
        let lanes = SPAN / bytes;
        let rows_per_step = WARPS * 32 / lanes;
        let lane_row = warp_in_role() * (32 / lanes) + lane_id() / lanes;
        let lane_col = lane_id() % lanes * len;
        let [rows, cols] = self.extents;
        let (row, col) = (row + lane_row, col + lane_col);
        let source_cols: Vec<_> = match by_element {
            true => (0..len).map(|i| (col + i).min(cols - 1)).collect(),
            false => vec![col.min(cols - len)],
        };
        let masks = match k_dim {
            KDim::Cols => word_masks(remaining(cols, col), size, words),
            KDim::Rows => Vec::new(),
        };
        let load_row = |i: u32| -> Vec<Reg<u32>> {
            let from = self.row(matrix, row + i);
            match (by_element, words) {
                (true, _) => source_cols.iter().map(|&col| from.load(col)).collect(),
                (false, 1) => from.load_words::<1>(source_cols[0]),
                (false, 2) => from.load_words::<2>(source_cols[0]),
                (false, _) => from.load_words::<4>(source_cols[0]),
            }
        };
        let offsets: Vec<_> = (0..ATOM_ROWS)
            .step_by(rows_per_step.min(ATOM_ROWS) as usize)
            .map(|i| SwizzledOffset::new(Swizzle::B128, lane_row + i, lane_col * size))
            .collect();
        let first_rows: Vec<_> = (0..to.rows()).step_by(rows_per_step as usize).collect();
        let registers = if by_element { len } else { words };
        for first_rows in first_rows.chunks((MAX_REGISTERS / registers) as usize) {
            // All loads of a chunk are in flight at once.
            let loaded: Vec<_> = first_rows.iter().map(|&i| load_row(i)).collect();
            for (&i, loaded) in first_rows.iter().zip(loaded) {
                let packed = match by_element {
                    true => pack_words(&loaded, size),
                    false => loaded,
                };
                let masked: Vec<_> = match k_dim {
                    KDim::Cols => packed.iter().zip(&masks).map(|(&x, &m)| x & m).collect(),
                    KDim::Rows => {
                        let in_bounds = (row + i).lt(rows);
                        let or_zero = |&x: &Reg<u32>| select(in_bounds, x, 0u32);
                        packed.iter().map(or_zero).collect()
                    }
                };
                let offset = offsets
                    [(i % ATOM_ROWS) as usize / (ATOM_ROWS as usize / offsets.len())]
                .plus_bytes(i / ATOM_ROWS * ATOM_ROWS * SPAN);
                if_in_tile(lane_row, i, rows_per_step, to.rows(), || {
                    store_words(to, offset, &masked);
                });
            }
        }
    }

    /// Gathers elements at any distance: the lanes of a warp have 32 rows, each lane 16 bytes of its
    /// row.
    #[track_caller]
    fn strided<E: Element>(
        &self,
        matrix: Elements,
        to: TileRef<E>,
        [row, col]: [Reg<u32>; 2],
        col_stride: Reg<u32>,
    ) {
        let size = E::DTYPE.bytes() as u32;
        let len = STRIDED_BYTES / size;
        let row = row + lane_id();
        let cols = self.extents[1];
        for first in (0..SPAN / STRIDED_BYTES).step_by(WARPS as usize) {
            let part = warp_in_role() + first;
            let col = col + part * len;
            let offset_of = |i: u32| (col + i).min(cols - 1).mul_wide(col_stride);
            let source_cols: Vec<Reg<u64>> = (0..len).map(offset_of).collect();
            let masks = word_masks(remaining(cols, col), size, STRIDED_BYTES / 4);
            let offset = SwizzledOffset::new(Swizzle::B128, lane_id(), part * STRIDED_BYTES);
            let first_rows: Vec<_> = (0..to.rows()).step_by(32).collect();
            for first_rows in first_rows.chunks((MAX_REGISTERS / len) as usize) {
                let load_row = |&i: &u32| -> Vec<_> {
                    let from = self.row(matrix, row + i);
                    source_cols.iter().map(|&col| from.load(col)).collect()
                };
                let loaded: Vec<Vec<_>> = first_rows.iter().map(load_row).collect();
                for (&i, loaded) in first_rows.iter().zip(loaded) {
                    let words = pack_words(&loaded, size);
                    let words: Vec<_> = words.iter().zip(&masks).map(|(&x, &m)| x & m).collect();
                    if_in_tile(lane_id(), i, 32, to.rows(), || {
                        store_words(to, offset.plus_bytes(i * SPAN), &words);
                    });
                }
            }
        }
    }
}

/// Declares a role that gathers.
#[track_caller]
pub(in crate::gemm) fn role(k: Builder, name: &str, registers: Option<u32>) -> RoleDecl {
    k.role(name).warps(WARPS).registers_opt(registers)
}

/// Returns the number of columns from `col` on.
#[track_caller]
fn remaining(cols: Reg<u32>, col: Reg<u32>) -> Reg<u32> {
    cols - col.min(cols)
}

/// Returns a mask for each of `words` words that keeps the first `len` elements.
#[track_caller]
fn word_masks(len: Reg<u32>, size: u32, words: u32) -> Vec<Reg<u32>> {
    let bytes = len * size;
    let mask = |first: u32| {
        // The shift is less than 32 wherever its result is used.
        let partial = (1u32.reg() << (((bytes - first) * 8) & 31)) - 1;
        let some = select(bytes.gt(first), partial, 0u32);
        select(bytes.ge(first + 4), u32::MAX, some)
    };
    (0..words).map(|i| mask(4 * i)).collect()
}

/// Packs elements of `size` bytes into words.
#[track_caller]
fn pack_words(elements: &[Reg<u32>], size: u32) -> Vec<Reg<u32>> {
    match size {
        1 => {
            let pairs: Vec<_> = elements
                .chunks(2)
                .map(|x| prmt(x[0], x[1], 0x0040u32))
                .collect();
            pairs
                .chunks(2)
                .map(|x| prmt(x[0], x[1], 0x5410u32))
                .collect()
        }
        2 => elements
            .chunks(2)
            .map(|x| prmt(x[0], x[1], 0x5410u32))
            .collect(),
        _ => elements.to_vec(),
    }
}

/// Stores 1, 2 or 4 words.
#[track_caller]
fn store_words<E: Element>(to: TileRef<E>, offset: SwizzledOffset, words: &[Reg<u32>]) {
    match *words {
        [a] => to.store_swizzled(offset, [a]),
        [a, b] => to.store_swizzled(offset, [a, b]),
        [a, b, c, d] => to.store_swizzled(offset, [a, b, c, d]),
        _ => {}
    }
}

/// Runs `store` if row `lane_row + first` is one of the `rows` rows of a tile; a step has `step` rows.
#[track_caller]
fn if_in_tile(lane_row: Reg<u32>, first: u32, step: u32, rows: u32, store: impl FnOnce()) {
    match first + step <= rows {
        true => store(),
        false => if_(lane_row.lt(rows - first), store),
    }
}

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
use crate::gemm::words::{RawElements, pack_words};
use warpline_family::plan::{Address, Buffer, LaunchStep};
use warpline_ir::builder::*;
use warpline_ir::{DType, Element, Swizzle};

/// Warps of a producer that gathers.
const WARPS: u32 = 4;
/// Threads of a producer that gathers.
pub(in crate::gemm) const THREADS: f64 = 32.0 * WARPS as f64;
/// Bytes of a tile row in one panel: the swizzle span.
pub(super) const SPAN: u32 = 128;
/// Rows of a swizzle atom.
const ATOM_ROWS: u32 = 8;
/// Bytes that one lane stores of an operand whose elements are not consecutive.
const STRIDED_BYTES: u32 = 16;
/// The maximum number of registers of loads in flight.
const MAX_REGISTERS: u32 = 32;
/// As [`MAX_REGISTERS`], for the heuristic.
pub(in crate::gemm) const LOADS_IN_FLIGHT: f64 = MAX_REGISTERS as f64;
/// The maximum number of rows in flight; each has an address in registers.
const MAX_STEPS: u32 = 16;

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
    first: RawElements,
    row_stride: Reg<u32>,
    /// Distance of columns; `None`: they are consecutive.
    col_stride: Option<Reg<u32>>,
    batch_stride: Option<Reg<u64>>,
    /// Rows and columns of a matrix.
    extents: [Reg<u32>; 2],
    /// Whether the rows alternate with those of another matrix, in blocks of 8.
    interleaved: bool,
    /// The maximum number of registers of loads in flight.
    registers: u32,
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
        let first = RawElements::declare(k, name, size, len, alignment);
        Self {
            unit,
            first,
            row_stride,
            col_stride,
            batch_stride,
            extents: [rows, cols],
            interleaved: false,
            registers: MAX_REGISTERS,
        }
    }

    /// Returns the gather of one of two B operands, which share the registers of loads in flight.
    pub(super) fn of_pair(self) -> Self {
        Self {
            registers: MAX_REGISTERS / 2,
            ..self
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
        // K == 0: no element is read, so any valid address will do.
        let is_empty = m.rows.min(m.cols) == 0;
        let address = if is_empty {
            Buffer::Output(0).into()
        } else {
            address
        };
        // A single row has no next row. `Problem::check` rejects strides of more than 32 bits.
        let stride = |stride: u64, extent: u64| match extent > 1 && !is_empty {
            true => stride as u32,
            false => 0,
        };
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
            true => {
                let stride = if is_empty { 0 } else { m.batch_stride };
                step.scalar(&format!("{name}_batch_stride"), stride)
            }
            false => step,
        }
    }

    /// Gathers the elements from row and column `origin` on into a tile whose panels are `panel_bytes`
    /// apart. All threads of the role call it.
    #[track_caller]
    pub(super) fn load<E: Element>(
        &self,
        (to, panel_bytes): (TileRef<E>, u32),
        [row, col]: [Reg<u32>; 2],
        batch: Option<Reg<u32>>,
        k_dim: KDim,
    ) {
        let matrix = match self.batch_stride.zip(batch) {
            None => self.first,
            Some((stride, z)) => self.first.offset(z.cast::<u64>() * stride),
        };
        let panel_len = SPAN / E::DTYPE.bytes() as u32;
        let first_panel = to.slice(0..to.rows(), 0..panel_len);
        each_part(to.cols() / panel_len, |panel| {
            let (to, origin) = (
                Panel {
                    tile: first_panel,
                    offset: panel * panel_bytes,
                },
                [row, col + panel * panel_len],
            );
            match self.col_stride {
                None => self.dense_rows(matrix, to, origin, k_dim),
                Some(col_stride) => self.strided(matrix, to, origin, col_stride),
            }
        });
    }

    /// Returns a row, clamped to the last one.
    #[track_caller]
    fn row(&self, matrix: RawElements, row: Reg<u32>) -> RawElements {
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
        matrix: RawElements,
        to: Panel<E>,
        [row, col]: [Reg<u32>; 2],
        k_dim: KDim,
    ) {
        let size = E::DTYPE.bytes() as u32;
        let by_element = self.unit == GatherUnit::Element;
        let bytes = self.unit.bytes(size).max(4);
        let (words, len) = (bytes / 4, bytes / size);
        let lanes = SPAN / bytes;
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
        let load = |from: RawElements| match (by_element, words) {
            (true, _) => {
                let elements: Vec<_> = source_cols.iter().map(|&col| from.load(col)).collect();
                elements
            }
            (false, words) => from.load_words(source_cols[0], words),
        };
        let finish = |row: Reg<u32>, loaded: Vec<Reg<u32>>| -> Vec<Reg<u32>> {
            let packed = match by_element {
                true => pack_words(&loaded, size),
                false => loaded,
            };
            let packed = as_operand::<E>(packed);
            match k_dim {
                KDim::Cols => packed.iter().zip(&masks).map(|(&x, &m)| x & m).collect(),
                KDim::Rows => {
                    let in_bounds = row.lt(rows);
                    let or_zero = |x| select(in_bounds, x, 0u32);
                    packed.into_iter().map(or_zero).collect()
                }
            }
        };
        let lane = Lane {
            row: lane_row,
            byte: lane_col * size,
            rows_per_step: WARPS * 32 / lanes,
            steps: self.registers / if by_element { len } else { words },
        };
        lane.each_step(
            to,
            |first| load(self.row(matrix, row + first)),
            |first, loaded| finish(row + first, loaded),
        );
    }

    /// Gathers elements at any distance: the lanes of a warp have 32 rows, each lane 16 bytes of its
    /// row.
    #[track_caller]
    fn strided<E: Element>(
        &self,
        matrix: RawElements,
        to: Panel<E>,
        [row, col]: [Reg<u32>; 2],
        col_stride: Reg<u32>,
    ) {
        let size = E::DTYPE.bytes() as u32;
        let len = STRIDED_BYTES / size;
        let row = row + lane_id();
        let cols = self.extents[1];
        each_part(SPAN / STRIDED_BYTES / WARPS, |i| {
            let part = warp_in_role() + i * WARPS;
            let col = col + part * len;
            let offset_of = |i: u32| (col + i).min(cols - 1).mul_wide(col_stride);
            let source_cols: Vec<Reg<u64>> = (0..len).map(offset_of).collect();
            let masks = word_masks(remaining(cols, col), size, STRIDED_BYTES / 4);
            let load = |from: RawElements| -> Vec<_> {
                source_cols.iter().map(|&col| from.load(col)).collect()
            };
            let lane = Lane {
                row: lane_id(),
                byte: part * STRIDED_BYTES,
                rows_per_step: 32,
                steps: self.registers / len,
            };
            lane.each_step(
                to,
                |first| load(self.row(matrix, row + first)),
                |_, loaded| {
                    let words = as_operand::<E>(pack_words(&loaded, size));
                    words.iter().zip(&masks).map(|(&x, &m)| x & m).collect()
                },
            );
        });
    }
}

/// A panel of a tile: the first panel, and the distance from it in bytes.
#[derive(Clone, Copy)]
struct Panel<E> {
    tile: TileRef<E>,
    offset: Reg<u32>,
}

/// The part of each step that one lane gathers.
struct Lane {
    /// The lane's row in a step, and its first byte in that row.
    row: Reg<u32>,
    byte: Reg<u32>,
    rows_per_step: u32,
    /// Steps whose loads are in flight together.
    steps: u32,
}

impl Lane {
    /// Runs `load` for the lane's row of every step, and stores the words that `finish` returns. Both get
    /// the first row of the step.
    ///
    /// The loads of some steps are in flight together. A device loop runs over these groups: the compiler
    /// would move all loads of straight code to its start, and spill their registers.
    #[track_caller]
    fn each_step<E: Element>(
        &self,
        to: Panel<E>,
        load: impl Fn(Reg<u32>) -> Vec<Reg<u32>>,
        finish: impl Fn(Reg<u32>, Vec<Reg<u32>>) -> Vec<Reg<u32>>,
    ) {
        let (step, rows) = (self.rows_per_step, to.tile.rows());
        // A group has whole swizzle atoms, and both are powers of two.
        let atom_steps = ATOM_ROWS.div_ceil(step);
        let group_steps = self.steps.clamp(atom_steps, MAX_STEPS);
        let group_rows = group_steps * step;
        let offsets: Vec<_> = (0..atom_steps)
            .map(|i| SwizzledOffset::new(Swizzle::B128, self.row + i * step, self.byte))
            .map(|offset| offset.plus_bytes(to.offset))
            .collect();
        let group = |group: Reg<u32>, steps: u32| {
            let first = group * group_rows;
            let loaded: Vec<_> = (0..steps).map(|i| load(first + i * step)).collect();
            for (i, loaded) in (0..).zip(loaded) {
                let words = finish(first + i * step, loaded);
                let whole_atoms = i / atom_steps * atom_steps * step;
                let offset = offsets[(i % atom_steps) as usize]
                    .plus_bytes(first * SPAN)
                    .plus_bytes(whole_atoms * SPAN);
                store_words(to.tile, offset, &words, || {
                    let is_partial = !rows.is_multiple_of(step);
                    is_partial.then(|| (self.row + first + i * step).lt(rows))
                });
            }
        };
        each_part(rows / group_rows, |i| group(i, group_steps));
        let remaining_steps = (rows % group_rows).div_ceil(step);
        if remaining_steps > 0 {
            group((rows / group_rows).reg(), remaining_steps);
        }
    }
}

/// Runs `body` for each index less than `count`, in a device loop if there are several.
#[track_caller]
fn each_part(count: u32, body: impl FnOnce(Reg<u32>)) {
    match count {
        0 => {}
        1 => body(0u32.reg()),
        _ => steps(count).unroll(1).each(body),
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

/// Returns words of a tile of `E`: f32 is rounded to tf32 as by a TMA load, to nearest even and with one
/// NaN.
#[track_caller]
fn as_operand<E: Element>(words: Vec<Reg<u32>>) -> Vec<Reg<u32>> {
    if E::DTYPE != DType::Tf32 {
        return words;
    }
    let round = |x: Reg<u32>| {
        let rounded = (x + 0xfff + ((x >> 13u32) & 1u32)) & !0x1fffu32;
        select(
            (x & 0x7fff_ffffu32).gt(0x7f80_0000u32),
            0x7fff_e000u32,
            rounded,
        )
    };
    words.into_iter().map(round).collect()
}

/// Stores 1, 2 or 4 words, if the condition holds.
#[track_caller]
fn store_words<E: Element>(
    to: TileRef<E>,
    offset: SwizzledOffset,
    words: &[Reg<u32>],
    condition: impl FnOnce() -> Option<Reg<bool>>,
) {
    let store = || match *words {
        [a] => to.store_swizzled(offset, [a]),
        [a, b] => to.store_swizzled(offset, [a, b]),
        [a, b, c, d] => to.store_swizzled(offset, [a, b, c, d]),
        _ => {}
    };
    match condition() {
        None => store(),
        Some(condition) => if_(condition, store),
    }
}

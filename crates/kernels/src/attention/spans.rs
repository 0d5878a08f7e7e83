//! Spans: rows that copies address as if they were tensors of their own.

use super::problem::PITCH_BYTES;
use super::rows::Rows;
use warpline_family::error::FamilyError;
use warpline_family::plan::{Address, LaunchStep, TensorArg};
use warpline_ir::DType;
use warpline_ir::builder::*;

/// A tensor map that addresses spans of rows. A span has any start and any number of rows, and TMA checks
/// the bounds of each span as if it were a tensor of its own.
///
/// The map has an extent of 2³⁰ rows. Row `i` of a span of `n` rows is row `2³⁰ − n + i` of the map, so that
/// the rows behind the span are out of bounds. Two more dimensions correct the address. One has the stride
/// of a unit that divides all strides. The other has the stride `2³⁴ − row pitch` and always the index 2³⁰:
/// as addresses wrap around at 2⁶⁴, it subtracts `2³⁰ · row pitch`.
#[derive(Clone, Copy)]
pub(super) struct Spans {
    map: TensorMap,
    /// Units of a row, a head, and a batch or page.
    units: [Reg<u32>; 3],
}

/// The extent of a span along its rows.
pub(super) const SPAN_ROWS: u32 = 1 << 30;
/// 2⁶⁴ divided by [`SPAN_ROWS`]: the bytes of a step that wraps around.
const WRAP_BYTES: u64 = 1 << 34;
/// The extent of the dimensions that move an address. A coordinate is a signed 32-bit number.
const MAX_UNITS: u64 = 0x7fff_0000;

/// A span of rows.
#[derive(Clone, Copy)]
pub(super) struct Span {
    /// The first row, the head, and the batch or page.
    pub(super) start: [Reg<u32>; 3],
    /// The number of rows.
    pub(super) rows: Reg<u32>,
}

impl Spans {
    pub(super) fn declare(k: Builder, name: &str, map: TensorMap) -> Self {
        let unit = |what| k.param::<u32>(&format!("{name}_{what}_units"));
        Self {
            map,
            units: ["row", "head", "outer"].map(unit),
        }
    }

    /// Binds the parameters of [`declare`](Self::declare), and the map `name`.
    pub(super) fn bind(
        step: LaunchStep,
        rows: &Rows,
        at: Address,
        empty: Address,
        dtype: DType,
    ) -> Result<LaunchStep, FamilyError> {
        let is_empty = rows.extents.contains(&0);
        let (strides, unit) = units(rows, dtype).map_err(FamilyError::Problem)?;
        let tensor = TensorArg::strided(
            if is_empty { empty } else { at },
            vec![rows.dim.into(), SPAN_ROWS.into(), MAX_UNITS, MAX_UNITS],
            vec![strides[0], unit, WRAP_BYTES - strides[0]],
        );
        let names = ["row", "head", "outer"].map(|what| format!("{}_{what}_units", rows.name));
        let units = names.iter().zip(strides);
        let step = step.tensor(rows.name, tensor);
        Ok(units.fold(step, |step, (name, stride)| {
            step.scalar(name, (stride / unit) as u32)
        }))
    }

    /// Returns the map.
    pub(super) fn map(&self) -> TensorMap {
        self.map
    }

    /// Returns the coordinates of column `col` and row `row` of a span.
    pub(super) fn at(
        &self,
        span: &Span,
        col: u32,
        row: Reg<u32>,
    ) -> (u32, Reg<u32>, Reg<u32>, u32) {
        let [start, head, outer] = span.start;
        let [row_units, head_units, outer_units] = self.units;
        let units = (start + span.rows) * row_units + head * head_units + outer * outer_units;
        (col, SPAN_ROWS - span.rows + row, units, SPAN_ROWS)
    }
}

/// Returns the strides of rows, heads, and batches or pages in bytes, and the unit of addresses; an error if
/// some address has too many units.
pub(super) fn units(rows: &Rows, dtype: DType) -> Result<([u64; 3], u64), String> {
    let size = dtype.bytes() as u64;
    if rows.extents.contains(&0) {
        return Ok(([PITCH_BYTES, 0, 0], PITCH_BYTES));
    }
    let [len, heads, outer] = rows.extents;
    // The stride of a single head or batch does not matter.
    let stride = |extent: u64, stride: u64| if extent > 1 { stride * size } else { 0 };
    let strides = [
        rows.strides.row * size,
        stride(heads, rows.strides.head),
        stride(outer, rows.strides.batch),
    ];
    let unit = strides.into_iter().fold(0, gcd);
    let bytes = rows.elements() * size + strides[0] * len;
    match bytes / unit >= MAX_UNITS || strides[0] >= WRAP_BYTES {
        false => Ok((strides, unit)),
        true => Err(format!(
            "{} has too many bytes between its first and its last element for strides that are multiples of {unit} \
             bytes\nhelp: make it contiguous",
            rows.name
        )),
    }
}

/// Returns the greatest common divisor.
pub(super) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

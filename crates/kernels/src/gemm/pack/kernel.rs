//! The kernel that copies an operand to aligned rows, and transposes it if necessary.
//!
//! | tensor | lanes of a warp | one load | one store |
//! |---|---|---|---|
//! | neighbors of a row are close | along a row | 4, 8 or 16 bytes, or single elements if those are not aligned | 4, 8 or 16 bytes |
//! | neighbors of a column are close | 32 rows | an element | 16 bytes |

use super::Copy;
use crate::gemm::access::GatherUnit;
use crate::gemm::problem::MAX_EXTENT;
use crate::gemm::words::{RawElements, pack_words};
use warpline_family::error::FamilyError;
use warpline_family::plan::{Address, Buffer, LaunchStep};
use warpline_family::program::Program;
use warpline_ir::builder::*;
use warpline_ir::{BuildErrors, Kernel, Target};

/// Warps of a CTA. Each copies one part of a row, or of 32 rows.
const WARPS: u32 = 8;
/// Bytes of a row that a warp copies, if its lanes are along a row.
const ROW_BYTES: u32 = 1024;
/// Bytes of each of 32 rows that a warp copies: two stores per lane.
const COLUMN_BYTES: u32 = 32;
/// Bytes of one such store.
const STORE_BYTES: u32 = 16;
/// The maximum number of warps of a launch, rounded up to whole CTAs.
const MAX_PARTS: u64 = (1 << 31) - WARPS as u64;

/// The compiled-in part of a copy.
#[derive(Clone, Copy, Debug)]
struct CopyClass {
    /// Bytes of an element.
    size: u32,
    unit: GatherUnit,
    lanes: Lanes,
    batched: bool,
}

/// The dimension of the copy along which the lanes of a warp are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lanes {
    AlongRow,
    AlongColumn,
}

impl CopyClass {
    fn of(copy: &Copy) -> Self {
        let [row_stride, col_stride] = copy.source_strides();
        let is_dense = copy.to.cols <= 1 || col_stride == 1;
        Self {
            size: copy.from.dtype.bytes() as u32,
            unit: match is_dense && !copy.is_transposed {
                true => copy.from.gather_unit(),
                false => GatherUnit::Strided,
            },
            lanes: match is_dense || copy.to.rows == 1 || col_stride <= row_stride {
                true => Lanes::AlongRow,
                false => Lanes::AlongColumn,
            },
            batched: copy.to.batch > 1,
        }
    }

    /// Returns the rows and the bytes of a row that a warp copies.
    fn part(&self) -> [u32; 2] {
        match self.lanes {
            Lanes::AlongRow => [1, ROW_BYTES],
            Lanes::AlongColumn => [32, COLUMN_BYTES],
        }
    }
}

/// Returns the parts of a copy along M or N, and along a row; `None` if they are too many.
pub(super) fn parts(copy: &Copy) -> Option<[u32; 2]> {
    let class = CopyClass::of(copy);
    let [rows, bytes] = class.part().map(u64::from);
    let per_row = (copy.to.cols * u64::from(class.size)).div_ceil(bytes);
    let row_blocks = copy.to.rows.div_ceil(rows);
    let all = (copy.to.batch.checked_mul(row_blocks)?).checked_mul(per_row)?;
    (all <= MAX_PARTS).then_some([row_blocks as u32, per_row as u32])
}

/// Returns the launch that copies `from` to `to`.
pub(super) fn launch(
    copy: &Copy,
    from: Buffer,
    to: Address,
    target: &Target,
) -> Result<LaunchStep, FamilyError> {
    let class = CopyClass::of(copy);
    let kernel = Program::cached(format!("gemm pack {class:?}"), target, |target| {
        build(&class, target)
    })?;
    let Some([row_blocks, per_row]) = parts(copy) else {
        return Err(FamilyError::Plan("a copy has too many parts".into()));
    };
    let batch = copy.to.batch as u32;
    let count = batch * row_blocks * per_row;
    // A single row or column has no next one.
    let [row_stride, col_stride] = copy.source_strides().map(|stride| stride as u32);
    let mut step = LaunchStep::new(kernel, [count.div_ceil(WARPS), 1, 1])
        .scalar("rows", copy.to.rows as u32)
        .scalar("cols", copy.to.cols as u32)
        .scalar("count", count)
        .scalar("parts", per_row)
        .divisor("parts_divisor", per_row)
        .scalar("pitch", (copy.to.stride * u64::from(class.size) / 4) as u32)
        .pointer("from", from)
        .scalar("row_stride", if copy.to.rows > 1 { row_stride } else { 0 })
        .pointer("to", to);
    if class.unit == GatherUnit::Strided {
        step = step.scalar("col_stride", if copy.to.cols > 1 { col_stride } else { 0 });
    }
    if class.batched {
        step = step
            .scalar("batch", batch)
            .scalar("batch_stride", copy.from.batch_stride)
            .scalar("row_blocks", row_blocks)
            .divisor("row_blocks_divisor", row_blocks);
    }
    Ok(step)
}

/// The parameters of a kernel.
#[derive(Clone, Copy)]
struct CopyParams {
    class: CopyClass,
    rows: Reg<u32>,
    cols: Reg<u32>,
    /// The number of parts in all, and in a row of the copy.
    count: Reg<u32>,
    parts: Reg<u32>,
    parts_divisor: FastDivisor,
    from: RawElements,
    row_stride: Reg<u32>,
    col_stride: Option<Reg<u32>>,
    batch: Option<BatchParams>,
    to: Global<u32>,
    /// Words from a row of the copy to the next one.
    pitch: Reg<u32>,
}

/// The parameters of a batch.
#[derive(Clone, Copy)]
struct BatchParams {
    stride: Reg<u64>,
    /// The parts of a matrix along its rows.
    row_blocks: Reg<u32>,
    row_blocks_divisor: FastDivisor,
}

/// Builds the kernel of a class.
fn build(class: &CopyClass, target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("gemm_pack", target, |k| {
        let params = CopyParams::declare(k, *class);
        k.role("all").warps(WARPS).body(|| {
            let part = cta_id() * WARPS + warp_in_role();
            if_(part.lt(params.count), || params.copy_part(part));
        });
    })
}

impl CopyParams {
    fn declare(k: Builder, class: CopyClass) -> Self {
        let alignment = class.unit.bytes(class.size);
        let unit_len = u64::from(alignment / class.size);
        let extent_param = |name: &str| k.param::<u32>(name).at_least(1).at_most(MAX_EXTENT);
        let [rows, cols] = ["rows", "cols"].map(extent_param);
        let cols = cols.multiple_of(unit_len);
        let count = k.param::<u32>("count").at_most(MAX_PARTS as u32);
        let parts = k.param::<u32>("parts").at_least(1);
        let parts_divisor = k.divisor("parts_divisor");
        let pitch = k.param::<u32>("pitch").multiple_of(4);
        let row_stride = k.param::<u32>("row_stride").multiple_of(unit_len);
        let is_strided = class.unit == GatherUnit::Strided;
        let col_stride = is_strided.then(|| k.param::<u32>("col_stride"));
        let batch_len = class.batched.then(|| k.param::<u32>("batch").at_least(1));
        let batch = class.batched.then(|| BatchParams {
            stride: k.param::<u64>("batch_stride").multiple_of(unit_len),
            row_blocks: k.param("row_blocks"),
            row_blocks_divisor: k.divisor("row_blocks_divisor"),
        });
        let row_len = match col_stride {
            None => extent(cols),
            Some(stride) => (extent(cols) - 1u32) * stride + 1u32,
        };
        let matrix = (extent(rows) - 1u32) * row_stride + row_len;
        let from_len = match batch.zip(batch_len) {
            None => matrix,
            Some((batch, len)) => (extent(len) - 1u32) * batch.stride + matrix,
        };
        let to_len = match batch_len {
            None => extent(rows) * pitch,
            Some(len) => extent(len) * rows * pitch,
        };
        Self {
            class,
            rows,
            cols,
            count,
            parts,
            parts_divisor,
            from: RawElements::declare(k, "from", class.size, from_len, alignment),
            row_stride,
            col_stride,
            batch,
            to: k.pointer("to").elements(to_len).aligned_to(16),
            pitch,
        }
    }

    /// Copies a part of a row, or of 32 rows.
    #[track_caller]
    fn copy_part(&self, part: Reg<u32>) {
        let block = self.parts_divisor.divide(part);
        let part_in_row = part - block * self.parts;
        let (matrix, row_block, first_row) = match self.batch {
            None => (self.from, block, 0u64.reg()),
            Some(batch) => {
                let z = batch.row_blocks_divisor.divide(block);
                let from = self.from.offset(z.cast::<u64>() * batch.stride);
                (from, block - z * batch.row_blocks, z.mul_wide(self.rows))
            }
        };
        match self.class.lanes {
            Lanes::AlongRow => {
                let from = matrix.offset(row_block.mul_wide(self.row_stride));
                let row = first_row + row_block.cast::<u64>();
                let to = self.to.offset(row * self.pitch.cast::<u64>());
                self.copy_row(from, to, part_in_row);
            }
            Lanes::AlongColumn => {
                let row = row_block * 32u32 + lane_id();
                let from_row = row.min(self.rows - 1);
                let from = matrix.offset(from_row.mul_wide(self.row_stride));
                let to_row = first_row + row.cast::<u64>();
                let to = self.to.offset(to_row * self.pitch.cast::<u64>());
                if_(row.lt(self.rows), || {
                    self.copy_columns(from, to, part_in_row)
                });
            }
        }
    }

    /// Loads the element of a column; columns out of bounds are clamped to the last one.
    #[track_caller]
    fn load(&self, row: RawElements, col: Reg<u32>) -> Reg<u32> {
        let col = col.min(self.cols - 1);
        match self.col_stride {
            None => row.load(col),
            Some(stride) => row.load(col.mul_wide(stride)),
        }
    }

    /// Copies a part of a row; consecutive lanes copy consecutive units.
    #[track_caller]
    fn copy_row(&self, from: RawElements, to: Global<u32>, part: Reg<u32>) {
        let CopyClass { size, unit, .. } = self.class;
        let bytes = unit.bytes(size).max(4);
        let (words, len) = (bytes / 4, bytes / size);
        let is_aligned = !matches!(unit, GatherUnit::Strided | GatherUnit::Element);
        let first = part * (ROW_BYTES / size) + lane_id() * len;
        let cols: Vec<_> = (0..ROW_BYTES / (32 * bytes))
            .map(|i| first + i * 32 * len)
            .collect();
        let load = |&col: &Reg<u32>| match is_aligned {
            true => from.load_words(col.min(self.cols - len), words),
            false => {
                let elements: Vec<_> = (0..len).map(|i| self.load(from, col + i)).collect();
                pack_words(&elements, size)
            }
        };
        // All loads are in flight together.
        let loaded: Vec<_> = cols.iter().map(load).collect();
        for (col, words) in cols.iter().zip(loaded) {
            if_(col.lt(self.cols), || store(to, word_of(*col, size), &words));
        }
    }

    /// Copies a part of the lane's row.
    #[track_caller]
    fn copy_columns(&self, from: RawElements, to: Global<u32>, part: Reg<u32>) {
        let size = self.class.size;
        let first = part * (COLUMN_BYTES / size);
        let elements: Vec<_> = (0..COLUMN_BYTES / size)
            .map(|i| self.load(from, first + i))
            .collect();
        for (i, elements) in (0..).zip(elements.chunks((STORE_BYTES / size) as usize)) {
            let col = first + i * (STORE_BYTES / size);
            let words = pack_words(elements, size);
            if_(col.lt(self.cols), || store(to, word_of(col, size), &words));
        }
    }
}

/// Returns the word in which a column of elements of `size` bytes starts.
#[track_caller]
fn word_of(col: Reg<u32>, size: u32) -> Reg<u32> {
    match size {
        4 => col,
        _ => col >> (4 / size).trailing_zeros(),
    }
}

/// Stores 1, 2 or 4 words.
#[track_caller]
fn store(to: Global<u32>, at: Reg<u32>, words: &[Reg<u32>]) {
    match *words {
        [a] => to.store(at, a),
        [a, b] => to.store_vec(at, [a, b]),
        [a, b, c, d] => to.store_vec(at, [a, b, c, d]),
        _ => {}
    }
}

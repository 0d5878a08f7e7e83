//! Random problems of the documented domain.
//!
//! A new field of the problem needs a line in [`draw`]; the test `every_field_is_drawn` fails
//! without it.

use super::problem::{
    ALayout, Accumulation, Activation, MAX_BATCH, MAX_EXTENT, OperandLayout, OperandType, Problem,
};
use warpline_family::float::FloatType;
use warpline_family::numbers::Random;

/// The maximum bytes of a drawn matrix with its batch, and of the padding of its rows or matrices. A
/// tensor may have four times as many.
const MAX_BYTES: u64 = 1 << 38;
/// The bytes that row pitches and batch strides are multiples of.
const PITCH_BYTES: u64 = 16;

/// Draws a GEMM: any extents, types, layouts and strides, with any epilogue.
pub(crate) fn draw(random: &mut Random) -> Problem {
    let dtype = random.pick(OperandType::ALL);
    let is_fp8 = dtype.is_fp8();
    let out = random.percent(50).then(|| random.pick(FloatType::ALL));
    let layout = match random.percent(30) {
        true => OperandLayout::Kn,
        false => OperandLayout::Nk,
    };
    let a_layout = match random.percent(30) {
        true => ALayout::Km,
        false => ALayout::Mk,
    };
    // Whether TMA can address all tensors.
    let aligned = random.percent(50);
    let accumulation = match random.percent(30) && is_fp8 {
        true => Accumulation::Promoted,
        false => Accumulation::Fast,
    };
    let residual = random.percent(30);
    // Reductions of C do not support batches.
    let batched = random.percent(30);
    let [row_sums, col_sums, amax] = [0; 3].map(|_| !batched && random.percent(20));
    let size = dtype.a_dtype().bytes() as u64;
    let problem = Problem {
        out,
        layout,
        a_layout,
        accumulation,
        bias: random.percent(40),
        activation: random.pick(Activation::ALL),
        residual,
        row_sums,
        col_sums,
        amax,
        scale: (random.percent(30)).then(|| random.pick(&[0.0, 1.0, -0.125, 3e38])),
        scales: random.percent(30),
        ..Problem::new(1, 1, 1, dtype)
    };
    let out_size = problem.out().dtype().bytes() as u64;
    let units = match (aligned, a_layout) {
        (false, _) => [1; 3],
        (true, ALayout::Mk) => [1, PITCH_BYTES / size.min(out_size), PITCH_BYTES / size],
        (true, ALayout::Km) => [PITCH_BYTES / size.min(out_size); 3],
    };
    let max_batch = if batched { MAX_BATCH.into() } else { 1 };
    let [m, n, k, batch] = extents(random, units, max_batch, [size, out_size]);
    let padded = |random: &mut Random, dense: u64, size: u64, repeats: u64| match aligned {
        true => padded(random, dense, size, repeats),
        false => random.percent(25).then(|| dense + random.extent(0..=100)),
    };
    let stride = |random: &mut Random, [rows, cols]: [u64; 2], size: u64| {
        padded(random, cols, size, rows * batch)
    };
    let [a_rows, a_cols] = match a_layout {
        ALayout::Mk => [m, k],
        ALayout::Km => [k, m],
    };
    let [b_rows, b_cols] = match layout {
        OperandLayout::Nk => [n, k],
        OperandLayout::Kn => [k, n],
    };
    let inner_stride = |random: &mut Random| match !aligned && random.percent(15) {
        true => Some(random.below(4)),
        false => None,
    };
    let [a_inner_stride, b_inner_stride] = [0; 2].map(|_| inner_stride(random));
    let a_stride = stride(random, [a_rows, a_cols * a_inner_stride.unwrap_or(1)], size);
    let b_stride = stride(random, [b_rows, b_cols * b_inner_stride.unwrap_or(1)], size);
    let c_stride = stride(random, [m, n], out_size);
    // The residual has the batch stride of C, so only a matrix without a batch has its own pitch.
    let residual_stride = match residual && !batched {
        true => stride(random, [m, n], out_size),
        false => None,
    };
    let batch_stride = |random: &mut Random, rows: u64, cols: u64, stride: Option<u64>, size| {
        let dense = rows * stride.unwrap_or(cols);
        if batched {
            padded(random, dense, size, batch)
        } else {
            None
        }
    };
    let operand_batch_stride = |random: &mut Random, rows, cols, stride| {
        // All GEMMs may share an operand.
        match batched && random.percent(15) {
            true => Some(0),
            false => batch_stride(random, rows, cols, stride, size),
        }
    };
    let (a_cols, b_cols) = (
        a_cols * a_inner_stride.unwrap_or(1),
        b_cols * b_inner_stride.unwrap_or(1),
    );
    let a_batch_stride = operand_batch_stride(random, a_rows, a_cols, a_stride);
    let b_batch_stride = operand_batch_stride(random, b_rows, b_cols, b_stride);
    let align = |random: &mut Random, size: u64| match !aligned && random.percent(20) {
        true => Some(size as u32 * random.pick(&[1, 2])),
        false => None,
    };
    let c_batch_stride = batch_stride(random, m, n, c_stride, out_size);
    Problem {
        batch: batched.then_some(batch as u32),
        a_stride,
        b_stride,
        c_stride,
        residual_stride,
        a_batch_stride,
        b_batch_stride,
        c_batch_stride,
        a_inner_stride,
        b_inner_stride,
        a_align: align(random, size),
        b_align: align(random, size),
        c_align: align(random, out_size),
        epilogue_align: align(random, out_size),
        ..problem.with_extents([m, n, k].map(|extent| extent as u32))
    }
}

/// Draws M, N, K and the batch: multiples of `units` whose matrices have at most [`MAX_BYTES`].
/// `sizes` has the bytes of an operand element and of an output element.
pub(crate) fn extents(
    random: &mut Random,
    units: [u64; 3],
    max_batch: u64,
    sizes: [u64; 2],
) -> [u64; 4] {
    let max = u64::from(MAX_EXTENT);
    let [m, n] = [0; 2].map(|_| random.extent(1..=max));
    let mut extents = [m, n, random.extent(0..=max), random.extent(1..=max_batch)];
    loop {
        for (extent, unit) in extents.iter_mut().zip(units) {
            *extent = extent.next_multiple_of(unit);
        }
        let [m, n, k, batch] = extents;
        let operands = m.max(n) * k.max(1);
        let bytes = (operands * sizes[0]).max(m * n * sizes[1]);
        if bytes <= MAX_BYTES / batch {
            return extents;
        }
        // The smaller extents keep their values.
        if let Some(largest) = extents.iter_mut().max() {
            *largest = largest.div_ceil(2 + random.below(30));
        }
    }
}

/// Draws a stride of at least `dense` elements of `size` bytes between `repeats` rows or matrices;
/// `None` stands for the dense stride.
pub(crate) fn padded(random: &mut Random, dense: u64, size: u64, repeats: u64) -> Option<u64> {
    let unit = PITCH_BYTES / size;
    let max_units = (MAX_BYTES / (repeats.max(1) * PITCH_BYTES)).min(1 << 10);
    let stride = dense + unit * random.extent(0..=max_units);
    random.percent(25).then_some(stride)
}

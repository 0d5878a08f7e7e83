//! Test support: runs a kernel on buffers.

use half::{bf16, f16};
use warpline_cpu::{Options, RunError};
use warpline_ir::builder::*;
use warpline_ir::{DType, E4m3, E5m2, Element, Kernel, TensorMapDecl, Tf32};
use warpline_testkit::full::few_or;
use warpline_testkit::launch::Setup;

/// An argument of a test launch.
#[derive(Clone)]
pub(crate) enum Input {
    /// A `u32`.
    U32(u32),
    /// A buffer with contents.
    Data(Vec<u8>),
    /// An unwritten output of this many bytes.
    Output(usize),
    /// An output that is zero at launch.
    Zeros(usize),
    /// A tensor map over a buffer with contents.
    Map(TensorMapDecl, Vec<u8>, Vec<u64>),
    /// A tensor map over an output.
    MapOutput(TensorMapDecl, Vec<u64>),
}

/// Converts words to bytes.
pub(crate) fn words(x: impl IntoIterator<Item = u32>) -> Input {
    Input::Data(x.into_iter().flat_map(u32::to_le_bytes).collect())
}

/// Converts floats to bytes.
pub(crate) fn floats(x: impl IntoIterator<Item = f32>) -> Input {
    words(x.into_iter().map(f32::to_bits))
}

/// Converts bytes to floats.
pub(crate) fn to_floats(bytes: &[u8]) -> Vec<f32> {
    to_words(bytes).into_iter().map(f32::from_bits).collect()
}

/// Converts bytes to words.
pub(crate) fn to_words(bytes: &[u8]) -> Vec<u32> {
    let four = bytes.chunks_exact(4);
    four.map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect()
}

/// Returns `eager`, `late`, and `random` with several seeds.
pub(crate) fn timings(seeds: u64) -> Vec<Options> {
    let limited = |options| Options {
        threads: 1,
        max_steps: Some(20_000_000),
        ..options
    };
    warpline_testkit::timings::timings(seeds)
        .map(limited)
        .collect()
}

/// Returns the number of seeds: ten times as many in a full test run.
pub(crate) fn seeds(few: u64) -> u64 {
    few_or(few, 10 * few)
}

/// Runs a kernel; returns the bytes of its outputs. Unwritten bytes are an error.
pub(crate) fn run(
    kernel: &Kernel,
    grid: u32,
    inputs: &[Input],
    options: &Options,
) -> Result<Vec<Vec<u8>>, Box<RunError>> {
    run_grid(kernel, [grid, 1, 1], inputs, options)
}

/// Runs a kernel with a 3-D grid; returns the bytes of its outputs. Unwritten bytes are an error.
pub(crate) fn run_grid(
    kernel: &Kernel,
    grid: [u32; 3],
    inputs: &[Input],
    options: &Options,
) -> Result<Vec<Vec<u8>>, Box<RunError>> {
    let mut setup = Setup::new();
    let mut outputs = Vec::new();
    for (input, p) in inputs.iter().zip(&kernel.params) {
        if matches!(
            input,
            Input::Output(_) | Input::Zeros(_) | Input::MapOutput(..)
        ) {
            outputs.push(setup.addresses.len());
        }
        setup = match input {
            Input::U32(x) => setup.scalar(*x),
            Input::Data(bytes) => setup.input(&p.name, bytes),
            Input::Output(len) => setup.output(&p.name, *len),
            Input::Zeros(len) => setup.input(&p.name, &vec![0u8; *len]),
            Input::Map(decl, bytes, extents) => setup.map(&p.name, decl, bytes, extents),
            Input::MapOutput(decl, extents) => setup.map_output(&p.name, decl, extents),
        };
    }
    setup.run_grid(kernel, grid, options)?;
    Ok(outputs.into_iter().map(|i| setup.values(i)).collect())
}

/// Runs a kernel that must pass; returns the words of its output.
#[track_caller]
pub(crate) fn run_words(
    kernel: &Kernel,
    grid: u32,
    inputs: &[Input],
    options: &Options,
) -> Vec<u32> {
    let out = run(kernel, grid, inputs, options).unwrap_or_else(|e| {
        panic!(
            "{} under {}, seed {}: {e}",
            kernel.name, options.timing, options.seed
        )
    });
    to_words(&out[0])
}

/// Runs a kernel that must pass; returns the floats of its output.
#[track_caller]
pub(crate) fn run_floats(
    kernel: &Kernel,
    grid: u32,
    inputs: &[Input],
    options: &Options,
) -> Vec<f32> {
    let words = run_words(kernel, grid, inputs, options);
    words.into_iter().map(f32::from_bits).collect()
}

/// Emits a copy of dense rows to a tile, a proxy fence and a CTA barrier, for all threads of a kernel
/// with a single role.
pub(crate) fn fill<T: Element>(tile: TileRef<T>, from: Global<T>) {
    let per_word = 4 / T::DTYPE.bytes() as u32;
    let words = tile.cols() / per_word;
    range(thread_in_role(), tile.rows() * words)
        .step_by(role_threads())
        .each(|i| {
            let (row, col) = (i / words, i % words * per_word);
            tile.store_as::<u32, 1>(row, col, from.load_as(i * per_word));
        });
    fence_async();
    cta_sync();
}

/// Returns reproducible pseudo-random numbers in −1…1.
pub(crate) fn noise(len: usize, seed: u32) -> Vec<f32> {
    let mut x = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    (0..len)
        .map(|_| {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (x >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect()
}

/// Rounds to an operand type; returns bytes and values.
pub(crate) fn round<T: Element>(x: &[f32]) -> (Vec<u8>, Vec<f64>) {
    let one = |&x: &f32| match T::DTYPE {
        DType::Bf16 => {
            let h = bf16::from_f32(x);
            (u32::from(h.to_bits()), h.to_f64())
        }
        DType::F16 => {
            let h = f16::from_f32(x);
            (u32::from(h.to_bits()), h.to_f64())
        }
        // The bytes keep the bits that tf32 ignores.
        DType::Tf32 => (x.to_bits(), f64::from(Tf32(x.to_bits()).widen())),
        DType::E4m3 => {
            let code = E4m3::round(x);
            (code.0.into(), f64::from(code.widen()))
        }
        DType::E5m2 => {
            let code = E5m2::round(x);
            (code.0.into(), f64::from(code.widen()))
        }
        other => panic!("{other} is not an operand type"),
    };
    let all: Vec<(u32, f64)> = x.iter().map(one).collect();
    let size = T::DTYPE.bytes();
    let bytes = all
        .iter()
        .flat_map(|x| x.0.to_le_bytes().into_iter().take(size));
    (bytes.collect(), all.iter().map(|x| x.1).collect())
}

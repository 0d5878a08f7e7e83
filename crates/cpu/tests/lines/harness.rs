//! Runs a kernel on buffers of numbers.

use warpline_cpu::{Memory, Options, RunError, Timing};
use warpline_ir::{Arg, Kernel, Launch};

/// An argument of a test launch.
#[derive(Clone)]
pub(crate) enum Input {
    /// A `u32`.
    U32(u32),
    /// A buffer with contents.
    Data(Vec<u8>),
    /// The output, of this many bytes.
    Output(usize),
    /// A tensor map over the buffer of an earlier argument.
    Map(warpline_ir::TensorMapDecl, Vec<u8>, Vec<u64>),
}

/// Words as bytes.
pub(crate) fn words(x: impl IntoIterator<Item = u32>) -> Input {
    Input::Data(x.into_iter().flat_map(u32::to_le_bytes).collect())
}

/// Eager, late, and random with some seeds.
pub(crate) fn timings(seeds: u64) -> Vec<Options> {
    let one = |timing, seed| Options {
        timing,
        seed,
        threads: 1,
        max_steps: Some(20_000_000),
        ..Options::default()
    };
    let mut all = vec![one(Timing::Eager, 0), one(Timing::Late, 0)];
    all.extend((0..seeds).map(|s| one(Timing::Random, s)));
    all
}

/// More seeds when everything is asked for.
pub(crate) fn seeds(few: u64) -> u64 {
    if std::env::var_os("WARPLINE_FULL").is_some() {
        few * 10
    } else {
        few
    }
}

/// Runs a kernel; gives the bytes of its outputs. Unwritten bytes are an error.
pub(crate) fn run(
    kernel: &Kernel,
    grid: u32,
    inputs: &[Input],
    options: &Options,
) -> Result<Vec<Vec<u8>>, Box<RunError>> {
    let mut memory = Memory::new();
    let mut outputs = Vec::new();
    let args = inputs
        .iter()
        .zip(&kernel.params)
        .map(|(input, p)| match input {
            Input::U32(x) => Arg::scalar(*x),
            Input::Data(bytes) => Arg::Pointer(memory.alloc_from(bytes, p.name.clone())),
            Input::Output(len) => {
                let at = memory.alloc(*len, p.name.clone());
                outputs.push((at, *len));
                Arg::Pointer(at)
            }
            Input::Map(decl, bytes, extents) => {
                let at = memory.alloc_from(bytes, p.name.clone());
                Arg::TensorMap(warpline_ir::TensorMapValue::dense(
                    decl.clone(),
                    at,
                    extents,
                ))
            }
        })
        .collect();
    let launch = Launch {
        grid: [grid, 1, 1],
        args,
    };
    warpline_cpu::run(kernel, &launch, &memory, options)?;
    Ok(outputs
        .into_iter()
        .map(|(at, len)| {
            memory
                .read(at, len)
                .unwrap_or_else(|f| panic!("{}: {}", kernel.name, f.text))
        })
        .collect())
}

/// Runs a kernel that must be right; gives the words of its one output.
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
    out[0]
        .chunks_exact(4)
        .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect()
}

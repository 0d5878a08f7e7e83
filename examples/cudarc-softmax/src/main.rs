//! A softmax on memory that cudarc owns, in a stream of cudarc's.

use cudarc::driver::CudaContext;
use std::error::Error;
use std::process::ExitCode;
use warpline::Device;
use warpline::ops::interop::StreamOps;

const ROWS: usize = 37;
const COLS: usize = 1000;

/// More than f32 and the approximate exponential cost here, and less than a
/// wrong element: an element is about 1 / COLS.
const TOLERANCE: f64 = 1e-6;

fn main() -> ExitCode {
    // First, as cudarc panics where there is no driver; this says so.
    if let Err(why) = Device::cuda(0) {
        eprintln!("no GPU can be used: {why}");
        return ExitCode::from(2);
    }
    match largest_error() {
        Ok(error) => {
            println!("softmax of {ROWS} x {COLS}: the largest error is {error:.1e}");
            ExitCode::from(u8::from(error > TOLERANCE))
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// The largest difference between the GPU's softmax and the host's.
fn largest_error() -> Result<f64, Box<dyn Error>> {
    let host: Vec<f32> = (0..ROWS * COLS).map(|i| (i as f32).sin() * 4.0).collect();
    let stream = CudaContext::new(0)?.new_stream()?;
    let x = stream.clone_htod(&host)?;
    let mut y = stream.alloc_zeros::<f32>(ROWS * COLS)?;

    let ops = StreamOps::new(&stream)?;
    ops.call("softmax")?
        .input("x", &x, &[ROWS, COLS])?
        .output(&mut y, &[ROWS, COLS])?
        .launch()?;

    let y = stream.clone_dtoh(&y)?;
    stream.synchronize()?;
    let errors = softmax(&host).into_iter().zip(y);
    // A NaN is an error without end.
    let error = |(right, seen): (f64, f32)| (right - f64::from(seen)).abs();
    let errors = errors
        .map(error)
        .map(|e| if e.is_nan() { f64::INFINITY } else { e });
    Ok(errors.fold(0.0, f64::max))
}

/// The softmax of every row, in float64.
fn softmax(x: &[f32]) -> Vec<f64> {
    let row = |row: &[f32]| {
        let exp: Vec<f64> = row.iter().map(|&x| f64::from(x).exp()).collect();
        let sum: f64 = exp.iter().sum();
        exp.into_iter().map(move |e| e / sum)
    };
    x.chunks(COLS).flat_map(row).collect()
}

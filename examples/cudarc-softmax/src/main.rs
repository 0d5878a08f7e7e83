//! A softmax on memory and a stream that cudarc owns. Without a GPU the op runs on the CPU executor.

use cudarc::driver::CudaContext;
use std::error::Error;
use std::process::ExitCode;
use warpline::kernels::registry;
use warpline::ops::interop::StreamOps;
use warpline::{Device, RunOptions, run};

const ROWS: usize = 37;
const COLS: usize = 1000;

/// The maximum error: above the error of f32 and the approximate exponential, and below an
/// element, which is about 1 / COLS.
const TOLERANCE: f64 = 1e-6;

fn main() -> ExitCode {
    // cudarc panics without a driver, so Warpline looks for a GPU first.
    let passed = match Device::cuda(0) {
        Ok(_) => on_gpu(),
        Err(reason) => {
            println!("no usable GPU ({reason}); softmax runs on the CPU executor");
            on_cpu()
        }
    };
    match passed {
        Ok(true) => {
            println!("PASS");
            ExitCode::SUCCESS
        }
        Ok(false) => {
            println!("FAIL");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the softmax on cudarc's memory and compares it with float64.
fn on_gpu() -> Result<bool, Box<dyn Error>> {
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
    let is_within =
        |(expected, actual): (f64, f32)| (expected - f64::from(actual)).abs() <= TOLERANCE;
    Ok(softmax(&host).into_iter().zip(y).all(is_within))
}

/// Runs the default problem of the family on the CPU executor.
fn on_cpu() -> Result<bool, Box<dyn Error>> {
    let device = Device::cpu();
    let families = registry();
    let family = families.iter().find(|family| family.name() == "softmax");
    let family = family.ok_or("there is no family softmax")?;
    let workload = family.default_workload(device.kind(), &device.target())?;
    Ok(run(workload.as_ref(), &device, &RunOptions::default())?.passed())
}

/// Computes the softmax of every row in float64.
fn softmax(x: &[f32]) -> Vec<f64> {
    let row = |row: &[f32]| {
        let exp: Vec<f64> = row.iter().map(|&x| f64::from(x).exp()).collect();
        let sum: f64 = exp.iter().sum();
        exp.into_iter().map(move |e| e / sum)
    };
    x.chunks(COLS).flat_map(row).collect()
}

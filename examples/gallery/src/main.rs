//! `cargo run --release -p warpline-gallery -- NAME`: checks, draws and runs one example.

use std::process::ExitCode;
use warpline::{Device, Error, RunOptions, prepare, run};
use warpline_diagram::Diagram;
use warpline_gallery::{Example, examples};

fn main() -> ExitCode {
    let all = examples();
    let Some(name) = std::env::args().nth(1) else {
        println!("Usage: cargo run --release -p warpline-gallery -- EXAMPLE\n\nExamples:");
        all.iter()
            .for_each(|example| println!("  {}", example.name));
        return ExitCode::SUCCESS;
    };
    let Some(example) = all.iter().find(|example| example.name == name) else {
        eprintln!(
            "error: unknown example {name}\nhelp: run without an argument to list the examples"
        );
        return ExitCode::from(2);
    };
    match show(example) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Proves and draws the kernels of an example, then runs its last problem. Returns whether it passes.
fn show(example: &Example) -> Result<bool, Error> {
    let device = Device::cuda(0).unwrap_or_else(|_| Device::cpu());
    // The last problem is the largest one.
    let Some(workload) = example.probe.cases.last() else {
        return Ok(true);
    };
    for step in prepare(workload.as_ref(), &device.target())?.steps {
        println!(
            "kernel {}: proved free of deadlocks and data races\n",
            step.kernel.name
        );
        println!("{}", Diagram::of(&step.kernel).text());
    }
    println!(
        "{} with {} on {}",
        workload.problem(),
        workload.config(),
        device.name()
    );
    let report = run(workload.as_ref(), &device, &RunOptions::default())?;
    for output in &report.outputs {
        let verdict = if output.passed() { "PASS" } else { "FAIL" };
        let ulp = output.max_ulp.as_ref().map_or(0.0, |worst| worst.ulp);
        println!(
            "{verdict}: {} elements of {}, max error {ulp:.2} ulp",
            output.elements, output.output
        );
    }
    Ok(report.passed())
}

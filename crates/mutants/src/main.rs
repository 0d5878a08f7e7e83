//! `mutants`: breaks every kernel that ships, and prints what the checker makes of it.

use anyhow::Result;
use clap::Parser;
use std::process::ExitCode;
use warpline_ir::Target;
use warpline_mutants::{KINDS, Survivors, repaired, run, shipped};

/// Break every kernel that ships, and see whether the checker tells
#[derive(Parser)]
struct Args {
    /// Mutants of each kind and kernel, at most
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    most: usize,
    /// Only kernels whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Say what the kinds of mutation are
    #[arg(long)]
    kinds: bool,
}

fn main() -> ExitCode {
    done(&Args::parse()).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}

fn done(args: &Args) -> Result<ExitCode> {
    if args.kinds {
        for kind in KINDS {
            println!("{:20} {}", kind.name, kind.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let target = Target::default();
    let mut subjects = shipped(&target)?;
    subjects.extend(repaired()?);
    let mut survivors = Survivors::committed()?;
    if let Some(text) = &args.only {
        subjects.retain(|s| s.name.contains(text));
        survivors.0.retain(|s| s.subject.contains(text));
    }
    let report = run(&subjects, args.most, &survivors, &target);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{report}");
    }
    let failures = report.failures();
    for failure in &failures {
        eprintln!("failed: {failure}");
    }
    Ok(match failures[..] {
        [] => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

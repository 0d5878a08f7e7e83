//! `mutants`: mutates every shipped kernel and reports the mutants that the checker does not refute.

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use std::path::Path;
use std::process::ExitCode;
use warpline_ir::Target;
use warpline_mutants::{EquivalentMutants, KINDS, MutantReport, repaired, run, shipped, today};

/// Mutate every shipped kernel and test that the checker refutes the mutants
#[derive(Parser)]
struct Args {
    /// Maximum number of mutants of each kind and kernel
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    most: usize,
    /// Mutate only kernels whose name contains this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// List the kinds of mutation
    #[arg(long)]
    kinds: bool,
    /// Write the counts of this run to crates/mutants/result.json
    #[arg(long)]
    record: bool,
}

/// The file that `--record` writes.
const RESULT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/result.json");

fn main() -> ExitCode {
    run_command(&Args::parse()).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}

fn run_command(args: &Args) -> Result<ExitCode> {
    if args.kinds {
        for kind in KINDS {
            println!("{:20} {}", kind.name, kind.description);
        }
        return Ok(ExitCode::SUCCESS);
    }
    ensure!(
        !(args.record && args.only.is_some()),
        "--record needs a run over all kernels, but --only selects some\nhelp: omit --only"
    );
    let target = Target::default();
    let mut originals = shipped(&target)?;
    originals.extend(repaired()?);
    let mut equivalent = EquivalentMutants::committed()?;
    if let Some(text) = &args.only {
        originals.retain(|s| s.name.contains(text));
        equivalent.0.retain(|s| s.kernel.contains(text));
    }
    let report = run(&originals, args.most, &equivalent, &target);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{report}");
    }
    if args.record {
        record(&report, Path::new(RESULT))?;
    }
    let failures = report.failures();
    for failure in &failures {
        eprintln!("FAIL: {failure}");
    }
    Ok(match failures[..] {
        [] => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Writes the counts of a run with today's date.
fn record(report: &MutantReport, path: &Path) -> Result<()> {
    let mut text = serde_json::to_string_pretty(&report.counts(today()))?;
    text.push('\n');
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

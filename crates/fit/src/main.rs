//! `fit`: measures GEMM configs, and fits the heuristic's model to the timings.

use anyhow::Result;
use clap::{Parser, Subcommand};
use comfy_table::Table as TextTable;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use warpline::Device;
use warpline_fit::loss::Slowdowns;
use warpline_fit::measure::{Limits, measure};
use warpline_fit::samples::{self, Sample, Timing};
use warpline_fit::search::{fit, rounded};
use warpline_fit::shapes;
use warpline_fit::table::Table;
use warpline_ir::Target;
use warpline_kernels::gemm::fitting::Constants;

/// Measure GEMM configs, and fit the heuristic's model to the timings
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Time configs of random problems on a GPU and write a table
    Measure {
        /// The table to write
        table: PathBuf,
        /// Seed of the problems and of the selection of configs
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Least and largest M
        #[arg(long, num_args = 2, value_names = ["MIN", "MAX"], default_values_t = [1, 8192], value_parser = clap::value_parser!(u32).range(1..))]
        rows: Vec<u32>,
        /// Maximum number of problems
        #[arg(long)]
        problems: Option<usize>,
        /// Configs of a problem with the best estimates
        #[arg(long, default_value_t = 24)]
        best: usize,
        /// Random other configs of a problem
        #[arg(long, default_value_t = 24)]
        others: usize,
        /// Timed launches of a config
        #[arg(long, default_value_t = 7)]
        rounds: usize,
        /// No further problem is measured after these seconds
        #[arg(long, default_value_t = 300)]
        seconds: u64,
    },
    /// Report the slowdown of the selected configs against the fastest measured ones
    Evaluate {
        /// The tables
        #[arg(required = true)]
        tables: Vec<PathBuf>,
        /// List this many of the worst problems
        #[arg(long, default_value_t = 0)]
        worst: usize,
    },
    /// Fit the constants; report problems that were held out too
    Constants {
        /// The tables
        #[arg(required = true)]
        tables: Vec<PathBuf>,
        /// Folds of the cross-validation; 1 turns it off
        #[arg(long, default_value_t = 5)]
        folds: usize,
        /// Iterations of the search
        #[arg(long, default_value_t = 120)]
        iterations: usize,
    },
}

fn main() -> Result<()> {
    let target = Target::SM_90A;
    match Args::parse().command {
        Command::Measure {
            table,
            seed,
            rows,
            problems,
            best,
            others,
            rounds,
            seconds,
        } => {
            let limits = Limits {
                configs: [best, others],
                rounds,
                time: Duration::from_secs(seconds),
            };
            let mut all = shapes::draw(seed, [rows[0], rows[1]]);
            all.truncate(problems.unwrap_or(all.len()));
            let write = |measured: &Table| measured.write(&table);
            let measured = measure(&all, seed, &Device::cuda(0)?, &limits, &write)?;
            println!(
                "{} of {} problems in {}",
                measured.rows.len(),
                all.len(),
                table.display()
            );
        }
        Command::Evaluate { tables, worst } => {
            let samples = read(&tables, &target)?;
            print_kinds(&Constants::FITTED, &samples);
            print_worst(&samples, worst);
        }
        Command::Constants {
            tables,
            folds,
            iterations,
        } => {
            let samples = read(&tables, &target)?;
            if folds > 1 {
                cross_validate(&samples, folds, iterations);
            }
            let fitted = fit(&Constants::FITTED, &samples, iterations, &|i, loss| {
                eprintln!("iteration {i} loss {loss:.5}");
            });
            println!("fitted to all problems:");
            print_kinds(&fitted, &samples);
            for (name, value) in Constants::NAMES.iter().zip(fitted.values()) {
                println!("    {name}: {},", short(value));
            }
        }
    }
    Ok(())
}

fn read(tables: &[PathBuf], target: &Target) -> Result<Vec<Sample>> {
    let mut all = Vec::new();
    for path in tables {
        all.extend(samples::read(&Table::read(path)?, target)?);
    }
    Ok(all)
}

/// Holds out each fold in turn: fits to the other folds, and reports the slowdowns of this one.
fn cross_validate(all: &[Sample], folds: usize, iterations: usize) {
    for fold in 0..folds {
        let (mut train, mut test) = (Vec::new(), Vec::new());
        for (i, sample) in all.iter().enumerate() {
            match i % folds == fold {
                true => test.push(sample),
                false => train.push(sample.clone()),
            }
        }
        let constants = fit(&rounded(&Constants::FITTED), &train, iterations, &|_, _| {});
        let slowdowns = Slowdowns::of(&constants, &test);
        println!("held-out fold {fold}: {}", line(&slowdowns));
    }
}

fn line(s: &Slowdowns) -> String {
    format!(
        "{} problems, slowdown mean {:.4}, 95th percentile {:.3}, worst {:.3}, error {:.3}",
        s.count, s.mean, s.p95, s.worst, s.error
    )
}

fn print_kinds(constants: &Constants, samples: &[Sample]) {
    let mut kinds: BTreeMap<&str, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        kinds.entry(sample.kind()).or_default().push(sample);
        kinds.entry("all").or_default().push(sample);
    }
    for (kind, samples) in kinds {
        println!("{kind:10} {}", line(&Slowdowns::of(constants, &samples)));
    }
}

/// Lists the problems with the largest slowdown, each with its selected and its fastest config.
fn print_worst(samples: &[Sample], count: usize) {
    let constants = &Constants::FITTED;
    let mut order: Vec<&Sample> = samples.iter().collect();
    order.sort_by(|x, y| y.slowdown(constants).total_cmp(&x.slowdown(constants)));
    let mut text = TextTable::new();
    text.set_header(["problem", "slowdown", "selected", "fastest"]);
    let describe = |timing: Option<&Timing>| {
        let Some(timing) = timing else {
            return String::new();
        };
        let config = &timing.config;
        format!(
            "{:.2} µs (estimate {:.2}) {:?} {}x{}x{} stages {} split-k {} pack {:?}",
            timing.seconds * 1e6,
            timing.features.seconds(constants) * 1e6,
            config.schedule.kind(),
            config.tile_m,
            config.tile_n,
            config.tile_k,
            config.stages,
            config.schedule.split_k(),
            config.pack
        )
    };
    for sample in order.into_iter().take(count) {
        let fastest = (sample.timings.iter()).min_by(|x, y| x.seconds.total_cmp(&y.seconds));
        let p = &sample.problem;
        text.add_row([
            format!("{} {}x{}x{}", sample.kind(), p.m, p.n, p.k),
            format!("{:.3}", sample.slowdown(constants)),
            describe(sample.selected(constants)),
            describe(fastest),
        ]);
    }
    if count > 0 {
        println!("{text}");
    }
}

/// Prints a constant with four significant digits.
fn short(x: f64) -> String {
    let digits = 4 - x.abs().log10().ceil() as i32;
    let unit = 10f64.powi(digits);
    let rounded = (x * unit).round() / unit;
    match x.abs() {
        1e5.. => format!("{rounded:e}"),
        _ => format!("{rounded:?}"),
    }
}

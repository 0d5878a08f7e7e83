//! `fuzz-checker`: fuzzes the checker with random kernels.

use anyhow::{Context, Result};
use clap::Parser;
use comfy_table::Table;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use warpline_fuzz::corpus::CorpusEntry;
use warpline_fuzz::pool::{Campaign, worker};
use warpline_fuzz::report::FindingKind;
use warpline_fuzz::{Effort, FuzzCase, FuzzFinding, FuzzReport, campaign, shrink};

/// Fuzz the checker with random kernels, and compare it with the executor
#[derive(Parser)]
struct Args {
    /// Minutes to run [default: until --count, or 1]
    #[arg(long)]
    minutes: Option<f64>,
    /// First seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Maximum number of kernels
    #[arg(long)]
    count: Option<u64>,
    /// Explore all interleavings of every kernel that passes
    #[arg(long)]
    brute: bool,
    /// Worker processes [default: one for each core]
    #[arg(long)]
    workers: Option<usize>,
    /// Print the counts and the findings as JSON
    #[arg(long)]
    json: bool,
    /// Print the kernel of --seed, its verdict and its first failing launch
    #[arg(long)]
    show: bool,
    /// Check the kernel of a saved finding and print it like --show
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Shrink the first finding of each cause and write it to this directory
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Run as a worker: print the report of each kernel on one line
    #[arg(long, hide = true)]
    worker: bool,
    /// Shrink the finding of --seed and print it
    #[arg(long, hide = true)]
    shrink: bool,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    if args.worker {
        return run_worker(&args);
    }
    if args.shrink {
        return run_shrink(&args);
    }
    if args.show {
        return show(&campaign::random_case(args.seed), args.seed, effort(&args));
    }
    if let Some(path) = &args.replay {
        let text = std::fs::read_to_string(path)?;
        let entry: CorpusEntry = serde_json::from_str(&text)
            .with_context(|| format!("{} is not a saved finding", path.display()))?;
        return show(&entry.case, args.seed, effort(&args));
    }
    let start = Instant::now();
    let minutes = args.minutes.or(args.count.is_none().then_some(1.0));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let campaign = Campaign {
        seed: args.seed,
        count: args.count.unwrap_or(u64::MAX),
        until: minutes.map(|m| start + Duration::from_secs_f64(m * 60.0)),
        workers: args.workers.unwrap_or(cores),
        brute: args.brute,
    };
    let bar = progress_bar(&args, minutes);
    let report = campaign.run(&|report| {
        match minutes {
            Some(_) => bar.set_position(start.elapsed().as_secs()),
            None => bar.set_position(report.kernels),
        }
        let unsound = report.of_kind(FindingKind::Unsound).count();
        bar.set_message(format!(
            "{} kernels, {unsound} proved and failed",
            report.kernels
        ));
    })?;
    bar.finish_and_clear();
    match args.json {
        true => println!("{}", serde_json::to_string(&report)?),
        false => print_report(&report, start.elapsed()),
    }
    let first_per_cause = first_per_cause(&report);
    if let Some(folder) = &args.save {
        save(&first_per_cause, folder, args.brute)?;
    } else if !args.json {
        for finding in first_per_cause
            .iter()
            .filter(|f| f.kind == FindingKind::Unsound)
        {
            print_finding(&shrink_in_worker(finding, args.brute));
        }
    }
    let unsound = report.of_kind(FindingKind::Unsound).next().is_some();
    Ok(match unsound {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

fn progress_bar(args: &Args, minutes: Option<f64>) -> ProgressBar {
    if args.json {
        return ProgressBar::hidden();
    }
    let length = match minutes {
        Some(m) => (m * 60.0) as u64,
        None => args.count.unwrap_or(0),
    };
    let style = ProgressStyle::with_template("[{elapsed}] {bar:40} {msg}");
    let bar = ProgressBar::new(length);
    style.map_or(bar.clone(), |style| bar.with_style(style))
}

fn effort(args: &Args) -> Effort {
    match args.brute {
        true => Effort::BRUTE,
        false => Effort::NORMAL,
    }
}

/// Fuzzes kernels and prints one report per line.
fn run_worker(args: &Args) -> Result<ExitCode> {
    // A panic of the checker is a finding; do not print it.
    std::panic::set_hook(Box::new(|_| {}));
    let mut out = std::io::stdout().lock();
    for i in 0..args.count.unwrap_or(1) {
        let report = campaign::run_seed(args.seed.wrapping_add(i), effort(args));
        serde_json::to_writer(&mut out, &report)?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Shrinks the finding of a seed.
fn run_shrink(args: &Args) -> Result<ExitCode> {
    std::panic::set_hook(Box::new(|_| {}));
    let report = campaign::run_seed(args.seed, effort(args));
    let finding = report
        .findings
        .first()
        .context("the kernel of this seed is not a finding")?;
    println!(
        "{}",
        serde_json::to_string(&shrink::shrink(finding, effort(args)))?
    );
    Ok(ExitCode::SUCCESS)
}

/// Shrinks a finding in a worker process; returns it unchanged if the worker dies.
fn shrink_in_worker(finding: &FuzzFinding, brute: bool) -> FuzzFinding {
    let seed = finding.seed.to_string();
    let mut args = vec!["--shrink", "--seed", &seed];
    if brute {
        args.push("--brute");
    }
    let output = worker(&args).and_then(|c| Ok(c.wait_with_output()?));
    let read = |o: std::process::Output| serde_json::from_slice(&o.stdout).ok();
    output
        .ok()
        .and_then(read)
        .unwrap_or_else(|| finding.clone())
}

/// Returns the first finding of each cause and, for correct kernels, the simplest one with each construct.
fn first_per_cause(report: &FuzzReport) -> Vec<&FuzzFinding> {
    let mut all: Vec<&FuzzFinding> = Vec::new();
    for f in report.of_kind(FindingKind::Unsound) {
        if !all.iter().any(|g| g.cause == f.cause) {
            all.push(f);
        }
    }
    for word in report.by_construct().into_keys() {
        let alarms = report
            .of_kind(FindingKind::FalseAlarm)
            .chain(report.of_kind(FindingKind::Undecided));
        let with_construct = alarms.filter(|f| f.case.plan.constructs().contains(word));
        let simplest = with_construct.min_by_key(|f| f.case.plan.constructs().len());
        all.extend(simplest.filter(|f| !all.iter().any(|g| g.seed == f.seed)));
    }
    all
}

fn save(findings: &[&FuzzFinding], folder: &Path, brute: bool) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    for finding in findings {
        let small = shrink_in_worker(finding, brute);
        if !matches!(
            small.kind,
            FindingKind::Unsound | FindingKind::FalseAlarm | FindingKind::Undecided
        ) {
            continue;
        }
        let words: Vec<&str> = small.cause.split(" + ").take(3).collect();
        let prefix = match small.kind {
            FindingKind::Unsound => "incorrect",
            _ => "correct",
        };
        let path = folder.join(format!("{prefix}-{}.json", words.join("-")));
        if path.exists() {
            continue;
        }
        std::fs::write(
            &path,
            serde_json::to_string_pretty(&CorpusEntry::from_finding(&small))? + "\n",
        )?;
        println!("saved {}", path.display());
    }
    Ok(())
}

fn print_report(report: &FuzzReport, time: Duration) {
    let seconds = time.as_secs_f64().max(0.001);
    println!(
        "{} kernels in {seconds:.0} s ({:.0} kernels/s): {} with a bug or a mutation, {} proved, {} refuted, {} undecided, {} not built",
        report.kernels,
        report.kernels as f64 / seconds,
        report.changed,
        report.proved,
        report.refuted,
        report.undecided,
        report.unbuilt,
    );
    let mut totals = Table::new();
    totals.set_header(["finding", "kernels"]);
    for kind in FindingKind::ALL {
        totals.add_row([
            kind.name().to_owned(),
            report.of_kind(kind).count().to_string(),
        ]);
    }
    println!("{totals}");
    let mut bugs = Table::new();
    bugs.set_header([
        "injected bug",
        "refuted",
        "undecided",
        "proved, no failure",
        "proved and failed",
    ]);
    for (cause, counts) in &report.bugs {
        let cells = [
            counts.refuted,
            counts.undecided,
            counts.harmless,
            counts.unsound,
        ]
        .map(|n| n.to_string());
        let [a, b, c, d] = cells;
        bugs.add_row([cause.clone(), a, b, c, d]);
    }
    println!("{bugs}");
    let mut constructs = Table::new();
    constructs.set_header(["construct", "correct and refuted", "correct and undecided"]);
    for (word, [refuted, undecided]) in report.by_construct() {
        constructs.add_row([word.to_owned(), refuted.to_string(), undecided.to_string()]);
    }
    println!("{constructs}");
    let mut others = Table::new();
    others.set_header(["finding", "cause", "kernels", "first seed"]);
    for ((kind, cause), (n, seed)) in report.by_cause() {
        if !matches!(kind, FindingKind::FalseAlarm | FindingKind::Undecided) {
            others.add_row([kind.name(), cause, &n.to_string(), &seed.to_string()]);
        }
    }
    println!("{others}");
}

/// Prints a finding: the kernel's text, the launch and the fault.
fn print_finding(finding: &FuzzFinding) {
    println!(
        "\n{}: {} (seed {})",
        finding.kind.name(),
        finding.cause,
        finding.seed
    );
    if let Some(kernel) = finding.case.kernel() {
        println!("{kernel}");
        println!(
            "{}",
            warpline_check::examine(&kernel, &kernel.target).text()
        );
    }
    if let Some(f) = &finding.outcome.failure {
        println!("launch: {:?}", f.values);
        println!(
            "timing {}, seed {}: {}: {}",
            f.timing, f.seed, f.kind, f.text
        );
    }
}

/// Prints a kernel, its plan, its verdict and its first failing launch.
fn show(case: &FuzzCase, seed: u64, effort: Effort) -> Result<ExitCode> {
    println!("{}", serde_json::to_string_pretty(case)?);
    let outcome = case.check_and_run(seed, effort);
    let outcome = outcome.context("the kernel of this seed cannot be built")?;
    if let Some(kernel) = case.kernel() {
        println!("{kernel}");
        println!(
            "{}",
            warpline_check::examine(&kernel, &kernel.target).text()
        );
    }
    println!("{outcome:#?}");
    Ok(ExitCode::SUCCESS)
}

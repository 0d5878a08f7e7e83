//! `fuzz-checker`: random kernels against the checker.

use anyhow::{Context, Result};
use clap::Parser;
use comfy_table::Table;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use warpline_fuzz::corpus::Entry;
use warpline_fuzz::pool::{Campaign, worker};
use warpline_fuzz::report::Sort;
use warpline_fuzz::{Effort, Finding, Report, Subject, campaign, shrink};

/// Holds the checker against the executor on random kernels.
#[derive(Parser)]
struct Args {
    /// Minutes to run; without it, until --count
    #[arg(long)]
    minutes: Option<f64>,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The most kernels
    #[arg(long)]
    count: Option<u64>,
    /// Explore all orders of every kernel that passes
    #[arg(long)]
    brute: bool,
    /// Worker processes [default: one for each core]
    #[arg(long)]
    workers: Option<usize>,
    /// Print the tally and the findings as JSON
    #[arg(long)]
    json: bool,
    /// Print the kernel of --seed, its verdict and its first failing launch
    #[arg(long)]
    show: bool,
    /// Judge the kernel of a saved finding, and print what `--show` prints
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Shrink the first finding of each cause and write it to this folder
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Judge kernels and print one report per line
    #[arg(long, hide = true)]
    worker: bool,
    /// Shrink the finding of --seed and print it
    #[arg(long, hide = true)]
    shrink: bool,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    if args.worker {
        return judge(&args);
    }
    if args.shrink {
        return shrunk(&args);
    }
    if args.show {
        return show(&campaign::subject(args.seed), args.seed, effort(&args));
    }
    if let Some(path) = &args.replay {
        let text = std::fs::read_to_string(path)?;
        let entry: Entry = serde_json::from_str(&text).context("a saved finding")?;
        return show(&entry.subject, args.seed, effort(&args));
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
    let bar = bar(&args, minutes);
    let report = campaign.run(&|report| {
        match minutes {
            Some(_) => bar.set_position(start.elapsed().as_secs()),
            None => bar.set_position(report.kernels),
        }
        let wrong = report.of(Sort::Unsound).count();
        bar.set_message(format!(
            "{} kernels, {wrong} proved and wrong",
            report.kernels
        ));
    })?;
    bar.finish_and_clear();
    match args.json {
        true => println!("{}", serde_json::to_string(&report)?),
        false => print(&report, start.elapsed()),
    }
    let firsts = firsts(&report);
    if let Some(folder) = &args.save {
        save(&firsts, folder, args.brute)?;
    } else if !args.json {
        for finding in firsts.iter().filter(|f| f.sort == Sort::Unsound) {
            tell(&shrink_apart(finding, args.brute));
        }
    }
    let unsound = report.of(Sort::Unsound).next().is_some();
    Ok(match unsound {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

fn bar(args: &Args, minutes: Option<f64>) -> ProgressBar {
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

/// Judges kernels, one report per line.
fn judge(args: &Args) -> Result<ExitCode> {
    // The panics of a checker are findings, not messages.
    std::panic::set_hook(Box::new(|_| {}));
    let mut out = std::io::stdout().lock();
    for i in 0..args.count.unwrap_or(1) {
        let report = campaign::one(args.seed.wrapping_add(i), effort(args));
        serde_json::to_writer(&mut out, &report)?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Shrinks the finding of a seed.
fn shrunk(args: &Args) -> Result<ExitCode> {
    std::panic::set_hook(Box::new(|_| {}));
    let report = campaign::one(args.seed, effort(args));
    let finding = report.findings.first().context("no finding of this seed")?;
    println!(
        "{}",
        serde_json::to_string(&shrink::shrink(finding, effort(args)))?
    );
    Ok(ExitCode::SUCCESS)
}

/// The shrunk finding, by a worker; as it is where the worker is lost.
fn shrink_apart(finding: &Finding, brute: bool) -> Finding {
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

/// The first finding of each cause; of correct kernels, the simplest one with each construct.
fn firsts(report: &Report) -> Vec<&Finding> {
    let mut all: Vec<&Finding> = Vec::new();
    for f in report.of(Sort::Unsound) {
        if !all.iter().any(|g| g.cause == f.cause) {
            all.push(f);
        }
    }
    for word in report.by_construct().into_keys() {
        let alarms = report
            .of(Sort::FalseAlarm)
            .chain(report.of(Sort::Undecided));
        let with = alarms.filter(|f| f.subject.plan.constructs().contains(word));
        let simplest = with.min_by_key(|f| f.subject.plan.constructs().len());
        all.extend(simplest.filter(|f| !all.iter().any(|g| g.seed == f.seed)));
    }
    all
}

fn save(findings: &[&Finding], folder: &Path, brute: bool) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    for finding in findings {
        let small = shrink_apart(finding, brute);
        if !matches!(
            small.sort,
            Sort::Unsound | Sort::FalseAlarm | Sort::Undecided
        ) {
            continue;
        }
        let words: Vec<&str> = small.cause.split(" + ").take(3).collect();
        let prefix = match small.sort {
            Sort::Unsound => "wrong",
            _ => "correct",
        };
        let path = folder.join(format!("{prefix}-{}.json", words.join("-")));
        if path.exists() {
            continue;
        }
        std::fs::write(
            &path,
            serde_json::to_string_pretty(&Entry::of(&small))? + "\n",
        )?;
        println!("saved {}", path.display());
    }
    Ok(())
}

fn print(report: &Report, time: Duration) {
    let seconds = time.as_secs_f64().max(0.001);
    println!(
        "{} kernels in {seconds:.0} s ({:.0} kernels/s): {} changed, {} proved, {} refuted, {} undecided, {} not built",
        report.kernels,
        report.kernels as f64 / seconds,
        report.changed,
        report.proved,
        report.refuted,
        report.undecided,
        report.unbuilt,
    );
    let mut sums = Table::new();
    sums.set_header(["finding", "kernels"]);
    for sort in Sort::ALL {
        sums.add_row([sort.name().to_owned(), report.of(sort).count().to_string()]);
    }
    println!("{sums}");
    let mut twists = Table::new();
    twists.set_header([
        "twist",
        "refuted",
        "undecided",
        "proved, no fault",
        "proved and wrong",
    ]);
    for (cause, t) in &report.twists {
        let counts = [t.refuted, t.undecided, t.harmless, t.wrong].map(|n| n.to_string());
        let [a, b, c, d] = counts;
        twists.add_row([cause.clone(), a, b, c, d]);
    }
    println!("{twists}");
    let mut constructs = Table::new();
    constructs.set_header(["construct", "correct and refuted", "correct and undecided"]);
    for (word, [refuted, undecided]) in report.by_construct() {
        constructs.add_row([word.to_owned(), refuted.to_string(), undecided.to_string()]);
    }
    println!("{constructs}");
    let mut others = Table::new();
    others.set_header(["finding", "cause", "kernels", "first seed"]);
    for ((sort, cause), (n, seed)) in report.by_cause() {
        if !matches!(sort, Sort::FalseAlarm | Sort::Undecided) {
            others.add_row([sort.name(), cause, &n.to_string(), &seed.to_string()]);
        }
    }
    println!("{others}");
}

/// Prints a finding: the kernel's text, the launch and the fault.
fn tell(finding: &Finding) {
    println!(
        "\n{}: {} (seed {})",
        finding.sort.name(),
        finding.cause,
        finding.seed
    );
    if let Some(kernel) = finding.subject.kernel() {
        println!("{kernel}");
        println!(
            "{}",
            warpline_check::examine(&kernel, &kernel.target).text()
        );
    }
    if let Some(f) = &finding.outcomes.failure {
        println!("launch: {:?}", f.values);
        println!(
            "timing {}, seed {}: {}: {}",
            f.timing, f.seed, f.kind, f.text
        );
    }
}

/// Prints a kernel, its plan, its verdict and its first failing launch.
fn show(subject: &Subject, seed: u64, effort: Effort) -> Result<ExitCode> {
    println!("{}", serde_json::to_string_pretty(subject)?);
    let outcomes = subject.judge(seed, effort);
    let outcomes = outcomes.context("the kernel of this seed cannot be built")?;
    if let Some(kernel) = subject.kernel() {
        println!("{kernel}");
        println!(
            "{}",
            warpline_check::examine(&kernel, &kernel.target).text()
        );
    }
    println!("{outcomes:#?}");
    Ok(ExitCode::SUCCESS)
}

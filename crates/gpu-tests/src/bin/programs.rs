//! Compares the programs of every candidate with a recorded list.
//!
//! A change that only moves or renames code changes no program hash. The list has one line for each
//! set of programs: the shipped programs, the candidates of each benchmark problem, and the candidates
//! of random problems. A line of a random problem has its flags.

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use warpline_gpu_tests::workloads;
use warpline_ir::Target;
use warpline_kernels::{AnyFamily, AnyWorkload, DeviceKind, Request, registry};

#[derive(Parser)]
struct Args {
    /// The recorded list
    #[arg(default_value_os_t = default_list())]
    list: PathBuf,
    /// Write the current programs to the list
    #[arg(long)]
    record: bool,
}

fn default_list() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs.txt")
}

/// The programs of one set, each by the first 8 digits of its hash.
type Programs = BTreeSet<String>;

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let text = fs::read_to_string(&args.list)
        .with_context(|| format!("cannot read {}", args.list.display()))?;
    let recorded: BTreeMap<String, Programs> = text.lines().map(parse_line).collect();
    let current = current_programs(recorded.keys())?;
    if args.record {
        fs::write(&args.list, format_list(&current))?;
        println!("recorded {} sets of programs", current.len());
        return Ok(ExitCode::SUCCESS);
    }
    let mut changed = 0;
    for (set, programs) in &current {
        let recorded = recorded.get(set);
        if recorded == Some(programs) {
            continue;
        }
        changed += 1;
        let recorded = recorded.cloned().unwrap_or_default();
        let (removed, added) = (
            recorded.difference(programs),
            programs.difference(&recorded),
        );
        println!(
            "{set}: {} programs removed, {} new",
            removed.count(),
            added.count()
        );
    }
    println!("{changed} of {} sets of programs changed", current.len());
    Ok(if changed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Parses a line of the list: the set, a tab, its programs.
fn parse_line(line: &str) -> (String, Programs) {
    let (set, programs) = line.split_once('\t').unwrap_or((line, ""));
    let programs = programs.split_whitespace().map(str::to_owned);
    (set.to_owned(), programs.collect())
}

fn format_list(all: &BTreeMap<String, Programs>) -> String {
    all.iter().fold(String::new(), |mut text, (set, programs)| {
        let programs: Vec<_> = programs.iter().map(String::as_str).collect();
        let _ = writeln!(text, "{set}\t{}", programs.join(" "));
        text
    })
}

/// Returns the current programs: the shipped ones, those of the benchmarks, and those of the random
/// problems in the recorded list.
fn current_programs<'a>(
    recorded: impl Iterator<Item = &'a String>,
) -> Result<BTreeMap<String, Programs>> {
    let target = Target::default();
    let workloads::ShippedKernels { tested, untested } = workloads::shipped(&target)?;
    let shipped = tested.into_iter().chain(untested);
    let shipped = shipped.map(|kernel| kernel.hash[..8].to_owned()).collect();
    let mut problems: Vec<(String, Box<dyn AnyWorkload>)> = Vec::new();
    for family in registry() {
        for suite in family.suites() {
            for (i, work) in family.bench(suite, &target)?.into_iter().enumerate() {
                problems.push((format!("measured {} {suite} {i}", family.name()), work));
            }
        }
    }
    let random = recorded.filter(|set| set.contains(" --"));
    for set in random {
        problems.push((set.clone(), parse(set, &target)?));
    }
    let (next, done) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let run_thread = || -> Result<()> {
        while let Some((set, work)) = problems.get(next.fetch_add(1, Ordering::Relaxed)) {
            let programs = candidates(work.as_ref(), &target).with_context(|| set.clone())?;
            let mut done = done.lock().ok().context("a thread panicked")?;
            done.insert(set.clone(), programs);
        }
        Ok(())
    };
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(run_thread)).collect();
        handles
            .into_iter()
            .try_for_each(|handle| match handle.join() {
                Ok(result) => result,
                Err(_) => bail!("a thread panicked"),
            })
    })?;
    let mut done = done.into_inner().ok().context("a thread panicked")?;
    done.insert("shipped".to_owned(), shipped);
    Ok(done)
}

/// Returns the workload of a line of flags.
fn parse(line: &str, target: &Target) -> Result<Box<dyn AnyWorkload>> {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default();
    let family = find(name)?;
    let request = Request::from_flags(words)?;
    Ok(family.workload(&request, DeviceKind::Cpu, None, target)?)
}

fn find(name: &str) -> Result<&'static dyn AnyFamily> {
    let family = registry().into_iter().find(|f| f.name() == name);
    family.with_context(|| format!("unknown family {name}"))
}

/// Returns the programs of every candidate config of a problem, and of its baseline.
fn candidates(work: &dyn AnyWorkload, target: &Target) -> Result<Programs> {
    let mut all = work.alternatives(target)?;
    all.extend(work.baseline(target));
    let mut programs = Programs::new();
    for work in all {
        for step in work.plan(target)?.steps {
            programs.insert(step.kernel.program_hash()[..8].to_owned());
        }
    }
    Ok(programs)
}

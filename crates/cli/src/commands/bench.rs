//! `warpline bench SUITE`, `warpline bench FAMILY`.

use crate::args::fields::request;
use crate::args::{BenchArgs, CandidateArgs};
use crate::bench_report;
use crate::errors::Failure;
use crate::output::CommandOutput;
use crate::progress::Bar;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use warpline::Device;
use warpline::bench::{self, BenchGroup, BenchOptions, BenchReport, suite};
use warpline_kernels::{AnyFamily, AnyWorkload, DeviceKind};

/// Measures a benchmark suite.
pub(crate) fn suite(
    families: &[&dyn AnyFamily],
    name: &str,
    matches: &ArgMatches,
) -> Result<CommandOutput, Failure> {
    let args = parsed::<BenchArgs>(matches)?;
    let device = gpu(&args.device)?;
    let groups = suite::groups(name, families, probes, &device.target())?;
    measure(&groups, &device, &args)
}

/// Returns whether the command line has an option of the family: a problem field, a config field
/// or candidates. Options of the measurement and `--json` do not count.
pub(crate) fn has_family_options(matches: &ArgMatches) -> bool {
    let common = BenchArgs::augment_args(Command::new("common"));
    let groups = common.get_groups().map(|g| g.get_id().clone());
    let args = common.get_arguments().map(|a| a.get_id().clone());
    let common: Vec<_> = args.chain(groups).collect();
    let given = |id: &&clap::Id| {
        matches.value_source(id.as_str()) == Some(clap::parser::ValueSource::CommandLine)
    };
    let mut family_options = matches
        .ids()
        .filter(|id| !common.contains(id) && id.as_str() != "json");
    family_options.any(|id| given(&id))
}

/// Measures one family at the problem of the command line.
pub(crate) fn family(
    family: &dyn AnyFamily,
    matches: &ArgMatches,
) -> Result<CommandOutput, Failure> {
    let args = parsed::<BenchArgs>(matches)?;
    let selection = parsed::<CandidateArgs>(matches)?;
    let device = gpu(&args.device)?;
    let group = group(family, matches, &selection, &device)?;
    measure(&[group], &device, &args)
}

/// Returns the workload with the selected config, or those of the requested candidates.
fn group(
    family: &dyn AnyFamily,
    matches: &ArgMatches,
    selection: &CandidateArgs,
    device: &Device,
) -> Result<BenchGroup, Failure> {
    let target = device.target();
    let works = match selection.schedules || selection.candidates.is_some() {
        true => family.candidates(&request(family, matches), DeviceKind::Gpu, &target)?,
        false => {
            vec![family.workload(&request(family, matches), DeviceKind::Gpu, None, &target)?]
        }
    };
    let no_candidate = || {
        let name = family.name();
        let text = format!("no candidate of {name} matches the given config options");
        Failure::bad_input("no-candidate", text)
    };
    let group = BenchGroup::new(works).ok_or_else(no_candidate)?;
    Ok(match selection.candidates {
        Some(count) => group.truncate(count.get() as usize),
        None if selection.schedules => group.one_per_schedule(),
        None => group,
    })
}

fn measure(
    groups: &[BenchGroup],
    device: &Device,
    args: &BenchArgs,
) -> Result<CommandOutput, Failure> {
    let bar = Bar::new();
    let mut options = BenchOptions::default();
    options.rounds = args.rounds;
    options.seed = args.seed;
    options.sustained = args.sustained;
    options.progress = Some(bar.bench_listener());
    let limit_gemm = limit_gemm();
    let report = bench::bench(groups, limit_gemm.as_deref(), device, &options)?;
    drop(bar);
    Ok(CommandOutput::new("bench", bench_report::text(&report))
        .field("passed", report.passed())
        .fields(&report)
        .with_failure(untimed(&report)))
}

/// Returns the probes of a suite, at GPU sizes.
fn probes(suite: &str) -> Vec<Box<dyn AnyWorkload>> {
    match suite {
        suite::GEMM_PROBES => gemm_probes(),
        suite::LADDER => warpline_probes::ladder(),
        _ => vec![],
    }
}

/// Returns the GEMM probes; the ladder is a separate suite.
fn gemm_probes() -> Vec<Box<dyn AnyWorkload>> {
    let works = warpline_probes::all().into_iter().flat_map(|p| p.gpu_cases);
    let works = works.filter(|w| w.family() != suite::LADDER);
    works.filter(|w| w.problem().get("mnk").is_some()).collect()
}

/// Returns the large GEMM that is the limit of compute-bound workloads.
fn limit_gemm() -> Option<Box<dyn AnyWorkload>> {
    gemm_probes()
        .into_iter()
        .find(|w| w.family() == "ping-pong")
}

/// Returns the named GPU; rejects the CPU executor.
fn gpu(name: &str) -> Result<Device, Failure> {
    let (device, reason) = super::device(name)?;
    if !device.is_cpu() {
        return Ok(device);
    }
    let why = reason.map_or("the selected device is the CPU executor".into(), |why| {
        format!("no GPU is usable: {why}")
    });
    Err(Failure::bad_input(
        "no-gpu",
        format!("bench needs a GPU (CPU executor time is not GPU time); {why}"),
    ))
}

fn parsed<A: FromArgMatches>(matches: &ArgMatches) -> Result<A, Failure> {
    A::from_arg_matches(matches).map_err(|e| Failure::bad_input("bad-usage", e.to_string()))
}

/// Describes the candidates that were not timed; none if all were timed.
fn untimed(report: &BenchReport) -> Option<Failure> {
    let failures = report
        .rows()
        .filter_map(|(group, row)| Some((group.family, row.failure.as_ref()?)));
    let failures: Vec<_> = failures.collect();
    let (family, why) = failures.first()?;
    let why = why.lines().next().unwrap_or_default();
    let (n, all) = (failures.len(), report.rows().count());
    Some(Failure::bad_result(
        "wrong-result",
        format!("{n} of {all} candidates were not timed; the first, {family}: {why}"),
    ))
}

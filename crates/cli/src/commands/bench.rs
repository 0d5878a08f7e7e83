//! `warpline bench SUITE`, `warpline bench FAMILY`.

use crate::answer::Answer;
use crate::args::fields::request;
use crate::args::{BenchArgs, ContenderArgs};
use crate::errors::Failure;
use crate::progress::Bar;
use crate::standings;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use warpline::Device;
use warpline::bench::{self, BenchOptions, BenchReport, Heat, suite};
use warpline_kernels::{AnyFamily, AnyWork, Place};

/// Measures a suite.
pub(crate) fn suite(
    families: &[&dyn AnyFamily],
    name: &str,
    matches: &ArgMatches,
) -> Result<Answer, Failure> {
    let args = parsed::<BenchArgs>(matches)?;
    let device = gpu(&args.device)?;
    let heats = suite::heats(name, families, probes, &device.target())?;
    measure(&heats, &device, &args)
}

/// Is anything asked of a family: a problem, a config, contenders? How to
/// measure, and how to answer (`--json`), is not.
pub(crate) fn asks(matches: &ArgMatches) -> bool {
    let common = BenchArgs::augment_args(Command::new("common"));
    let groups = common.get_groups().map(|g| g.get_id().clone());
    let args = common.get_arguments().map(|a| a.get_id().clone());
    let common: Vec<_> = args.chain(groups).collect();
    let given = |id: &&clap::Id| {
        matches.value_source(id.as_str()) == Some(clap::parser::ValueSource::CommandLine)
    };
    let mut own = matches
        .ids()
        .filter(|id| !common.contains(id) && id.as_str() != "json");
    own.any(|id| given(&id))
}

/// Measures one family at the problem that the arguments ask for.
pub(crate) fn family(family: &dyn AnyFamily, matches: &ArgMatches) -> Result<Answer, Failure> {
    let args = parsed::<BenchArgs>(matches)?;
    let contenders = parsed::<ContenderArgs>(matches)?;
    let device = gpu(&args.device)?;
    let heat = heat(family, matches, &contenders, &device)?;
    measure(&[heat], &device, &args)
}

/// The family's own choice, or those of its candidates that are asked for.
fn heat(
    family: &dyn AnyFamily,
    matches: &ArgMatches,
    contenders: &ContenderArgs,
    device: &Device,
) -> Result<Heat, Failure> {
    let target = device.target();
    let works = match contenders.forms || contenders.candidates.is_some() {
        true => family.candidates(&request(family, matches), Place::Gpu, &target)?,
        false => vec![family.work(&request(family, matches), Place::Gpu, None, &target)?],
    };
    let none = || {
        let name = family.name();
        let text = format!("no candidate of {name} agrees with the config options given");
        Failure::input("no-candidate", text)
    };
    let heat = Heat::new(works).ok_or_else(none)?;
    Ok(match contenders.candidates {
        Some(most) => heat.first(most.get() as usize),
        None if contenders.forms => heat.forms(),
        None => heat,
    })
}

fn measure(heats: &[Heat], device: &Device, args: &BenchArgs) -> Result<Answer, Failure> {
    let bar = Bar::new();
    let mut options = BenchOptions::default();
    options.rounds = args.rounds;
    options.seed = args.seed;
    options.sustained = args.sustained;
    options.progress = Some(bar.stages());
    let product = product();
    let report = bench::bench(heats, product.as_deref(), device, &options)?;
    drop(bar);
    Ok(Answer::new("bench", standings::text(&report))
        .field("passed", report.passed())
        .fields(&report)
        .failing(untimed(&report)))
}

/// The probes of a suite, at the sizes of a GPU.
fn probes(suite: &str) -> Vec<Box<dyn AnyWork>> {
    match suite {
        suite::PRODUCTS => products(),
        suite::LADDER => warpline_probes::ladder(),
        _ => vec![],
    }
}

/// The probes that multiply matrices; the ladder is a suite of its own.
fn products() -> Vec<Box<dyn AnyWork>> {
    let works = warpline_probes::all().into_iter().flat_map(|p| p.gpu_cases);
    let works = works.filter(|w| w.family() != suite::LADDER);
    works.filter(|w| w.problem().get("mnk").is_some()).collect()
}

/// The plain large product that is the limit of other work.
fn product() -> Option<Box<dyn AnyWork>> {
    products().into_iter().find(|w| w.family() == "ping-pong")
}

/// A GPU; the simulator's times are no measure of one.
fn gpu(name: &str) -> Result<Device, Failure> {
    let (device, reason) = super::device(name)?;
    if !device.is_simulator() {
        return Ok(device);
    }
    let why = reason.map_or("the device named is the simulator".into(), |why| {
        format!("none can be used here: {why}")
    });
    Err(Failure::input(
        "needs-gpu",
        format!("bench needs a GPU, as the CPU simulator's times are no measure of one, and {why}"),
    ))
}

fn parsed<A: FromArgMatches>(matches: &ArgMatches) -> Result<A, Failure> {
    A::from_arg_matches(matches).map_err(|e| Failure::input("bad-usage", e.to_string()))
}

/// What is wrong with contenders that were not timed, in a sentence.
fn untimed(report: &BenchReport) -> Option<Failure> {
    let failures = report
        .rows()
        .filter_map(|(heat, row)| Some((heat.family, row.failure.as_ref()?)));
    let failures: Vec<_> = failures.collect();
    let (family, why) = failures.first()?;
    let why = why.lines().next().unwrap_or_default();
    let (n, all) = (failures.len(), report.rows().count());
    Some(Failure::refused(
        "wrong-result",
        format!("{n} of {all} contenders were not timed; the first, {family}: {why}"),
    ))
}

//! The options of `tune` and `cache`.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Args, Command, ValueHint};
use std::num::NonZeroU32;
use std::path::PathBuf;
use warpline::bench::suite;
use warpline::kernels::DeviceKind;
use warpline_kernels::AnyFamily;

/// The options of autotuning.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Tune")]
pub(crate) struct TuneArgs {
    /// GPU: auto selects the first usable one. Without a GPU, or with cpu, the candidates
    /// are listed in the heuristic's order and nothing is measured
    #[arg(long, value_name = "auto|cpu|cuda:N", default_value = "auto")]
    pub(crate) device: String,
    /// Seed of the random inputs and of the measurement order
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Measure at most the first N candidates
    #[arg(long, value_name = "N")]
    pub(crate) candidates: Option<NonZeroU32>,
    /// Measure again, ignoring the cached result
    #[arg(long)]
    pub(crate) again: bool,
    /// Also measure configs whose results may differ in bits from run to run; cached
    /// separately
    #[arg(long)]
    pub(crate) nondeterministic: bool,
    /// List the candidates, measure nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// The options of `cache clear`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ClearArgs {
    /// Delete only those of this family
    #[arg(long, value_name = "FAMILY")]
    pub(crate) family: Option<String>,
}

/// The file of `cache export` and `cache import`.
#[derive(Clone, Debug, Args)]
pub(crate) struct FileArgs {
    /// File of tuned configs
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
}

/// Builds `tune`: one family or one suite.
pub(crate) fn tune(families: &[&dyn AnyFamily], examples: String) -> Command {
    let command = Command::new("tune")
        .after_help(examples)
        .subcommand_value_name("FAMILY")
        .subcommand_help_heading("Families")
        .disable_help_subcommand(true)
        .args_conflicts_with_subcommands(true)
        .arg(
            Arg::new("suite")
                .long("suite")
                .value_name("SUITE")
                .value_parser(PossibleValuesParser::new(suite::names(families)))
                .help("Autotune every problem of a benchmark suite"),
        );
    let families = families.iter().map(|f| {
        let command = super::with_flags(*f, DeviceKind::Gpu);
        TuneArgs::augment_args(command).about(f.about())
    });
    TuneArgs::augment_args(command)
        .about("Autotune a family on a GPU and cache the fastest config that passes")
        .subcommands(families)
}

/// Builds `cache`.
pub(crate) fn cache(examples: String) -> Command {
    Command::new("cache")
        .about("List, delete, export or import tuned configs")
        .after_help(examples)
        .subcommand_required(true)
        .subcommand_value_name("ACTION")
        .subcommand_help_heading("Actions")
        .disable_help_subcommand(true)
        .subcommand(Command::new("list").about("List tuned configs and their files"))
        .subcommand(ClearArgs::augment_args(Command::new("clear")).about("Delete tuned configs"))
        .subcommand(
            FileArgs::augment_args(Command::new("export"))
                .about("Write every tuned config to one file"),
        )
        .subcommand(
            FileArgs::augment_args(Command::new("import"))
                .about("Read tuned configs from an exported file; newer cached ones are kept"),
        )
}

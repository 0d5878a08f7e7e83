//! The options of `tune` and `cache`.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Args, Command, ValueHint};
use std::num::NonZeroU32;
use std::path::PathBuf;
use warpline::bench::suite;
use warpline::kernels::Place;
use warpline_kernels::AnyFamily;

/// How to tune.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Tune")]
pub(crate) struct TuneArgs {
    /// The GPU: auto takes the first that can be used; where there is none, or
    /// on cpu, the candidates are ranked and nothing is measured
    #[arg(long, value_name = "auto|cpu|cuda:N", default_value = "auto")]
    pub(crate) device: String,
    /// Draws the inputs and the orders
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Races the first N candidates at most
    #[arg(long, value_name = "N")]
    pub(crate) candidates: Option<NonZeroU32>,
    /// Tunes also what is remembered
    #[arg(long)]
    pub(crate) again: bool,
    /// Also configs whose bits may differ from run to run; remembered apart
    #[arg(long)]
    pub(crate) nondeterministic: bool,
    /// Ranks the candidates and measures nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Which entries to forget.
#[derive(Clone, Debug, Args)]
pub(crate) struct ClearArgs {
    /// Only those of one family
    #[arg(long, value_name = "FAMILY")]
    pub(crate) family: Option<String>,
}

/// Where to export to, or to import from.
#[derive(Clone, Debug, Args)]
pub(crate) struct FileArgs {
    /// The file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
}

/// `tune`: a family, or a suite.
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
                .help("What families state for a suite, one after the other"),
        );
    let families = families.iter().map(|f| {
        let command = super::with_flags(*f, Place::Gpu);
        TuneArgs::augment_args(command).about(f.about())
    });
    TuneArgs::augment_args(command)
        .about("Races a family's configs on a GPU, and remembers the fastest that is right")
        .subcommands(families)
}

/// `cache`: what is remembered.
pub(crate) fn cache(examples: String) -> Command {
    Command::new("cache")
        .about("The configs that were tuned: lists, forgets, exports and imports them")
        .after_help(examples)
        .subcommand_required(true)
        .subcommand_value_name("WHAT")
        .subcommand_help_heading("What to do")
        .disable_help_subcommand(true)
        .subcommand(Command::new("list").about("Every tuned config, and the file it is in"))
        .subcommand(ClearArgs::augment_args(Command::new("clear")).about("Forgets tuned configs"))
        .subcommand(
            FileArgs::augment_args(Command::new("export"))
                .about("Writes every tuned config into one file"),
        )
        .subcommand(
            FileArgs::augment_args(Command::new("import"))
                .about("Takes tuned configs from an exported file, unless a newer one is here"),
        )
}

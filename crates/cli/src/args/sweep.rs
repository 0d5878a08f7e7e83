//! The options of `sweep`.

use crate::sweep::vary::Vary;
use clap::{Args, Command, ValueHint};
use std::path::PathBuf;
use warpline::kernels::Place;
use warpline_kernels::AnyFamily;

/// What to vary, and how to look at it.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Sweep")]
pub(crate) struct SweepArgs {
    /// An option of the family without its dashes, and the values it takes in
    /// turn (stages=2,3,4); with semicolons between them where values have
    /// commas. Given more than once: every combination
    #[arg(long, value_name = "NAME=A,B,…", required = true)]
    pub(crate) vary: Vec<Vary>,
    /// Also draws a plot: the first option across, a line for each combination
    /// of the others
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) svg: Option<PathBuf>,
    /// Where to run: a GPU is timed, and the CPU simulator counts; auto takes a
    /// GPU if one can be used
    #[arg(long, value_name = "auto|cpu|cuda:N", default_value = "auto")]
    pub(crate) device: String,
    /// On a GPU: rounds, each of which times every point of a problem once, in
    /// a fresh random order
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = super::rounds())]
    pub(crate) rounds: u32,
    /// Draws the inputs and the orders
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
}

/// `sweep`: a family.
pub(crate) fn sweep(families: &[&dyn AnyFamily], place: Place, examples: String) -> Command {
    Command::new("sweep")
        .about(
            "Runs a family with every value of some options: checked, compared, timed or counted",
        )
        .after_help(examples)
        .subcommand_required(true)
        .subcommand_value_name("FAMILY")
        .subcommand_help_heading("Families")
        .disable_help_subcommand(true)
        .subcommands(families.iter().map(|f| {
            let command = super::with_flags(*f, place);
            SweepArgs::augment_args(command).about(f.about())
        }))
}

//! The options of `sweep`.

use crate::sweep::vary::Vary;
use clap::{Args, Command, ValueHint};
use std::path::PathBuf;
use warpline::kernels::DeviceKind;
use warpline_kernels::AnyFamily;

/// The options of a sweep.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Sweep")]
pub(crate) struct SweepArgs {
    /// Option of the family without its dashes, and its values (stages=2,3,4). Use
    /// semicolons if the values contain commas. Repeat to run every combination
    #[arg(long, value_name = "NAME=A,B,…", required = true)]
    pub(crate) vary: Vec<Vary>,
    /// Also write a plot: the first option on the x axis, one line per combination of
    /// the others
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) svg: Option<PathBuf>,
    /// Device: a GPU measures times, the CPU executor counts instructions; auto
    /// selects the first usable GPU, else the CPU executor
    #[arg(long, value_name = "auto|cpu|cuda:N", default_value = "auto")]
    pub(crate) device: String,
    /// On a GPU: measurement rounds; each times every point of a problem once, in
    /// random order
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = super::rounds())]
    pub(crate) rounds: u32,
    /// Seed of the random inputs and of the measurement order
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
}

/// Builds `sweep`.
pub(crate) fn sweep(families: &[&dyn AnyFamily], device: DeviceKind, examples: String) -> Command {
    Command::new("sweep")
        .about("Run a family with several values of its options and compare times or counters")
        .after_help(examples)
        .subcommand_required(true)
        .subcommand_value_name("FAMILY")
        .subcommand_help_heading("Families")
        .disable_help_subcommand(true)
        .subcommands(families.iter().map(|f| {
            let command = super::with_flags(*f, device);
            SweepArgs::augment_args(command).about(f.about())
        }))
}

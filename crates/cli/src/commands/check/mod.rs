//! `warpline check FAMILY`, `check --all`, `check --corpus`.

mod all;
mod corpus;
mod family;
mod fuzz;
mod launch;
mod lint;
mod replay;

pub(crate) use family::family;

use crate::args::CheckArgs;
use crate::errors::{Failure, family_names};
use crate::output::CommandOutput;
use clap::{ArgMatches, FromArgMatches};
use std::env;
use std::io::{self, IsTerminal};
use warpline_check::render::{ColorMode, Sources, TextRenderer};
use warpline_check::{Report, Verdict};
use warpline_kernels::AnyFamily;

/// Runs `check --all` or `check --corpus`.
pub(crate) fn without_family(
    families: &[&dyn AnyFamily],
    matches: &ArgMatches,
) -> Result<CommandOutput, Failure> {
    let args = CheckArgs::from_arg_matches(matches)
        .map_err(|e| Failure::bad_input("bad-usage", e.to_string()))?;
    let (replay, target) = (args.replay, args.on.target);
    match (args.all, args.corpus) {
        (true, _) => all::all(families, replay, target),
        (_, true) => corpus::corpus(replay, target),
        _ => {
            let names = family_names(families);
            let text = format!("missing FAMILY, --all or --corpus; the families are: {names}");
            Err(Failure::bad_input("no-family", text))
        }
    }
}

/// Returns the renderer of checker reports. It uses colors on a terminal or if `CLICOLOR_FORCE` is
/// set, unless `NO_COLOR` is set.
fn renderer() -> TextRenderer {
    let is_set = |name| env::var_os(name).is_some_and(|v| !v.is_empty());
    let is_colored = is_set("CLICOLOR_FORCE") || io::stdout().is_terminal();
    let color_mode = match is_colored && !is_set("NO_COLOR") {
        true => ColorMode::Color,
        false => ColorMode::Plain,
    };
    TextRenderer::new(color_mode, Sources::here())
}

/// Describes the first kernel that is refuted or undecided; none if all are proved.
fn unproved<'r>(reports: impl IntoIterator<Item = &'r Report>) -> Option<Failure> {
    let reports: Vec<&Report> = reports.into_iter().collect();
    let has = |verdict| move |r: &&&Report| r.verdict() == verdict;
    let bad = reports.iter().filter(|r| r.verdict() != Verdict::Proved);
    let refuted = reports.iter().find(has(Verdict::Refuted));
    let first = refuted.or_else(|| reports.iter().find(has(Verdict::Undecided)))?;
    let verdict = first.verdict().name();
    let text = match reports.len() {
        1 => format!("kernel {} is {verdict}", first.kernel),
        all => format!(
            "{} of {all} kernels are not proved; kernel {} is {verdict}",
            bad.count(),
            first.kernel
        ),
    };
    Some(Failure::bad_result(verdict, text))
}

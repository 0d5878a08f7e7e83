//! `warpline check FAMILY`, `check --all`, `check --corpus`.

mod all;
mod corpus;
mod family;
mod launch;
mod lint;
mod replay;

pub(crate) use family::family;

use crate::answer::Answer;
use crate::args::CheckArgs;
use crate::errors::{Failure, known};
use clap::{ArgMatches, FromArgMatches};
use std::env;
use std::io::{self, IsTerminal};
use warpline_check::render::{Look, Sources, Texts};
use warpline_check::{Outcome, Report};
use warpline_kernels::AnyFamily;

/// Checks what the arguments ask for without naming a family.
pub(crate) fn unnamed(
    families: &[&dyn AnyFamily],
    matches: &ArgMatches,
) -> Result<Answer, Failure> {
    let args = CheckArgs::from_arg_matches(matches)
        .map_err(|e| Failure::input("bad-usage", e.to_string()))?;
    let (replay, target) = (args.replay, args.on.target);
    match (args.all, args.corpus) {
        (true, _) => all::all(families, replay, target),
        (_, true) => corpus::corpus(replay, target),
        _ => {
            let known = known(families);
            let text = format!("a family must be named, or --all or --corpus given: {known}");
            Err(Failure::input("no-family", text))
        }
    }
}

/// Writes reports for standard output: with colours if that is a terminal.
fn texts() -> Texts {
    let plain = env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let look = match io::stdout().is_terminal() && !plain {
        true => Look::Color,
        false => Look::Plain,
    };
    Texts::new(look, Sources::here())
}

/// What is wrong with reports that are not all proofs, in a sentence.
fn unproved<'r>(reports: impl IntoIterator<Item = &'r Report>) -> Option<Failure> {
    let reports: Vec<&Report> = reports.into_iter().collect();
    let of = |outcome| move |r: &&&Report| r.outcome() == outcome;
    let bad = reports.iter().filter(|r| r.outcome() != Outcome::Proved);
    let refused = reports.iter().find(of(Outcome::Refuted));
    let first = refused.or_else(|| reports.iter().find(of(Outcome::Undecided)))?;
    let outcome = first.outcome().name();
    let text = match reports.len() {
        1 => format!("kernel {} is {outcome}", first.kernel),
        all => format!(
            "{} of {all} kernels are not proved; kernel {} is {outcome}",
            bad.count(),
            first.kernel
        ),
    };
    Some(Failure::refused(outcome, text))
}

//! What each command does.

mod bench;
mod cache;
mod check;
mod completions;
mod devices;
mod emit;
mod list;
mod new;
mod run;
mod sweep;
mod tune;
mod watchdog;

use crate::answer::Answer;
use crate::errors::Failure;
use clap::ArgMatches;
use std::ffi::OsString;
use std::io::{self, Write};
use warpline::Device;
use warpline::bench::suite;
use warpline_ir::Target;
use warpline_kernels::AnyFamily;

/// Runs the command that the arguments name, and says what is to be known of
/// tuned configs that it met.
pub(crate) fn dispatch(
    families: &[&dyn AnyFamily],
    args: &[OsString],
    matches: &ArgMatches,
) -> Result<Answer, Failure> {
    let answer = command(families, args, matches);
    for notice in warpline::tune::notices() {
        // Nobody is left to tell if this fails.
        let _ = writeln!(io::stderr(), "warning: {notice}");
    }
    answer
}

fn command(
    families: &[&dyn AnyFamily],
    args: &[OsString],
    matches: &ArgMatches,
) -> Result<Answer, Failure> {
    match matches.subcommand() {
        None => run::flagship(families, args),
        Some(("devices", _)) => Ok(devices::devices()),
        Some(("list", m)) if m.get_flag("ops") => Ok(list::ops()),
        Some(("list", m)) => {
            let target = m.get_one::<Target>("target").copied();
            Ok(list::list(families, &target.unwrap_or_default()))
        }
        Some(("check", m)) => match m.subcommand() {
            None => check::unnamed(families, m),
            Some(_) => {
                let (family, m) = named(families, m)?;
                check::family(family, m)
            }
        },
        Some(("run", m)) => {
            let (family, m) = named(families, m)?;
            run::run(family, m)
        }
        Some(("bench", m)) => match m.subcommand() {
            None => bench::suite(families, suite::ALL, m),
            Some((name, m)) if suite::names(families).contains(&name) && !bench::asks(m) => {
                bench::suite(families, name, m)
            }
            Some(_) => {
                let (family, m) = named(families, m)?;
                bench::family(family, m)
            }
        },
        Some(("sweep", m)) => {
            let (family, m) = named(families, m)?;
            sweep::sweep(families, family, args, m)
        }
        Some(("tune", m)) => match m.subcommand() {
            None => tune::unnamed(families, m),
            Some(_) => {
                let (family, m) = named(families, m)?;
                tune::family(family, m)
            }
        },
        Some(("cache", m)) => cache::cache(m),
        Some(("emit", m)) => {
            let (family, m) = named(families, m)?;
            emit::emit(family, m)
        }
        Some(("new", m)) => new::new(m),
        Some((_, m)) => completions::completions(families, args, m),
    }
}

/// The device of that name; of `auto` the best, and why no better one.
fn device(name: &str) -> Result<(Device, Option<String>), Failure> {
    Ok(match name {
        "auto" => Device::auto(),
        name => (Device::parse(name)?, None),
    })
}

/// The family whose subcommand was given.
fn named<'a>(
    families: &[&'a dyn AnyFamily],
    matches: &'a ArgMatches,
) -> Result<(&'a dyn AnyFamily, &'a ArgMatches), Failure> {
    let (name, m) = matches.subcommand().unwrap_or(("", matches));
    let family = families.iter().find(|f| f.name() == name);
    // clap has let pass only names that are there.
    let missing = || Failure::input("unknown-family", format!("there is no family {name:?}"));
    Ok((*family.ok_or_else(missing)?, m))
}

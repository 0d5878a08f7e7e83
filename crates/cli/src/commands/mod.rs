//! The implementation of each command.

mod bench;
mod cache;
mod check;
mod completions;
mod devices;
mod emit;
mod explain;
mod list;
mod new;
mod run;
mod sweep;
mod tune;
mod watchdog;

use crate::errors::Failure;
use crate::output::CommandOutput;
use clap::ArgMatches;
use std::ffi::OsString;
use std::io::{self, Write};
use warpline::Device;
use warpline::bench::suite;
use warpline_ir::Target;
use warpline_kernels::AnyFamily;

/// Runs the command of the arguments, then prints the warnings about tuned configs.
pub(crate) fn dispatch(
    families: &[&dyn AnyFamily],
    args: &[OsString],
    matches: &ArgMatches,
) -> Result<CommandOutput, Failure> {
    let output = command(families, args, matches);
    for notice in warpline::tune::notices() {
        // A failure of this write cannot be reported.
        let _ = writeln!(io::stderr(), "warning: {notice}");
    }
    output
}

fn command(
    families: &[&dyn AnyFamily],
    args: &[OsString],
    matches: &ArgMatches,
) -> Result<CommandOutput, Failure> {
    match matches.subcommand() {
        None => run::run_first_family(families, args),
        Some(("devices", _)) => Ok(devices::devices()),
        Some(("list", m)) if m.get_flag("ops") => Ok(list::ops()),
        Some(("list", m)) => {
            let target = m.get_one::<Target>("target").copied();
            Ok(list::list(families, &target.unwrap_or_default()))
        }
        Some(("check", m)) => match m.subcommand() {
            None => check::without_family(families, m),
            Some(_) => {
                let (family, m) = subcommand_family(families, m)?;
                check::family(family, m)
            }
        },
        Some(("explain", m)) => explain::explain(m),
        Some(("run", m)) => {
            let (family, m) = subcommand_family(families, m)?;
            run::run(family, m)
        }
        Some(("bench", m)) => match m.subcommand() {
            None => bench::suite(families, suite::ALL, m),
            Some((name, m))
                if suite::names(families).contains(&name) && !bench::has_family_options(m) =>
            {
                bench::suite(families, name, m)
            }
            Some(_) => {
                let (family, m) = subcommand_family(families, m)?;
                bench::family(family, m)
            }
        },
        Some(("sweep", m)) => {
            let (family, m) = subcommand_family(families, m)?;
            sweep::sweep(families, family, args, m)
        }
        Some(("tune", m)) => match m.subcommand() {
            None => tune::without_family(families, m),
            Some(_) => {
                let (family, m) = subcommand_family(families, m)?;
                tune::family(family, m)
            }
        },
        Some(("cache", m)) => cache::cache(m),
        Some(("emit", m)) => {
            let (family, m) = subcommand_family(families, m)?;
            emit::emit(family, m)
        }
        Some(("new", m)) => new::new(m),
        Some((_, m)) => completions::completions(families, args, m),
    }
}

/// Returns the named device. For `auto` without a usable GPU, also returns the reason.
fn device(name: &str) -> Result<(Device, Option<String>), Failure> {
    Ok(match name {
        "auto" => Device::auto(),
        name => (Device::parse(name)?, None),
    })
}

/// Returns the family of the given subcommand.
fn subcommand_family<'a>(
    families: &[&'a dyn AnyFamily],
    matches: &'a ArgMatches,
) -> Result<(&'a dyn AnyFamily, &'a ArgMatches), Failure> {
    let (name, m) = matches.subcommand().unwrap_or(("", matches));
    let family = families.iter().find(|f| f.name() == name);
    // clap accepts only registered names.
    let missing = || Failure::bad_input("unknown-family", format!("unknown family {name:?}"));
    Ok((*family.ok_or_else(missing)?, m))
}

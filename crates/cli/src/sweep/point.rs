//! One combination of values and its workload.

use super::vary::{Vary, combinations};
use crate::args::fields::request;
use crate::errors::Failure;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use std::ffi::OsString;
use warpline::Device;
use warpline_kernels::{AnyFamily, AnyWorkload, FamilyError};

/// One combination of values.
pub(crate) struct Point {
    /// The value of each varied option.
    pub(crate) values: Vec<String>,
    /// The workload, or the reason that the values are rejected.
    pub(crate) work: Result<Box<dyn AnyWorkload>, FamilyError>,
}

/// Builds every point: parses the family's options with the varied values of each one. An unknown
/// option or value ends the sweep; `usage` converts clap's error.
pub(crate) fn points(
    family: &dyn AnyFamily,
    command: Command,
    given: &ArgMatches,
    vary: &[Vary],
    device: &Device,
    usage: impl Fn(&clap::Error) -> Failure,
) -> Result<Vec<Point>, Failure> {
    let command = command.no_binary_name(true).disable_help_flag(true);
    let fixed = given_options(&command, given);
    let mut points = Vec::new();
    for values in combinations(vary)? {
        let varied = vary.iter().zip(&values);
        let varied = varied.map(|(vary, value)| format!("--{}={value}", vary.name).into());
        let line = fixed.iter().cloned().chain(varied);
        let matches = command.clone().try_get_matches_from(line);
        let matches = matches.map_err(|e| usage(&e))?;
        let work = family.workload(
            &request(family, &matches),
            device.kind(),
            None,
            &device.target(),
        );
        points.push(Point { values, work });
    }
    Ok(points)
}

/// Returns the given options of a command, one `--name=value` each.
fn given_options(command: &Command, given: &ArgMatches) -> Vec<OsString> {
    let mut words = Vec::new();
    for arg in command.get_arguments() {
        let (id, Some(long)) = (arg.get_id().as_str(), arg.get_long()) else {
            continue;
        };
        if given.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        for value in given.get_raw(id).into_iter().flatten() {
            let mut word = OsString::from(format!("--{long}="));
            word.push(value);
            words.push(word);
        }
    }
    words
}

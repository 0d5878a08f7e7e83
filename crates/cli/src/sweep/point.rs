//! One combination of values, and the work it asks for.

use super::vary::{Vary, combinations};
use crate::args::fields::request;
use crate::errors::Failure;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use std::ffi::OsString;
use warpline::Device;
use warpline_kernels::{AnyFamily, AnyWork, FamilyError};

/// One combination of values.
pub(crate) struct Point {
    /// A value for each option that varies.
    pub(crate) values: Vec<String>,
    /// What is asked, or why it is refused.
    pub(crate) work: Result<Box<dyn AnyWork>, FamilyError>,
}

/// Every point: the family's own options are read once more for each, with
/// the values that vary. A name or a value that is none of the family's ends
/// the sweep; `usage` says what clap has against it.
pub(crate) fn points(
    family: &dyn AnyFamily,
    own: Command,
    given: &ArgMatches,
    vary: &[Vary],
    device: &Device,
    usage: impl Fn(&clap::Error) -> Failure,
) -> Result<Vec<Point>, Failure> {
    let own = own.no_binary_name(true).disable_help_flag(true);
    let fixed = words(&own, given);
    let mut points = Vec::new();
    for values in combinations(vary)? {
        let varied = vary.iter().zip(&values);
        let varied = varied.map(|(vary, value)| format!("--{}={value}", vary.name).into());
        let line = fixed.iter().cloned().chain(varied);
        let matches = own.clone().try_get_matches_from(line);
        let matches = matches.map_err(|e| usage(&e))?;
        let work = family.work(
            &request(family, &matches),
            device.place(),
            None,
            &device.target(),
        );
        points.push(Point { values, work });
    }
    Ok(points)
}

/// The options of a command as they were given, each as one word.
fn words(command: &Command, given: &ArgMatches) -> Vec<OsString> {
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

//! Command-line flags for the fields of a family.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use std::fmt;
use warpline_family::field::{Field, FieldKind};
use warpline_family::{AnyFamily, DeviceKind, Request};

/// Adds the flags of a family to a command. The help shows the defaults for this kind of device.
pub(crate) fn flags(command: Command, family: &dyn AnyFamily, device: DeviceKind) -> Command {
    let fields = family.fields(device);
    let problem = fields.problem.into_iter().map(|f| flag(f, "Problem"));
    let config = fields.config.into_iter().map(|f| flag(f, "Config"));
    command.args(problem.chain(config))
}

fn flag(field: Field, heading: &'static str) -> Arg {
    let mut help = match &field.default {
        None => field.help.clone(),
        Some(serde_json::Value::String(text)) => {
            format!("{} [default: {text}]", field.help)
        }
        Some(value) => format!("{} [default: {value}]", field.help),
    };
    if let Some(other) = &field.requires {
        help += &format!(" [with {other}]");
    }
    let arg = Arg::new(field.name)
        .long(field.name.replace('_', "-"))
        .help(help)
        .help_heading(heading)
        // `--n -1` is a bad value of --n, not an unknown option.
        .allow_negative_numbers(true);
    match &field.kind {
        FieldKind::Number { unit } => {
            let unit = *unit;
            let validate = move |text: &str| match field.check(text) {
                Ok(()) => Ok(text.to_owned()),
                Err(expected) => Err(Expected(expected)),
            };
            arg.value_name(unit).value_parser(validate)
        }
        FieldKind::Flag => arg
            .value_name("BOOL")
            .num_args(0..=1)
            .default_missing_value("true")
            .value_parser(PossibleValuesParser::new(["true", "false"])),
        FieldKind::Keywords(words) => {
            let word = |w: &warpline_family::field::Keyword| {
                PossibleValue::new(w.name)
                    .help(w.help)
                    .aliases(w.aliases.iter().copied())
            };
            arg.value_name(field.name.to_uppercase())
                .value_parser(PossibleValuesParser::new(words.iter().map(word)))
        }
    }
}

/// The rule that a flag's value breaks: `a whole number`.
#[derive(Clone, Debug)]
pub(crate) struct Expected(String);

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Expected {}

/// Collects the given flags into a request to the family.
pub(crate) fn request(family: &dyn AnyFamily, matches: &ArgMatches) -> Request {
    let fields = family.fields(DeviceKind::Cpu);
    let given = fields.iter().filter(|field| {
        let source = matches.try_get_raw(field.name).ok().flatten();
        source.is_some() && matches.value_source(field.name) == Some(ValueSource::CommandLine)
    });
    given.fold(Request::default(), |request, field| {
        match matches.get_one::<String>(field.name) {
            Some(value) => request.with(field.name, value),
            None => request,
        }
    })
}

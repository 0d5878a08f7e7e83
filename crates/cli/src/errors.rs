//! Failures: one sentence each, with a stable code and an exit code.

use crate::args;
use crate::args::fields::Expected;
use crate::words;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error as _;
use std::ffi::OsString;
use std::fmt;
use std::num::{IntErrorKind, ParseIntError};
use warpline::bench::suite;
use warpline_kernels::{AnyFamily, FamilyError};

/// The exit code of a result that was refused or is wrong.
pub(crate) const REFUSED: u8 = 1;
/// The exit code of bad input.
const BAD_INPUT: u8 = 2;

/// Why a command failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    /// A stable code, for programs.
    pub(crate) code: &'static str,
    /// The rule and the value seen, in one sentence.
    pub(crate) message: String,
    /// The exit code of the command.
    pub(crate) exit: u8,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<warpline::Error> for Failure {
    fn from(e: warpline::Error) -> Self {
        Self {
            code: e.code(),
            message: e.to_string(),
            exit: e.exit_code(),
        }
    }
}

impl From<FamilyError> for Failure {
    fn from(e: FamilyError) -> Self {
        warpline::Error::from(e).into()
    }
}

impl Failure {
    /// Bad input.
    pub(crate) fn input(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            exit: BAD_INPUT,
        }
    }

    /// A result that was refused or is wrong.
    pub(crate) fn refused(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            exit: REFUSED,
        }
    }

    /// What clap says against the arguments, in one sentence of ours.
    pub(crate) fn usage(e: &clap::Error, args: &[OsString], families: &[&dyn AnyFamily]) -> Self {
        let seen = Seen(e);
        match e.kind() {
            ErrorKind::InvalidSubcommand => unknown_name(&seen, args, families),
            ErrorKind::MissingSubcommand if args::first_word(args) == Some("cache") => Self::input(
                "missing-argument",
                "what cache is to do must be named: list, clear, export, import",
            ),
            ErrorKind::MissingSubcommand => Self::input(
                "no-family",
                format!("a family must be named: {}", known(families)),
            ),
            ErrorKind::UnknownArgument => {
                let option = seen.first(ContextKind::InvalidArg);
                let hint = seen.suggestion(ContextKind::SuggestedArg);
                let what = if option.starts_with('-') {
                    "option"
                } else {
                    "argument"
                };
                Self::input(
                    "unknown-option",
                    format!("there is no {what} {option}{hint}; --help lists what there is"),
                )
            }
            ErrorKind::InvalidValue => bad_choice(&seen),
            ErrorKind::ValueValidation => bad_value(&seen),
            ErrorKind::ArgumentConflict => conflict(&seen),
            ErrorKind::MissingRequiredArgument => {
                let missing = seen.all(ContextKind::InvalidArg);
                let missing: Vec<String> = missing.iter().map(|m| option_name(m)).collect();
                let text = format!("{} must be given", words::list(&missing, "and"));
                Self::input("missing-argument", text)
            }
            _ => Self::input("bad-usage", first_line(e)),
        }
    }
}

/// The pieces that clap keeps of an error.
struct Seen<'a>(&'a clap::Error);

impl Seen<'_> {
    fn all(&self, kind: ContextKind) -> Vec<String> {
        match self.0.get(kind) {
            Some(ContextValue::String(s)) => vec![s.clone()],
            Some(ContextValue::Strings(all)) => all.clone(),
            _ => Vec::new(),
        }
    }

    fn first(&self, kind: ContextKind) -> String {
        self.all(kind).into_iter().next().unwrap_or_default()
    }

    /// The option without its value's name: `--n` of `--n <COUNT>`.
    fn option(&self) -> String {
        option_name(&self.first(ContextKind::InvalidArg))
    }

    /// `, did you mean x?`, or nothing.
    fn suggestion(&self, kind: ContextKind) -> String {
        match self.all(kind).as_slice() {
            [] => String::new(),
            near => format!(" (did you mean {}?)", words::list(near, "or")),
        }
    }
}

/// `--n` of `--n <COUNT>`, `SHELL` of `<SHELL>`.
fn option_name(shown: &str) -> String {
    let shown = shown.trim_matches(['<', '>']);
    shown
        .split([' ', '='])
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// A command or family that does not exist.
fn unknown_name(seen: &Seen<'_>, args: &[OsString], families: &[&dyn AnyFamily]) -> Failure {
    let name = seen.first(ContextKind::InvalidSubcommand);
    let hint = seen.suggestion(ContextKind::SuggestedSubcommand);
    let first = args::first_word(args);
    if first == Some("bench") && name != "bench" {
        let known = [suite::names(families).join(", "), known(families)];
        let text = format!(
            "there is no suite or family {name:?}{hint}; there are: {}",
            known.join(", ")
        );
        return Failure::input("unknown-suite", text);
    }
    if first == Some("cache") && name != "cache" {
        let known = "list, clear, export, import";
        let text = format!("cache does not {name:?}{hint}; it does: {known}");
        return Failure::input("unknown-command", text);
    }
    if first.is_some_and(|w| w != name.as_str()) {
        let known = known(families);
        let text = format!("there is no family {name:?}{hint}; the families are: {known}");
        return Failure::input("unknown-family", text);
    }
    let known = args::COMMANDS.join(", ");
    let text = format!("there is no command {name:?}{hint}; the commands are: {known}");
    Failure::input("unknown-command", text)
}

/// The families by name.
pub(crate) fn known(families: &[&dyn AnyFamily]) -> String {
    let names: Vec<&str> = families.iter().map(|f| f.name()).collect();
    names.join(", ")
}

/// A value that is none of those allowed.
fn bad_choice(seen: &Seen<'_>) -> Failure {
    let (option, value) = (seen.option(), seen.first(ContextKind::InvalidValue));
    let allowed = seen.all(ContextKind::ValidValue);
    let text = match (value.as_str(), allowed.as_slice()) {
        ("", []) => format!("{option} needs a value"),
        ("", allowed) => format!("{option} needs a value: {}", words::list(allowed, "or")),
        (value, allowed) => {
            let hint = seen.suggestion(ContextKind::SuggestedValue);
            format!(
                "{option} is {}, not {value:?}{hint}",
                words::list(allowed, "or")
            )
        }
    };
    Failure::input("bad-value", text)
}

/// A value that does not parse.
fn bad_value(seen: &Seen<'_>) -> Failure {
    let (option, value) = (seen.option(), seen.first(ContextKind::InvalidValue));
    let Some(cause) = seen.0.source() else {
        return Failure::input("bad-value", format!("{option} does not take {value:?}"));
    };
    if let Some(expected) = cause.downcast_ref::<Expected>() {
        let text = format!("{option} is {expected}, not {value}");
        return Failure::input("bad-value", text);
    }
    let said = cause.to_string();
    let range = said
        .split_once(" is not in ")
        .and_then(|(_, range)| range.split_once("..="));
    let text = match (cause.downcast_ref::<ParseIntError>(), range) {
        (Some(e), _) if *e.kind() == IntErrorKind::PosOverflow => {
            format!("{value} is too large a number for {option}")
        }
        (Some(e), _) => {
            let rule = match e.kind() {
                IntErrorKind::Zero => "a whole number of at least 1",
                _ if value.starts_with('-') => "a whole number of at least 0",
                _ => "a whole number",
            };
            format!("{option} is {rule}, not {value}")
        }
        (None, Some((least, most))) => {
            format!("{option} is a whole number from {least} to {most}, not {value}")
        }
        _ => format!("{option} does not take {value:?}: {said}"),
    };
    Failure::input("bad-value", text)
}

/// Options that exclude each other, or one given twice.
fn conflict(seen: &Seen<'_>) -> Failure {
    let option = match seen.first(ContextKind::InvalidSubcommand) {
        name if name.is_empty() => seen.option(),
        name => name,
    };
    let others = seen.all(ContextKind::PriorArg);
    let others: Vec<String> = others.iter().map(|o| option_name(o)).collect();
    let text = match others.as_slice() {
        [] => format!("{option} is given more than once"),
        same if *same == [option.clone()] => format!("{option} is given more than once"),
        others => format!(
            "{option} cannot go together with {}",
            words::list(others, "and")
        ),
    };
    Failure::input("bad-usage", text)
}

/// The first line of what clap would print.
fn first_line(e: &clap::Error) -> String {
    let text = e.render().to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

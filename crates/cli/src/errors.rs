//! Failures: a message, a stable code and an exit code.

use crate::args;
use crate::args::fields::Expected;
use crate::display;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error as _;
use std::ffi::OsString;
use std::fmt;
use std::num::{IntErrorKind, ParseIntError};
use warpline::bench::suite;
use warpline_kernels::{AnyFamily, FamilyError};

/// The exit code of a wrong result, and of a kernel that is not proved.
pub(crate) const BAD_RESULT: u8 = 1;
/// The exit code of bad input.
const BAD_INPUT: u8 = 2;

/// Why a command failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    /// A stable code, for programs.
    pub(crate) code: &'static str,
    /// The value that was seen, the rule, and a `help:` line if there is an action.
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
    /// Creates a failure for bad input.
    pub(crate) fn bad_input(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            exit: BAD_INPUT,
        }
    }

    /// Creates a failure for a wrong result or a kernel that is not proved.
    pub(crate) fn bad_result(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            exit: BAD_RESULT,
        }
    }

    /// Converts a clap error to a failure.
    pub(crate) fn usage(e: &clap::Error, args: &[OsString], families: &[&dyn AnyFamily]) -> Self {
        let context = ClapContext(e);
        match e.kind() {
            ErrorKind::InvalidSubcommand => unknown_name(&context, args, families),
            ErrorKind::MissingSubcommand if args::first_word(args) == Some("cache") => {
                Self::bad_input(
                    "missing-argument",
                    "cache needs an action: list, clear, export or import",
                )
            }
            ErrorKind::MissingSubcommand => Self::bad_input(
                "no-family",
                format!(
                    "missing FAMILY; the families are: {}",
                    family_names(families)
                ),
            ),
            ErrorKind::UnknownArgument => {
                let option = context.first(ContextKind::InvalidArg);
                let hint = context.suggestion(ContextKind::SuggestedArg);
                let kind = if option.starts_with('-') {
                    "option"
                } else {
                    "argument"
                };
                Self::bad_input(
                    "unknown-option",
                    format!("unknown {kind} {option}{hint}; --help lists the options"),
                )
            }
            ErrorKind::InvalidValue => bad_choice(&context),
            ErrorKind::ValueValidation => bad_value(&context),
            ErrorKind::ArgumentConflict => conflict(&context),
            ErrorKind::MissingRequiredArgument => {
                let missing = context.all(ContextKind::InvalidArg);
                let missing: Vec<String> = missing.iter().map(|m| option_name(m)).collect();
                let text = format!("missing {}", display::list(&missing, "and"));
                Self::bad_input("missing-argument", text)
            }
            _ => Self::bad_input("bad-usage", first_line(e)),
        }
    }
}

/// The context values of a clap error.
struct ClapContext<'a>(&'a clap::Error);

impl ClapContext<'_> {
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

    /// Returns the option without its value's name: `--n` of `--n <COUNT>`.
    fn option(&self) -> String {
        option_name(&self.first(ContextKind::InvalidArg))
    }

    /// Returns ` (did you mean x?)`, or an empty string.
    fn suggestion(&self, kind: ContextKind) -> String {
        match self.all(kind).as_slice() {
            [] => String::new(),
            near => format!(" (did you mean {}?)", display::list(near, "or")),
        }
    }
}

/// Returns `--n` of `--n <COUNT>`, `SHELL` of `<SHELL>`.
fn option_name(shown: &str) -> String {
    let shown = shown.trim_matches(['<', '>']);
    shown
        .split([' ', '='])
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Reports an unknown command, family, suite or action.
fn unknown_name(
    context: &ClapContext<'_>,
    args: &[OsString],
    families: &[&dyn AnyFamily],
) -> Failure {
    let name = context.first(ContextKind::InvalidSubcommand);
    let hint = context.suggestion(ContextKind::SuggestedSubcommand);
    let first = args::first_word(args);
    if first == Some("bench") && name != "bench" {
        let names = [suite::names(families).join(", "), family_names(families)];
        let text = format!(
            "unknown suite or family {name:?}{hint}; known: {}",
            names.join(", ")
        );
        return Failure::bad_input("unknown-suite", text);
    }
    if first == Some("cache") && name != "cache" {
        let names = "list, clear, export, import";
        let text = format!("unknown cache action {name:?}{hint}; the actions are: {names}");
        return Failure::bad_input("unknown-command", text);
    }
    if first.is_some_and(|w| w != name.as_str()) {
        let names = family_names(families);
        let text = format!("unknown family {name:?}{hint}; the families are: {names}");
        return Failure::bad_input("unknown-family", text);
    }
    let names = args::COMMANDS.join(", ");
    let text = format!("unknown command {name:?}{hint}; the commands are: {names}");
    Failure::bad_input("unknown-command", text)
}

/// Returns the names of the families, separated by commas.
pub(crate) fn family_names(families: &[&dyn AnyFamily]) -> String {
    let names: Vec<&str> = families.iter().map(|f| f.name()).collect();
    names.join(", ")
}

/// Reports a value that is not one of the possible values.
fn bad_choice(context: &ClapContext<'_>) -> Failure {
    let (option, value) = (context.option(), context.first(ContextKind::InvalidValue));
    let allowed = context.all(ContextKind::ValidValue);
    let text = match (value.as_str(), allowed.as_slice()) {
        ("", []) => format!("{option} needs a value"),
        ("", allowed) => format!("{option} needs a value: {}", display::list(allowed, "or")),
        (value, allowed) => {
            let hint = context.suggestion(ContextKind::SuggestedValue);
            format!(
                "{option} must be {}, not {value:?}{hint}",
                display::list(allowed, "or")
            )
        }
    };
    Failure::bad_input("bad-value", text)
}

/// Reports a value that does not parse.
fn bad_value(context: &ClapContext<'_>) -> Failure {
    let (option, value) = (context.option(), context.first(ContextKind::InvalidValue));
    let Some(cause) = context.0.source() else {
        return Failure::bad_input("bad-value", format!("invalid value {value:?} for {option}"));
    };
    if let Some(expected) = cause.downcast_ref::<Expected>() {
        let text = format!("{option} must be {expected}, not {value}");
        return Failure::bad_input("bad-value", text);
    }
    let cause_text = cause.to_string();
    let range = cause_text
        .split_once(" is not in ")
        .and_then(|(_, range)| range.split_once("..="));
    let text = match (cause.downcast_ref::<ParseIntError>(), range) {
        (Some(e), _) if *e.kind() == IntErrorKind::PosOverflow => {
            format!("{option} must be a smaller number, not {value}")
        }
        (Some(e), _) => {
            let rule = match e.kind() {
                IntErrorKind::Zero => "a whole number of at least 1",
                _ if value.starts_with('-') => "a whole number of at least 0",
                _ => "a whole number",
            };
            format!("{option} must be {rule}, not {value}")
        }
        (None, Some((least, most))) => {
            format!("{option} must be a whole number from {least} to {most}, not {value}")
        }
        _ => format!("invalid value {value:?} for {option}: {cause_text}"),
    };
    Failure::bad_input("bad-value", text)
}

/// Reports options that exclude each other, or an option given twice.
fn conflict(context: &ClapContext<'_>) -> Failure {
    let option = match context.first(ContextKind::InvalidSubcommand) {
        name if name.is_empty() => context.option(),
        name => name,
    };
    let others = context.all(ContextKind::PriorArg);
    let others: Vec<String> = others.iter().map(|o| option_name(o)).collect();
    let text = match others.as_slice() {
        [] => format!("{option} is given more than once"),
        same if *same == [option.clone()] => format!("{option} is given more than once"),
        others => format!(
            "{option} cannot be combined with {}",
            display::list(others, "and")
        ),
    };
    Failure::bad_input("bad-usage", text)
}

/// Returns the first line of clap's own message.
fn first_line(e: &clap::Error) -> String {
    let text = e.render().to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

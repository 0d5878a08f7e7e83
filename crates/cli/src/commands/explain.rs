//! `warpline explain CODE`: prints the rule behind a code, a broken kernel and its repair.

use crate::display;
use crate::errors::Failure;
use crate::output::CommandOutput;
use clap::ArgMatches;
use serde_json::{Value, json};
use warpline_check::{CODES, Rule};
use warpline_explain::Page;

/// Explains the code of the command line, or lists all codes.
pub(crate) fn explain(matches: &ArgMatches) -> Result<CommandOutput, Failure> {
    match matches.get_one::<String>("code") {
        None => Ok(list()),
        Some(code) => match warpline_explain::page(code) {
            Some(page) => Ok(one(&page)),
            None => Err(unknown(code)),
        },
    }
}

/// Names the codes of the same group, such as `R6`, or the list of codes.
fn unknown(code: &str) -> Failure {
    let group = code.split('.').next().unwrap_or(code);
    let is_near = |rule: &&Rule| rule.code.split('.').next() == Some(group);
    let near: Vec<&str> = CODES.iter().filter(is_near).map(|rule| rule.code).collect();
    let help = match near[..] {
        [] => "explain --list prints every code".to_owned(),
        _ => format!("the codes of {group} are {}", display::list(&near, "and")),
    };
    Failure::bad_input(
        "unknown-code",
        format!("there is no code {code}\nhelp: {help}"),
    )
}

fn one(page: &Page) -> CommandOutput {
    let output = CommandOutput::new("explain", page.to_string()).fields(rule_json(page.rule));
    let output = output.field(
        "bugs",
        page.bugs().map(|bug| bug.reference).collect::<Vec<_>>(),
    );
    match page.example {
        None => output,
        Some(example) => output
            .field("explanation", example.explanation())
            .field("broken", example.broken_source())
            .field("repaired", example.repaired_source()),
    }
}

fn list() -> CommandOutput {
    let width = CODES.iter().map(|rule| rule.code.len()).max().unwrap_or(0);
    let line = |rule: &Rule| format!("{:width$}  {}\n", rule.code, rule.title);
    let text: String = CODES.iter().map(line).collect();
    let codes: Vec<Value> = CODES.iter().map(rule_json).collect();
    CommandOutput::new("explain", text).field("codes", codes)
}

fn rule_json(rule: &Rule) -> Value {
    json!({
        "code": rule.code,
        "title": rule.title,
        "rule": rule.requirement,
        "help": rule.help,
    })
}

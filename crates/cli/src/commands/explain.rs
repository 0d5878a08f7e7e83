//! `warpline explain CODE`: prints the rule behind a code, a broken kernel and its repair.

use crate::display;
use crate::errors::Failure;
use crate::output::CommandOutput;
use clap::ArgMatches;
use serde_json::{Value, json};
use warpline_check::Rule;
use warpline_explain::{GROUPS, Page, rules};

/// Explains the code of the command line, or lists all codes.
pub(crate) fn explain(matches: &ArgMatches) -> Result<CommandOutput, Failure> {
    match matches.get_one::<String>("code") {
        None => Ok(list()),
        Some(code) => match warpline_explain::page(code) {
            Some(page) => Ok(page_output(&page)),
            None => Err(unknown(code)),
        },
    }
}

/// Reports an unknown code and names the codes of its group, such as `R6`.
fn unknown(code: &str) -> Failure {
    let group = code.split(['.', '-']).next().unwrap_or(code);
    let near: Vec<&str> = rules()
        .map(|rule| rule.code)
        .filter(|known| known.split(['.', '-']).next() == Some(group))
        .collect();
    let help = match near[..] {
        [] => "run `warpline explain --list`, which prints every code".to_owned(),
        _ => format!("the codes of {group} are {}", display::list(&near, "and")),
    };
    Failure::bad_input(
        "unknown-code",
        format!("there is no code {code}\nhelp: {help}"),
    )
}

fn page_output(page: &Page) -> CommandOutput {
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
    let width = rules().map(|rule| rule.code.len()).max().unwrap_or(0);
    let line = |rule: &Rule| format!("  {:width$}  {}\n", rule.code, rule.title);
    let groups = GROUPS.iter().map(|group| {
        let lines: String = group.rules.iter().map(line).collect();
        format!("{}\n{lines}", group.title)
    });
    let text = groups.collect::<Vec<_>>().join("\n");
    let codes: Vec<Value> = rules().map(rule_json).collect();
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

//! `warpline check --corpus`: kernels with known public bugs and their repaired versions.

use super::renderer;
use super::replay;
use crate::errors::Failure;
use crate::output::CommandOutput;
use crate::progress::Bar;
use crate::report;
use rayon::prelude::*;
use serde_json::{Value, json};
use warpline_check::render::TextRenderer;
use warpline_check::{Diagnostic, Verdict};
use warpline_corpus::{BugResult, all, verify};
use warpline_ir::Target;
use warpline_kernels::FamilyError;

/// Checks the buggy and the repaired version of every bug.
pub(super) fn corpus(replay: bool, target: Target) -> Result<CommandOutput, Failure> {
    let bar = Bar::new();
    bar.count("checking kernels", all().len());
    let verdicts = all().par_iter().map(|bug| {
        let verdict = verify(bug, &target);
        bar.step();
        verdict
    });
    let verdicts = verdicts.collect::<Result<Vec<_>, _>>();
    drop(bar);
    let verdicts = verdicts.map_err(FamilyError::from)?;
    let bugs: Vec<Value> = verdicts.iter().map(bug_json).collect();
    let mut output = CommandOutput::new("check", text(&verdicts))
        .field("target", target.name)
        .field("expected", verdicts.iter().all(BugResult::is_expected))
        .field("bugs", bugs)
        .with_failure(unexpected(&verdicts));
    if replay {
        let kernels = verdicts
            .iter()
            .map(|v| v.bug.broken().map(|case| case.kernel));
        let kernels = kernels.collect::<Result<Vec<_>, _>>();
        let kernels = kernels.map_err(FamilyError::from)?;
        let broken = verdicts.iter().map(|v| &v.broken);
        output = replay::add(output, kernels.iter().zip(broken));
    }
    Ok(output)
}

/// Formats the report of every broken kernel, the table, and the reports of unexpected verdicts.
fn text(verdicts: &[BugResult]) -> String {
    let mut renderer = renderer();
    let mut text = String::new();
    for v in verdicts {
        let bug = v.bug;
        text += &format!("== {} ({}): {}\n\n", bug.name, bug.reference, bug.title);
        text += &renderer.report(&v.broken);
        text.push('\n');
    }
    let mut table = report::table([
        "bug",
        "reference",
        "rule",
        "reported",
        "at",
        "repaired",
        "expected",
    ]);
    for v in verdicts {
        table.add_row(cells(v));
    }
    text += &format!("{}\n\n", table.trim_fmt());
    for v in verdicts.iter().filter(|v| !v.is_expected()) {
        text += &unexpected_reports(v, &mut renderer);
    }
    let (expected, all) = (as_expected(verdicts), verdicts.len());
    text + &format!("{expected} of {all} bugs refuted as expected, and proved when repaired\n")
}

fn cells(v: &BugResult) -> [String; 7] {
    // The expected diagnostic, else the first one.
    let diagnostic: Option<&Diagnostic> = v.hit().or(v.broken.diagnostics.first());
    let at = diagnostic.and_then(|r| r.at).map(|at| at.to_string());
    [
        v.bug.name.to_owned(),
        v.bug.reference.to_owned(),
        v.bug.rule.to_owned(),
        diagnostic.map_or("nothing", Diagnostic::code).to_owned(),
        at.unwrap_or("–".into()),
        v.repaired.verdict().name().to_owned(),
        if v.is_expected() { "yes" } else { "no" }.to_owned(),
    ]
}

/// Formats the reports of a bug with an unexpected verdict.
fn unexpected_reports(v: &BugResult, renderer: &mut TextRenderer) -> String {
    let mut text = String::new();
    if v.hit().is_none() {
        let (name, rule, line) = (v.bug.name, v.bug.rule, v.line);
        let report = renderer.report(&v.broken);
        text += &format!("{name} is not refuted by {rule} at {line}:\n{report}\n");
    }
    if v.repaired.verdict() != Verdict::Proved {
        let report = renderer.report(&v.repaired);
        text += &format!("{} is not proved when repaired:\n{report}\n", v.bug.name);
    }
    text
}

fn bug_json(v: &BugResult) -> Value {
    json!({
        "name": v.bug.name,
        "reference": v.bug.reference,
        "title": v.bug.title,
        "rule": v.bug.rule,
        "line": { "file": v.line.file, "line": v.line.line },
        "expected": v.is_expected(),
        "broken": v.broken,
        "repaired": v.repaired,
    })
}

fn as_expected(verdicts: &[BugResult]) -> usize {
    verdicts.iter().filter(|v| v.is_expected()).count()
}

/// Describes the first bug with an unexpected verdict; none if all are as expected.
fn unexpected(verdicts: &[BugResult]) -> Option<Failure> {
    let first = verdicts.iter().find(|v| !v.is_expected())?;
    let bad = verdicts.len() - as_expected(verdicts);
    Some(Failure::bad_result(
        "unexpected",
        format!(
            "{bad} bugs have an unexpected verdict; the first is {}",
            first.bug
        ),
    ))
}

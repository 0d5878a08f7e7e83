//! `warpline check --corpus`: public bugs, each beside its repair.

use super::replay;
use super::texts;
use crate::answer::Answer;
use crate::errors::Failure;
use crate::progress::Bar;
use crate::report;
use rayon::prelude::*;
use serde_json::{Value, json};
use warpline_check::render::Texts;
use warpline_check::{Outcome, Refusal};
use warpline_corpus::{Verdict, all, verify};
use warpline_ir::Target;
use warpline_kernels::FamilyError;

/// Checks both forms of every bug.
pub(super) fn corpus(replay: bool, target: Target) -> Result<Answer, Failure> {
    let bar = Bar::new();
    bar.count("checks", all().len());
    let verdicts = all().par_iter().map(|bug| {
        let verdict = verify(bug, &target);
        bar.step();
        verdict
    });
    let verdicts = verdicts.collect::<Result<Vec<_>, _>>();
    drop(bar);
    let verdicts = verdicts.map_err(FamilyError::from)?;
    let objects: Vec<Value> = verdicts.iter().map(object).collect();
    let mut answer = Answer::new("check", text(&verdicts))
        .field("target", target.name)
        .field("expected", verdicts.iter().all(Verdict::is_expected))
        .field("bugs", objects)
        .failing(unexpected(&verdicts));
    if replay {
        let kernels = verdicts
            .iter()
            .map(|v| v.bug.broken().map(|case| case.kernel));
        let kernels = kernels.collect::<Result<Vec<_>, _>>();
        let kernels = kernels.map_err(FamilyError::from)?;
        let broken = verdicts.iter().map(|v| &v.broken);
        answer = replay::add(answer, kernels.iter().zip(broken));
    }
    Ok(answer)
}

/// The table, then the reports that are not as expected.
fn text(verdicts: &[Verdict]) -> String {
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
    let mut text = format!("{}\n\n", table.trim_fmt());
    let mut texts = texts();
    for v in verdicts.iter().filter(|v| !v.is_expected()) {
        text += &surprise(v, &mut texts);
    }
    let (good, all) = (as_expected(verdicts), verdicts.len());
    text + &format!("{good} of {all} bugs are refused as expected, and proved when repaired\n")
}

fn cells(v: &Verdict) -> [String; 7] {
    // If it is not the refusal that was asked for, then the first there is.
    let seen: Option<&Refusal> = v.hit().or(v.broken.refusals.first());
    let at = seen.and_then(|r| r.at).map(|at| at.to_string());
    [
        v.bug.name.to_owned(),
        v.bug.reference.to_owned(),
        v.bug.rule.to_owned(),
        seen.map_or("nothing", Refusal::code).to_owned(),
        at.unwrap_or("–".into()),
        v.repaired.outcome().name().to_owned(),
        if v.is_expected() { "yes" } else { "no" }.to_owned(),
    ]
}

/// What was reported, where it is not as expected.
fn surprise(v: &Verdict, texts: &mut Texts) -> String {
    let mut text = String::new();
    if v.hit().is_none() {
        let (name, rule, line) = (v.bug.name, v.bug.rule, v.line);
        let report = texts.report(&v.broken);
        text += &format!("{name} is not refused by {rule} at {line}:\n{report}\n");
    }
    if v.repaired.outcome() != Outcome::Proved {
        let report = texts.report(&v.repaired);
        text += &format!("{} is not proved when repaired:\n{report}\n", v.bug.name);
    }
    text
}

fn object(v: &Verdict) -> Value {
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

fn as_expected(verdicts: &[Verdict]) -> usize {
    verdicts.iter().filter(|v| v.is_expected()).count()
}

/// What is not as expected, in a sentence.
fn unexpected(verdicts: &[Verdict]) -> Option<Failure> {
    let first = verdicts.iter().find(|v| !v.is_expected())?;
    let bad = verdicts.len() - as_expected(verdicts);
    Some(Failure::refused(
        "unexpected",
        format!("{bad} bugs are not as expected; the first is {}", first.bug),
    ))
}

//! `warpline check FAMILY`.

use super::replay;
use super::{launch, lint, texts, unproved};
use crate::answer::Answer;
use crate::args::LintArgs;
use crate::args::fields::request;
use crate::errors::Failure;
use crate::words;
use clap::{ArgMatches, FromArgMatches};
use serde_json::Value;
use warpline_check::{Outcome, Report, examine};
use warpline_ir::Target;
use warpline_kernels::{AnyFamily, AnyWork, Place};

/// Checks the kernels that the arguments ask for.
pub(crate) fn family(family: &dyn AnyFamily, matches: &ArgMatches) -> Result<Answer, Failure> {
    let args = LintArgs::from_arg_matches(matches)
        .map_err(|e| Failure::input("bad-usage", e.to_string()))?;
    let target = args.on.target;
    let work = family.work(&request(family, matches), Place::Gpu, None, &target)?;
    let steps = work.plan(&target)?.steps;
    let reports: Vec<Report> = steps.iter().map(|s| examine(&s.kernel, &target)).collect();
    let mut texts = texts();
    let parts: Vec<String> = reports.iter().map(|r| texts.report(r)).collect();
    let mut answer = Answer::new("check", parts.join("\n"))
        .field("family", work.family())
        .field("problem", work.problem())
        .field("config", work.config())
        .field("target", target.name)
        .field(
            "proved",
            reports.iter().all(|r| r.outcome() == Outcome::Proved),
        )
        .field("reports", &reports)
        .failing(unproved(&reports));
    if let Some(fallback) = fallback(work.as_ref(), &reports, &target)? {
        answer.text += &format!(
            "\nnote: a call takes the baseline config in its place, which is proved: {}\n",
            words::settings(&fallback)
        );
        answer = answer.field("fallback", fallback);
    }
    if args.replay {
        let kernels = steps.iter().map(|s| &*s.kernel);
        answer = replay::add(answer, kernels.zip(&reports));
    }
    if args.launch && answer.failure.is_none() {
        launch::run(work.as_ref())?;
        answer.text += "\nthe launch: no race in shared or global memory (simulator, late)\n";
        answer = answer.field("launch", "no race");
    }
    // What hangs or races has no speed.
    if args.lint && answer.failure.is_none() {
        let findings = lint::findings(family, work.as_ref(), &target)?;
        answer.text += &lint::text(&findings);
        answer = answer.field("lints", findings);
    }
    Ok(answer)
}

/// The proved baseline config that calls take in the place of an undecided one.
fn fallback(
    work: &dyn AnyWork,
    reports: &[Report],
    target: &Target,
) -> Result<Option<Value>, Failure> {
    let is = |outcome| reports.iter().any(|r| r.outcome() == outcome);
    if is(Outcome::Refuted) || !is(Outcome::Undecided) {
        return Ok(None);
    }
    let Some(baseline) = work.baseline(target) else {
        return Ok(None);
    };
    let steps = baseline.plan(target)?.steps;
    let proved = steps.iter().all(|s| s.kernel.proof(target).is_ok());
    Ok(proved.then(|| baseline.config()))
}

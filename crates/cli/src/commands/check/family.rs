//! `warpline check FAMILY`.

use super::replay;
use super::{fuzz, launch, lint, renderer, unproved};
use crate::args::CheckFamilyArgs;
use crate::args::fields::request;
use crate::display;
use crate::errors::Failure;
use crate::output::CommandOutput;
use clap::{ArgMatches, FromArgMatches};
use serde_json::Value;
use warpline_check::{Report, Verdict, examine};
use warpline_ir::Target;
use warpline_kernels::{AnyFamily, AnyWorkload, DeviceKind};

/// Checks the kernels of the problem and config of the command line.
pub(crate) fn family(
    family: &dyn AnyFamily,
    matches: &ArgMatches,
) -> Result<CommandOutput, Failure> {
    let args = CheckFamilyArgs::from_arg_matches(matches)
        .map_err(|e| Failure::bad_input("bad-usage", e.to_string()))?;
    let (target, request) = (args.on.target, request(family, matches));
    if let Some(count) = args.fuzz {
        return fuzz::fuzz(family, &request, count, args.seed, target);
    }
    let work = family.workload(&request, DeviceKind::Gpu, None, &target)?;
    let steps = work.plan(&target)?.steps;
    let reports: Vec<Report> = steps.iter().map(|s| examine(&s.kernel, &target)).collect();
    let mut renderer = renderer();
    let texts: Vec<String> = reports.iter().map(|r| renderer.report(r)).collect();
    let fallback = fallback(work.as_ref(), &reports, &target)?;
    let is_proved = reports.iter().all(|r| r.verdict() == Verdict::Proved);
    let mut output = CommandOutput::new("check", texts.join("\n"))
        .field("family", work.family())
        .field("problem", work.problem())
        .field("config", work.config())
        .field("target", target.name)
        // A call runs the baseline, so it is proved.
        .field("proved", is_proved || fallback.is_some())
        .field("reports", &reports);
    match fallback {
        None => output = output.with_failure(unproved(&reports)),
        Some(fallback) => {
            output.text += &format!(
                "\nnote: calls use the baseline config instead, which is proved: {}\n",
                display::settings(&fallback)
            );
            output = output.field("fallback", fallback);
        }
    }
    if args.replay {
        let kernels = steps.iter().map(|s| &*s.kernel);
        output = replay::add(output, kernels.zip(&reports));
    }
    if args.launch && output.failure.is_none() {
        launch::run(work.as_ref())?;
        output.text +=
            "\nlaunch: PASS, no data race in shared or global memory (CPU executor, timing late)\n";
        output = output.field("launch", "no race");
    }
    // Performance of a kernel that may deadlock or race has no meaning.
    if args.lint && is_proved {
        let findings = lint::findings(family, work.as_ref(), &target)?;
        output.text += &lint::text(&findings, &mut renderer);
        output = output.field("lints", findings);
    }
    Ok(output)
}

/// Returns the proved baseline config that calls use instead of an undecided one.
fn fallback(
    work: &dyn AnyWorkload,
    reports: &[Report],
    target: &Target,
) -> Result<Option<Value>, Failure> {
    let any = |verdict| reports.iter().any(|r| r.verdict() == verdict);
    if any(Verdict::Refuted) || !any(Verdict::Undecided) {
        return Ok(None);
    }
    let Some(baseline) = work.baseline(target) else {
        return Ok(None);
    };
    let steps = baseline.plan(target)?.steps;
    let proved = steps.iter().all(|s| s.kernel.proof(target).is_ok());
    Ok(proved.then(|| baseline.config()))
}

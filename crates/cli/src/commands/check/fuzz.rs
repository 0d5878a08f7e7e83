//! `check FAMILY --fuzz`: random calls, each of which must run a proved plan.

use crate::display;
use crate::errors::Failure;
use crate::output::CommandOutput;
use crate::progress::Bar;
use rayon::prelude::*;
use serde_json::{Value, json};
use std::num::NonZeroU32;
use warpline::fuzz::{CallVerdict, CheckedCall, FuzzSummary, check_call};
use warpline_ir::Target;
use warpline_kernels::{AnyFamily, Request};

/// Checks `count` random calls of a family.
pub(super) fn fuzz(
    family: &dyn AnyFamily,
    request: &Request,
    count: NonZeroU32,
    seed: u64,
    target: Target,
) -> Result<CommandOutput, Failure> {
    if !request.is_empty() {
        let text = format!(
            "--fuzz draws the problem and the config, so it cannot be combined with {flags}\n\
             help: remove {flags}, or remove --fuzz to check this problem",
            flags = request.flags()
        );
        return Err(Failure::bad_input("bad-usage", text));
    }
    let bar = Bar::new();
    bar.count("checking random calls", count.get() as usize);
    let calls = (0..u64::from(count.get())).into_par_iter().map(|index| {
        let checked = check_call(family, seed, index, &target);
        bar.step();
        checked
    });
    let calls: Vec<CheckedCall> = calls.collect();
    drop(bar);
    // The summary counts the baselines; a notice for each would repeat it.
    warpline::tune::notices();
    let summary = FuzzSummary::new(&calls);
    let failed = || (calls.iter()).filter(|call| call.verdict != CallVerdict::Proved);
    let mut text: String = failed().map(|call| report(family, call)).collect();
    text += &summary_text(family, &calls, &summary);
    let all: Vec<Value> = calls.iter().map(|call| call_json(family, call)).collect();
    let slowest = slowest(&calls).map(|call| command(family, call));
    Ok(CommandOutput::new("check", text)
        .field("family", family.name())
        .field("target", target.name)
        .field("seed", seed)
        .fields(&summary)
        .field("slowest", slowest)
        .field("calls", all)
        .with_failure(failure(family, &summary, failed().next())))
}

/// Returns the command line that reproduces a call.
fn command(family: &dyn AnyFamily, checked: &CheckedCall) -> String {
    let line = format!(
        "warpline check {} {}",
        family.name(),
        checked.call.request.flags()
    );
    line.trim_end().to_owned()
}

fn slowest(calls: &[CheckedCall]) -> Option<&CheckedCall> {
    calls.iter().max_by(|x, y| x.seconds.total_cmp(&y.seconds))
}

/// Formats a call that is not proved: the command line, then the reason.
fn report(family: &dyn AnyFamily, checked: &CheckedCall) -> String {
    let reason = checked.reason.as_deref().unwrap_or_default();
    let reason = reason.trim_end().replace('\n', "\n  ");
    let verdict = verdict_name(checked.verdict);
    format!("{verdict}: {}\n  {reason}\n\n", command(family, checked))
}

fn verdict_name(verdict: CallVerdict) -> &'static str {
    match verdict {
        CallVerdict::Proved => "proved",
        CallVerdict::Undecided => "undecided",
        CallVerdict::Refuted => "refuted",
        CallVerdict::Rejected => "rejected",
    }
}

/// Formats the counts, the configs and the slowest call.
fn summary_text(family: &dyn AnyFamily, calls: &[CheckedCall], s: &FuzzSummary) -> String {
    let mut text = format!(
        "{} problems: {} proved, {} undecided, {} refuted, {} rejected\n",
        s.problems, s.proved, s.undecided, s.refuted, s.rejected
    );
    text += &format!(
        "configs: {} selected by the heuristic, {} explicit; the baseline replaced {}\n",
        s.problems - s.explicit,
        s.explicit,
        s.baseline
    );
    if let Some(call) = slowest(calls) {
        text += &format!(
            "slowest: {}, {}\n",
            display::seconds(call.seconds),
            command(family, call)
        );
    }
    text
}

fn call_json(family: &dyn AnyFamily, checked: &CheckedCall) -> Value {
    json!({
        "verdict": checked.verdict,
        "command": command(family, checked),
        "reason": checked.reason,
        "explicit": checked.call.is_explicit,
        "baseline": checked.uses_baseline,
        "time_s": checked.seconds,
    })
}

/// Describes the first call that is not proved; none if all are proved.
fn failure(
    family: &dyn AnyFamily,
    summary: &FuzzSummary,
    first: Option<&CheckedCall>,
) -> Option<Failure> {
    let first = first?;
    let text = format!(
        "{} of {} problems are not proved; the first is {}\nhelp: run `{}` for the full report",
        summary.problems - summary.proved,
        summary.problems,
        verdict_name(first.verdict),
        command(family, first)
    );
    Some(Failure::bad_result(verdict_name(first.verdict), text))
}

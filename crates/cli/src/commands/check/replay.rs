//! `check … --replay`: replays counterexamples on the CPU executor.

use crate::output::CommandOutput;
use serde::Serialize;
use warpline_check::Report;
use warpline_ir::Kernel;

/// A replayed counterexample.
#[derive(Serialize)]
struct Replay {
    kernel: String,
    code: &'static str,
    /// The launch and the schedule; none if the specification forbids the operation itself.
    launch: Option<String>,
    /// The fault that the executor reports in the replay.
    fault: Option<String>,
}

/// Adds the replay of each refutation to an output.
pub(super) fn add<'r>(
    mut output: CommandOutput,
    reports: impl IntoIterator<Item = (&'r Kernel, &'r Report)>,
) -> CommandOutput {
    let replays = replays(reports);
    output.text += &text(&replays);
    output.field("replays", replays)
}

fn replays<'r>(reports: impl IntoIterator<Item = (&'r Kernel, &'r Report)>) -> Vec<Replay> {
    let mut replays = Vec::new();
    for (kernel, report) in reports {
        for diagnostic in report.diagnostics.iter().filter(|r| !r.undecided) {
            let counterexample = diagnostic.counterexample.as_deref();
            replays.push(Replay {
                kernel: report.kernel.clone(),
                code: diagnostic.code(),
                launch: counterexample.map(ToString::to_string),
                fault: counterexample.and_then(|c| Some(c.replay(kernel).err()?.to_string())),
            });
        }
    }
    replays
}

/// Formats the replays.
fn text(replays: &[Replay]) -> String {
    if replays.is_empty() {
        return "\nreplay: no kernel is refuted\n".to_owned();
    }
    let one = |r: &Replay| {
        let Replay { kernel, code, .. } = r;
        match (&r.launch, &r.fault) {
            (Some(launch), Some(fault)) => {
                format!("replay of {code} in kernel {kernel}: {launch}\n{fault}\n")
            }
            (Some(launch), None) => {
                format!(
                    "replay of {code} in kernel {kernel}: {launch}\nthe run finished without a fault\n"
                )
            }
            (None, _) => format!(
                "{code} in kernel {kernel} is not replayed: the PTX specification forbids the \
                 operation, so a run proves nothing\n"
            ),
        }
    };
    let parts: Vec<String> = replays.iter().map(one).collect();
    format!("\n{}", parts.join("\n"))
}

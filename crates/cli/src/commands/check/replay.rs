//! `check … --replay`: refutations on the CPU executor.

use crate::answer::Answer;
use serde::Serialize;
use warpline_check::Report;
use warpline_ir::Kernel;

/// A refutation, replayed.
#[derive(Serialize)]
struct Replay {
    kernel: String,
    code: &'static str,
    /// The launch and the schedule; none where the rule is refuted by citing it.
    launch: Option<String>,
    /// What the executor said this time.
    fault: Option<String>,
}

/// Adds the replay of each refutation to an answer.
pub(super) fn add<'r>(
    mut answer: Answer,
    reports: impl IntoIterator<Item = (&'r Kernel, &'r Report)>,
) -> Answer {
    let replays = replays(reports);
    answer.text += &text(&replays);
    answer.field("replays", replays)
}

fn replays<'r>(reports: impl IntoIterator<Item = (&'r Kernel, &'r Report)>) -> Vec<Replay> {
    let mut list = Vec::new();
    for (kernel, report) in reports {
        for refusal in report.refusals.iter().filter(|r| !r.undecided) {
            let witness = refusal.witness.as_deref();
            list.push(Replay {
                kernel: report.kernel.clone(),
                code: refusal.code(),
                launch: witness.map(ToString::to_string),
                fault: witness.and_then(|w| Some(w.replay(kernel).err()?.to_string())),
            });
        }
    }
    list
}

/// The replays as text.
fn text(replays: &[Replay]) -> String {
    if replays.is_empty() {
        return "\nreplay: nothing is refuted\n".to_owned();
    }
    let one = |r: &Replay| {
        let Replay { kernel, code, .. } = r;
        match (&r.launch, &r.fault) {
            (Some(launch), Some(fault)) => {
                format!("replay of {code} in kernel {kernel}: {launch}\n{fault}\n")
            }
            (Some(launch), None) => {
                format!("replay of {code} in kernel {kernel}: {launch}\nthe run ended well\n")
            }
            (None, _) => format!(
                "{code} in kernel {kernel} is not replayed: the specification forbids it, \
                 whatever a run shows\n"
            ),
        }
    };
    let parts: Vec<String> = replays.iter().map(one).collect();
    format!("\n{}", parts.join("\n"))
}

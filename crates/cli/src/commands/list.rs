//! `warpline list`.

use crate::answer::Answer;
use crate::{report, words};
use serde_json::json;
use warpline_family::{AnyFamily, Place, Request};
use warpline_ir::Target;
use warpline_ir::ops::{IMPLIED, TABLE};

/// The families, their problems and configs.
pub(crate) fn list(families: &[&dyn AnyFamily], target: &Target) -> Answer {
    let mut text = String::new();
    let mut all = Vec::new();
    for family in families {
        let [cpu, gpu] = [Place::Cpu, Place::Gpu].map(|place| family.default_problem(place));
        let candidates = family.candidates(&Request::default(), Place::Gpu, target);
        let candidates = candidates.unwrap_or_default().into_iter();
        let configs: Vec<_> = candidates.map(|work| work.config()).collect();
        let best = configs.first().map_or("none".into(), words::settings);
        let rows = [
            (
                "problem",
                format!(
                    "{} (on the CPU: {})",
                    words::settings(&gpu),
                    words::settings(&cpu)
                ),
            ),
            (
                "config",
                format!("{best} (the best guess of {})", configs.len()),
            ),
            ("options", format!("run {} --help", family.name())),
        ];
        let title = format!("{}: {}", family.name(), family.about());
        text.push_str(&report::fields(&title, &rows));
        all.push(json!({
            "name": family.name(),
            "about": family.about(),
            "default_problem": { "cpu": cpu, "gpu": gpu },
            "configs": configs,
        }));
    }
    Answer::new("list", text).field("families", all)
}

/// The op table, by group.
pub(crate) fn ops() -> Answer {
    let mut table = report::table(["group", "op", "what it does", "on the CPU", "PTX"]);
    let mut all = Vec::new();
    for (group, info) in TABLE.iter().chain(IMPLIED) {
        let exactness = info.exactness.to_string();
        table.add_row([group, info.name, info.doc, &exactness, info.ptx]);
        all.push(json!({
            "group": group,
            "name": info.name,
            "ptx": info.ptx,
            "about": info.doc,
            "cpu": exactness,
        }));
    }
    let text = format!("{table}\n{} ops\n", TABLE.len());
    Answer::new("list", text).field("ops", all)
}

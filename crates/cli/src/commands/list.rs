//! `warpline list`.

use crate::output::CommandOutput;
use crate::{display, report};
use serde_json::{Value, json};
use warpline_family::field::Field;
use warpline_family::{AnyFamily, DeviceKind, Request};
use warpline_ir::Target;
use warpline_ir::ops::{STATEMENT_INSTRUCTIONS, TABLE};

/// Lists the families, their default problems and configs.
pub(crate) fn list(families: &[&dyn AnyFamily], target: &Target) -> CommandOutput {
    let mut text = String::new();
    let mut all = Vec::new();
    for family in families {
        let [cpu, gpu] =
            [DeviceKind::Cpu, DeviceKind::Gpu].map(|device| family.default_problem(device));
        let candidates = family.candidates(&Request::default(), DeviceKind::Gpu, target);
        let candidates = candidates.unwrap_or_default().into_iter();
        let configs: Vec<_> = candidates.map(|work| work.config()).collect();
        let fields = family.fields(DeviceKind::Gpu).config;
        let best = configs.first().map_or("none".into(), |config| {
            display::settings(&visible(config, &fields))
        });
        let rows = [
            (
                "problem",
                format!(
                    "{} (CPU executor: {})",
                    display::settings(&gpu),
                    display::settings(&cpu)
                ),
            ),
            (
                "config",
                format!(
                    "{best} (first of {} candidates of the heuristic)",
                    configs.len()
                ),
            ),
            ("options", format!("warpline run {} --help", family.name())),
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
    CommandOutput::new("list", text).field("families", all)
}

/// Returns the fields of a config that the help of the family lists.
fn visible(config: &Value, fields: &[Field]) -> Value {
    let mut config = config.clone();
    if let Value::Object(values) = &mut config {
        values.retain(|name, _| fields.iter().any(|field| field.name == name));
    }
    config
}

/// Lists the instructions of kernels, by group.
pub(crate) fn ops() -> CommandOutput {
    let mut table = report::table(["group", "op", "meaning", "CPU executor", "PTX"]);
    let mut all = Vec::new();
    for (group, info) in TABLE.iter().chain(STATEMENT_INSTRUCTIONS) {
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
    CommandOutput::new("list", text).field("ops", all)
}

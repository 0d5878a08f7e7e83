//! The Markdown reference of a family, generated from its declarations.

use crate::erased::{AnyFamily, AnyOp};
use crate::family::DeviceKind;
use crate::field::{Field, FieldKind};
use std::fmt::Write as _;

/// Returns the Markdown section of a family: problem, config, ops and suites.
pub fn markdown(family: &dyn AnyFamily) -> String {
    let mut text = format!("## {}\n\n{}.\n", family.name(), family.about());
    let fields = family.fields(DeviceKind::Gpu);
    for (title, fields) in [("problem", fields.problem), ("config", fields.config)] {
        if !fields.is_empty() {
            let _ = write!(text, "\n| {title} | values | meaning |\n|---|---|---|\n");
            text.extend(fields.iter().map(field_row));
        }
    }
    let ops = family.ops();
    if !ops.is_empty() {
        text += "\nOps:\n\n";
        text.extend(ops.iter().map(op_line));
    }
    let suites = family.suites();
    if !suites.is_empty() {
        let _ = write!(text, "\nSuites: {}.\n", suites.join(", "));
    }
    text
}

/// Formats one field as a table row, with the default for a GPU.
fn field_row(field: &Field) -> String {
    let mut values = match &field.kind {
        FieldKind::Number { unit } => unit.to_lowercase(),
        FieldKind::Flag => "true, false".to_owned(),
        FieldKind::Keywords(words) => {
            let names: Vec<_> = words.iter().map(|word| word.name).collect();
            names.join(", ")
        }
    };
    if let Some(rule) = field.rule {
        let _ = write!(values, ", {rule}");
    }
    if let Some(default) = &field.default {
        let default = default.as_str().map_or(default.to_string(), str::to_owned);
        let _ = write!(values, " (default {default})");
    }
    let help = field.help.replace('|', "\\|");
    format!("| `{}` | {values} | {help} |\n", field.flag())
}

fn op_line(op: &AnyOp) -> String {
    format!("- `{}`: {}.\n", op.signature.schema(), op.signature.about)
}

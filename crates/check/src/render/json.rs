//! The report as a JSON object.
//!
//! ```text
//! { kernel, hash, outcome: "proved" | "refuted" | "undecided",
//!   states, steps, time_s,
//!   assumptions: [{ code, text, at }],
//!   diagnostics: [{ code, title, rule, text, label, cause, undecided, role, at, stack,
//!                   labels: [{ text, role, at }], help,
//!                   trace: [{ who, what, at }],
//!                   counterexample: { grid, scalars, words: [{ param, byte, type, value }], fill,
//!                                     timing, seed, synchronization_only, fault } }] }
//! ```
//!
//! `at` is `{ file, line, column }`. `at`, `cause`, `role` and `counterexample` may be null.
//! `stack` holds all lines that lead to `at`, innermost first.

use crate::assumption::Assumption;
use crate::diagnostic::{Diagnostic, Label, TraceEvent};
use crate::replay::Counterexample;
use crate::report::Report;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use warpline_ir::Frame;

#[derive(Serialize)]
struct ReportView<'r> {
    kernel: &'r str,
    hash: &'r str,
    outcome: &'static str,
    states: u64,
    steps: u64,
    time_s: f64,
    assumptions: &'r [Assumption],
    diagnostics: &'r [Diagnostic],
}

#[derive(Serialize)]
struct DiagnosticView<'r> {
    code: &'static str,
    title: &'static str,
    rule: &'static str,
    text: &'r str,
    label: &'r str,
    cause: Option<&'r str>,
    undecided: bool,
    role: Option<&'r str>,
    at: Option<SourceLocation>,
    stack: Vec<SourceLocation>,
    labels: &'r [Label],
    help: &'r str,
    trace: &'r [TraceEvent],
    counterexample: Option<&'r Counterexample>,
}

#[derive(Serialize)]
struct CounterexampleView<'r> {
    grid: [u32; 3],
    scalars: BTreeMap<&'r str, i128>,
    words: Vec<WordView<'r>>,
    fill: String,
    timing: &'static str,
    seed: u64,
    synchronization_only: bool,
    fault: &'r str,
}

#[derive(Serialize)]
struct WordView<'r> {
    param: &'r str,
    byte: u64,
    #[serde(rename = "type")]
    ty: String,
    value: i128,
}

#[derive(Serialize)]
struct AssumptionView<'r> {
    code: &'static str,
    text: &'r str,
    at: Option<SourceLocation>,
}

#[derive(Serialize)]
struct LabelView<'r> {
    text: &'r str,
    role: Option<&'r str>,
    at: Option<SourceLocation>,
}

#[derive(Serialize)]
struct TraceEventView<'r> {
    who: &'r str,
    what: &'r str,
    at: Option<SourceLocation>,
}

/// A position in a source file, in JSON `{ file, line, column }`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct SourceLocation {
    /// The path as the compiler saw it.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl From<Frame> for SourceLocation {
    fn from(Frame { file, line, column }: Frame) -> Self {
        Self { file, line, column }
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let view = ReportView {
            kernel: &self.kernel,
            hash: &self.hash,
            outcome: self.verdict().name(),
            states: self.states,
            steps: self.steps,
            time_s: self.time.as_secs_f64(),
            assumptions: &self.assumptions,
            diagnostics: &self.diagnostics,
        };
        view.serialize(to)
    }
}

impl Serialize for Diagnostic {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let view = DiagnosticView {
            code: self.rule.code,
            title: self.rule.title,
            rule: self.rule.requirement,
            text: &self.text,
            label: &self.label,
            cause: self.cause.as_deref(),
            undecided: self.undecided,
            role: self.role.as_deref(),
            at: self.at.map(SourceLocation::from),
            stack: self
                .stack
                .iter()
                .copied()
                .map(SourceLocation::from)
                .collect(),
            labels: &self.labels,
            help: self.help(),
            trace: &self.trace,
            counterexample: self.counterexample.as_deref(),
        };
        view.serialize(to)
    }
}

impl Serialize for Counterexample {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let scalars = self.values.scalars.iter().enumerate();
        let words = self.values.words.iter().map(|w| WordView {
            param: self.name(w.param),
            byte: w.byte,
            ty: w.ty.to_string(),
            value: w.value,
        });
        let view = CounterexampleView {
            grid: self.values.grid,
            scalars: scalars
                .filter_map(|(i, x)| Some((self.name(i), (*x)?)))
                .collect(),
            words: words.collect(),
            fill: self.values.fill.to_string(),
            timing: self.timing.name(),
            seed: self.seed,
            synchronization_only: self.synchronization_only,
            fault: &self.fault,
        };
        view.serialize(to)
    }
}

impl Serialize for Assumption {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let view = AssumptionView {
            code: self.code,
            text: &self.text,
            at: self.at.map(SourceLocation::from),
        };
        view.serialize(to)
    }
}

impl Serialize for Label {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let view = LabelView {
            text: &self.text,
            role: self.role.as_deref(),
            at: self.at.map(SourceLocation::from),
        };
        view.serialize(to)
    }
}

impl Serialize for TraceEvent {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let view = TraceEventView {
            who: &self.who,
            what: &self.what,
            at: self.at.map(SourceLocation::from),
        };
        view.serialize(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Rule;
    use serde_json::json;
    use std::time::Duration;

    #[test]
    fn a_report_serializes_all_its_fields() {
        let at = Frame {
            file: "src/k.rs",
            line: 7,
            column: 3,
        };
        let report = Report {
            kernel: "k".into(),
            hash: "ab".into(),
            diagnostics: vec![Diagnostic {
                rule: Rule {
                    code: "R5.write",
                    title: "missing proxy fence after a write",
                    requirement: "writers fence",
                    help: "call `fence_async()`",
                },
                text: "a sentence".into(),
                label: "writes here".into(),
                cause: None,
                role: Some("math".into()),
                at: Some(at),
                stack: vec![at],
                undecided: true,
                counterexample: None,
                labels: vec![Label {
                    text: "the read".into(),
                    role: None,
                    at: None,
                }],
                help: Some("fence".into()),
                trace: vec![TraceEvent {
                    who: "math, warp 0".into(),
                    what: "writes".into(),
                    at: Some(at),
                }],
            }],
            assumptions: vec![Assumption {
                code: "A.writer",
                text: "one writer".into(),
                at: None,
            }],
            states: 2,
            steps: 9,
            time: Duration::from_millis(3),
        };
        let place = json!({ "file": "src/k.rs", "line": 7, "column": 3 });
        assert_eq!(
            serde_json::to_value(&report).unwrap(),
            json!({
                "kernel": "k", "hash": "ab", "outcome": "undecided",
                "states": 2, "steps": 9, "time_s": 0.003,
                "assumptions": [{ "code": "A.writer", "text": "one writer", "at": null }],
                "diagnostics": [{
                    "code": "R5.write", "title": "missing proxy fence after a write", "rule": "writers fence",
                    "text": "a sentence", "label": "writes here", "cause": null,
                    "undecided": true, "role": "math", "at": place, "stack": [place],
                    "labels": [{ "text": "the read", "role": null, "at": null }],
                    "help": "fence",
                    "trace": [{ "who": "math, warp 0", "what": "writes", "at": place }],
                    "counterexample": null,
                }],
            })
        );
    }
}

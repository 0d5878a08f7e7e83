//! The report as a JSON object.
//!
//! ```text
//! { kernel, hash, outcome: "proved" | "refuted" | "undecided",
//!   states, steps, time_s,
//!   assumptions: [{ code, text, at }],
//!   refusals: [{ code, rule, text, undecided, role, at, stack,
//!                others: [{ text, role, at }], help,
//!                trace: [{ who, what, at }],
//!                witness: { grid, scalars, words: [{ param, byte, type, value }], fill,
//!                           timing, seed, skeleton, fault } }] }
//! ```
//!
//! `at` is `{ file, line, column }`, or null like `role`, `help` and `witness` where there is none;
//! `stack` holds all such lines that lead to `at`, innermost first.

use crate::assumption::Assumption;
use crate::refusal::{Event, Refusal, Side};
use crate::replay::Witness;
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
    refusals: &'r [Refusal],
}

#[derive(Serialize)]
struct RefusalView<'r> {
    code: &'static str,
    rule: &'static str,
    text: &'r str,
    undecided: bool,
    role: Option<&'r str>,
    at: Option<Place>,
    stack: Vec<Place>,
    others: &'r [Side],
    help: Option<&'r str>,
    trace: &'r [Event],
    witness: Option<&'r Witness>,
}

#[derive(Serialize)]
struct WitnessView<'r> {
    grid: [u32; 3],
    scalars: BTreeMap<&'r str, i128>,
    words: Vec<WordView<'r>>,
    fill: String,
    timing: &'static str,
    seed: u64,
    skeleton: bool,
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
    at: Option<Place>,
}

#[derive(Serialize)]
struct SideView<'r> {
    text: &'r str,
    role: Option<&'r str>,
    at: Option<Place>,
}

#[derive(Serialize)]
struct EventView<'r> {
    who: &'r str,
    what: &'r str,
    at: Option<Place>,
}

/// A line of source as programs read it: `{ file, line, column }`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Place {
    /// The path as the compiler saw it.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl From<Frame> for Place {
    fn from(Frame { file, line, column }: Frame) -> Self {
        Self { file, line, column }
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let view = ReportView {
            kernel: &self.kernel,
            hash: &self.hash,
            outcome: self.outcome().name(),
            states: self.states,
            steps: self.steps,
            time_s: self.time.as_secs_f64(),
            assumptions: &self.assumptions,
            refusals: &self.refusals,
        };
        view.serialize(to)
    }
}

impl Serialize for Refusal {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let view = RefusalView {
            code: self.rule.code,
            rule: self.rule.holds,
            text: &self.text,
            undecided: self.undecided,
            role: self.role.as_deref(),
            at: self.at.map(Place::from),
            stack: self.stack.iter().copied().map(Place::from).collect(),
            others: &self.others,
            help: self.help.as_deref(),
            trace: &self.trace,
            witness: self.witness.as_deref(),
        };
        view.serialize(to)
    }
}

impl Serialize for Witness {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let scalars = self.values.scalars.iter().enumerate();
        let words = self.values.words.iter().map(|w| WordView {
            param: self.name(w.param),
            byte: w.byte,
            ty: w.ty.to_string(),
            value: w.value,
        });
        let view = WitnessView {
            grid: self.values.grid,
            scalars: scalars
                .filter_map(|(i, x)| Some((self.name(i), (*x)?)))
                .collect(),
            words: words.collect(),
            fill: self.values.fill.to_string(),
            timing: self.timing.name(),
            seed: self.seed,
            skeleton: self.skeleton,
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
            at: self.at.map(Place::from),
        };
        view.serialize(to)
    }
}

impl Serialize for Side {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let view = SideView {
            text: &self.text,
            role: self.role.as_deref(),
            at: self.at.map(Place::from),
        };
        view.serialize(to)
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let view = EventView {
            who: &self.who,
            what: &self.what,
            at: self.at.map(Place::from),
        };
        view.serialize(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::Rule;
    use serde_json::json;
    use std::time::Duration;

    #[test]
    fn a_report_keeps_its_fields() {
        let at = Frame {
            file: "src/k.rs",
            line: 7,
            column: 3,
        };
        let report = Report {
            kernel: "k".into(),
            hash: "ab".into(),
            refusals: vec![Refusal {
                rule: Rule {
                    code: "R5.write",
                    holds: "writers fence",
                },
                text: "a sentence".into(),
                role: Some("math".into()),
                at: Some(at),
                stack: vec![at],
                undecided: true,
                witness: None,
                others: vec![Side {
                    text: "the read".into(),
                    role: None,
                    at: None,
                }],
                help: Some("fence".into()),
                trace: vec![Event {
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
                "refusals": [{
                    "code": "R5.write", "rule": "writers fence", "text": "a sentence",
                    "undecided": true, "role": "math", "at": place, "stack": [place],
                    "others": [{ "text": "the read", "role": null, "at": null }],
                    "help": "fence",
                    "trace": [{ "who": "math, warp 0", "what": "writes", "at": place }],
                    "witness": null,
                }],
            })
        );
    }
}

//! The report as text, in the style of rustc.

use super::frame::{Mark, Sources, position};
use super::group::{Group, groups};
use super::paint::{ColorMode, Style};
use crate::codes::Rule;
use crate::diagnostic::{Diagnostic, Label, TraceEvent, role_name};
use crate::report::{Report, Verdict};
use std::fmt;
use warpline_ir::Frame;

/// The first line of a report: the verdict and the extent of the search.
///
/// ```
/// # use std::time::Duration;
/// # use warpline_check::Report;
/// # let report = Report {
/// #     kernel: "gemm".into(), hash: String::new(), diagnostics: vec![], assumptions: vec![],
/// #     states: 37, steps: 41_236, time: Duration::from_micros(3100),
/// # };
/// assert_eq!(
///     report.summary().to_string(),
///     "kernel gemm: proved; 37 states, 41236 steps, 3.1 ms"
/// );
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SummaryLine<'r> {
    report: &'r Report,
    color: ColorMode,
}

/// Prints reports as text, with the source lines that are available.
#[derive(Debug)]
pub struct TextRenderer {
    color: ColorMode,
    sources: Sources,
}

impl Report {
    /// Returns the verdict in one line.
    pub fn summary(&self) -> SummaryLine<'_> {
        SummaryLine {
            report: self,
            color: ColorMode::Plain,
        }
    }

    /// Returns the report as plain text, with the source lines that are available.
    pub fn text(&self) -> String {
        TextRenderer::new(ColorMode::Plain, Sources::here()).report(self)
    }
}

impl fmt::Display for SummaryLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { report, color } = *self;
        let verdict = report.verdict();
        let part = match verdict {
            Verdict::Proved => Style::Proved,
            Verdict::Refuted => Style::Error,
            Verdict::Undecided => Style::Undecided,
        };
        let word = color.paint(part, verdict.name());
        write!(f, "kernel {}: {word}; ", report.kernel)?;
        let count = |n: u64, noun: &str| match n {
            1 => format!("1 {noun}"),
            n => format!("{n} {noun}s"),
        };
        write!(
            f,
            "{}, {}, {:.1} ms",
            count(report.states, "state"),
            count(report.steps, "step"),
            report.time.as_secs_f64() * 1e3
        )
    }
}

impl TextRenderer {
    /// Creates a renderer that quotes from these files.
    pub fn new(color: ColorMode, sources: Sources) -> Self {
        Self { color, sources }
    }

    /// Returns the summary, the assumptions of a proof, then every diagnostic; ends with a newline.
    pub fn report(&mut self, report: &Report) -> String {
        let color = self.color;
        let mut text = format!("{}\n", SummaryLine { report, color });
        if report.verdict() == Verdict::Proved {
            for assumption in &report.assumptions {
                let word = color.paint(Style::Undecided, "assumes");
                text += &format!("{word}: {assumption}\n");
            }
        }
        for group in groups(&report.diagnostics) {
            text.push('\n');
            text.push_str(&self.group(&group));
        }
        text
    }

    /// Returns one diagnostic as rustc would print it.
    pub fn diagnostic(&mut self, diagnostic: &Diagnostic) -> String {
        self.group(&Group {
            first: diagnostic,
            more: 0,
        })
    }

    /// Returns a warning in the style of a diagnostic. The help is that of the rule.
    pub fn warning(&mut self, rule: &Rule, text: &str, at: Option<Frame>) -> String {
        let kind = self
            .color
            .paint(Style::Undecided, format!("warning[{}]", rule.code));
        let headline = self.color.paint(Style::Headline, format!(": {text}"));
        let mark = at.map(|at| Mark {
            at,
            text: String::new(),
            is_primary: true,
        });
        let marks: Vec<Mark> = mark.into_iter().collect();
        let width = at.map_or(1, |at| at.line.to_string().len());
        let source = self.sources.quote(&marks, self.color);
        let help = self.note(&" ".repeat(width), "help", rule.help);
        format!("{kind}{headline}\n{source}{help}")
    }

    fn group(&mut self, group: &Group<'_>) -> String {
        let d = group.first;
        let (kind, part) = match d.undecided {
            false => ("error", Style::Error),
            true => ("undecided", Style::Undecided),
        };
        let kind = self.color.paint(part, format!("{kind}[{}]", d.code()));
        let headline = self.color.paint(Style::Headline, format!(": {}", d.text));
        let mut text = format!("{kind}{headline}\n");
        let marks = marks(d);
        text += &self.sources.quote(&marks, self.color);
        let width = marks.iter().map(|m| m.at.line.to_string().len()).max();
        let pad = " ".repeat(width.unwrap_or(1));
        let note = |what: &str, text: &str| self.note(&pad, what, text);
        if d.at.is_none()
            && let Some(role) = &d.role
        {
            text += &note("role", role);
        }
        for label in d.labels.iter().filter(|l| author_line(l).is_none()) {
            let label = label_text(&label.text, label.role.as_deref());
            text += &note("note", label.trim_end_matches(" here"));
        }
        if let Some(caller) = caller(d) {
            text += &note("note", &format!("called from {}", position(caller)));
        }
        if group.more > 0 {
            text += &note("note", &format!("{} more at this line", group.more));
        }
        match &d.cause {
            Some(cause) => text += &note("cause", cause),
            None => text += &note("rule", d.rule.requirement),
        }
        text += &self.trace(&pad, &d.trace);
        if let Some(counterexample) = &d.counterexample {
            let fault = counterexample.fault.lines().next().unwrap_or_default();
            text += &note("counterexample", &counterexample.to_string());
            text += &format!("{pad}   the CPU executor stops with: {fault}\n");
        }
        text += &note("help", d.help());
        let explain = format!(
            "run `warpline explain {}` for the rule, a broken kernel and its repair",
            d.code()
        );
        text + &note("note", &explain)
    }

    fn note(&self, pad: &str, what: &str, text: &str) -> String {
        let mark = self.color.paint(Style::Margin, "=");
        let what = self.color.paint(Style::Headline, what);
        format!("{pad} {mark} {what}: {text}\n")
    }

    /// Returns the events, numbered, oldest first.
    fn trace(&self, pad: &str, trace: &[TraceEvent]) -> String {
        if trace.is_empty() {
            return String::new();
        }
        let lines: Vec<String> = trace.iter().map(event_text).collect();
        let width = lines.iter().map(|l| l.chars().count()).max().unwrap_or(0);
        let width = width.min(MAX_EVENT);
        let number = trace.len().to_string().len();
        let mut text = self.note(pad, "trace", "the events that lead here, oldest first");
        for (i, (line, event)) in lines.iter().zip(trace).enumerate() {
            let at = event.at.map_or(String::new(), |at| at.to_string());
            let i = self
                .color
                .paint(Style::Margin, format!("{:>number$}.", i + 1));
            let line = format!("{pad}   {i} {line:width$}  {at}");
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

/// The maximum length of an event's text: a term of the launch can be very long.
const MAX_EVENT: usize = 240;

fn event_text(event: &TraceEvent) -> String {
    let text = match event.who.is_empty() {
        true => event.what.clone(),
        false => format!("{} {}", event.who, event.what),
    };
    match text.char_indices().nth(MAX_EVENT) {
        None => text,
        Some(_) => {
            let first: String = text.chars().take(MAX_EVENT - 1).collect();
            first + "…"
        }
    }
}

/// Returns the lines that a diagnostic quotes: its own line, then the lines of its labels.
fn marks(d: &Diagnostic) -> Vec<Mark> {
    let own = d.at.map(|at| Mark {
        at,
        text: label_text(&d.label, d.role.as_deref()),
        is_primary: true,
    });
    let other = |label: &Label| {
        Some(Mark {
            at: author_line(label)?,
            text: label_text(&label.text, label.role.as_deref()),
            is_primary: false,
        })
    };
    let mut marks: Vec<Mark> = own.into_iter().collect();
    for mark in d.labels.iter().filter_map(other) {
        if !marks.iter().any(|m| m.at == mark.at && m.text == mark.text) {
            marks.push(mark);
        }
    }
    marks
}

/// Returns the line of a label, unless the builder itself added the statement.
fn author_line(label: &Label) -> Option<Frame> {
    label.at.filter(|at| !at.is_internal())
}

/// Returns the text of a label with its role.
fn label_text(text: &str, role: Option<&str>) -> String {
    let Some(role) = role.map(role_name) else {
        return text.to_owned();
    };
    match text {
        "" => format!("in {role}"),
        _ if text.contains(&role) => text.to_owned(),
        _ => format!("{text} ({role})"),
    }
}

/// Returns the first caller outside of the file that the diagnostic points at.
fn caller(d: &Diagnostic) -> Option<Frame> {
    let at = d.at?;
    let outer = d.stack.iter().skip_while(|f| **f != at);
    let mut outer = outer.filter(|f| !f.is_internal() && f.file != at.file);
    outer.next().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assumption::Assumption;
    use crate::codes;
    use std::time::Duration;

    fn frame(file: &'static str, line: u32) -> Frame {
        let column = 9;
        Frame { file, line, column }
    }

    fn diagnostic() -> Diagnostic {
        let at = Some(frame("src/line.rs", 88));
        Diagnostic {
            rule: codes::R6_BULK,
            text: "write-after-read race: role `compute` overwrites `out[1]`".into(),
            label: "role `compute` (warp 0) overwrites `out[1]` here".into(),
            cause: Some("no wait separates the two".into()),
            role: Some("compute".into()),
            at,
            stack: vec![frame("src/line.rs", 88), frame("src/main.rs", 12)],
            undecided: false,
            counterexample: None,
            labels: vec![Label {
                text: "the store is issued here".into(),
                role: Some("store".into()),
                at: Some(frame("src/main.rs", 120)),
            }],
            help: Some("call bulk_wait_read(0) first".into()),
            trace: vec![
                TraceEvent {
                    who: String::new(),
                    what: "assume the loop `0..n` runs more than 1 iteration".into(),
                    at: None,
                },
                TraceEvent {
                    who: "role `compute` (warp 0)".into(),
                    what: "writes `out[1]`".into(),
                    at,
                },
            ],
        }
    }

    fn report(diagnostics: Vec<Diagnostic>) -> Report {
        Report {
            kernel: "add".into(),
            hash: "0123".into(),
            diagnostics,
            assumptions: vec![Assumption {
                code: codes::A_WRITER.code,
                text: "each byte of y has one writer".into(),
                at: Some(frame("src/main.rs", 130)),
            }],
            states: 1,
            steps: 20,
            time: Duration::from_micros(1250),
        }
    }

    fn renderer(color: ColorMode) -> TextRenderer {
        TextRenderer::new(color, Sources::none())
    }

    #[test]
    fn a_diagnostic_has_both_lines_the_cause_the_trace_and_help() {
        let text = renderer(ColorMode::Plain).report(&report(vec![diagnostic()]));
        let expected = "\
kernel add: refuted; 1 state, 20 steps, 1.2 ms

error[R6.bulk]: write-after-read race: role `compute` overwrites `out[1]`
   --> src/line.rs:88:9: role `compute` (warp 0) overwrites `out[1]` here
   ::: src/main.rs:120:9: the store is issued here (role `store`)
    = note: called from src/main.rs:12:9
    = cause: no wait separates the two
    = trace: the events that lead here, oldest first
      1. assume the loop `0..n` runs more than 1 iteration
      2. role `compute` (warp 0) writes `out[1]`            line.rs:88
    = help: call bulk_wait_read(0) first
    = note: run `warpline explain R6.bulk` for the rule, a broken kernel and its repair
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_warning_has_its_line_and_help() {
        let at = Some(frame("src/line.rs", 88));
        let text = renderer(ColorMode::Plain).warning(&codes::LINT_STAGES, "8 stages", at);
        let help = codes::LINT_STAGES.help;
        let expected =
            format!("warning[stages]: 8 stages\n  --> src/line.rs:88:9\n   = help: {help}\n");
        assert_eq!(text, expected);
        let text = renderer(ColorMode::Plain).warning(&codes::LINT_STAGES, "8 stages", None);
        assert_eq!(
            text,
            format!("warning[stages]: 8 stages\n  = help: {help}\n")
        );
    }

    #[test]
    fn a_proof_names_its_assumptions() {
        let text = renderer(ColorMode::Plain).report(&report(vec![]));
        let expected = "\
kernel add: proved; 1 state, 20 steps, 1.2 ms
assumes: each byte of y has one writer [A.writer] at main.rs:130
";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_same_rule_at_the_same_line_is_reported_once() {
        let elsewhere = Diagnostic {
            at: Some(frame("src/line.rs", 89)),
            ..diagnostic()
        };
        let all = vec![diagnostic(), diagnostic(), elsewhere, diagnostic()];
        let text = renderer(ColorMode::Plain).report(&report(all));
        assert_eq!(text.matches("error[R6.bulk]").count(), 2, "{text}");
        assert_eq!(text.matches("= note: 2 more at this line\n").count(), 1);
    }

    #[test]
    fn an_undecided_point_is_headed_undecided_and_not_merged_without_a_line() {
        let open = Diagnostic {
            undecided: true,
            counterexample: None,
            at: None,
            cause: None,
            labels: vec![],
            help: None,
            trace: vec![],
            ..diagnostic()
        };
        let text = renderer(ColorMode::Plain).report(&report(vec![open.clone(), open]));
        let one = format!(
            "\nundecided[R6.bulk]: write-after-read race: role `compute` overwrites `out[1]`
  = role: compute
  = rule: {}
  = help: {}
  = note: run `warpline explain R6.bulk` for the rule, a broken kernel and its repair
",
            codes::R6_BULK.requirement,
            codes::R6_BULK.help
        );
        let summary = "kernel add: undecided; 1 state, 20 steps, 1.2 ms\n";
        // Diagnostics without a line are not merged.
        assert_eq!(text, format!("{summary}{one}{one}"));
    }

    #[test]
    fn colored_text_without_ansi_codes_equals_plain_text() {
        let colored = renderer(ColorMode::Color).report(&report(vec![diagnostic()]));
        let mut plain = String::new();
        let mut parts = colored.split('\x1b');
        plain += parts.next().unwrap();
        for part in parts {
            plain += part.split_once('m').unwrap().1;
        }
        assert_ne!(colored, plain);
        let expected = renderer(ColorMode::Plain).report(&report(vec![diagnostic()]));
        assert_eq!(plain, expected);
    }
}

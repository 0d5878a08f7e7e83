//! The report as text.

use super::frame::{Sources, place};
use super::group::{Group, groups};
use super::paint::{Look, Part};
use crate::refusal::{Event, Refusal};
use crate::report::{Outcome, Report};
use std::fmt;
use warpline_ir::Frame;

/// The first line of a report: what it comes to, and how far was looked.
///
/// ```
/// # use std::time::Duration;
/// # use warpline_check::Report;
/// # let report = Report {
/// #     kernel: "gemm".into(), hash: String::new(), refusals: vec![], assumptions: vec![],
/// #     states: 37, steps: 41_236, time: Duration::from_micros(3100),
/// # };
/// assert_eq!(
///     report.verdict().to_string(),
///     "kernel gemm: proved; 37 states, 41236 steps, 3.1 ms"
/// );
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Verdict<'r> {
    report: &'r Report,
    look: Look,
}

/// Writes reports as text: with or without colours, with the source lines that are here.
#[derive(Debug)]
pub struct Texts {
    look: Look,
    sources: Sources,
}

impl Report {
    /// What it comes to, in one line.
    pub fn verdict(&self) -> Verdict<'_> {
        Verdict {
            report: self,
            look: Look::Plain,
        }
    }

    /// The report as text, plain, with the source lines that are here.
    pub fn text(&self) -> String {
        Texts::new(Look::Plain, Sources::here()).report(self)
    }
}

impl fmt::Display for Verdict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { report, look } = *self;
        let outcome = report.outcome();
        let part = match outcome {
            Outcome::Proved => Part::Good,
            Outcome::Refuted => Part::Error,
            Outcome::Undecided => Part::Doubt,
        };
        let word = look.paint(part, outcome.name());
        write!(f, "kernel {}: {word}; ", report.kernel)?;
        let of = |n: u64, what: &str| match n {
            1 => format!("1 {what}"),
            n => format!("{n} {what}s"),
        };
        write!(
            f,
            "{}, {}, {:.1} ms",
            of(report.states, "state"),
            of(report.steps, "step"),
            report.time.as_secs_f64() * 1e3
        )
    }
}

impl Texts {
    /// Texts of a look, which quote from these files.
    pub fn new(look: Look, sources: Sources) -> Self {
        Self { look, sources }
    }

    /// The verdict, the assumptions of a proof, then every refusal; ends with a line feed.
    pub fn report(&mut self, report: &Report) -> String {
        let look = self.look;
        let mut text = format!("{}\n", Verdict { report, look });
        if report.outcome() == Outcome::Proved {
            for assumption in &report.assumptions {
                text += &format!("{}: {assumption}\n", look.paint(Part::Doubt, "assumes"));
            }
        }
        for group in groups(&report.refusals) {
            text.push('\n');
            text.push_str(&self.group(&group));
        }
        text
    }

    /// One refusal, as a compiler would say it.
    pub fn refusal(&mut self, refusal: &Refusal) -> String {
        self.group(&Group {
            first: refusal,
            more: 0,
        })
    }

    fn group(&mut self, group: &Group<'_>) -> String {
        let r = group.first;
        let (kind, part) = match r.undecided {
            false => ("error", Part::Error),
            true => ("undecided", Part::Doubt),
        };
        let title = self.look.paint(part, format!("{kind}[{}]", r.code()));
        let sentence = self.look.paint(Part::Sentence, format!(": {}", r.text));
        let mut text = format!("{title}{sentence}\n");
        text += &self.place(r.at, r.role.as_deref());
        if let Some(caller) = caller(r) {
            text += &self.note("called from", &place(caller));
        }
        if group.more > 0 {
            text += &self.note("also", &format!("{} more at this line", group.more));
        }
        text += &self.note("rule", r.rule.holds);
        for side in &r.others {
            let note = self.look.paint(Part::Good, "note");
            text += &format!("{note}: {}\n", side.text);
            text += &self.place(side.at, side.role.as_deref());
        }
        text += &self.trace(&r.trace);
        if let Some(witness) = &r.witness {
            let fault = witness.fault.lines().next().unwrap_or_default();
            text += &format!("{}: {witness}\n", self.look.paint(Part::Good, "launch"));
            text += &self.note("executor", fault);
        }
        if let Some(help) = &r.help {
            text += &format!("{}: {help}\n", self.look.paint(Part::Good, "help"));
        }
        text
    }

    /// Where it is: the line with its source, or the role alone.
    fn place(&mut self, at: Option<Frame>, role: Option<&str>) -> String {
        match (at, role) {
            (Some(at), role) => self.sources.frame(at, role, self.look),
            (None, Some(role)) => self.note("role", role),
            (None, None) => String::new(),
        }
    }

    fn note(&self, what: &str, text: &str) -> String {
        let mark = self.look.paint(Part::Margin, "=");
        format!("  {mark} {what}: {text}\n")
    }

    /// Who did what, numbered, oldest first.
    fn trace(&self, trace: &[Event]) -> String {
        if trace.is_empty() {
            return String::new();
        }
        let width = |of: fn(&Event) -> &str| {
            let widths = trace.iter().map(|e| of(e).chars().count());
            widths.max().unwrap_or(0)
        };
        let (number, who) = (trace.len().to_string().len(), width(|e| &e.who));
        let what = width(|e| &e.what);
        let mut text = self.look.paint(Part::Good, "trace").to_string() + ", oldest first:\n";
        for (i, event) in trace.iter().enumerate() {
            let at = event.at.map_or(String::new(), |at| at.to_string());
            let i = self.look.paint(Part::Margin, format!("{:>number$}", i + 1));
            let line = format!("  {i}  {:who$}  {:what$}  {at}", event.who, event.what);
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

/// The first line outside of the file that the refusal is in: who called the helper.
fn caller(r: &Refusal) -> Option<Frame> {
    let at = r.at?;
    let outer = r.stack.iter().skip_while(|f| **f != at);
    let mut outer = outer.filter(|f| !f.is_internal() && f.file != at.file);
    outer.next().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assumption::Assumption;
    use crate::refusal::{Rule, Side};
    use std::time::Duration;

    const RULE: Rule = Rule {
        code: "R6.bulk",
        holds: "who overwrites bytes comes after the issuer's wait",
    };

    fn frame(file: &'static str, line: u32) -> Frame {
        let column = 9;
        Frame { file, line, column }
    }

    fn refusal() -> Refusal {
        let at = Some(frame("src/line.rs", 88));
        Refusal {
            rule: RULE,
            text: "a bulk store still reads out[1]".into(),
            role: Some("compute".into()),
            at,
            stack: vec![frame("src/line.rs", 88), frame("src/main.rs", 12)],
            undecided: false,
            witness: None,
            others: vec![Side {
                text: "the store is issued here".into(),
                role: Some("store".into()),
                at: Some(frame("src/main.rs", 120)),
            }],
            help: Some("call bulk_wait_read(0) first".into()),
            trace: vec![
                Event {
                    who: "store, warp 9".into(),
                    what: "issues a bulk store of out[1]".into(),
                    at: Some(frame("src/main.rs", 120)),
                },
                Event {
                    who: "compute, warp 0".into(),
                    what: "writes out[1]".into(),
                    at,
                },
            ],
        }
    }

    fn report(refusals: Vec<Refusal>) -> Report {
        Report {
            kernel: "add".into(),
            hash: "0123".into(),
            refusals,
            assumptions: vec![Assumption {
                code: "A.writer",
                text: "each byte of y has one writer".into(),
                at: Some(frame("src/main.rs", 130)),
            }],
            states: 1,
            steps: 20,
            time: Duration::from_micros(1250),
        }
    }

    fn texts(look: Look) -> Texts {
        Texts::new(look, Sources::none())
    }

    #[test]
    fn a_refusal_has_its_rule_both_sides_and_what_led_to_it() {
        let text = texts(Look::Plain).report(&report(vec![refusal()]));
        let expected = "\
kernel add: refuted; 1 state, 20 steps, 1.2 ms

error[R6.bulk]: a bulk store still reads out[1]
  --> src/line.rs:88:9, role compute
  = called from: src/main.rs:12:9
  = rule: who overwrites bytes comes after the issuer's wait
note: the store is issued here
   --> src/main.rs:120:9, role store
trace, oldest first:
  1  store, warp 9    issues a bulk store of out[1]  main.rs:120
  2  compute, warp 0  writes out[1]                  line.rs:88
help: call bulk_wait_read(0) first
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_proof_names_its_assumptions() {
        let text = texts(Look::Plain).report(&report(vec![]));
        let expected = "\
kernel add: proved; 1 state, 20 steps, 1.2 ms
assumes: each byte of y has one writer [A.writer] at main.rs:130
";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_same_rule_at_the_same_line_is_told_once() {
        let elsewhere = Refusal {
            at: Some(frame("src/line.rs", 89)),
            ..refusal()
        };
        let all = vec![refusal(), refusal(), elsewhere, refusal()];
        let text = texts(Look::Plain).report(&report(all));
        assert_eq!(text.matches("error[R6.bulk]").count(), 2, "{text}");
        assert_eq!(text.matches("= also: 2 more at this line\n").count(), 1);
    }

    #[test]
    fn what_is_undecided_is_no_error() {
        let open = Refusal {
            undecided: true,
            witness: None,
            at: None,
            others: vec![],
            help: None,
            trace: vec![],
            ..refusal()
        };
        let text = texts(Look::Plain).report(&report(vec![open.clone(), open]));
        let one = "\nundecided[R6.bulk]: a bulk store still reads out[1]\n  = role: compute\n  \
                   = rule: who overwrites bytes comes after the issuer's wait\n";
        let verdict = "kernel add: undecided; 1 state, 20 steps, 1.2 ms\n";
        // Without a line, two of them are two.
        assert_eq!(text, format!("{verdict}{one}{one}"));
    }

    #[test]
    fn colours_change_nothing_else() {
        let colored = texts(Look::Color).report(&report(vec![refusal()]));
        let mut plain = String::new();
        let mut parts = colored.split('\x1b');
        plain += parts.next().unwrap();
        for part in parts {
            plain += part.split_once('m').unwrap().1;
        }
        assert_ne!(colored, plain);
        assert_eq!(plain, texts(Look::Plain).report(&report(vec![refusal()])));
    }
}

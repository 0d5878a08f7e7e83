//! Diagnostics: the errors and undecided points that the checker reports.

use crate::assumption::Assumption;
pub(crate) use crate::codes::Rule;
use crate::render::{Group, groups};
use crate::replay::Counterexample;
use std::fmt;
use warpline_ir::{Frame, Kernel, Loc, RoleId};

/// One place where a kernel breaks a rule, or where the checker could not decide.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// The rule.
    pub rule: Rule,
    /// The headline: the class of bug, and the event that breaks the rule.
    pub text: String,
    /// The action at the author's line; empty if the headline says it all.
    pub label: String,
    /// The reason that the event breaks the rule, as a sentence without a full stop.
    pub cause: Option<String>,
    /// The role that runs the statement, if it belongs to one role.
    pub role: Option<String>,
    /// The author's line.
    pub at: Option<Frame>,
    /// All lines that lead to the statement, innermost first.
    pub stack: Vec<Frame>,
    /// Is this an undecided point and not a breach?
    pub undecided: bool,
    /// The other statements involved: the access it races with, the waits of a deadlock.
    pub labels: Vec<Label>,
    /// The repair for this case; `None` for the usual repair of the rule.
    pub help: Option<String>,
    /// The events that lead to the breach, oldest first.
    pub trace: Vec<TraceEvent>,
    /// A launch in which the CPU executor fails. Only refutations of the protocol have one.
    pub counterexample: Option<Box<Counterexample>>,
}

/// A source line that takes part in a diagnostic, with the action there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// The action at this line.
    pub text: String,
    /// The role that runs the statement, if it belongs to one role.
    pub role: Option<String>,
    /// The author's line.
    pub at: Option<Frame>,
}

/// One event of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceEvent {
    /// The acting warp, ``role `load` (warp 0)``; empty for an assumption about the launch.
    pub who: String,
    /// The action: ``releases slot 2 of ring `in` (`in.empty[2]`, phase 1)``.
    pub what: String,
    /// The author's line.
    pub at: Option<Frame>,
}

impl Diagnostic {
    /// Returns the code of the rule.
    pub fn code(&self) -> &'static str {
        self.rule.code
    }

    /// Returns the repair: the one for this case, else the usual one of the rule.
    pub fn help(&self) -> &str {
        self.help.as_deref().unwrap_or(self.rule.help)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = self.at {
            write!(f, "{at}: ")?;
        }
        match &self.role {
            Some(role) if !self.text.contains(&role_name(role)) => {
                write!(f, "{}: ", role_name(role))?;
            }
            _ => {}
        }
        write!(f, "{} [{}]", self.text, self.rule.code)
    }
}

impl std::error::Error for Diagnostic {}

/// Returns a role as reports name it: ``role `load` ``.
pub(crate) fn role_name(role: &str) -> String {
    format!("role `{role}`")
}

/// All diagnostics of one kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostics {
    /// The kernel's name.
    pub kernel: String,
    /// The diagnostics; never empty.
    pub diagnostics: Vec<Diagnostic>,
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {}: ", self.kernel)?;
        for (i, Group { first, more }) in groups(&self.diagnostics).iter().enumerate() {
            if i > 0 {
                write!(f, "; ")?;
            }
            write!(f, "{first}")?;
            if *more > 0 {
                write!(f, " (and {more} more at this line)")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// The texts of a diagnostic: the headline, the label of its line, and the cause.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    /// The class of bug, if it is more specific than the title of the rule.
    pub(crate) title: Option<&'static str>,
    pub(crate) headline: String,
    pub(crate) label: String,
    pub(crate) cause: Option<String>,
}

impl Message {
    pub(crate) fn new(headline: impl Into<String>) -> Self {
        Self {
            headline: headline.into(),
            ..Self::default()
        }
    }

    /// Replaces the class of bug.
    pub(crate) fn title(mut self, title: &'static str) -> Self {
        self.title = Some(title);
        self
    }

    /// Sets the action at the line.
    pub(crate) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Sets the reason that the rule is broken.
    pub(crate) fn cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }
}

impl From<String> for Message {
    fn from(headline: String) -> Self {
        Self::new(headline)
    }
}

impl From<&str> for Message {
    fn from(headline: &str) -> Self {
        Self::new(headline)
    }
}

/// Collects the diagnostics and assumptions of one kernel.
pub(crate) struct Findings<'k> {
    kernel: &'k Kernel,
    list: Vec<Diagnostic>,
    assumptions: Vec<Assumption>,
}

impl<'k> Findings<'k> {
    pub(crate) fn new(kernel: &'k Kernel) -> Self {
        Self {
            kernel,
            list: Vec::new(),
            assumptions: Vec::new(),
        }
    }

    /// Reports a statement or declaration that breaks a rule.
    pub(crate) fn report(
        &mut self,
        rule: &Rule,
        loc: Loc,
        role: Option<RoleId>,
        message: impl Into<Message>,
    ) {
        let locs = &self.kernel.locs;
        let message = message.into();
        self.list.push(Diagnostic {
            rule: *rule,
            text: format!(
                "{}: {}",
                message.title.unwrap_or(rule.title),
                message.headline
            ),
            label: message.label,
            cause: message.cause,
            role: self.role(role),
            at: locs.author(loc),
            stack: locs.stack(loc).to_vec(),
            undecided: false,
            labels: Vec::new(),
            help: None,
            trace: Vec::new(),
            counterexample: None,
        });
    }

    /// Adds another statement to the last diagnostic.
    pub(crate) fn label(&mut self, text: impl Into<String>, loc: Loc, role: Option<RoleId>) {
        let label = Label {
            text: text.into(),
            role: self.role(role),
            at: self.kernel.locs.author(loc),
        };
        if let Some(last) = self.list.last_mut() {
            last.labels.push(label);
        }
    }

    /// Marks the last diagnostic as undecided.
    pub(crate) fn undecided(&mut self) {
        if let Some(last) = self.list.last_mut() {
            last.undecided = true;
        }
    }

    /// Sets the repair of the last diagnostic.
    pub(crate) fn help(&mut self, text: impl Into<String>) {
        if let Some(last) = self.list.last_mut() {
            last.help = Some(text.into());
        }
    }

    /// Adds an assumption of the proof.
    pub(crate) fn assume(&mut self, rule: &Rule, loc: Loc, text: impl Into<String>) {
        self.assumptions.push(Assumption {
            code: rule.code,
            text: text.into(),
            at: self.kernel.locs.author(loc),
        });
    }

    fn role(&self, role: Option<RoleId>) -> Option<String> {
        let role = role.and_then(|r| self.kernel.roles.get(r.index()));
        role.map(|r| r.name.clone())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn into_list(self) -> Vec<Diagnostic> {
        self.list
    }

    /// Returns the diagnostics and the assumptions.
    pub(crate) fn into_parts(self) -> (Vec<Diagnostic>, Vec<Assumption>) {
        (self.list, self.assumptions)
    }
}

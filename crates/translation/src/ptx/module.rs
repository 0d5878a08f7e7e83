//! The parts of a module: what it declares, the head of its entry, and the statements of its body.

use super::statement::{Statement, code, statements};
use crate::mismatch::{Mismatch, PtxLine};

/// A line of the text.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) number: usize,
    pub(crate) text: &'a str,
}

impl Line<'_> {
    /// The line for a message.
    pub(crate) fn shown(&self) -> PtxLine {
        PtxLine {
            number: self.number,
            text: code(self.text).to_owned(),
        }
    }
}

/// A module of one entry.
#[derive(Debug, Default)]
pub(super) struct Module<'a> {
    /// Directives in front of the entry, and between its parameters and its body.
    pub(super) directives: Vec<(Line<'a>, &'a str)>,
    /// The name of the entry, and where it stands.
    pub(super) entry: Option<(Line<'a>, &'a str)>,
    /// Parameters, in order.
    pub(super) params: Vec<(Line<'a>, &'a str)>,
    /// The body.
    pub(super) body: Vec<(Line<'a>, Statement<'a>)>,
}

/// Where the reader is.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Head,
    Params,
    Body,
    End,
}

impl<'a> Module<'a> {
    /// Cuts a text into its parts.
    pub(super) fn read(text: &'a str) -> Result<Self, Mismatch> {
        let mut module = Self::default();
        let mut part = Part::Head;
        for (i, text) in text.lines().enumerate() {
            let number = i + 1;
            let line = Line { number, text };
            let refuse = |why: String| Mismatch {
                text: format!("the line cannot be read: {why}"),
                at: None,
                role: None,
                line: Some(line.shown()),
            };
            let code = code(text);
            if code.is_empty() {
                continue;
            }
            part = match part {
                Part::Head => module.head(line, code).map_err(refuse)?,
                Part::Params => module.param(line, code),
                Part::Body if code == "}" => Part::End,
                Part::Body => {
                    let all = statements(code).map_err(refuse)?;
                    module.body.extend(all.into_iter().map(|s| (line, s)));
                    Part::Body
                }
                Part::End => return Err(refuse("it stands behind the entry".into())),
            };
        }
        match part {
            Part::End => Ok(module),
            _ => Err(Mismatch {
                text: "the text ends before its entry does".into(),
                at: None,
                role: None,
                line: None,
            }),
        }
    }

    fn head(&mut self, line: Line<'a>, code: &'a str) -> Result<Part, String> {
        if code == "{" {
            return Ok(Part::Body);
        }
        if let Some((_, rest)) = code.split_once(".entry ") {
            if self.entry.is_some() {
                return Err("it is a second entry".into());
            }
            let (name, params) = rest.split_once('(').ok_or("the entry has no parameters")?;
            self.entry = Some((line, name.trim()));
            return Ok(match params.trim() {
                "" => Part::Params,
                closed => self.param(line, closed),
            });
        }
        match code.strip_prefix('.') {
            Some(directive) => self
                .directives
                .push((line, directive.trim_end_matches(';'))),
            None => return Err("it stands outside of the entry".into()),
        }
        Ok(Part::Head)
    }

    fn param(&mut self, line: Line<'a>, code: &'a str) -> Part {
        let param = code.trim_end_matches([')', ',']).trim();
        if !param.is_empty() {
            self.params.push((line, param));
        }
        if code.ends_with(')') {
            Part::Head
        } else {
            Part::Params
        }
    }
}

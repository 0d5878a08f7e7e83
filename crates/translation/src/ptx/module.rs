//! Splits a module into directives, parameters and statements of the body.

use super::statement::{Statement, code, statements};
use crate::mismatch::{Mismatch, PtxLine};

/// A line of the text.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct TextLine<'a> {
    pub(crate) number: usize,
    pub(crate) text: &'a str,
}

impl TextLine<'_> {
    /// Returns the line for a message.
    pub(crate) fn to_ptx_line(self) -> PtxLine {
        PtxLine {
            number: self.number,
            text: code(self.text).to_owned(),
        }
    }
}

/// A module of one entry.
#[derive(Debug, Default)]
pub(super) struct Module<'a> {
    /// Directives before the entry, and between its parameters and its body.
    pub(super) directives: Vec<(TextLine<'a>, &'a str)>,
    /// The line and name of the entry.
    pub(super) entry: Option<(TextLine<'a>, &'a str)>,
    /// Parameters, in order.
    pub(super) params: Vec<(TextLine<'a>, &'a str)>,
    /// The body.
    pub(super) body: Vec<(TextLine<'a>, Statement<'a>)>,
}

/// The current section of the module.
#[derive(Clone, Copy, PartialEq)]
enum Section {
    Head,
    Params,
    Body,
    End,
}

impl<'a> Module<'a> {
    /// Parses a text.
    pub(super) fn read(text: &'a str) -> Result<Self, Mismatch> {
        let mut module = Self::default();
        let mut section = Section::Head;
        for (i, text) in text.lines().enumerate() {
            let number = i + 1;
            let line = TextLine { number, text };
            let mismatch = |why: String| Mismatch {
                text: format!("cannot parse the line: {why}"),
                at: None,
                role: None,
                line: Some(line.to_ptx_line()),
            };
            let code = code(text);
            if code.is_empty() {
                continue;
            }
            section = match section {
                Section::Head => module.head(line, code).map_err(mismatch)?,
                Section::Params => module.param(line, code),
                Section::Body if code == "}" => Section::End,
                Section::Body => {
                    let all = statements(code).map_err(mismatch)?;
                    module.body.extend(all.into_iter().map(|s| (line, s)));
                    Section::Body
                }
                Section::End => return Err(mismatch("it is after the end of the entry".into())),
            };
        }
        match section {
            Section::End => Ok(module),
            _ => Err(Mismatch {
                text: "the text ends before the end of the entry".into(),
                at: None,
                role: None,
                line: None,
            }),
        }
    }

    fn head(&mut self, line: TextLine<'a>, code: &'a str) -> Result<Section, String> {
        if code == "{" {
            return Ok(Section::Body);
        }
        if let Some((_, rest)) = code.split_once(".entry ") {
            if self.entry.is_some() {
                return Err("it begins a second entry".into());
            }
            let (name, params) = rest
                .split_once('(')
                .ok_or("the entry has no parameter list")?;
            self.entry = Some((line, name.trim()));
            return Ok(match params.trim() {
                "" => Section::Params,
                closed => self.param(line, closed),
            });
        }
        match code.strip_prefix('.') {
            Some(directive) => self
                .directives
                .push((line, directive.trim_end_matches(';'))),
            None => return Err("it is outside the entry".into()),
        }
        Ok(Section::Head)
    }

    fn param(&mut self, line: TextLine<'a>, code: &'a str) -> Section {
        let param = code.trim_end_matches([')', ',']).trim();
        if !param.is_empty() {
            self.params.push((line, param));
        }
        if code.ends_with(')') {
            Section::Head
        } else {
            Section::Params
        }
    }
}

//! Terminal colors.

use std::fmt;

/// The use of colors in a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ColorMode {
    /// No colors: for files, pipes and tests.
    #[default]
    Plain,
    /// The colors of a terminal.
    Color,
}

/// The meaning of a piece of text, which decides its color.
#[derive(Clone, Copy, Debug)]
pub(super) enum Style {
    Error,
    Undecided,
    Proved,
    /// The headline and the names of notes.
    Headline,
    /// Line numbers, and the rules beside the source.
    Margin,
}

impl Style {
    /// The ANSI code of the color.
    fn code(self) -> &'static str {
        match self {
            Style::Error => "1;31",
            Style::Undecided => "1;33",
            Style::Proved => "1;32",
            Style::Headline => "1",
            Style::Margin => "1;34",
        }
    }
}

/// A piece of text in its color.
pub(super) struct Painted<T>(ColorMode, Style, T);

impl ColorMode {
    pub(super) fn paint<T: fmt::Display>(self, part: Style, text: T) -> Painted<T> {
        Painted(self, part, text)
    }
}

impl<T: fmt::Display> fmt::Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(color, part, text) = self;
        match color {
            ColorMode::Plain => write!(f, "{text}"),
            ColorMode::Color => write!(f, "\x1b[{}m{text}\x1b[0m", part.code()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ansi_codes_enclose_only_colored_text() {
        let text = |color: ColorMode| color.paint(Style::Error, "bad").to_string();
        assert_eq!(text(ColorMode::Plain), "bad");
        assert_eq!(text(ColorMode::Color), "\x1b[1;31mbad\x1b[0m");
    }
}

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

/// The meaning of a part of a text, which decides its color.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Error,
    Undecided,
    Proved,
    /// The headline and the names of notes.
    Headline,
    /// Line numbers, and the rules beside the source.
    Margin,
}

impl Part {
    /// The ANSI code of the color.
    fn code(self) -> &'static str {
        match self {
            Part::Error => "1;31",
            Part::Undecided => "1;33",
            Part::Proved => "1;32",
            Part::Headline => "1",
            Part::Margin => "1;34",
        }
    }
}

/// A piece of text in its color.
pub(super) struct Painted<T>(ColorMode, Part, T);

impl ColorMode {
    pub(super) fn paint<T: fmt::Display>(self, part: Part, text: T) -> Painted<T> {
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
    fn a_color_begins_and_ends_with_the_text() {
        let text = |color: ColorMode| color.paint(Part::Error, "bad").to_string();
        assert_eq!(text(ColorMode::Plain), "bad");
        assert_eq!(text(ColorMode::Color), "\x1b[1;31mbad\x1b[0m");
    }
}

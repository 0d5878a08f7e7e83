//! Colours, where they are wanted.

use std::fmt;

/// How a text looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Look {
    /// For files, pipes and tests.
    #[default]
    Plain,
    /// With the colours of a terminal.
    Color,
}

/// What a part of a text is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    /// A breach.
    Error,
    /// Something undecided.
    Doubt,
    /// Something good.
    Good,
    /// The sentence of a message.
    Sentence,
    /// Line numbers and the rules beside the source.
    Margin,
}

impl Part {
    fn code(self) -> &'static str {
        match self {
            Part::Error => "1;31",
            Part::Doubt => "1;33",
            Part::Good => "1;32",
            Part::Sentence => "1",
            Part::Margin => "1;34",
        }
    }
}

/// A piece of text in its colour.
pub(super) struct Painted<T>(Look, Part, T);

impl Look {
    pub(super) fn paint<T: fmt::Display>(self, part: Part, text: T) -> Painted<T> {
        Painted(self, part, text)
    }
}

impl<T: fmt::Display> fmt::Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(look, part, text) = self;
        match look {
            Look::Plain => write!(f, "{text}"),
            Look::Color => write!(f, "\x1b[{}m{text}\x1b[0m", part.code()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_begin_and_end_with_the_text() {
        let text = |look: Look| look.paint(Part::Error, "bad").to_string();
        assert_eq!(text(Look::Plain), "bad");
        assert_eq!(text(Look::Color), "\x1b[1;31mbad\x1b[0m");
    }
}

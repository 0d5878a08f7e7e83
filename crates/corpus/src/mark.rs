//! Marked lines: a comment `// BUG` marks the line of a bug.

use std::fmt;
use std::panic::Location;
use warpline_ir::Frame;

/// The comment that marks a line.
const MARK: &str = "// BUG";

/// The marked line of a source file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MarkedLine {
    /// The path, as the compiler names it.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
}

impl MarkedLine {
    /// Returns whether the frame is on this line.
    pub fn contains(self, frame: Frame) -> bool {
        (frame.file, frame.line) == (self.file, self.line)
    }
}

impl fmt::Display for MarkedLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.file.rsplit(['/', '\\']).next().unwrap_or(self.file);
        write!(f, "{name}:{}", self.line)
    }
}

/// A file of this crate, with its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) file: &'static str,
    pub(crate) text: &'static str,
}

impl Source {
    /// Returns the last marked line above the caller; line 0 if there is none.
    #[track_caller]
    pub(crate) fn marked(self) -> MarkedLine {
        let above = Location::caller().line() as usize;
        let lines = self.text.lines().take(above).zip(1..);
        let marked = lines.filter(|(text, _)| text.contains(MARK));
        MarkedLine {
            file: self.file,
            line: marked.last().map_or(0, |(_, line)| line),
        }
    }
}

/// Expands to the source file of the caller.
macro_rules! this_file {
    ($name:literal) => {
        $crate::mark::Source {
            file: file!(),
            text: include_str!($name),
        }
    };
}
pub(crate) use this_file;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_returns_the_last_mark_above_the_caller() {
        let source = this_file!("mark.rs");
        let first = line!() + 1; // BUG: the first mark
        assert_eq!(source.marked().line, first - 1);
        let second = line!(); // BUG: the second mark
        assert_eq!(source.marked().line, second);
        assert_eq!(source.marked().to_string(), format!("mark.rs:{second}"));
    }

    #[test]
    fn a_line_contains_its_frames() {
        let frame = Frame::caller();
        let (file, line) = (frame.file, frame.line);
        assert!(MarkedLine { file, line }.contains(frame));
        let line = line + 1;
        assert!(!MarkedLine { file, line }.contains(frame));
    }
}

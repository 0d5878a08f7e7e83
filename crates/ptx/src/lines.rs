//! Source lines: `.file` and `.loc`.
//!
//! ptxas writes a DWARF line table whenever it finds `.loc` (neither
//! `-lineinfo` nor `-g` is needed), so that Nsight, cuda-gdb and
//! compute-sanitizer name the author's line.

use crate::names::ascii;
use std::fmt::Write;
use warpline_ir::Frame;

/// The files named so far, and the line now in force.
#[derive(Default)]
pub(crate) struct Lines {
    files: Vec<&'static str>,
    now: Option<Frame>,
}

impl Lines {
    /// The `.loc` that makes a frame the line of what follows, unless it already is.
    pub(crate) fn loc(&mut self, frame: Frame) -> Option<String> {
        if self.now == Some(frame) {
            return None;
        }
        self.now = Some(frame);
        let known = self.files.iter().position(|f| *f == frame.file);
        let file = known.unwrap_or_else(|| {
            self.files.push(frame.file);
            self.files.len() - 1
        });
        Some(format!(".loc {} {} {}", file + 1, frame.line, frame.column))
    }

    /// The `.file` directives of all lines seen.
    pub(crate) fn files(&self) -> String {
        let mut text = String::new();
        for (i, file) in self.files.iter().enumerate() {
            let file = ascii(file).replace('\\', "/").replace('"', "?");
            let _ = writeln!(text, ".file {} \"{file}\"", i + 1);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(file: &'static str, line: u32) -> Frame {
        Frame {
            file,
            line,
            column: 5,
        }
    }

    #[test]
    fn a_line_is_named_when_it_changes() {
        let mut lines = Lines::default();
        assert_eq!(lines.loc(frame("a.rs", 3)).as_deref(), Some(".loc 1 3 5"));
        assert_eq!(lines.loc(frame("a.rs", 3)), None);
        assert_eq!(lines.loc(frame("b.rs", 3)).as_deref(), Some(".loc 2 3 5"));
        assert_eq!(lines.loc(frame("a.rs", 3)).as_deref(), Some(".loc 1 3 5"));
        assert_eq!(lines.files(), ".file 1 \"a.rs\"\n.file 2 \"b.rs\"\n");
    }

    #[test]
    fn a_path_of_another_system_is_written_with_slashes() {
        let mut lines = Lines::default();
        lines.loc(frame("src\\gemm.rs", 1));
        assert_eq!(lines.files(), ".file 1 \"src/gemm.rs\"\n");
    }
}

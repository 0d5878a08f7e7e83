//! Source lines: `.file` and `.loc`.
//!
//! ptxas writes a DWARF line table whenever it finds `.loc`, without `-lineinfo` or `-g`. Nsight,
//! cuda-gdb and compute-sanitizer then report the author's line.

use crate::names::ascii;
use std::fmt::Write;
use warpline_ir::Frame;

/// The source files of an entry and the line of the last `.loc`.
#[derive(Default)]
pub(crate) struct LineTable {
    files: Vec<&'static str>,
    current: Option<Frame>,
}

impl LineTable {
    /// Returns the `.loc` for a frame, unless it is already the current line.
    pub(crate) fn loc(&mut self, frame: Frame) -> Option<String> {
        if self.current == Some(frame) {
            return None;
        }
        self.current = Some(frame);
        let known = self.files.iter().position(|f| *f == frame.file);
        let file = known.unwrap_or_else(|| {
            self.files.push(frame.file);
            self.files.len() - 1
        });
        Some(format!(".loc {} {} {}", file + 1, frame.line, frame.column))
    }

    /// Returns the `.file` directives.
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
    fn loc_is_written_when_the_line_changes() {
        let mut table = LineTable::default();
        assert_eq!(table.loc(frame("a.rs", 3)).as_deref(), Some(".loc 1 3 5"));
        assert_eq!(table.loc(frame("a.rs", 3)), None);
        assert_eq!(table.loc(frame("b.rs", 3)).as_deref(), Some(".loc 2 3 5"));
        assert_eq!(table.loc(frame("a.rs", 3)).as_deref(), Some(".loc 1 3 5"));
        assert_eq!(table.files(), ".file 1 \"a.rs\"\n.file 2 \"b.rs\"\n");
    }

    #[test]
    fn backslashes_in_paths_become_slashes() {
        let mut table = LineTable::default();
        table.loc(frame("src\\gemm.rs", 1));
        assert_eq!(table.files(), ".file 1 \"src/gemm.rs\"\n");
    }
}

//! Source lines with labels, as far as the source files are available.

use super::paint::{ColorMode, Style};
use std::collections::HashMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use warpline_ir::Frame;

/// The source files that a report quotes, each read once.
///
/// The compiler names a file relative to the root of its build. Therefore [`Sources::here`]
/// searches the package that cargo runs, the folder of this program, the current directory, and
/// their parents.
#[derive(Debug)]
pub struct Sources {
    roots: Vec<PathBuf>,
    files: HashMap<&'static str, Option<String>>,
}

/// A position to quote, with the text behind its marker.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) at: Frame,
    pub(super) text: String,
    /// Is it the statement that the report is about? Its marker is `^^^`, others have `---`.
    pub(super) is_primary: bool,
}

impl Sources {
    /// Creates sources that are searched in the folders of this build and in the current directory.
    pub fn here() -> Self {
        let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let program = env::current_exe().ok();
        let current = env::current_dir().ok();
        Self::under([package, program, current].into_iter().flatten())
    }

    /// Creates sources that are searched in these folders and their parents.
    pub fn under(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut roots: Vec<PathBuf> = Vec::new();
        for root in folders.into_iter().flat_map(with_parents) {
            if !roots.contains(&root) {
                roots.push(root);
            }
        }
        Self {
            roots,
            files: HashMap::new(),
        }
    }

    /// Creates sources without files.
    pub fn none() -> Self {
        Self::under([])
    }

    /// Returns the line of a frame, if its file is found and the line reaches to the column.
    pub fn line(&mut self, at: Frame) -> Option<&str> {
        let line = self.text(at.file)?;
        let line = line.lines().nth(at.line.checked_sub(1)? as usize)?;
        // A shorter line shows that the file has changed since it was compiled.
        (line.chars().count() >= at.column as usize).then_some(line)
    }

    fn text(&mut self, file: &'static str) -> Option<&str> {
        let roots = &self.roots;
        let text = self.files.entry(file).or_insert_with(|| {
            let read = |root: &PathBuf| fs::read_to_string(root.join(file)).ok();
            roots.iter().find_map(read)
        });
        text.as_deref()
    }

    /// Quotes the lines of all marks, those of the first mark's file first.
    pub(super) fn quote(&mut self, marks: &[Mark], color: ColorMode) -> String {
        let widest = marks.iter().map(|m| m.at.line.to_string().len()).max();
        let mut page = Page {
            color,
            margin: " ".repeat(widest.unwrap_or(1)),
            text: String::new(),
        };
        let mut files: Vec<&'static str> = Vec::new();
        for mark in marks {
            if !files.contains(&mark.at.file) {
                files.push(mark.at.file);
            }
        }
        for (i, file) in files.into_iter().enumerate() {
            let arrow = if i == 0 { "-->" } else { ":::" };
            let mut marks: Vec<&Mark> = marks.iter().filter(|m| m.at.file == file).collect();
            if marks.iter().any(|m| self.line(m.at).is_none()) {
                for (j, mark) in marks.into_iter().enumerate() {
                    page.unquoted(if j == 0 { arrow } else { ":::" }, mark);
                }
                continue;
            }
            page.arrow(arrow, &position(marks[0].at));
            page.bar("");
            marks.sort_by_key(|m| (m.at.line, m.at.column));
            self.quote_file(&mut page, &marks);
        }
        page.text
    }

    fn quote_file(&mut self, page: &mut Page, marks: &[&Mark]) {
        let mut last: Option<u32> = None;
        for mark in marks {
            let at = mark.at;
            match last.map(|last| at.line - last) {
                Some(0) => {}
                None | Some(1) => self.quote_line(page, at),
                Some(2) => {
                    let between = Frame {
                        line: at.line - 1,
                        column: 0,
                        ..at
                    };
                    self.quote_line(page, between);
                    self.quote_line(page, at);
                }
                Some(_) => {
                    page.text += "...\n";
                    self.quote_line(page, at);
                }
            }
            let line = self.line(at).unwrap_or_default().replace('\t', " ");
            page.marker(mark, name_length(&line, at.column));
            last = Some(at.line);
        }
        page.bar("");
    }

    fn quote_line(&mut self, page: &mut Page, at: Frame) {
        let line = self.line(at).unwrap_or_default().replace('\t', " ");
        page.source(at.line, line.trim_end());
    }
}

/// The quoted lines of one report.
struct Page {
    color: ColorMode,
    /// As many spaces as the widest line number has digits.
    margin: String,
    text: String,
}

impl Page {
    fn paint(&self, text: &str) -> String {
        self.color.paint(Style::Margin, text).to_string()
    }

    fn push(&mut self, line: &str) {
        self.text += line.trim_end();
        self.text.push('\n');
    }

    fn arrow(&mut self, arrow: &str, rest: &str) {
        let line = format!("{}{} {rest}", self.margin, self.paint(arrow));
        self.push(&line);
    }

    /// Adds a mark whose source line is not available.
    fn unquoted(&mut self, arrow: &str, mark: &Mark) {
        let text = match mark.text.is_empty() {
            true => position(mark.at),
            false => format!("{}: {}", position(mark.at), mark.text),
        };
        self.arrow(arrow, &text);
    }

    fn bar(&mut self, rest: &str) {
        let line = format!("{} {} {rest}", self.margin, self.paint("|"));
        self.push(&line);
    }

    fn source(&mut self, number: u32, line: &str) {
        let number = format!("{number:>width$}", width = self.margin.len());
        let line = format!("{} {} {line}", self.paint(&number), self.paint("|"));
        self.push(&line);
    }

    fn marker(&mut self, mark: &Mark, length: usize) {
        let before = " ".repeat(mark.at.column.saturating_sub(1) as usize);
        let (sign, part) = match mark.is_primary {
            true => ("^", Style::Error),
            false => ("-", Style::Margin),
        };
        let text = match mark.text.is_empty() {
            true => sign.repeat(length),
            false => format!("{} {}", sign.repeat(length), mark.text),
        };
        let marker = self.color.paint(part, text).to_string();
        self.bar(&format!("{before}{marker}"));
    }
}

/// Returns a folder and its parents.
fn with_parents(folder: PathBuf) -> Vec<PathBuf> {
    folder.ancestors().map(Path::to_owned).collect()
}

/// Returns `src/gemm.rs:88:21`, which editors open.
pub(super) fn position(at: Frame) -> String {
    format!("{}:{}:{}", at.file, at.line, at.column)
}

/// Returns the length of the name at a column; at least 1.
fn name_length(line: &str, column: u32) -> usize {
    let rest = line.chars().skip(column.saturating_sub(1) as usize);
    let name = rest.take_while(|c| c.is_alphanumeric() || *c == '_');
    name.count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> Sources {
        Sources::under([PathBuf::from(env!("CARGO_MANIFEST_DIR"))])
    }

    fn mark(at: Frame, text: &str, is_primary: bool) -> Mark {
        Mark {
            at,
            text: text.to_owned(),
            is_primary,
        }
    }

    #[test]
    fn two_lines_of_a_file_share_a_frame() {
        let first = Frame::caller();
        let gap = first.line + 6;
        let second = Frame {
            line: gap,
            column: 9,
            ..first
        };
        let marks = [mark(second, "writes", true), mark(first, "reads", false)];
        let text = here().quote(&marks, ColorMode::Plain);
        let pad = " ".repeat(first.line.to_string().len());
        let column = " ".repeat(first.column as usize - 1);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], format!("{pad}--> {}", position(second)));
        assert_eq!(lines[1], format!("{pad} |"));
        let quoted = format!("{} |         let first = Frame::caller();", first.line);
        assert_eq!(lines[2], quoted);
        assert_eq!(lines[3], format!("{pad} | {column}----- reads"));
        assert_eq!(lines[4], "...");
        assert!(lines[5].starts_with(&format!("{gap} | ")));
        assert!(lines[6].ends_with("^ writes"), "{text}");
        assert_eq!(lines[7], format!("{pad} |"));
    }

    #[test]
    fn a_missing_file_is_named_and_not_quoted() {
        let frame = |file, line, column| Frame { file, line, column };
        let missing = frame("no/such/file.rs", 7, 3);
        let text = here().quote(&[mark(missing, "writes", true)], ColorMode::Plain);
        assert_eq!(text, " --> no/such/file.rs:7:3: writes\n");
        // A file that has changed since the build: the line is missing or shorter.
        let short = frame(file!(), 1, 500);
        assert_eq!(here().line(short), None);
        assert_eq!(here().line(frame(file!(), 100_000, 1)), None);
        assert_eq!(here().line(frame(file!(), 0, 1)), None);
        assert_eq!(Sources::none().line(frame(file!(), 1, 1)), None);
    }

    #[test]
    fn a_marker_is_as_long_as_the_name() {
        assert_eq!(name_length("    slot.release();", 10), 7);
        assert_eq!(name_length("    a + b", 7), 1);
        assert_eq!(name_length("x", 9), 1);
    }
}

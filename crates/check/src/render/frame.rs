//! Lines of source, as far as the files are here.

use super::paint::{Look, Part};
use std::collections::HashMap;
use std::env;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use warpline_ir::Frame;

/// The files that a report quotes, each read once.
///
/// The compiler names a file relative to the root of its build, so it is
/// looked for in a few folders and those above them: the package that cargo
/// runs, the folder of this program and the current directory.
#[derive(Debug)]
pub struct Sources {
    roots: Vec<PathBuf>,
    files: HashMap<&'static str, Option<String>>,
}

impl Sources {
    /// Looks where a build of this program would have its files.
    pub fn here() -> Self {
        let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let program = env::current_exe().ok();
        let current = env::current_dir().ok();
        Self::under([package, program, current].into_iter().flatten())
    }

    /// Looks in folders, and in those above them.
    pub fn under(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut roots: Vec<PathBuf> = Vec::new();
        for root in folders.into_iter().flat_map(above) {
            if !roots.contains(&root) {
                roots.push(root);
            }
        }
        Self {
            roots,
            files: HashMap::new(),
        }
    }

    /// Quotes no file.
    pub fn none() -> Self {
        Self::under([])
    }

    /// The line of a frame, if its file is found and the line reaches to the column.
    pub fn line(&mut self, at: Frame) -> Option<&str> {
        let roots = &self.roots;
        let text = self.files.entry(at.file);
        let text = text.or_insert_with(|| {
            let read = |root: &PathBuf| fs::read_to_string(root.join(at.file)).ok();
            roots.iter().find_map(read)
        });
        let line = text
            .as_ref()?
            .lines()
            .nth(at.line.checked_sub(1)? as usize)?;
        // Else the file has changed since it was compiled.
        (line.chars().count() >= at.column as usize).then_some(line)
    }

    /// Where it is, and the line with a mark under what is meant.
    pub(super) fn frame(&mut self, at: Frame, role: Option<&str>, look: Look) -> String {
        let margin = " ".repeat(at.line.to_string().len());
        let paint = |text: &str| look.paint(Part::Margin, text).to_string();
        let role = role.map_or(String::new(), |role| format!(", role {role}"));
        let (arrow, place) = (paint("-->"), place(at));
        let mut text = format!("{margin}{arrow} {place}{role}\n");
        let Some(line) = self.line(at) else {
            return text;
        };
        let (number, bar) = (paint(&at.line.to_string()), paint("|"));
        let line = line.replace('\t', " ");
        let before = " ".repeat(at.column.saturating_sub(1) as usize);
        let mark = look.paint(Part::Error, "^".repeat(named(&line, at.column)));
        // Writing to a string does not fail.
        let _ = writeln!(text, "{margin} {bar}");
        let _ = writeln!(text, "{number} {bar} {}", line.trim_end());
        let _ = writeln!(text, "{margin} {bar} {before}{mark}");
        text
    }
}

/// A folder, and those above it.
fn above(folder: PathBuf) -> Vec<PathBuf> {
    folder.ancestors().map(Path::to_owned).collect()
}

/// `src/gemm.rs:88:21`, which editors open.
pub(super) fn place(at: Frame) -> String {
    format!("{}:{}:{}", at.file, at.line, at.column)
}

/// How long the name is that stands at a column.
fn named(line: &str, column: u32) -> usize {
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

    #[test]
    fn a_line_is_quoted_with_its_name_marked() {
        let at = Frame::caller();
        let text = here().frame(at, Some("load"), Look::Plain);
        let pad = " ".repeat(at.line.to_string().len());
        let column = " ".repeat(at.column as usize - 1);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                format!("{pad}--> {}, role load", place(at)),
                format!("{pad} |"),
                format!("{} |         let at = Frame::caller();", at.line),
                format!("{pad} | {column}^^^^^"),
            ]
        );
    }

    #[test]
    fn what_is_not_here_is_named_and_not_quoted() {
        let frame = |file, line, column| Frame { file, line, column };
        let missing = frame("no/such/file.rs", 7, 3);
        let text = here().frame(missing, None, Look::Plain);
        assert_eq!(text, " --> no/such/file.rs:7:3\n");
        // A file that has changed since: no such line, or a shorter one.
        let short = frame(file!(), 1, 500);
        assert_eq!(here().line(short), None);
        assert_eq!(here().line(frame(file!(), 100_000, 1)), None);
        assert_eq!(here().line(frame(file!(), 0, 1)), None);
        assert_eq!(Sources::none().line(frame(file!(), 1, 1)), None);
    }

    #[test]
    fn a_name_ends_where_it_does() {
        assert_eq!(named("    slot.release();", 10), 7);
        assert_eq!(named("    a + b", 7), 1);
        assert_eq!(named("x", 9), 1);
    }
}

//! Paths and commands that Markdown quotes.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// A quoted text and its position.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Quoted {
    /// The Markdown file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The text.
    pub text: String,
}

/// The quotations of one Markdown file.
#[derive(Clone, Default, Debug)]
pub struct Quotations {
    /// Code spans and link targets that name a file or a folder.
    pub paths: Vec<Quoted>,
    /// Command lines, without their comments.
    pub commands: Vec<Quoted>,
}

/// Collects the quotations of a Markdown text.
pub fn quotations(file: &Path, text: &str) -> Quotations {
    let mut found = Quotations::default();
    let mut fence: Option<String> = None;
    for (i, line) in text.lines().enumerate() {
        let quoted = |text: &str| Quoted {
            file: file.to_owned(),
            line: i + 1,
            text: text.to_owned(),
        };
        if let Some(language) = line.trim_start().strip_prefix("```") {
            fence = match fence {
                None => Some(language.trim().to_owned()),
                Some(_) => None,
            };
            continue;
        }
        if let Some(language) = &fence {
            if ["sh", "bash", "console", "text"].contains(&&**language) {
                let line = line.trim().trim_start_matches("$ ");
                found.commands.extend(command(line).map(quoted));
            }
            continue;
        }
        for span in spans(line) {
            match command(span) {
                Some(command) => found.commands.push(quoted(command)),
                None if is_path(span) => found.paths.push(quoted(span)),
                None => {}
            }
        }
        for target in links(line) {
            found.paths.push(quoted(target));
        }
    }
    found
}

/// Returns a command line of this project without its comment.
fn command(text: &str) -> Option<&str> {
    let text = text.split(" #").next().unwrap_or(text).trim();
    let starts = ["warpline ", "bin/warpline ", "cargo run ", "cargo xtask "];
    starts
        .iter()
        .any(|start| text.starts_with(start))
        .then_some(text)
}

/// Returns the code spans of a line.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Returns the targets of links and images that stay inside the repository.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    let inside = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
    inside.map(|target| target.split('#').next().unwrap_or(target))
}

/// Returns whether a code span names a file or a folder of the repository.
fn is_path(span: &str) -> bool {
    let folders = ["crates/", "docs/", "examples/", "python/", "xtask/", ".ci/"];
    let endings = [
        ".rs", ".md", ".py", ".pyi", ".json", ".svg", ".toml", ".trycmd",
    ];
    let is_plain = span
        .chars()
        .all(|c| c.is_alphanumeric() || "/._-{},<>*".contains(c));
    is_plain
        && (folders.iter().any(|folder| span.starts_with(folder))
            || endings.iter().any(|ending| span.ends_with(ending)))
}

/// The files and folders of the repository.
#[derive(Clone, Default, Debug)]
pub struct Tree {
    paths: BTreeSet<String>,
}

impl Tree {
    /// Reads the tree below `root`, without build output and hidden folders.
    pub fn read(root: &Path) -> std::io::Result<Self> {
        let mut tree = Self::default();
        tree.add(root, "")?;
        Ok(tree)
    }

    fn add(&mut self, folder: &Path, name: &str) -> std::io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let file = entry.file_name().to_string_lossy().into_owned();
            let hidden = file.starts_with('.') && file != ".ci";
            if hidden || ["target", "carry", "__pycache__"].contains(&&*file) {
                continue;
            }
            let path = match name {
                "" => file,
                _ => format!("{name}/{file}"),
            };
            if entry.file_type()?.is_dir() {
                self.add(&entry.path(), &path)?;
            }
            self.paths.insert(path);
        }
        Ok(())
    }

    /// Returns the Markdown files.
    pub fn markdown(&self) -> impl Iterator<Item = &str> {
        self.paths
            .iter()
            .map(|path| &**path)
            .filter(|path| path.ends_with(".md"))
    }

    /// Returns whether a quoted path exists: relative to the root, relative to the folder of its
    /// file, or as the end of a path. `{a,b}` matches if both exist; `<name>` and `*` match any text.
    pub fn has(&self, quoted: &Quoted) -> bool {
        let folder = quoted.file.parent().unwrap_or(Path::new(""));
        alternatives(&quoted.text).iter().all(|text| {
            let text = text.trim_end_matches('/');
            let relative = normalize(&folder.join(text));
            [text, &relative]
                .iter()
                .any(|path| self.matches(path, false))
                || self.matches(text, true)
        })
    }

    fn matches(&self, pattern: &str, at_end: bool) -> bool {
        if !pattern.contains(['*', '<']) && !at_end {
            return self.paths.contains(pattern);
        }
        let components: Vec<&str> = pattern.split('/').collect();
        self.paths.iter().any(|path| {
            let parts: Vec<&str> = path.split('/').collect();
            let has_length = match at_end {
                true => parts.len() >= components.len(),
                false => parts.len() == components.len(),
            };
            has_length
                && components
                    .iter()
                    .rev()
                    .zip(parts.iter().rev())
                    .all(|(pattern, part)| part_matches(pattern, part))
        })
    }
}

/// Returns whether one component of a path matches a pattern; `*` and `<name>` match any text.
fn part_matches(pattern: &str, part: &str) -> bool {
    let open = pattern.find(['*', '<']);
    let Some(open) = open else {
        return pattern == part;
    };
    let close = match pattern[open..].find('>') {
        Some(close) if pattern[open..].starts_with('<') => open + close + 1,
        _ => open + 1,
    };
    let (head, tail) = (&pattern[..open], &pattern[close..]);
    part.len() >= head.len() + tail.len() && part.starts_with(head) && part.ends_with(tail)
}

/// Expands `{a,b}`.
fn alternatives(text: &str) -> Vec<String> {
    let parts = text.split_once('{').and_then(|(head, rest)| {
        let (middle, tail) = rest.split_once('}')?;
        Some((head, middle, tail))
    });
    let Some((head, middle, tail)) = parts else {
        return vec![text.to_owned()];
    };
    let expanded = middle.split(',').map(|word| format!("{head}{word}{tail}"));
    expanded.flat_map(|text| alternatives(&text)).collect()
}

/// Removes `.` and `..`.
fn normalize(path: &Path) -> String {
    let mut parts: Vec<String> = Vec::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(part) => parts.push(part.to_string_lossy().into_owned()),
            _ => {}
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(text: &str) -> Quoted {
        Quoted {
            file: "docs/page.md".into(),
            line: 1,
            text: text.into(),
        }
    }

    #[test]
    fn paths_and_commands_are_found() {
        let text = "See `crates/ir/src/lib.rs` and [b](b.md), [web](https://a.b).\n\
                    Run `warpline check --all` # not this\n```sh\n$ warpline run gemm # comment\n```\n";
        let found = quotations(Path::new("docs/page.md"), text);
        let texts = |all: &[Quoted]| all.iter().map(|q| q.text.clone()).collect::<Vec<_>>();
        assert_eq!(texts(&found.paths), ["crates/ir/src/lib.rs", "b.md"]);
        assert_eq!(
            texts(&found.commands),
            ["warpline check --all", "warpline run gemm"]
        );
    }

    #[test]
    fn existing_paths_are_found_and_missing_ones_are_not() {
        let paths = [
            "docs/b.md",
            "crates/ir/src/lib.rs",
            "crates/ir/src/ops/a.rs",
        ];
        let tree = Tree {
            paths: paths.map(String::from).into(),
        };
        for found in [
            "b.md",
            "../crates/ir/src/lib.rs",
            "ops/a.rs",
            "crates/<name>/src/*.rs",
            "{b,b}.md",
        ] {
            assert!(tree.has(&quoted(found)), "{found}");
        }
        for missing in [
            "c.md",
            "crates/ir/src/main.rs",
            "ops/b.rs",
            "{b,c}.md",
            "crates/<name>/*.rs",
        ] {
            assert!(!tree.has(&quoted(missing)), "{missing}");
        }
    }
}

//! The documentation is current: generated files, quoted paths, quoted commands.

use std::path::{Path, PathBuf};
use warpline_docs::quoted::{Quotations, Quoted, Tree, quotations};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the quotations of every Markdown file, without the diaries in `docs/lab`.
fn all() -> (Tree, Quotations) {
    let tree = Tree::read(&root()).unwrap();
    let mut found = Quotations::default();
    for file in tree.markdown().filter(|file| !file.starts_with("docs/lab/")) {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        let quotations = quotations(Path::new(file), &text);
        found.paths.extend(quotations.paths);
        found.commands.extend(quotations.commands);
    }
    (tree, found)
}

/// Returns the quotations, one per line, as `file:line: text`.
fn listed(all: &[&Quoted]) -> String {
    let line = |q: &&Quoted| format!("\n  {}:{}: {}", q.file.display(), q.line, q.text);
    all.iter().map(line).collect()
}

#[test]
fn generated_files_are_current() {
    let stale = warpline_docs::stale(&root()).unwrap();
    let paths: Vec<_> = stale.iter().map(|file| &file.path).collect();
    assert!(paths.is_empty(), "not current: {paths:?}\nhelp: run `cargo xtask docs`");
}

#[test]
fn quoted_paths_exist() {
    let (tree, found) = all();
    assert!(found.paths.len() > 50, "only {} paths found", found.paths.len());
    let missing: Vec<&Quoted> = found.paths.iter().filter(|path| !tree.has(path)).collect();
    assert!(missing.is_empty(), "paths that do not exist:{}", listed(&missing));
}

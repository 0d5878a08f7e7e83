//! The documentation is current: generated files, quoted paths, quoted commands.

use std::path::{Path, PathBuf};
use warpline_docs::quoted::{Quotations, Quoted, Tree, quotations};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the files and the quotations of every Markdown file except those in `docs/lab`, which
/// quote old code.
fn tree_and_quotations() -> (Tree, Quotations) {
    let tree = Tree::read(&root()).unwrap();
    let mut found = Quotations::default();
    for file in tree
        .markdown()
        .filter(|file| !file.starts_with("docs/lab/"))
    {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        let quotations = quotations(Path::new(file), &text);
        found.paths.extend(quotations.paths);
        found.commands.extend(quotations.commands);
    }
    (tree, found)
}

/// Formats quotations, one per line: `file:line: text`.
fn format_list(all: &[&Quoted]) -> String {
    let line = |q: &&Quoted| format!("\n  {}:{}: {}", q.file.display(), q.line, q.text);
    all.iter().map(line).collect()
}

#[test]
fn generated_files_are_current() {
    let stale = warpline_docs::stale(&root()).unwrap();
    let paths: Vec<_> = stale.iter().map(|file| &file.path).collect();
    assert!(
        paths.is_empty(),
        "not current: {paths:?}\nhelp: run `cargo xtask docs`"
    );
}

#[test]
fn quoted_paths_exist() {
    let (tree, found) = tree_and_quotations();
    assert!(
        found.paths.len() > 50,
        "only {} paths found",
        found.paths.len()
    );
    let missing: Vec<&Quoted> = found.paths.iter().filter(|path| !tree.has(path)).collect();
    assert!(
        missing.is_empty(),
        "paths that do not exist:{}",
        format_list(&missing)
    );
}

#[test]
fn quoted_commands_parse() {
    let (_, found) = tree_and_quotations();
    let families = warpline_kernels::registry();
    let mut parsed = 0;
    let mut wrong = Vec::new();
    for quoted in &found.commands {
        match check_command(&families, &quoted.text) {
            Some(Err(error)) => wrong.push(format!(
                "\n  {}:{}: {}: {}",
                quoted.file.display(),
                quoted.line,
                quoted.text,
                error.lines().next().unwrap_or_default()
            )),
            Some(Ok(())) => parsed += 1,
            None => {}
        }
    }
    assert!(parsed > 30, "only {parsed} commands were parsed");
    assert!(
        wrong.is_empty(),
        "commands that do not parse:{}",
        wrong.concat()
    );
}

/// Parses a command of `warpline`. Returns `None` for commands of other programs.
fn check_command(
    families: &[&dyn warpline_kernels::AnyFamily],
    text: &str,
) -> Option<Result<(), String>> {
    let prefixes = [
        "warpline ",
        "bin/warpline ",
        "cargo run --release -- ",
        "cargo run -q --release -- ",
    ];
    let rest = prefixes.iter().find_map(|start| text.strip_prefix(start))?;
    // `FAMILY`, `A|B`, `[…]` and `…` are placeholders: only the command before them is parsed.
    let is_placeholder = |word: &&str| {
        word.contains(['|', '[', '…', '<', '=']) && !word.contains("stages=")
            || word.chars().all(|c| c.is_ascii_uppercase() || c == '_') && word.len() > 1
    };
    let words: Vec<&str> = rest.split_whitespace().collect();
    // The families of examples/own-kernel and of the template of `warpline new`.
    let has_other_family = words
        .iter()
        .any(|word| ["scale", "scale-bias-relu"].contains(word));
    let is_partial = words.len() == 1 || has_other_family || words.iter().any(is_placeholder);
    let kept: Vec<&str> = match is_partial {
        true => words
            .iter()
            .take_while(|word| !is_placeholder(word))
            .copied()
            .take(1)
            .collect(),
        false => words,
    };
    let mut args: Vec<std::ffi::OsString> = vec!["warpline".into()];
    args.extend(kept.iter().map(Into::into));
    if is_partial {
        args.push("--help".into());
    }
    Some(warpline_cli::parse(families, &args))
}

//! The table of codes is complete: no source file prints a code that it lacks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use warpline_check::CODES;

#[test]
fn codes_and_titles_are_unique_and_texts_end_without_a_full_stop() {
    let (mut seen_codes, mut seen_titles) = (BTreeSet::new(), BTreeSet::new());
    for rule in CODES {
        let (code, title) = (rule.code, rule.title);
        assert!(seen_codes.insert(code), "{code} twice");
        assert!(seen_titles.insert(title), "{code}: title `{title}` twice");
        for text in [rule.title, rule.requirement, rule.help] {
            assert!(text.len() > 5, "{code}: {text}");
            assert!(
                !text.ends_with('.') && !text.contains("  "),
                "{code}: {text}"
            );
        }
    }
}

/// `R6.bulk`, `S.role-name`, `U.states`, `A.writer`.
fn is_code(text: &str) -> bool {
    let Some((group, name)) = text.split_once('.') else {
        return false;
    };
    let number = group.strip_prefix('R');
    let numbered = number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    let named = |b: u8| b.is_ascii_lowercase() || b == b'-';
    (numbered || matches!(group, "S" | "U" | "A")) && !name.is_empty() && name.bytes().all(named)
}

/// The words of a source file that have the form of a code. A method call such as `S.stream(0)` is
/// not one.
fn codes_in(text: &str) -> impl Iterator<Item = &str> {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let words = text.split_inclusive(move |c| !word(c));
    let words = words.filter(|w| !w.ends_with('('));
    words
        .map(move |w| w.trim_end_matches(|c| !word(c)).trim_end_matches('.'))
        .filter(|w| is_code(w))
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs" || e == "py") {
            found.push(path);
        }
    }
}

#[test]
fn every_code_in_the_sources_is_in_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        let folder = entry.unwrap().path().join("src");
        if folder.is_dir() {
            sources(&folder, &mut files);
        }
    }
    sources(&root.join("python/src"), &mut files);
    let known: BTreeSet<&str> = CODES.iter().map(|rule| rule.code).collect();
    let mut missing: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut seen = 0;
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for code in codes_in(&text) {
            seen += 1;
            if !known.contains(code) {
                missing.insert(code.to_owned(), file.clone());
            }
        }
    }
    assert!(seen > CODES.len(), "the sources were found");
    assert!(missing.is_empty(), "codes that CODES lacks: {missing:#?}");
}

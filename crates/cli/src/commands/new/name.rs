//! Cargo's rules for the names of crates.

use crate::errors::Failure;

/// Keywords of every edition, reserved ones included.
const KEYWORDS: [&str; 52] = [
    "Self", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue",
    "crate", "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if",
    "impl", "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub",
    "ref", "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];
/// Crates of the Rust distribution.
const RUST_CRATES: [&str; 5] = ["alloc", "core", "proc_macro", "std", "test"];
/// Folders that Cargo creates next to the program.
const CARGO_FOLDERS: [&str; 4] = ["build", "deps", "examples", "incremental"];
/// Dependencies of the crate.
const DEPENDENCIES: [&str; 3] = ["warpline_cli", "warpline_family", "warpline_ir"];

/// Rejects a name that Cargo rejects.
pub(super) fn check(name: &str) -> Result<(), Failure> {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let other = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.starts_with(first) || !name.chars().all(other) {
        return reject(format!(
            "NAME must consist of ASCII letters, digits, - and _ and begin with a letter or _, not {name:?}"
        ));
    }
    // Rust code writes `-` as `_`.
    let identifier = name.replace('-', "_");
    let reserved = [
        (&KEYWORDS[..], "it is a Rust keyword"),
        (&RUST_CRATES, "it is a crate of the Rust distribution"),
        (&CARGO_FOLDERS, "it is a folder that Cargo creates"),
        (&DEPENDENCIES, "it is a dependency of the new crate"),
    ];
    match reserved
        .iter()
        .find(|(all, _)| all.contains(&identifier.as_str()))
    {
        Some((_, why)) => reject(format!("NAME cannot be {name:?}: {why}")),
        None => Ok(()),
    }
}

fn reject(text: String) -> Result<(), Failure> {
    Err(Failure::bad_input("bad-name", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_names_are_accepted() {
        for name in ["mine", "my-kernel", "my_kernel2", "_mine", "Relu", "tests"] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn invalid_names_are_rejected_with_the_rule_and_the_name() {
        let rule = "NAME must consist of ASCII letters";
        for (name, why) in [
            ("", rule),
            ("9lives", rule),
            ("-x", rule),
            ("a b", rule),
            ("a/b", rule),
            ("relü", rule),
            ("fn", "it is a Rust keyword"),
            ("test", "it is a crate of the Rust distribution"),
            ("core", "it is a crate of the Rust distribution"),
            ("proc-macro", "it is a crate of the Rust distribution"),
            ("deps", "it is a folder that Cargo creates"),
            ("warpline-ir", "it is a dependency of the new crate"),
        ] {
            let failure = check(name).unwrap_err();
            assert_eq!((failure.code, failure.exit), ("bad-name", 2), "{name}");
            assert!(failure.message.contains(why), "{failure}");
            assert!(failure.message.contains(&format!("{name:?}")), "{failure}");
        }
    }
}

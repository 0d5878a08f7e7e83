//! What a crate may be called, as Cargo has it.

use crate::errors::Failure;

/// Keywords of every edition, with those that are kept for later.
const KEYWORDS: [&str; 52] = [
    "Self", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue",
    "crate", "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if",
    "impl", "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub",
    "ref", "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];
/// Crates that come with Rust.
const OF_RUST: [&str; 5] = ["alloc", "core", "proc_macro", "std", "test"];
/// Folders that Cargo makes where the program would be.
const OF_CARGO: [&str; 4] = ["build", "deps", "examples", "incremental"];
/// What the crate itself depends on.
const NEEDED: [&str; 3] = ["warpline_cli", "warpline_family", "warpline_ir"];

/// Refuses what is no name for a crate.
pub(super) fn check(name: &str) -> Result<(), Failure> {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let other = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.starts_with(first) || !name.chars().all(other) {
        return refuse(format!(
            "NAME is made of ASCII letters, digits, - and _ and begins with a letter or _, not {name:?}"
        ));
    }
    // The crate's own code sees `-` as `_`.
    let seen = name.replace('-', "_");
    let taken = [
        (&KEYWORDS[..], "that is a Rust keyword"),
        (&OF_RUST, "that is a crate of Rust"),
        (&OF_CARGO, "that is a folder that Cargo makes"),
        (&NEEDED, "that is a crate it needs itself"),
    ];
    match taken.iter().find(|(all, _)| all.contains(&seen.as_str())) {
        Some((_, why)) => refuse(format!("NAME cannot be {name:?}: {why}")),
        None => Ok(()),
    }
}

fn refuse(text: String) -> Result<(), Failure> {
    Err(Failure::input("bad-name", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cargo_takes_are_taken() {
        for name in ["mine", "my-kernel", "my_kernel2", "_mine", "Relu", "tests"] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn other_names_are_refused_with_the_rule_and_the_name() {
        let rule = "NAME is made of ASCII letters";
        for (name, why) in [
            ("", rule),
            ("9lives", rule),
            ("-x", rule),
            ("a b", rule),
            ("a/b", rule),
            ("relü", rule),
            ("fn", "that is a Rust keyword"),
            ("test", "that is a crate of Rust"),
            ("core", "that is a crate of Rust"),
            ("proc-macro", "that is a crate of Rust"),
            ("deps", "that is a folder that Cargo makes"),
            ("warpline-ir", "that is a crate it needs itself"),
        ] {
            let said = check(name).unwrap_err();
            assert_eq!((said.code, said.exit), ("bad-name", 2), "{name}");
            assert!(said.message.contains(why), "{said}");
            assert!(said.message.contains(&format!("{name:?}")), "{said}");
        }
    }
}

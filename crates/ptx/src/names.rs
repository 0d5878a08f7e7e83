//! Identifiers that PTX takes.

use std::collections::HashSet;

/// A name made of what PTX identifiers may hold: other characters become `_`.
pub(crate) fn sanitise(name: &str) -> String {
    let mut id: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    if !id.starts_with(|c: char| c.is_ascii_alphabetic()) {
        id.insert(0, 'k');
    }
    id
}

/// Text that fits on one line of a comment, in the ASCII that ptxas takes.
pub(crate) fn comment(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    ascii(&line)
}

/// Text with `?` for what is not ASCII.
pub(crate) fn ascii(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_ascii() { c } else { '?' })
        .collect()
}

/// Hands out names, each once.
#[derive(Default)]
pub(crate) struct Names {
    taken: HashSet<String>,
}

impl Names {
    /// The name itself, or with a number if it is taken.
    pub(crate) fn unique(&mut self, name: String) -> String {
        let mut id = name.clone();
        let mut n = 2;
        while !self.taken.insert(id.clone()) {
            id = format!("{name}_{n}");
            n += 1;
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_letters_and_digits() {
        assert_eq!(sanitise("gemm128"), "gemm128");
        assert_eq!(sanitise("vector-add.bf16"), "vector_add_bf16");
        assert_eq!(sanitise("2d"), "k2d");
        assert_eq!(sanitise(""), "k");
        assert_eq!(sanitise("größe"), "gr__e");
    }

    #[test]
    fn a_taken_name_gets_a_number() {
        let mut names = Names::default();
        assert_eq!(names.unique("a".into()), "a");
        assert_eq!(names.unique("a".into()), "a_2");
        assert_eq!(names.unique("a".into()), "a_3");
    }

    #[test]
    fn a_comment_is_one_line() {
        assert_eq!(comment("first\n  second\r\nthird"), "first second third");
        assert_eq!(comment("größe"), "gr??e");
    }
}

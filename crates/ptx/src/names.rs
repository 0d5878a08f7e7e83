//! PTX identifiers.

use std::collections::HashSet;

/// Converts a name to a PTX identifier: other characters become `_`.
pub(crate) fn sanitize(name: &str) -> String {
    let mut id: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    if !id.starts_with(|c: char| c.is_ascii_alphabetic()) {
        id.insert(0, 'k');
    }
    id
}

/// Converts text to one line of ASCII, which ptxas requires in comments.
pub(crate) fn comment(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    ascii(&line)
}

/// Replaces non-ASCII characters by `?`.
pub(crate) fn ascii(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_ascii() { c } else { '?' })
        .collect()
}

/// Makes names unique.
#[derive(Default)]
pub(crate) struct Names {
    taken: HashSet<String>,
}

impl Names {
    /// Returns the name, with a number appended if it is taken.
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
    fn identifiers_keep_letters_and_digits() {
        assert_eq!(sanitize("gemm128"), "gemm128");
        assert_eq!(sanitize("vector-add.bf16"), "vector_add_bf16");
        assert_eq!(sanitize("2d"), "k2d");
        assert_eq!(sanitize(""), "k");
        assert_eq!(sanitize("größe"), "gr__e");
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

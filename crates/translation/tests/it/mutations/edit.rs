//! Edits of a PTX text.

/// An edit of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Edit {
    /// Removes the line.
    Remove,
    /// Duplicates the line.
    Duplicate,
    /// Replaces a part of the line.
    Replace(&'static str, &'static str),
    /// Swaps the line with the next line that contains a text.
    SwapWith(&'static str),
    /// Inserts another line before the line.
    InsertBefore(&'static str),
}

impl Edit {
    /// Returns the edited text and the number of the edited line, if the line exists.
    pub(crate) fn apply(self, text: &str, line: &str) -> Option<(String, usize)> {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let matches = |l: &String, part: &str| l.contains(part) && !l.starts_with("//");
        let at = lines.iter().position(|l| matches(l, line))?;
        match self {
            Edit::Remove => {
                lines.remove(at);
            }
            Edit::Duplicate => lines.insert(at, lines[at].clone()),
            Edit::Replace(from, to) => {
                let replaced = lines[at].replacen(from, to, 1);
                if replaced == lines[at] {
                    return None;
                }
                lines[at] = replaced;
            }
            Edit::SwapWith(other) => {
                let with = at + 1 + lines[at + 1..].iter().position(|l| matches(l, other))?;
                lines.swap(at, with);
            }
            Edit::InsertBefore(other) => lines.insert(at, other.to_owned()),
        }
        Some((lines.join("\n"), at + 1))
    }
}

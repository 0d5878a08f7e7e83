//! Edits of a PTX text.

/// An edit of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Edit {
    /// Removes the line.
    Drop,
    /// Duplicates the line.
    Twice,
    /// Replaces a part of the line.
    Put(&'static str, &'static str),
    /// Swaps the line with the next line that contains a text.
    Swap(&'static str),
    /// Inserts a line before it.
    Before(&'static str),
}

impl Edit {
    /// Returns the edited text and the number of the edited line, if the line exists.
    pub(crate) fn apply(self, text: &str, line: &str) -> Option<(String, usize)> {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let holds = |l: &String, part: &str| l.contains(part) && !l.starts_with("//");
        let at = lines.iter().position(|l| holds(l, line))?;
        match self {
            Edit::Drop => {
                lines.remove(at);
            }
            Edit::Twice => lines.insert(at, lines[at].clone()),
            Edit::Put(from, to) => {
                let put = lines[at].replacen(from, to, 1);
                if put == lines[at] {
                    return None;
                }
                lines[at] = put;
            }
            Edit::Swap(other) => {
                let with = at + 1 + lines[at + 1..].iter().position(|l| holds(l, other))?;
                lines.swap(at, with);
            }
            Edit::Before(other) => lines.insert(at, other.to_owned()),
        }
        Some((lines.join("\n"), at + 1))
    }
}

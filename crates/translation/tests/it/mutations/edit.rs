//! Changes of a text.

/// What becomes of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Edit {
    /// It is lost.
    Drop,
    /// It stands there twice.
    Twice,
    /// A part of it is another.
    Put(&'static str, &'static str),
    /// It changes places with the next line that holds something.
    Swap(&'static str),
    /// Another line stands before it.
    Before(&'static str),
}

impl Edit {
    /// The changed text and the number of the changed line, if the line is there.
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

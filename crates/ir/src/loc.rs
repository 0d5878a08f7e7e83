//! Source locations of statements: stacks of Rust source lines.
//!
//! Every statement keeps the line of its caller and the lines of the enclosing
//! helpers, loops and role, innermost first. A message shows the author's line:
//! the innermost line outside of this crate.

use rustc_hash::FxHashMap;
use std::fmt;
use std::panic::Location;

/// A position in a Rust source file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Frame {
    /// The path that the compiler reports.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl Frame {
    /// Returns the source line that called the enclosing `#[track_caller]` function.
    #[track_caller]
    pub fn caller() -> Self {
        Location::caller().into()
    }

    /// Returns whether the frame is inside of this crate; the author's line is outside.
    pub fn is_internal(&self) -> bool {
        // `file!()` and `Location::file` return the same path for the same file.
        let here = file!();
        let root = &here[..here.len() - "loc.rs".len()];
        self.file.starts_with(root) || self.file.starts_with("/rustc/")
    }
}

impl From<&'static Location<'static>> for Frame {
    fn from(l: &'static Location<'static>) -> Self {
        Self {
            file: l.file(),
            line: l.line(),
            column: l.column(),
        }
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.file.rsplit(['/', '\\']).next().unwrap_or(self.file);
        write!(f, "{name}:{}", self.line)
    }
}

/// A stack of frames, interned in a [`Locs`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Default)]
pub struct Loc(pub u32);

/// The location stacks of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Locs {
    stacks: Vec<Box<[Frame]>>,
    index: FxHashMap<Box<[Frame]>, Loc>,
}

impl Locs {
    /// Interns a stack, innermost frame first.
    pub fn intern(&mut self, stack: &[Frame]) -> Loc {
        if let Some(&l) = self.index.get(stack) {
            return l;
        }
        let l = Loc(self.stacks.len() as u32);
        self.stacks.push(stack.into());
        self.index.insert(stack.into(), l);
        l
    }

    /// Returns the stack, innermost frame first.
    pub fn stack(&self, l: Loc) -> &[Frame] {
        self.stacks.get(l.0 as usize).map_or(&[], |s| s)
    }

    /// Returns the author's frame: the innermost one outside of this crate.
    pub fn author(&self, l: Loc) -> Option<Frame> {
        let stack = self.stack(l);
        stack
            .iter()
            .find(|f| !f.is_internal())
            .or(stack.first())
            .copied()
    }

    /// Returns the author's line as `file.rs:12`.
    pub fn show(&self, l: Loc) -> String {
        self.author(l)
            .map_or_else(|| "(no line)".to_owned(), |f| f.to_string())
    }
}

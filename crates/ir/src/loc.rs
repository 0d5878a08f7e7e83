//! Where a statement comes from: stacks of Rust source locations.
//!
//! Every statement keeps the line of the op's caller and the lines of the
//! helpers, loops and role that enclose it, innermost first. A message shows
//! the innermost line that is not inside this crate: the author's.

use std::collections::HashMap;
use std::fmt;
use std::panic::Location;

/// One place in a Rust source file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Frame {
    /// The path as the compiler saw it.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl Frame {
    /// The caller of a `#[track_caller]` function.
    #[track_caller]
    pub fn caller() -> Self {
        Location::caller().into()
    }

    /// Is this frame inside the builder, and so of no use to an author?
    pub fn is_internal(&self) -> bool {
        // `file!()` and `Location::file` spell the same file the same way.
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

/// All location stacks of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Locs {
    stacks: Vec<Box<[Frame]>>,
    index: HashMap<Box<[Frame]>, Loc>,
}

impl Locs {
    /// Interns a stack, innermost frame first.
    pub fn intern(&mut self, stack: Vec<Frame>) -> Loc {
        let stack = stack.into_boxed_slice();
        if let Some(&l) = self.index.get(&stack) {
            return l;
        }
        let l = Loc(self.stacks.len() as u32);
        self.stacks.push(stack.clone());
        self.index.insert(stack, l);
        l
    }

    /// The whole stack, innermost frame first.
    pub fn stack(&self, l: Loc) -> &[Frame] {
        self.stacks.get(l.0 as usize).map_or(&[], |s| s)
    }

    /// The innermost frame that belongs to an author.
    pub fn author(&self, l: Loc) -> Option<Frame> {
        let stack = self.stack(l);
        stack
            .iter()
            .find(|f| !f.is_internal())
            .or(stack.first())
            .copied()
    }

    /// The author's line, as `file.rs:12`.
    pub fn show(&self, l: Loc) -> String {
        self.author(l)
            .map_or_else(|| "(no line)".to_owned(), |f| f.to_string())
    }
}

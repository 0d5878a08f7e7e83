//! The mutations of a kernel.

use crate::case::Case;
use crate::edit::Edit;
use crate::kinds::{self, Kind};
use std::collections::HashMap;
use warpline_ir::{Kernel, Loc};

/// One way to break one kernel in one place.
#[derive(Clone, Debug)]
pub struct Mutation {
    /// What is done.
    pub kind: &'static Kind,
    /// Its number among those of its kind.
    pub index: usize,
    /// Where.
    pub loc: Loc,
    /// What is changed, as a sentence that begins with the role.
    pub text: String,
    edit: Edit,
}

impl Mutation {
    /// Its name among the mutations of the kernel: kind, number and sentence.
    pub fn id(&self) -> String {
        format!("{}.{} {}", self.kind.name, self.index, self.text)
    }

    /// The broken kernel.
    pub fn of(&self, kernel: &Kernel) -> Kernel {
        self.edit.apply(kernel)
    }
}

/// Every mutation of a kernel, by kind and in program order.
pub fn mutations(kernel: &Kernel) -> Vec<Mutation> {
    let case = Case::new(kernel);
    let of_kind = |kind: &'static Kind| {
        let edits = (kind.edits)(&case);
        let numbered = edits.into_iter().enumerate();
        numbered.map(move |(index, edit)| Mutation {
            kind,
            index,
            loc: edit.loc,
            text: edit.text.clone(),
            edit,
        })
    };
    kinds::ALL.iter().flat_map(of_kind).collect()
}

/// Some of each kind, at most `most`: those that read differently first, from
/// another place on in each `turn`, so that kernels that are alike are broken
/// in different places.
pub fn pick(all: Vec<Mutation>, most: usize, turn: usize) -> Vec<Mutation> {
    let mut picked = Vec::new();
    for kind in kinds::ALL {
        let mine: Vec<&Mutation> = all.iter().filter(|m| m.kind.name == kind.name).collect();
        // The first of each sentence, then the second, and so on.
        let mut seen: HashMap<&str, usize> = HashMap::new();
        let mut ranked: Vec<(usize, &Mutation)> = (mine.into_iter())
            .map(|m| {
                let times = seen.entry(&m.text).or_default();
                *times += 1;
                (*times, m)
            })
            .collect();
        ranked.sort_by_key(|(times, m)| (*times, m.index));
        let distinct = ranked.iter().filter(|(times, _)| *times == 1).count();
        if distinct > 0 {
            ranked[..distinct].rotate_left(turn * most % distinct);
        }
        picked.extend(ranked.into_iter().take(most).map(|(_, m)| m.clone()));
    }
    picked
}

//! The mutations of a kernel.

use crate::edit::Edit;
use crate::kinds::{self, MutationKind};
use crate::sites::KernelSites;
use std::collections::HashMap;
use warpline_ir::{Kernel, Loc};

/// A mutation of one kernel at one site.
#[derive(Clone, Debug)]
pub struct Mutation {
    /// The kind.
    pub kind: &'static MutationKind,
    /// The index among the mutations of the same kind.
    pub index: usize,
    /// The source location of the changed statement.
    pub loc: Loc,
    /// The change in one phrase, after the name of the role.
    pub text: String,
    edit: Edit,
}

impl Mutation {
    /// Returns the name of the mutant: kind, index and text.
    pub fn id(&self) -> String {
        format!("{}.{} {}", self.kind.name, self.index, self.text)
    }

    /// Returns the mutant of a kernel.
    pub fn apply(&self, kernel: &Kernel) -> Kernel {
        self.edit.apply(kernel)
    }
}

/// Returns every mutation of a kernel, by kind and in program order.
pub fn mutations(kernel: &Kernel) -> Vec<Mutation> {
    let sites = KernelSites::new(kernel);
    let of_kind = |kind: &'static MutationKind| {
        let edits = (kind.edits)(&sites);
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

/// Returns at most `max` mutations of each kind. Mutations with distinct texts come first, rotated
/// by `turn`, so that similar kernels are mutated at different sites.
pub fn select_mutations(all: Vec<Mutation>, max: usize, turn: usize) -> Vec<Mutation> {
    let mut selected = Vec::new();
    for kind in kinds::ALL {
        let of_kind: Vec<&Mutation> = all.iter().filter(|m| m.kind.name == kind.name).collect();
        // The first mutation of each text, then the second, and so on.
        let mut seen: HashMap<&str, usize> = HashMap::new();
        let mut ranked: Vec<(usize, &Mutation)> = (of_kind.into_iter())
            .map(|m| {
                let times = seen.entry(&m.text).or_default();
                *times += 1;
                (*times, m)
            })
            .collect();
        ranked.sort_by_key(|(times, m)| (*times, m.index));
        let distinct = ranked.iter().filter(|(times, _)| *times == 1).count();
        if distinct > 0 {
            ranked[..distinct].rotate_left(turn * max % distinct);
        }
        selected.extend(ranked.into_iter().take(max).map(|(_, m)| m.clone()));
    }
    selected
}

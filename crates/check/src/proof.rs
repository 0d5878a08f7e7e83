//! A cache of the proofs of this process, by text hash. Declared bounds are part of the text,
//! because a proof may rely on them.

use crate::assumption::Assumption;
use crate::rules::references;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use warpline_ir::{Kernel, Target};

static KNOWN: LazyLock<Mutex<HashMap<Proof, Vec<Assumption>>>> = LazyLock::new(Mutex::default);

/// The key of a proof: the program and the target.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Proof {
    text: String,
    target: String,
}

impl Proof {
    /// Returns the key of a kernel, if all its ids are declared, so that it has a hash.
    pub(crate) fn of(kernel: &Kernel, target: &Target) -> Option<Self> {
        references::are_declared(kernel).then(|| Self {
            text: kernel.text_hash(),
            target: format!("{target:?}"),
        })
    }

    /// Returns the assumptions of the proof, if the cache has it.
    pub(crate) fn known(&self) -> Option<Vec<Assumption>> {
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(self).cloned()
    }

    /// Stores the proof with its assumptions.
    pub(crate) fn keep(self, assumptions: Vec<Assumption>) {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(self, assumptions);
    }
}

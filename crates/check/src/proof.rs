//! Proofs of this process, by text hash. Declared bounds are part of the text:
//! a proof that counts on one does not hold without it.

use crate::assumption::Assumption;
use crate::rules::references;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use warpline_ir::{Kernel, Target};

static KNOWN: LazyLock<Mutex<HashMap<Proof, Vec<Assumption>>>> = LazyLock::new(Mutex::default);

/// That a program was proved for a target.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Proof {
    text: String,
    target: String,
}

impl Proof {
    /// What a proof of a kernel would be kept under, if it has a hash.
    pub(crate) fn of(kernel: &Kernel, target: &Target) -> Option<Self> {
        references::are_declared(kernel).then(|| Self {
            text: kernel.text_hash(),
            target: format!("{target:?}"),
        })
    }

    /// The assumptions of the proof, if it was found before.
    pub(crate) fn known(&self) -> Option<Vec<Assumption>> {
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(self).cloned()
    }

    /// Keeps it, with the assumptions it rests on.
    pub(crate) fn keep(self, assumptions: Vec<Assumption>) {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(self, assumptions);
    }
}

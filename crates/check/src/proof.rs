//! A cache of the proofs of this process, by text hash. Declared bounds are part of the text,
//! because a proof may rely on them.

use crate::assumption::Assumption;
use crate::rules::references;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use warpline_ir::{Kernel, Target};

static CACHE: LazyLock<Mutex<HashMap<ProofKey, Vec<Assumption>>>> = LazyLock::new(Mutex::default);

/// The key of a proof: the program and the target.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct ProofKey {
    text: String,
    target: String,
}

impl ProofKey {
    /// Returns the key of a kernel; `None` if an id is undeclared, because the kernel then has no
    /// hash.
    pub(crate) fn of(kernel: &Kernel, target: &Target) -> Option<Self> {
        references::are_declared(kernel).then(|| Self {
            text: kernel.text_hash(),
            target: format!("{target:?}"),
        })
    }

    /// Returns the assumptions of the proof, if the cache contains it.
    pub(crate) fn cached_assumptions(&self) -> Option<Vec<Assumption>> {
        let cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        cache.get(self).cloned()
    }

    /// Stores the proof with its assumptions.
    pub(crate) fn store(self, assumptions: Vec<Assumption>) {
        let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        cache.insert(self, assumptions);
    }
}

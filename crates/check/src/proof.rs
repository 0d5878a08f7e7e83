//! What was proved in this process, by the hash of the program. Declared bounds are part of it:
//! a proof that counts on one does not hold without it.

use crate::rules::references;
use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, PoisonError};
use warpline_ir::{Kernel, Target};

static KNOWN: LazyLock<Mutex<HashSet<Proof>>> = LazyLock::new(Mutex::default);

/// That a program was proved for a target.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Proof {
    program: String,
    target: String,
}

impl Proof {
    /// What a proof of a kernel would be kept under, if it has a hash.
    pub(crate) fn of(kernel: &Kernel, target: &Target) -> Option<Self> {
        Some(Self {
            program: references::hash(kernel)?,
            target: format!("{target:?}"),
        })
    }

    /// Was it found before?
    pub(crate) fn is_known(&self) -> bool {
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.contains(self)
    }

    /// Keeps it.
    pub(crate) fn keep(self) {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(self);
    }
}

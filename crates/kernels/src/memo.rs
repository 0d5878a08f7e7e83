//! A memo table: each result is computed once per key.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Entries of a full memo; the next insertion clears it first.
const MAX_ENTRIES: usize = 1 << 16;

/// A thread-safe map from keys to computed results.
pub(crate) struct Memo<K, V>(LazyLock<Mutex<HashMap<K, V>>>);

impl<K: Eq + Hash, V: Copy> Memo<K, V> {
    /// Returns an empty memo.
    pub(crate) const fn new() -> Self {
        Self(LazyLock::new(Mutex::default))
    }

    /// Returns the result for a key. A new key runs `compute`, without holding the lock.
    pub(crate) fn get<E>(&self, key: K, compute: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&known) = lock().get(&key) {
            return Ok(known);
        }
        let value = compute()?;
        let mut known = lock();
        if known.len() >= MAX_ENTRIES {
            known.clear();
        }
        known.insert(key, value);
        Ok(value)
    }
}

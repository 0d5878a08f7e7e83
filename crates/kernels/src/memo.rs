//! A memo table: each result is computed once per key.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{LazyLock, Mutex, PoisonError};

/// The maximum number of entries. The next insertion clears a full memo.
const MAX_ENTRIES: usize = 1 << 16;

/// A thread-safe map from keys to computed results.
pub(crate) struct Memo<K, V>(LazyLock<Mutex<HashMap<K, V>>>);

impl<K: Eq + Hash, V: Copy> Memo<K, V> {
    /// Returns an empty memo.
    pub(crate) const fn new() -> Self {
        Self(LazyLock::new(Mutex::default))
    }

    /// Returns the result for a key. Runs `compute` for a new key, without the lock.
    pub(crate) fn get<E>(&self, key: K, compute: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&result) = lock().get(&key) {
            return Ok(result);
        }
        let result = compute()?;
        let mut results = lock();
        if results.len() >= MAX_ENTRIES {
            results.clear();
        }
        results.insert(key, result);
        Ok(result)
    }
}

//! Results that are computed once for each key.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{LazyLock, Mutex, PoisonError};

/// The most results that a memo keeps; beyond, it forgets all.
const MOST: usize = 1 << 16;

/// Results by key.
pub(crate) struct Memo<K, V>(LazyLock<Mutex<HashMap<K, V>>>);

impl<K: Eq + Hash, V: Copy> Memo<K, V> {
    /// An empty memo.
    pub(crate) const fn new() -> Self {
        Self(LazyLock::new(Mutex::default))
    }

    /// Returns the result for a key; `compute` runs if the key is new, without the lock.
    pub(crate) fn get<E>(&self, key: K, compute: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&known) = lock().get(&key) {
            return Ok(known);
        }
        let value = compute()?;
        let mut known = lock();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(key, value);
        Ok(value)
    }
}

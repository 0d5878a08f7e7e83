//! The cache entries that this process has loaded. Each key is read from disk once.

use super::cache::TuneCache;
use super::entry::TuneCacheEntry;
use super::key::{TuneKey, TuneKeyHash};
use super::notices;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// The capacity in keys. A full cache is cleared, and keys are read from disk again.
const MAX_KEYS: usize = 16384;

/// Loaded cache entries, including negative results.
#[derive(Debug)]
pub(crate) struct LoadedTuneCache {
    cache: TuneCache,
    entries: RwLock<HashMap<TuneKeyHash, Option<Arc<LoadedEntry>>>>,
}

/// A loaded entry, and whether its programs are current.
#[derive(Debug)]
pub(super) struct LoadedEntry {
    pub(super) entry: TuneCacheEntry,
    /// For each config, whether this build generates the program that was tuned. Checked once.
    pub(super) is_current: Vec<OnceLock<bool>>,
}

impl LoadedTuneCache {
    pub(crate) fn new(cache: TuneCache) -> Self {
        Self {
            cache,
            entries: RwLock::default(),
        }
    }

    pub(super) fn cache(&self) -> &TuneCache {
        &self.cache
    }

    /// Returns the entry of a key. The first call reads it from disk; a missing entry is remembered
    /// as well.
    pub(super) fn get(&self, key: &TuneKey) -> Option<Arc<LoadedEntry>> {
        let hash = key.hash();
        if let Some(found) = self.loaded(&hash) {
            return found;
        }
        let entry = self.cache.read(key).unwrap_or_else(|why| {
            notices::notify(why);
            None
        });
        self.store(hash, entry)
    }

    /// Returns the loaded entry of a key without reading the disk: `None` if the key was not loaded,
    /// `Some(None)` if it has no entry.
    pub(super) fn loaded(&self, hash: &TuneKeyHash) -> Option<Option<Arc<LoadedEntry>>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.get(hash).cloned()
    }

    /// Drops the entry of a key, so that the next lookup reads the disk.
    pub(super) fn forget(&self, key: &TuneKey) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.remove(&key.hash());
    }

    /// Inserts an entry for this process.
    pub(super) fn insert(&self, entry: TuneCacheEntry) -> Option<Arc<LoadedEntry>> {
        self.store(entry.key.hash(), Some(entry))
    }

    fn store(&self, hash: TuneKeyHash, entry: Option<TuneCacheEntry>) -> Option<Arc<LoadedEntry>> {
        let entry = entry.map(|entry| {
            let is_current = entry.ranked.iter().map(|_| OnceLock::new()).collect();
            Arc::new(LoadedEntry { entry, is_current })
        });
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= MAX_KEYS {
            entries.clear();
        }
        entries.insert(hash, entry.clone());
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::entry::tests::entry;
    use crate::tune::key::tests::key;
    use std::hint::black_box;
    use std::time::Instant;

    fn loaded_cache() -> (tempfile::TempDir, LoadedTuneCache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = TuneCache::at(folder.path());
        (folder, LoadedTuneCache::new(cache))
    }

    #[test]
    fn a_key_is_read_once_even_if_it_has_no_entry() {
        let (folder, loaded) = loaded_cache();
        loaded.cache.write(&entry(8)).unwrap();
        assert!(loaded.get(&key(8)).is_some() && loaded.get(&key(16)).is_none());
        // This process does not see later changes on disk.
        drop(folder);
        assert!(loaded.get(&key(8)).is_some());
        loaded.cache.write(&entry(16)).unwrap();
        assert!(loaded.get(&key(16)).is_none());
        loaded.forget(&key(16));
        assert!(loaded.get(&key(16)).is_some());
        loaded.insert(entry(32));
        assert_eq!(loaded.get(&key(32)).unwrap().entry.key, key(32));
    }

    #[test]
    fn an_invalid_file_is_ignored_with_a_notice() {
        let (folder, loaded) = loaded_cache();
        let path = loaded.cache.write(&entry(8)).unwrap().unwrap();
        std::fs::write(&path, "{").unwrap();
        assert!(loaded.get(&key(8)).is_none());
        let notices = notices::notices();
        let name = path.display().to_string();
        assert!(
            notices
                .iter()
                .any(|s| s.contains(&name) && s.contains("it is truncated")),
            "{notices:?}"
        );
        drop(folder);
    }

    /// Prints the cost of lookups: `cargo test -p warpline --release --lib -- --ignored --nocapture cost`.
    #[test]
    #[ignore = "prints times"]
    fn lookup_cost() {
        let (_folder, loaded) = loaded_cache();
        loaded.cache.write(&entry(8)).unwrap();
        let mut reads: Vec<f64> = (0..2000)
            .map(|_| {
                loaded.forget(&key(8));
                let key = key(8);
                let start = Instant::now();
                black_box(loaded.get(&key));
                start.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        reads.sort_by(f64::total_cmp);
        println!(
            "first read of an entry, parsed: median {:.1} µs",
            reads[1000]
        );
        let (key, n) = (key(8), 200_000);
        let print_time = |what: &str, lookup: &dyn Fn()| {
            let start = Instant::now();
            (0..n).for_each(|_| lookup());
            let ns = start.elapsed().as_secs_f64() * 1e9 / f64::from(n);
            println!("{what}: {ns:.0} ns");
        };
        let hash = key.hash();
        print_time("lookup by key", &|| drop(black_box(loaded.get(&key))));
        print_time("lookup by hash", &|| drop(black_box(loaded.loaded(&hash))));
    }
}

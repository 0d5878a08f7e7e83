//! What this process knows of tuned configs: each key is read from disk once.

use super::entry::Entry;
use super::key::{Id, Key};
use super::notices;
use super::store::Store;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// The most keys that are known at once; beyond, all are forgotten and read again.
const MOST: usize = 16384;

/// Tuned configs, and that there is none.
#[derive(Debug)]
pub(crate) struct Memory {
    store: Store,
    known: RwLock<HashMap<Id, Option<Arc<Known>>>>,
}

/// An entry, and what was found of its programs.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) entry: Entry,
    /// Of each config: is its program the one that was tuned? Found out once.
    pub(super) sound: Vec<OnceLock<bool>>,
}

impl Memory {
    pub(crate) fn new(store: Store) -> Self {
        Self {
            store,
            known: RwLock::default(),
        }
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// What is remembered for a key. The first time it is read from disk; that
    /// there is nothing is remembered as well.
    pub(super) fn of(&self, key: &Key) -> Option<Arc<Known>> {
        let id = key.id();
        if let Some(found) = self.known(&id) {
            return found;
        }
        let entry = self.store.read(key).unwrap_or_else(|why| {
            notices::say(why);
            None
        });
        self.put(id, entry)
    }

    /// What is known of a key, without a look at the disk.
    pub(super) fn known(&self, id: &Id) -> Option<Option<Arc<Known>>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(id).cloned()
    }

    /// Forgets a key, so that it is read again.
    pub(super) fn forget(&self, key: &Key) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.remove(&key.id());
    }

    /// Remembers an entry in this process.
    pub(super) fn remember(&self, entry: Entry) -> Option<Arc<Known>> {
        self.put(entry.key.id(), Some(entry))
    }

    fn put(&self, id: Id, entry: Option<Entry>) -> Option<Arc<Known>> {
        let entry = entry.map(|entry| {
            let sound = entry.ranked.iter().map(|_| OnceLock::new()).collect();
            Arc::new(Known { entry, sound })
        });
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(id, entry.clone());
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

    fn memory() -> (tempfile::TempDir, Memory) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        (folder, Memory::new(store))
    }

    #[test]
    fn a_key_is_read_once_and_so_is_that_there_is_none() {
        let (folder, memory) = memory();
        memory.store.write(&entry(8)).unwrap();
        assert!(memory.of(&key(8)).is_some() && memory.of(&key(16)).is_none());
        // What happens on disk afterwards is for other processes.
        drop(folder);
        assert!(memory.of(&key(8)).is_some());
        memory.store.write(&entry(16)).unwrap();
        assert!(memory.of(&key(16)).is_none());
        memory.forget(&key(16));
        assert!(memory.of(&key(16)).is_some());
        memory.remember(entry(32));
        assert_eq!(memory.of(&key(32)).unwrap().entry.key, key(32));
    }

    #[test]
    fn a_file_that_is_none_is_passed_over_with_a_sentence() {
        let (folder, memory) = memory();
        let path = memory.store.write(&entry(8)).unwrap().unwrap();
        std::fs::write(&path, "{").unwrap();
        assert!(memory.of(&key(8)).is_none());
        let said = notices::notices();
        let name = path.display().to_string();
        assert!(
            said.iter()
                .any(|s| s.contains(&name) && s.contains("it is cut off")),
            "{said:?}"
        );
        drop(folder);
    }

    /// Prints what lookups cost: `cargo test -p warpline --release --lib -- --ignored --nocapture cost`.
    #[test]
    #[ignore = "prints times"]
    fn cost() {
        let (_folder, memory) = memory();
        memory.store.write(&entry(8)).unwrap();
        let mut reads: Vec<f64> = (0..2000)
            .map(|_| {
                memory.forget(&key(8));
                let asked = key(8);
                let start = Instant::now();
                black_box(memory.of(&asked));
                start.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        reads.sort_by(f64::total_cmp);
        println!(
            "first read of an entry, parsed: {:.1} µs in the median",
            reads[1000]
        );
        let (asked, n) = (key(8), 200_000);
        let per = |what: &str, one: &dyn Fn()| {
            let start = Instant::now();
            (0..n).for_each(|_| one());
            let ns = start.elapsed().as_secs_f64() * 1e9 / f64::from(n);
            println!("{what}: {ns:.0} ns");
        };
        let id = asked.id();
        per("lookup by key", &|| drop(black_box(memory.of(&asked))));
        per("lookup by id", &|| drop(black_box(memory.known(&id))));
    }
}

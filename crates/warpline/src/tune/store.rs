//! Tuned configs on disk: one readable file for each key.
//!
//! Files are written aside and renamed, so that a reader sees all of one or
//! nothing and needs no lock. A file that is not what its name says is passed
//! over with a sentence. Who tunes holds a [lock](super::lock) for its key.

use super::entry::{Entry, VERSION, judge};
use super::key::Key;
use super::lock::Lock;
use crate::error::Error;
use crate::gpu::disk;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Says what an exported file is.
const EXPORT: &str = "warpline tuned configs";
/// Below the folder of the cache.
const FOLDER: &str = "tune";
/// The longest file that is read: an entry has a few kilobytes.
const MOST_BYTES: u64 = 1 << 20;
/// Behind the names of entries, and of locks.
const ENTRY: &str = "json";
const LOCK: &str = "lock";

/// The tuned configs on disk, or none where the cache is off.
#[derive(Clone, Debug)]
pub struct Store {
    folder: Option<PathBuf>,
}

/// An entry on disk, or why the file is none.
#[derive(Debug)]
#[non_exhaustive]
pub struct Listed {
    /// The file.
    pub path: PathBuf,
    /// What is in it.
    pub entry: Result<Entry, String>,
}

/// What came of an import.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Imported {
    /// Entries that are here now and were not.
    pub taken: usize,
    /// Entries that were here already, as new or newer.
    pub kept: usize,
    /// Why others were passed over.
    pub passed_over: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Export {
    format: String,
    version: u32,
    entries: Vec<serde_json::Value>,
}

impl Store {
    /// Where the environment says (`WARPLINE_CACHE_DIR`, `WARPLINE_CACHE=off`),
    /// or else in the user's cache folder.
    pub fn from_env() -> Self {
        Self {
            folder: disk::folder_from_env().map(|folder| folder.join(FOLDER)),
        }
    }

    /// In that folder.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: Some(folder.into()),
        }
    }

    /// The folder; none where the cache is off.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    fn named(&self) -> Result<&Path, Error> {
        self.folder().ok_or_else(|| {
            let text = format!("the cache is off, by {}=off", disk::SWITCH);
            Error::Cache(text)
        })
    }

    fn path(&self, key: &Key, ending: &str) -> Option<PathBuf> {
        Some(self.folder()?.join(format!("{}.{ending}", key.file())))
    }

    /// What is remembered for a key; a sentence where a file is there and is not it.
    pub(super) fn read(&self, key: &Key) -> Result<Option<Entry>, String> {
        let Some(path) = self.path(key, ENTRY) else {
            return Ok(None);
        };
        let judged = match bytes(&path) {
            Ok(text) => Entry::read(&text).and_then(|entry| match entry.key == *key {
                true => Ok(entry),
                false => Err("it was tuned for something else than its name says".into()),
            }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => Err(e.to_string()),
        };
        judged.map(Some).map_err(|why| {
            let path = path.display();
            format!("the tuned config in {path} is passed over, as {why}; tune again to replace it")
        })
    }

    /// Keeps an entry, in place of what has its name, and gives the file; none
    /// where the cache is off.
    pub(super) fn write(&self, entry: &Entry) -> Result<Option<PathBuf>, String> {
        let Some(path) = self.path(&entry.key, ENTRY) else {
            return Ok(None);
        };
        match disk::replace(&path, entry.text().as_bytes()) {
            Ok(()) => Ok(Some(path)),
            Err(e) => Err(format!(
                "the tuned config could not be kept in {}, so it is forgotten with this process: {e}",
                path.display()
            )),
        }
    }

    /// Waits until nobody else tunes a key; `held` is told who does.
    pub(super) fn lock(&self, key: &Key, held: impl FnOnce(&str)) -> Result<Option<Lock>, String> {
        let Some(path) = self.path(key, LOCK) else {
            return Ok(None);
        };
        Lock::take(&path, held).map(Some).map_err(|e| {
            format!(
                "{} cannot be locked, so two processes may tune the same at once: {e}",
                path.display()
            )
        })
    }

    /// Every entry, and every file that should be one, by name.
    pub fn list(&self) -> Result<Vec<Listed>, Error> {
        let mut paths = self.paths(ENTRY)?;
        paths.sort();
        let read = |path: PathBuf| {
            let text = bytes(&path).map_err(|e| e.to_string());
            Listed {
                entry: text.and_then(|text| Entry::read(&text)),
                path,
            }
        };
        Ok(paths.into_iter().map(read).collect())
    }

    fn paths(&self, ending: &str) -> Result<Vec<PathBuf>, Error> {
        let folder = self.named()?;
        let listed = match fs::read_dir(folder) {
            Ok(listed) => listed,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(failed("read", folder, &e)),
        };
        let paths = listed.flatten().map(|file| file.path());
        Ok(paths
            .filter(|path| path.extension().is_some_and(|e| e == ending))
            .collect())
    }

    /// Forgets every entry, or those of one family, and gives how many. Files
    /// that are no entries go only with all others.
    pub fn clear(&self, family: Option<&str>) -> Result<usize, Error> {
        let mut gone = 0;
        for Listed { path, entry } in self.list()? {
            let asked = match (family, &entry) {
                (None, _) => true,
                (Some(family), Ok(entry)) => entry.key.family == family,
                (Some(_), Err(_)) => false,
            };
            if asked {
                fs::remove_file(&path).map_err(|e| failed("remove", &path, &e))?;
                gone += 1;
            }
        }
        if family.is_none() {
            for path in self.paths(LOCK)? {
                Lock::remove(&path);
            }
        }
        Ok(gone)
    }

    /// Writes every entry into one file, and gives how many.
    pub fn export(&self, path: &Path) -> Result<usize, Error> {
        let entries = self.list()?.into_iter().filter_map(|l| l.entry.ok());
        let all = Export {
            format: EXPORT.into(),
            version: VERSION,
            entries: entries.map(|entry| serde_json::json!(entry)).collect(),
        };
        let text = format!("{:#}\n", serde_json::json!(all));
        disk::replace(path, text.as_bytes()).map_err(|e| failed("write", path, &e))?;
        Ok(all.entries.len())
    }

    /// Takes the entries of an exported file, but for those that are here
    /// already, as new or newer.
    pub fn import(&self, path: &Path) -> Result<Imported, Error> {
        self.named()?;
        let text = fs::read(path).map_err(|e| failed("read", path, &e))?;
        let bad = |why: String| {
            let path = path.display();
            Error::Cache(format!("{path} holds no tuned configs, as {why}"))
        };
        judge(&text, EXPORT).map_err(bad)?;
        let all: Export =
            serde_json::from_slice(&text).map_err(|e| bad(format!("it is damaged: {e}")))?;
        let mut came = Imported::default();
        for (i, value) in all.entries.iter().enumerate() {
            let entry = match Entry::read(value.to_string().as_bytes()) {
                Ok(entry) => entry,
                Err(why) => {
                    came.passed_over.push(format!("entry {i}: {why}"));
                    continue;
                }
            };
            match self.read(&entry.key) {
                Ok(Some(own)) if own.tuned_at >= entry.tuned_at => came.kept += 1,
                _ => {
                    self.write(&entry).map_err(Error::Cache)?;
                    came.taken += 1;
                }
            }
        }
        Ok(came)
    }
}

/// All of a file, if it is not too long to be an entry.
fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    use io::Read;
    let mut all = Vec::with_capacity(8192);
    fs::File::open(path)?
        .take(MOST_BYTES)
        .read_to_end(&mut all)?;
    Ok(all)
}

fn failed(what: &str, path: &Path, e: &io::Error) -> Error {
    Error::Cache(format!("cannot {what} {}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::entry::tests::entry;
    use crate::tune::key::tests::key;
    use std::env;
    use std::process::Command;

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path().join("not/there/yet"));
        (folder, store)
    }

    #[test]
    fn what_was_kept_comes_back_and_is_listed() {
        let (_folder, store) = store();
        assert_eq!(store.read(&key(8)), Ok(None));
        assert!(store.list().unwrap().is_empty());
        let path = store.write(&entry(8)).unwrap().unwrap();
        assert_eq!(store.read(&key(8)), Ok(Some(entry(8))));
        assert_eq!(store.read(&key(16)), Ok(None));
        let listed = store.list().unwrap();
        assert_eq!(listed.len(), 1, "nothing is left aside");
        assert_eq!((&listed[0].path, &listed[0].entry), (&path, &Ok(entry(8))));
    }

    #[test]
    fn an_entry_under_another_name_is_foreign() {
        let (_folder, store) = store();
        let path = store.write(&entry(8)).unwrap().unwrap();
        store.write(&entry(16)).unwrap();
        fs::copy(store.path(&key(16), ENTRY).unwrap(), &path).unwrap();
        let why = store.read(&key(8)).unwrap_err();
        let said = format!(
            "the tuned config in {} is passed over, as it was tuned for something else than its \
             name says; tune again to replace it",
            path.display()
        );
        assert_eq!(why, said);
        // And it is replaced.
        store.write(&entry(8)).unwrap();
        assert_eq!(store.read(&key(8)), Ok(Some(entry(8))));
    }

    #[test]
    fn a_folder_that_cannot_be_written_or_read_is_a_sentence() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let store = Store::at(file.path().join("below a file"));
        assert!(store.read(&key(8)).unwrap_err().contains("passed over"));
        let why = store.write(&entry(8)).unwrap_err();
        assert!(
            why.starts_with("the tuned config could not be kept in "),
            "{why}"
        );
        assert!(
            store
                .lock(&key(8), |_| {})
                .unwrap_err()
                .contains("cannot be locked")
        );
        assert_eq!(store.list().unwrap_err().code(), "cache");
    }

    #[test]
    fn a_cache_that_is_off_keeps_nothing_and_breaks_nothing() {
        let store = Store { folder: None };
        assert_eq!(store.read(&key(8)), Ok(None));
        assert_eq!(store.write(&entry(8)), Ok(None));
        assert!(store.lock(&key(8), |_| {}).unwrap().is_none());
        let off = store.list().unwrap_err();
        assert_eq!(off.to_string(), "the cache is off, by WARPLINE_CACHE=off");
    }

    #[test]
    fn clearing_takes_what_was_asked_for() {
        let (_folder, store) = store();
        let mut other = entry(16);
        other.key.family = "vector-add".into();
        store.write(&entry(8)).unwrap();
        store.write(&other).unwrap();
        let damaged = store.folder().unwrap().join("x.json");
        fs::write(&damaged, "{").unwrap();
        drop(store.lock(&key(8), |_| {}));
        assert_eq!(store.clear(Some("softmax")).unwrap(), 1);
        assert_eq!(store.list().unwrap().len(), 2);
        assert_eq!(store.clear(None).unwrap(), 2);
        assert_eq!(fs::read_dir(store.folder().unwrap()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_exported_can_be_imported_and_the_newer_one_stays() {
        let ((folder, from), (_other, to)) = (store(), store());
        let file = folder.path().join("tuned.json");
        from.write(&entry(8)).unwrap();
        from.write(&entry(16)).unwrap();
        assert_eq!(from.export(&file).unwrap(), 2);
        let mut newer = entry(8);
        newer.tuned_at = "9999-01-01T00:00:00Z".into();
        to.write(&newer).unwrap();
        let came = to.import(&file).unwrap();
        assert_eq!((came.taken, came.kept), (1, 1));
        assert_eq!(to.read(&key(8)), Ok(Some(newer)));
        assert!(to.read(&key(16)).unwrap().is_some());

        let text = fs::read_to_string(&file).unwrap();
        fs::write(
            &file,
            text.replacen("warpline tuned config\"", "a list\"", 1),
        )
        .unwrap();
        let came = to.import(&file).unwrap();
        assert_eq!((came.taken, came.kept, came.passed_over.len()), (0, 1, 1));
        fs::write(&file, "[]").unwrap();
        let bad = to.import(&file).unwrap_err();
        assert!(
            bad.to_string()
                .contains("holds no tuned configs, as it is damaged")
        );
        assert_eq!((bad.code(), bad.exit_code()), ("cache", 2));
    }

    #[test]
    fn two_processes_write_one_store_and_readers_see_whole_entries() {
        const CHILD: &str = "WARPLINE_TEST_WRITES";
        if let Some(folder) = env::var_os(CHILD) {
            let store = Store::at(PathBuf::from(folder));
            (0..300).for_each(|_| drop(store.write(&entry(8)).unwrap()));
            return;
        }
        let (_folder, store) = store();
        let name =
            "tune::store::tests::two_processes_write_one_store_and_readers_see_whole_entries";
        let child = || {
            Command::new(env::current_exe().unwrap())
                .args(["--exact", name])
                .env(CHILD, store.folder().unwrap())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        };
        let mut children = [child(), child()];
        let mut seen = 0;
        while children.iter_mut().any(|c| c.try_wait().unwrap().is_none()) {
            let read = store.read(&key(8)).unwrap();
            seen += usize::from(read.is_some_and(|read| read.key == key(8)));
        }
        assert!(
            children
                .into_iter()
                .all(|mut c| c.wait().unwrap().success())
        );
        assert!(seen > 0);
        assert_eq!(store.list().unwrap().len(), 1);
    }
}

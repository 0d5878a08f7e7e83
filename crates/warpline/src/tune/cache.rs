//! The cache of tuned configs on disk: one readable file per key.
//!
//! A file is written under a temporary name and renamed, so that a reader sees a complete file
//! without a lock. A file whose key does not match its name is skipped with a notice. A tuning
//! process holds a [lock](super::lock) for its key.

use super::entry::{TuneCacheEntry, VERSION, check_format};
use super::key::TuneKey;
use super::lock::Lock;
use crate::error::Error;
use crate::gpu::disk;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The format name of an exported file.
const EXPORT_FORMAT: &str = "warpline tuned configs";
/// The subdirectory of the cache directory.
const SUBFOLDER: &str = "tune";
/// The maximum size of a file; an entry has a few kilobytes.
const MAX_BYTES: u64 = 1 << 20;
/// The file extensions of entries and locks.
const ENTRY_EXTENSION: &str = "json";
const LOCK_EXTENSION: &str = "lock";

/// The cache of tuned configs on disk; empty if the cache is off.
#[derive(Clone, Debug)]
pub struct TuneCache {
    folder: Option<PathBuf>,
}

/// A file of the cache.
#[derive(Debug)]
#[non_exhaustive]
pub struct ListedEntry {
    /// The path.
    pub path: PathBuf,
    /// The entry, or the reason why the file is not one.
    pub entry: Result<TuneCacheEntry, String>,
}

/// The result of an import.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct ImportReport {
    /// The number of entries that were added or replaced.
    pub added: usize,
    /// The number of existing entries that are as new or newer and were kept.
    pub kept: usize,
    /// The reasons why other entries were skipped.
    pub skipped: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct ExportFile {
    format: String,
    version: u32,
    entries: Vec<serde_json::Value>,
}

impl TuneCache {
    /// Opens the cache in `WARPLINE_CACHE_DIR` or, by default, the user's cache directory.
    /// `WARPLINE_CACHE=off` turns it off.
    pub fn from_env() -> Self {
        Self {
            folder: disk::folder_from_env().map(|folder| folder.join(SUBFOLDER)),
        }
    }

    /// Opens the cache in a directory.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: Some(folder.into()),
        }
    }

    /// Returns the directory; `None` if the cache is off.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    fn require_folder(&self) -> Result<&Path, Error> {
        self.folder().ok_or_else(|| {
            let text = format!("the cache is off ({}=off)", disk::SWITCH);
            Error::Cache(text)
        })
    }

    fn path(&self, key: &TuneKey, extension: &str) -> Option<PathBuf> {
        Some(
            self.folder()?
                .join(format!("{}.{extension}", key.file_name())),
        )
    }

    /// Reads the entry of a key. The error explains why an existing file is not this entry.
    pub(super) fn read(&self, key: &TuneKey) -> Result<Option<TuneCacheEntry>, String> {
        let Some(path) = self.path(key, ENTRY_EXTENSION) else {
            return Ok(None);
        };
        let read = match read_limited(&path) {
            Ok(text) => TuneCacheEntry::read(&text).and_then(|entry| match entry.key == *key {
                true => Ok(entry),
                false => Err("its key does not match its file name".into()),
            }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => Err(e.to_string()),
        };
        read.map(Some).map_err(|why| {
            let path = path.display();
            format!("the tuned config in {path} is skipped: {why}\nhelp: tune again to replace it")
        })
    }

    /// Writes an entry, replaces an existing file, and returns the path; `None` if the cache is off.
    pub(super) fn write(&self, entry: &TuneCacheEntry) -> Result<Option<PathBuf>, String> {
        let Some(path) = self.path(&entry.key, ENTRY_EXTENSION) else {
            return Ok(None);
        };
        match disk::replace(&path, entry.text().as_bytes()) {
            Ok(()) => Ok(Some(path)),
            Err(e) => Err(format!(
                "the tuned config could not be written to {}; only this process uses it: {e}",
                path.display()
            )),
        }
    }

    /// Acquires the tuning lock of a key. Calls `on_wait` with the holder if another process has it.
    pub(super) fn lock(
        &self,
        key: &TuneKey,
        on_wait: impl FnOnce(&str),
    ) -> Result<Option<Lock>, String> {
        let Some(path) = self.path(key, LOCK_EXTENSION) else {
            return Ok(None);
        };
        Lock::acquire(&path, on_wait).map(Some).map_err(|e| {
            format!(
                "{} cannot be locked, so two processes may tune the same key: {e}",
                path.display()
            )
        })
    }

    /// Lists all entry files, sorted by name, including invalid ones.
    pub fn list(&self) -> Result<Vec<ListedEntry>, Error> {
        let mut paths = self.paths(ENTRY_EXTENSION)?;
        paths.sort();
        let read = |path: PathBuf| {
            let text = read_limited(&path).map_err(|e| e.to_string());
            ListedEntry {
                entry: text.and_then(|text| TuneCacheEntry::read(&text)),
                path,
            }
        };
        Ok(paths.into_iter().map(read).collect())
    }

    fn paths(&self, extension: &str) -> Result<Vec<PathBuf>, Error> {
        let folder = self.require_folder()?;
        let listed = match fs::read_dir(folder) {
            Ok(listed) => listed,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(io_error("read", folder, &e)),
        };
        let paths = listed.flatten().map(|file| file.path());
        Ok(paths
            .filter(|path| path.extension().is_some_and(|e| e == extension))
            .collect())
    }

    /// Removes all entries, or those of one family, and returns their number. Invalid files are
    /// removed only with all entries.
    pub fn clear(&self, family: Option<&str>) -> Result<usize, Error> {
        let mut removed = 0;
        for ListedEntry { path, entry } in self.list()? {
            let is_selected = match (family, &entry) {
                (None, _) => true,
                (Some(family), Ok(entry)) => entry.key.family == family,
                (Some(_), Err(_)) => false,
            };
            if is_selected {
                fs::remove_file(&path).map_err(|e| io_error("remove", &path, &e))?;
                removed += 1;
            }
        }
        if family.is_none() {
            for path in self.paths(LOCK_EXTENSION)? {
                Lock::remove(&path);
            }
        }
        Ok(removed)
    }

    /// Writes all entries to one file and returns their number.
    pub fn export(&self, path: &Path) -> Result<usize, Error> {
        let entries = self.list()?.into_iter().filter_map(|l| l.entry.ok());
        let all = ExportFile {
            format: EXPORT_FORMAT.into(),
            version: VERSION,
            entries: entries.map(|entry| serde_json::json!(entry)).collect(),
        };
        let text = format!("{:#}\n", serde_json::json!(all));
        disk::replace(path, text.as_bytes()).map_err(|e| io_error("write", path, &e))?;
        Ok(all.entries.len())
    }

    /// Adds the entries of an exported file. Keeps existing entries that are as new or newer.
    pub fn import(&self, path: &Path) -> Result<ImportReport, Error> {
        self.require_folder()?;
        let text = fs::read(path).map_err(|e| io_error("read", path, &e))?;
        let invalid = |why: String| {
            let path = path.display();
            Error::Cache(format!("{path} is not an export of tuned configs: {why}"))
        };
        check_format(&text, EXPORT_FORMAT).map_err(invalid)?;
        let all: ExportFile =
            serde_json::from_slice(&text).map_err(|e| invalid(format!("it is corrupt: {e}")))?;
        let mut report = ImportReport::default();
        for (i, value) in all.entries.iter().enumerate() {
            let entry = match TuneCacheEntry::read(value.to_string().as_bytes()) {
                Ok(entry) => entry,
                Err(why) => {
                    report.skipped.push(format!("entry {i}: {why}"));
                    continue;
                }
            };
            match self.read(&entry.key) {
                Ok(Some(existing)) if existing.tuned_at >= entry.tuned_at => report.kept += 1,
                _ => {
                    self.write(&entry).map_err(Error::Cache)?;
                    report.added += 1;
                }
            }
        }
        Ok(report)
    }
}

/// Reads a file, up to the maximum size of an entry.
fn read_limited(path: &Path) -> io::Result<Vec<u8>> {
    use io::Read;
    let mut all = Vec::with_capacity(8192);
    fs::File::open(path)?
        .take(MAX_BYTES)
        .read_to_end(&mut all)?;
    Ok(all)
}

fn io_error(action: &str, path: &Path, e: &io::Error) -> Error {
    Error::Cache(format!("cannot {action} {}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::entry::tests::entry;
    use crate::tune::key::tests::key;
    use std::env;
    use std::process::Command;

    fn new_cache() -> (tempfile::TempDir, TuneCache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = TuneCache::at(folder.path().join("not/there/yet"));
        (folder, cache)
    }

    #[test]
    fn a_written_entry_is_read_and_listed() {
        let (_folder, cache) = new_cache();
        assert_eq!(cache.read(&key(8)), Ok(None));
        assert!(cache.list().unwrap().is_empty());
        let path = cache.write(&entry(8)).unwrap().unwrap();
        assert_eq!(cache.read(&key(8)), Ok(Some(entry(8))));
        assert_eq!(cache.read(&key(16)), Ok(None));
        let listed = cache.list().unwrap();
        assert_eq!(listed.len(), 1, "no temporary file remains");
        assert_eq!((&listed[0].path, &listed[0].entry), (&path, &Ok(entry(8))));
    }

    #[test]
    fn an_entry_under_another_name_is_skipped() {
        let (_folder, cache) = new_cache();
        let path = cache.write(&entry(8)).unwrap().unwrap();
        cache.write(&entry(16)).unwrap();
        fs::copy(cache.path(&key(16), ENTRY_EXTENSION).unwrap(), &path).unwrap();
        let why = cache.read(&key(8)).unwrap_err();
        let expected = format!(
            "the tuned config in {} is skipped: its key does not match its file name\n\
             help: tune again to replace it",
            path.display()
        );
        assert_eq!(why, expected);
        cache.write(&entry(8)).unwrap();
        assert_eq!(cache.read(&key(8)), Ok(Some(entry(8))));
    }

    #[test]
    fn an_inaccessible_folder_is_reported() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let cache = TuneCache::at(file.path().join("below a file"));
        assert!(cache.read(&key(8)).unwrap_err().contains("is skipped"));
        let why = cache.write(&entry(8)).unwrap_err();
        assert!(
            why.starts_with("the tuned config could not be written to "),
            "{why}"
        );
        assert!(
            cache
                .lock(&key(8), |_| {})
                .unwrap_err()
                .contains("cannot be locked")
        );
        assert_eq!(cache.list().unwrap_err().code(), "cache");
    }

    #[test]
    fn a_disabled_cache_stores_nothing() {
        let cache = TuneCache { folder: None };
        assert_eq!(cache.read(&key(8)), Ok(None));
        assert_eq!(cache.write(&entry(8)), Ok(None));
        assert!(cache.lock(&key(8), |_| {}).unwrap().is_none());
        let off = cache.list().unwrap_err();
        assert_eq!(off.to_string(), "the cache is off (WARPLINE_CACHE=off)");
    }

    #[test]
    fn clear_removes_the_selected_entries() {
        let (_folder, cache) = new_cache();
        let mut other = entry(16);
        other.key.family = "vector-add".into();
        cache.write(&entry(8)).unwrap();
        cache.write(&other).unwrap();
        let corrupt = cache.folder().unwrap().join("x.json");
        fs::write(&corrupt, "{").unwrap();
        drop(cache.lock(&key(8), |_| {}));
        assert_eq!(cache.clear(Some("softmax")).unwrap(), 1);
        assert_eq!(cache.list().unwrap().len(), 2);
        assert_eq!(cache.clear(None).unwrap(), 2);
        assert_eq!(fs::read_dir(cache.folder().unwrap()).unwrap().count(), 0);
    }

    #[test]
    fn an_import_keeps_newer_entries() {
        let ((folder, from), (_other, to)) = (new_cache(), new_cache());
        let file = folder.path().join("tuned.json");
        from.write(&entry(8)).unwrap();
        from.write(&entry(16)).unwrap();
        assert_eq!(from.export(&file).unwrap(), 2);
        let mut newer = entry(8);
        newer.tuned_at = "9999-01-01T00:00:00Z".into();
        to.write(&newer).unwrap();
        let report = to.import(&file).unwrap();
        assert_eq!((report.added, report.kept), (1, 1));
        assert_eq!(to.read(&key(8)), Ok(Some(newer)));
        assert!(to.read(&key(16)).unwrap().is_some());

        let text = fs::read_to_string(&file).unwrap();
        fs::write(
            &file,
            text.replacen("warpline tuned config\"", "a list\"", 1),
        )
        .unwrap();
        let report = to.import(&file).unwrap();
        assert_eq!((report.added, report.kept, report.skipped.len()), (0, 1, 1));
        fs::write(&file, "[]").unwrap();
        let error = to.import(&file).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("is not an export of tuned configs: it is corrupt")
        );
        assert_eq!((error.code(), error.exit_code()), ("cache", 2));
    }

    #[test]
    fn two_processes_write_one_cache_and_readers_see_complete_entries() {
        const CHILD: &str = "WARPLINE_TEST_WRITES";
        if let Some(folder) = env::var_os(CHILD) {
            let cache = TuneCache::at(PathBuf::from(folder));
            (0..300).for_each(|_| drop(cache.write(&entry(8)).unwrap()));
            return;
        }
        let (_folder, cache) = new_cache();
        let name =
            "tune::cache::tests::two_processes_write_one_cache_and_readers_see_complete_entries";
        let child = || {
            Command::new(env::current_exe().unwrap())
                .args(["--exact", name])
                .env(CHILD, cache.folder().unwrap())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        };
        let mut children = [child(), child()];
        let mut seen = 0;
        while children.iter_mut().any(|c| c.try_wait().unwrap().is_none()) {
            let read = cache.read(&key(8)).unwrap();
            seen += usize::from(read.is_some_and(|read| read.key == key(8)));
        }
        assert!(
            children
                .into_iter()
                .all(|mut c| c.wait().unwrap().success())
        );
        assert!(seen > 0);
        assert_eq!(cache.list().unwrap().len(), 1);
    }
}

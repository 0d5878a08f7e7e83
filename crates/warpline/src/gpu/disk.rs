//! The cubin cache on disk, which processes share.
//!
//! A file contains the cubin of one PTX text. Its name is a hash of the text, the driver, the device
//! and the options. It is written under a temporary name and renamed, so that a reader sees a
//! complete file or none, and any number of processes can share the folder. An invalid file is
//! compiled again and replaced. Failures are not errors: without a usable folder, each process
//! compiles its own cubins. Kernels with `setmaxnreg` are never cached, because they have no cubin:
//! see `code`.

use directories::ProjectDirs;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use warpline_cuda::{Cubin, CudaDeviceInfo, JitOptions};

/// The environment variable that turns the cache off with the value `off`.
pub const SWITCH: &str = "WARPLINE_CACHE";
/// The environment variable with the cache directory.
pub const FOLDER: &str = "WARPLINE_CACHE_DIR";

const MAGIC: &[u8; 8] = b"wlcubin\n";
const VERSION: u32 = 1;
/// The header size: magic, version, key, two lengths, checksum.
const HEADER: usize = 8 + 4 + 32 + 8 + 8 + 32;

/// The key of a cubin: a hash of everything that it is compiled from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CubinKey(blake3::Hash);

impl CubinKey {
    pub(super) fn new(ptx: &str, device: &CudaDeviceInfo, options: &JitOptions) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(ptx.as_bytes());
        // PTX text contains no NUL, so the separator is unambiguous.
        let environment = format!(
            "\0{VERSION} {} {} {options:?}",
            device.driver, device.compute_capability
        );
        hasher.update(environment.as_bytes());
        Self(hasher.finalize())
    }
}

/// The cubin cache; empty if the cache is off.
#[derive(Debug)]
pub(super) struct CubinCache {
    folder: Option<PathBuf>,
}

impl CubinCache {
    /// Opens the cache that the environment selects, by default in the user's cache directory.
    pub(super) fn from_env() -> Self {
        Self {
            folder: folder_from_env(),
        }
    }

    /// Returns the cubin of a key, if it is stored and valid.
    pub(super) fn read(&self, key: &CubinKey) -> Option<Cubin> {
        let path = self.path(key)?;
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
            Err(e) => return reject(&path, &e.to_string()),
        };
        match decode(&bytes, key) {
            Ok(cubin) => Some(cubin),
            Err(why) => reject(&path, why),
        }
    }

    /// Stores a cubin, and replaces an existing file.
    pub(super) fn write(&self, key: &CubinKey, cubin: &Cubin) {
        let Some(path) = self.path(key) else { return };
        if let Err(e) = replace(&path, &encode(cubin, key)) {
            tracing::warn!(
                path = %path.display(),
                "a cubin could not be stored on disk; the next process compiles it again: {e}"
            );
        }
    }

    fn path(&self, key: &CubinKey) -> Option<PathBuf> {
        let name = format!("{}.cubin", key.0.to_hex());
        Some(self.folder.as_ref()?.join(name))
    }
}

/// Returns the cache directory that the environment selects, by default the user's; `None` if the
/// cache is off.
pub(crate) fn folder_from_env() -> Option<PathBuf> {
    folder(env::var_os(SWITCH), env::var_os(FOLDER))
}

/// Returns the cache directory for the values of the two environment variables.
fn folder(switch: Option<OsString>, named: Option<OsString>) -> Option<PathBuf> {
    if switch.is_some_and(|v| v == "off") {
        return None;
    }
    match named.filter(|v| !v.is_empty()) {
        Some(named) => Some(named.into()),
        None => Some(ProjectDirs::from("", "", "warpline")?.cache_dir().into()),
    }
}

fn reject(path: &Path, why: &str) -> Option<Cubin> {
    tracing::warn!(path = %path.display(), "a cubin on disk is rejected and compiled again: {why}");
    None
}

/// Writes a file under a temporary name and renames it.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut temporary = tempfile::Builder::new()
        .prefix(".writing-")
        .tempfile_in(folder)?;
    temporary.write_all(bytes)?;
    temporary.persist(path)?;
    Ok(())
}

fn encode(cubin: &Cubin, key: &CubinKey) -> Vec<u8> {
    let length = |bytes: &[u8]| (bytes.len() as u64).to_le_bytes();
    let log = cubin.log.as_bytes();
    let content = [log, &cubin.bytes].concat();
    let mut file = Vec::with_capacity(HEADER + content.len());
    file.extend_from_slice(MAGIC);
    file.extend_from_slice(&VERSION.to_le_bytes());
    file.extend_from_slice(key.0.as_bytes());
    file.extend_from_slice(&length(log));
    file.extend_from_slice(&length(&cubin.bytes));
    file.extend_from_slice(blake3::hash(&content).as_bytes());
    file.extend_from_slice(&content);
    file
}

fn decode(file: &[u8], key: &CubinKey) -> Result<Cubin, &'static str> {
    const TRUNCATED: &str = "it is truncated";
    let (header, content) = file.split_at_checked(HEADER).ok_or(TRUNCATED)?;
    let (magic, rest) = header.split_at(8);
    let (version, rest) = rest.split_at(4);
    let (file_key, rest) = rest.split_at(32);
    let (lengths, checksum) = rest.split_at(16);
    if magic != MAGIC {
        return Err("it is not a file of this cache");
    }
    if version != VERSION.to_le_bytes() {
        return Err("it has another format version");
    }
    if file_key != key.0.as_bytes() {
        return Err("it belongs to another kernel, driver or device");
    }
    let (log, bytes) = lengths.split_at(8);
    let log = length(log)
        .filter(|&n| n <= content.len())
        .ok_or(TRUNCATED)?;
    if length(bytes) != Some(content.len() - log) {
        return Err(TRUNCATED);
    }
    if checksum != blake3::hash(content).as_bytes() {
        return Err("its checksum does not match");
    }
    let (log, bytes) = content.split_at(log);
    Ok(Cubin {
        bytes: bytes.to_vec(),
        log: String::from_utf8_lossy(log).into_owned(),
    })
}

fn length(bytes: &[u8]) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> CubinKey {
        CubinKey(blake3::hash(text.as_bytes()))
    }

    fn cubin() -> Cubin {
        Cubin {
            bytes: (0..200).collect(),
            log: "ptxas info : Used 8 registers".into(),
        }
    }

    #[test]
    fn a_stored_cubin_is_read_with_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let disk = CubinCache {
            folder: Some(folder.path().join("not/there/yet")),
        };
        assert_eq!(disk.read(&key("a")), None);
        disk.write(&key("a"), &cubin());
        assert_eq!(disk.read(&key("a")), Some(cubin()));
        assert_eq!(disk.read(&key("b")), None);
        let remaining: Vec<_> = fs::read_dir(disk.folder.unwrap()).unwrap().collect();
        assert_eq!(remaining.len(), 1, "no temporary file remains");
    }

    #[test]
    fn truncation_and_bit_flips_are_detected() {
        let file = encode(&cubin(), &key("a"));
        assert_eq!(decode(&file, &key("a")), Ok(cubin()));
        for len in 0..file.len() {
            assert!(decode(&file[..len], &key("a")).is_err(), "{len}");
        }
        for at in 0..file.len() {
            let mut bad = file.clone();
            bad[at] ^= 0x10;
            assert!(decode(&bad, &key("a")).is_err(), "{at}");
        }
        let mut long = file.clone();
        long.push(0);
        assert_eq!(decode(&long, &key("a")), Err("it is truncated"));
    }

    #[test]
    fn a_file_under_another_name_is_rejected_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let disk = CubinCache {
            folder: Some(folder.path().into()),
        };
        disk.write(&key("a"), &cubin());
        let (a, b) = (disk.path(&key("a")).unwrap(), disk.path(&key("b")).unwrap());
        fs::rename(a, &b).unwrap();
        assert_eq!(disk.read(&key("b")), None);
        disk.write(&key("b"), &cubin());
        assert_eq!(disk.read(&key("b")), Some(cubin()));
    }

    #[test]
    fn the_environment_selects_the_folder() {
        let named = || Some(OsString::from("here"));
        assert_eq!(folder(None, named()), Some("here".into()));
        assert_eq!(folder(Some("on".into()), named()), Some("here".into()));
        assert_eq!(folder(Some("off".into()), named()), None);
        assert_eq!(folder(Some("off".into()), None), None);
        let default = folder(None, Some(OsString::new()));
        assert_eq!(default, folder(None, None));
        assert!(default.is_none_or(|folder| folder.ends_with("warpline")));
    }

    #[test]
    fn concurrent_readers_see_complete_files() {
        let folder = tempfile::tempdir().unwrap();
        let disk = CubinCache {
            folder: Some(folder.path().into()),
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..50).for_each(|_| disk.write(&key("a"), &cubin())));
                scope.spawn(|| {
                    for _ in 0..50 {
                        let bytes = disk.path(&key("a")).map(fs::read);
                        if let Some(Ok(bytes)) = bytes {
                            assert_eq!(decode(&bytes, &key("a")), Ok(cubin()));
                        }
                    }
                });
            }
        });
        assert_eq!(disk.read(&key("a")), Some(cubin()));
    }

    #[test]
    fn an_unusable_folder_stores_nothing() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let disk = CubinCache {
            folder: Some(file.path().join("below a file")),
        };
        disk.write(&key("a"), &cubin());
        assert_eq!(disk.read(&key("a")), None);
    }
}

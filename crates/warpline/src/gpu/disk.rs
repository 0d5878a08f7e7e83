//! Cubins on disk, from one process to the next.
//!
//! A file holds what the driver made of one PTX text, under a name that says
//! which driver, device and options it was made with. It is written aside and
//! renamed, so that a reader sees all of it or nothing, and any number of
//! processes can share the folder. A file that is not what its name says is
//! passed over, made again and replaced. Nothing here is an error: without a
//! usable folder each process compiles for itself. Kernels with `setmaxnreg`
//! are never here, because no cubin can be made of them: see `code`.

use directories::ProjectDirs;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use warpline_cuda::{Cubin, DeviceInfo, JitOptions};

/// Turns the cache off, if set to `off`.
pub const SWITCH: &str = "WARPLINE_CACHE";
/// The folder of the cache, if set.
pub const FOLDER: &str = "WARPLINE_CACHE_DIR";

const MAGIC: &[u8; 8] = b"wlcubin\n";
const VERSION: u32 = 1;
/// Magic, version, key, two lengths, checksum.
const HEADER: usize = 8 + 4 + 32 + 8 + 8 + 32;

/// What a cubin was made from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Key(blake3::Hash);

impl Key {
    pub(super) fn new(ptx: &str, device: &DeviceInfo, options: &JitOptions) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(ptx.as_bytes());
        // No PTX text has a NUL.
        let made_for = format!(
            "\0{VERSION} {} {} {options:?}",
            device.driver, device.compute_capability
        );
        hasher.update(made_for.as_bytes());
        Self(hasher.finalize())
    }
}

/// The cubins on disk, or none.
#[derive(Debug)]
pub(super) struct Disk {
    folder: Option<PathBuf>,
}

impl Disk {
    /// Where the environment says, or else in the user's cache folder.
    pub(super) fn from_env() -> Self {
        Self {
            folder: folder_from_env(),
        }
    }

    /// The cubin that was made from that key, if it is there and whole.
    pub(super) fn read(&self, key: &Key) -> Option<Cubin> {
        let path = self.path(key)?;
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
            Err(e) => return passed_over(&path, &e.to_string()),
        };
        match decode(&bytes, key) {
            Ok(cubin) => Some(cubin),
            Err(why) => passed_over(&path, why),
        }
    }

    /// Keeps a cubin, in place of what has its name.
    pub(super) fn write(&self, key: &Key, cubin: &Cubin) {
        let Some(path) = self.path(key) else { return };
        if let Err(e) = replace(&path, &encode(cubin, key)) {
            tracing::warn!(
                path = %path.display(),
                "a compiled kernel could not be kept on disk, so the next process compiles it again: {e}"
            );
        }
    }

    fn path(&self, key: &Key) -> Option<PathBuf> {
        let name = format!("{}.cubin", key.0.to_hex());
        Some(self.folder.as_ref()?.join(name))
    }
}

/// The folder of the cache: where the environment says, or else the user's;
/// none where it is off.
pub(crate) fn folder_from_env() -> Option<PathBuf> {
    folder(env::var_os(SWITCH), env::var_os(FOLDER))
}

/// The folder that the values of the two variables ask for.
fn folder(switch: Option<OsString>, named: Option<OsString>) -> Option<PathBuf> {
    if switch.is_some_and(|v| v == "off") {
        return None;
    }
    match named.filter(|v| !v.is_empty()) {
        Some(named) => Some(named.into()),
        None => Some(ProjectDirs::from("", "", "warpline")?.cache_dir().into()),
    }
}

fn passed_over(path: &Path, why: &str) -> Option<Cubin> {
    tracing::warn!(path = %path.display(), "a cubin on disk is passed over and made again: {why}");
    None
}

/// Writes a file aside and renames it.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut aside = tempfile::Builder::new()
        .prefix(".writing-")
        .tempfile_in(folder)?;
    aside.write_all(bytes)?;
    aside.persist(path)?;
    Ok(())
}

fn encode(cubin: &Cubin, key: &Key) -> Vec<u8> {
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

fn decode(file: &[u8], key: &Key) -> Result<Cubin, &'static str> {
    const CUT: &str = "it is cut off";
    let (header, content) = file.split_at_checked(HEADER).ok_or(CUT)?;
    let (magic, rest) = header.split_at(8);
    let (version, rest) = rest.split_at(4);
    let (made_from, rest) = rest.split_at(32);
    let (lengths, sum) = rest.split_at(16);
    if magic != MAGIC {
        return Err("it is no file of this cache");
    }
    if version != VERSION.to_le_bytes() {
        return Err("it is of another version of this cache");
    }
    if made_from != key.0.as_bytes() {
        return Err("it was made from another kernel, driver or device");
    }
    let (log, bytes) = lengths.split_at(8);
    let log = length(log).filter(|&n| n <= content.len()).ok_or(CUT)?;
    if length(bytes) != Some(content.len() - log) {
        return Err(CUT);
    }
    if sum != blake3::hash(content).as_bytes() {
        return Err("its checksum is wrong");
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

    fn key(text: &str) -> Key {
        Key(blake3::hash(text.as_bytes()))
    }

    fn cubin() -> Cubin {
        Cubin {
            bytes: (0..200).collect(),
            log: "ptxas info : Used 8 registers".into(),
        }
    }

    #[test]
    fn what_was_kept_comes_back_with_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk {
            folder: Some(folder.path().join("not/there/yet")),
        };
        assert_eq!(disk.read(&key("a")), None);
        disk.write(&key("a"), &cubin());
        assert_eq!(disk.read(&key("a")), Some(cubin()));
        assert_eq!(disk.read(&key("b")), None);
        let left: Vec<_> = fs::read_dir(disk.folder.unwrap()).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing is left aside");
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_seen() {
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
        assert_eq!(decode(&long, &key("a")), Err("it is cut off"));
    }

    #[test]
    fn a_file_under_another_name_is_passed_over_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk {
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
    fn the_folder_is_the_one_named_and_off_is_none() {
        let named = || Some(OsString::from("here"));
        assert_eq!(folder(None, named()), Some("here".into()));
        assert_eq!(folder(Some("on".into()), named()), Some("here".into()));
        assert_eq!(folder(Some("off".into()), named()), None);
        assert_eq!(folder(Some("off".into()), None), None);
        let own = folder(None, Some(OsString::new()));
        assert_eq!(own, folder(None, None));
        assert!(own.is_none_or(|own| own.ends_with("warpline")));
    }

    #[test]
    fn readers_see_all_of_a_file_or_nothing_while_others_write_it() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk {
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
    fn a_folder_that_cannot_be_one_keeps_nothing_and_breaks_nothing() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let disk = Disk {
            folder: Some(file.path().join("below a file")),
        };
        disk.write(&key("a"), &cubin());
        assert_eq!(disk.read(&key("a")), None);
    }
}

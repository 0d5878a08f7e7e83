//! Writing a file whole or not at all.

use crate::errors::Failure;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::Builder;

/// Writes `text` to `path`: other readers see the old file or the new one,
/// never a part.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let refused = |why: String| {
        Failure::input(
            "cannot-write",
            format!("cannot write {}: {why}", path.display()),
        )
    };
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(refused("it is a directory".into())),
        // A pipe or a device takes bytes, and must not be replaced by a file.
        Ok(found) if !found.is_file() => in_place(path, text).map_err(|e| refused(e.to_string())),
        _ => replace(&real(path), text).map_err(|e| refused(e.to_string())),
    }
}

fn in_place(path: &Path, text: &str) -> io::Result<()> {
    fs::OpenOptions::new()
        .write(true)
        .open(path)?
        .write_all(text.as_bytes())
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let mut builder = Builder::new();
    builder.prefix(".warpline-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // What any new file gets; the umask takes its part off.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map(|_| ()).map_err(|e| e.error)
}

/// The file that a link leads to, so that the link stays.
fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_replaced_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("k.ptx");
        write(&path, "one").unwrap();
        write(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_directory_and_a_missing_folder_are_refused_with_their_name() {
        let folder = tempfile::tempdir().unwrap();
        let said = write(folder.path(), "text").unwrap_err();
        assert!(said.message.ends_with("it is a directory"), "{said}");
        assert_eq!(said.exit, 2);
        let said = write(&folder.path().join("no/k.ptx"), "text").unwrap_err();
        assert!(said.message.contains("no/k.ptx: "), "{said}");
    }

    #[test]
    #[cfg(unix)]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, "new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }
}

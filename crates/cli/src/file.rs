//! Atomic writes of files and folders.

use crate::errors::Failure;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::Builder;

/// Writes `bytes` to `path` atomically: readers see the old file or the new one.
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
    let (bytes, fail) = (bytes.as_ref(), |why| cannot_write(path, why));
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(fail("it is a directory".into())),
        // A file must not replace a pipe or a device.
        Ok(metadata) if !metadata.is_file() => {
            in_place(path, bytes).map_err(|e| fail(e.to_string()))
        }
        _ => replace(&link_target(path), bytes).map_err(|e| fail(e.to_string())),
    }
}

/// Rejects a path that is a folder or whose parent folder does not exist.
pub(crate) fn can_write(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Err(cannot_write(path, "it is a directory".into()));
    }
    has_parent(path)
}

/// Rejects a path where no folder can be created or filled. Returns whether an empty
/// folder exists there.
pub(crate) fn can_write_folder(path: &Path) -> Result<bool, Failure> {
    let fail = |why| cannot_write(path, why);
    let exists = match fs::metadata(path) {
        Ok(metadata) if !metadata.is_dir() => return Err(fail("it is not a folder".into())),
        metadata => metadata.is_ok(),
    };
    if !exists {
        return has_parent(path).map(|()| false);
    }
    let mut entries = fs::read_dir(path).map_err(|e| fail(e.to_string()))?;
    match entries.next() {
        None => Ok(true),
        Some(_) => Err(fail("it is a folder that is not empty".into())),
    }
}

/// Rejects a path whose parent folder does not exist.
fn has_parent(path: &Path) -> Result<(), Failure> {
    let parent_folder = parent(path);
    match parent_folder.metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(cannot_write(
            path,
            format!("{} is not a folder", parent_folder.display()),
        )),
        Err(e) => {
            let (parent_folder, why) = (parent_folder.display(), e.kind());
            Err(cannot_write(
                path,
                format!("cannot create it in {parent_folder}: {why}"),
            ))
        }
    }
}

/// Creates the folder `path` with the given files (path and bytes): all of them or none.
/// An existing folder must be empty and is filled in place.
pub(crate) fn write_folder(
    path: &Path,
    files: &[(impl AsRef<Path>, impl AsRef<[u8]>)],
) -> Result<(), Failure> {
    let fail = |why| cannot_write(path, why);
    let exists = can_write_folder(path)?;
    let parent_folder = if exists { path } else { parent(path) };
    // Dropping the temporary folder after the rename removes nothing.
    let temporary_folder = temporary(0o777).tempdir_in(parent_folder).map_err(|e| {
        let (parent_folder, why) = (parent_folder.display(), e.kind());
        fail(format!("cannot create it in {parent_folder}: {why}"))
    })?;
    let moved = fill(temporary_folder.path(), files).and_then(|()| match exists {
        true => move_all(temporary_folder.path(), path),
        false => fs::rename(temporary_folder.path(), path),
    });
    moved.map_err(|e| fail(e.to_string()))
}

fn fill(folder: &Path, files: &[(impl AsRef<Path>, impl AsRef<[u8]>)]) -> io::Result<()> {
    for (name, bytes) in files {
        let file = folder.join(name);
        fs::create_dir_all(parent(&file))?;
        fs::write(file, bytes)?;
    }
    Ok(())
}

/// Moves the contents of one folder to another; moves them back on failure.
fn move_all(from: &Path, to: &Path) -> io::Result<()> {
    let entries = fs::read_dir(from)?.map(|e| e.map(|e| e.file_name()));
    let entries = entries.collect::<io::Result<Vec<_>>>()?;
    for (i, name) in entries.iter().enumerate() {
        if let Err(e) = fs::rename(from.join(name), to.join(name)) {
            for name in &entries[..i] {
                // An entry that cannot be moved back stays.
                let _ = fs::rename(to.join(name), from.join(name));
            }
            return Err(e);
        }
    }
    Ok(())
}

fn cannot_write(path: &Path, why: String) -> Failure {
    Failure::bad_input(
        "cannot-write",
        format!("cannot write {}: {why}", path.display()),
    )
}

/// Returns the folder that contains a path.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Returns a builder of temporary files and folders with the permissions of new ones:
/// `mode` minus the umask.
fn temporary(mode: u32) -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(".warpline-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    builder
}

fn in_place(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    file.write_all(bytes)
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = temporary(0o666).tempfile_in(parent(path))?;
    file.write_all(bytes)?;
    file.persist(path).map(|_| ()).map_err(|e| e.error)
}

/// Returns the file that a symbolic link points to, so that the link is kept.
fn link_target(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_and_replacing_leave_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("k.ptx");
        write(&path, "one").unwrap();
        write(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_directory_and_a_missing_folder_are_rejected_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let failure = write(folder.path(), "text").unwrap_err();
        assert!(failure.message.ends_with("it is a directory"), "{failure}");
        assert_eq!(failure.exit, 2);
        let failure = write(&folder.path().join("no/k.ptx"), "text").unwrap_err();
        assert!(failure.message.contains("no/k.ptx: "), "{failure}");
    }

    const FILES: [(&str, &str); 2] = [("a.txt", "one"), ("in/b.txt", "two")];

    fn write_two_files(path: &Path) -> Result<(), Failure> {
        write_folder(path, &FILES.map(|(name, text)| (name, text.to_owned())))
    }

    /// Returns the sorted names in a folder.
    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
        let mut names: Vec<_> = entries
            .map(|e| e.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn creating_and_filling_a_folder_leave_no_temporary_folder() {
        let parent_folder = tempfile::tempdir().unwrap();
        let (new, empty) = (
            parent_folder.path().join("new"),
            parent_folder.path().join("empty"),
        );
        fs::create_dir(&empty).unwrap();
        for folder in [&new, &empty] {
            write_two_files(folder).unwrap();
            assert_eq!(names(folder), ["a.txt", "in"]);
            assert_eq!(fs::read_to_string(folder.join("in/b.txt")).unwrap(), "two");
        }
        assert_eq!(names(parent_folder.path()), ["empty", "new"]);
    }

    #[test]
    fn a_folder_with_contents_is_not_changed() {
        let parent_folder = tempfile::tempdir().unwrap();
        let file = parent_folder.path().join("file");
        fs::write(&file, "mine").unwrap();
        for (path, why) in [
            (
                parent_folder.path().to_owned(),
                "it is a folder that is not empty",
            ),
            (file.clone(), "it is not a folder"),
            (parent_folder.path().join("no/new"), "entity not found"),
        ] {
            let failure = write_two_files(&path).unwrap_err();
            let start = format!("cannot write {}: ", path.display());
            assert!(failure.message.starts_with(&start), "{failure}");
            assert!(failure.message.ends_with(why), "{failure}");
            assert_eq!(failure.exit, 2);
        }
        assert_eq!(names(parent_folder.path()), ["file"]);
    }

    #[test]
    fn failed_writes_leave_no_folder() {
        let parent_folder = tempfile::tempdir().unwrap();
        // A file cannot be the folder of another.
        let files = ["a", "a/b"].map(|name| (name, String::new()));
        let failure = write_folder(&parent_folder.path().join("new"), &files).unwrap_err();
        assert_eq!(failure.code, "cannot-write");
        assert!(names(parent_folder.path()).is_empty());
    }

    #[test]
    #[cfg(unix)]
    fn a_symbolic_link_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, "new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }
}

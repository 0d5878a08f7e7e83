//! Writing a file or a folder whole or not at all.

use crate::errors::Failure;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::Builder;

/// Writes `bytes` to `path`: other readers see the old file or the new one,
/// never a part.
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
    let (bytes, refused) = (bytes.as_ref(), |why| refused(path, why));
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(refused("it is a directory".into())),
        // A pipe or a device takes bytes, and must not be replaced by a file.
        Ok(found) if !found.is_file() => in_place(path, bytes).map_err(|e| refused(e.to_string())),
        _ => replace(&real(path), bytes).map_err(|e| refused(e.to_string())),
    }
}

/// Refuses a path that no file can be written to: a folder, or one in a folder
/// that is not there.
pub(crate) fn can_write(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Err(refused(path, "it is a directory".into()));
    }
    has_parent(path)
}

/// Refuses a path at which no folder can be made and filled. Is one there?
pub(crate) fn can_write_folder(path: &Path) -> Result<bool, Failure> {
    let refused = |why| refused(path, why);
    let there = match fs::metadata(path) {
        Ok(found) if !found.is_dir() => return Err(refused("it is no folder".into())),
        found => found.is_ok(),
    };
    if !there {
        return has_parent(path).map(|()| false);
    }
    let mut entries = fs::read_dir(path).map_err(|e| refused(e.to_string()))?;
    match entries.next() {
        None => Ok(true),
        Some(_) => Err(refused("it is a folder that is not empty".into())),
    }
}

/// Refuses a path in a folder that is not there.
fn has_parent(path: &Path) -> Result<(), Failure> {
    let around = parent(path);
    match around.metadata() {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(refused(path, format!("{} is no folder", around.display()))),
        Err(e) => {
            let (around, why) = (around.display(), e.kind());
            Err(refused(
                path,
                format!("nothing can be made in {around}: {why}"),
            ))
        }
    }
}

/// Makes the folder `path` with files in it, each by its path and bytes: all of
/// them or nothing. A folder that is there must be empty, and stays the same one.
pub(crate) fn write_folder(
    path: &Path,
    files: &[(impl AsRef<Path>, impl AsRef<[u8]>)],
) -> Result<(), Failure> {
    let refused = |why| refused(path, why);
    let failed = |e: io::Error| refused(e.to_string());
    let there = can_write_folder(path)?;
    let around = if there { path } else { parent(path) };
    // If it moves away, nothing of it is left to be removed.
    let made = scratch(0o777).tempdir_in(around).map_err(|e| {
        let (around, why) = (around.display(), e.kind());
        refused(format!("nothing can be made in {around}: {why}"))
    })?;
    let moved = fill(made.path(), files).and_then(|()| match there {
        true => move_all(made.path(), path),
        false => fs::rename(made.path(), path),
    });
    moved.map_err(failed)
}

fn fill(folder: &Path, files: &[(impl AsRef<Path>, impl AsRef<[u8]>)]) -> io::Result<()> {
    for (name, bytes) in files {
        let file = folder.join(name);
        fs::create_dir_all(parent(&file))?;
        fs::write(file, bytes)?;
    }
    Ok(())
}

/// Moves what is in one folder to another; back again if one cannot be moved.
fn move_all(from: &Path, to: &Path) -> io::Result<()> {
    let entries = fs::read_dir(from)?.map(|e| e.map(|e| e.file_name()));
    let entries = entries.collect::<io::Result<Vec<_>>>()?;
    for (i, name) in entries.iter().enumerate() {
        if let Err(e) = fs::rename(from.join(name), to.join(name)) {
            for name in &entries[..i] {
                // What cannot be moved back stays where it is.
                let _ = fs::rename(to.join(name), from.join(name));
            }
            return Err(e);
        }
    }
    Ok(())
}

fn refused(path: &Path, why: String) -> Failure {
    Failure::input(
        "cannot-write",
        format!("cannot write {}: {why}", path.display()),
    )
}

/// The folder that a path lies in.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// What is made under another name first, with the permissions of anything
/// new: the umask takes its part off `mode`.
fn scratch(mode: u32) -> Builder<'static, 'static> {
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
    let mut file = scratch(0o666).tempfile_in(parent(path))?;
    file.write_all(bytes)?;
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

    const FILES: [(&str, &str); 2] = [("a.txt", "one"), ("in/b.txt", "two")];

    fn write_two(path: &Path) -> Result<(), Failure> {
        write_folder(path, &FILES.map(|(name, text)| (name, text.to_owned())))
    }

    /// The names in a folder.
    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
        let mut names: Vec<_> = entries
            .map(|e| e.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_is_made_or_filled_and_nothing_is_left_beside_it() {
        let around = tempfile::tempdir().unwrap();
        let (new, empty) = (around.path().join("new"), around.path().join("empty"));
        fs::create_dir(&empty).unwrap();
        for folder in [&new, &empty] {
            write_two(folder).unwrap();
            assert_eq!(names(folder), ["a.txt", "in"]);
            assert_eq!(fs::read_to_string(folder.join("in/b.txt")).unwrap(), "two");
        }
        assert_eq!(names(around.path()), ["empty", "new"]);
    }

    #[test]
    fn a_folder_that_is_in_use_stays_as_it_is() {
        let around = tempfile::tempdir().unwrap();
        let file = around.path().join("file");
        fs::write(&file, "mine").unwrap();
        for (path, why) in [
            (around.path().to_owned(), "it is a folder that is not empty"),
            (file.clone(), "it is no folder"),
            (around.path().join("no/new"), "entity not found"),
        ] {
            let said = write_two(&path).unwrap_err();
            let start = format!("cannot write {}: ", path.display());
            assert!(said.message.starts_with(&start), "{said}");
            assert!(said.message.ends_with(why), "{said}");
            assert_eq!(said.exit, 2);
        }
        assert_eq!(names(around.path()), ["file"]);
    }

    #[test]
    fn files_that_cannot_be_written_leave_no_folder() {
        let around = tempfile::tempdir().unwrap();
        // A file cannot be the folder of another.
        let files = ["a", "a/b"].map(|name| (name, String::new()));
        let said = write_folder(&around.path().join("new"), &files).unwrap_err();
        assert_eq!(said.code, "cannot-write");
        assert!(names(around.path()).is_empty());
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

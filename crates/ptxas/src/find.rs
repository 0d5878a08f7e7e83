//! The search for a ptxas executable, in order of precedence.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Ptxas, PtxasError, VERSION};

/// Returns the path of the pinned ptxas below a target directory.
#[must_use]
pub fn pinned_path(target_dir: &Path) -> PathBuf {
    target_dir.join("ptxas").join(VERSION).join("ptxas")
}

/// The process state that determines which ptxas is used.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// The value of `$PTXAS`.
    pub(super) named: Option<OsString>,
    /// The value of `$CARGO_TARGET_DIR`.
    pub(super) target_dir: Option<OsString>,
    /// The current directory.
    pub(super) current_dir: Option<PathBuf>,
    /// The running executable.
    pub(super) current_exe: Option<PathBuf>,
    /// The value of `$PATH`.
    pub(super) path: Option<OsString>,
}

impl Search {
    pub(super) fn from_env() -> Self {
        Self {
            named: env::var_os("PTXAS"),
            target_dir: env::var_os("CARGO_TARGET_DIR"),
            current_dir: env::current_dir().ok(),
            current_exe: env::current_exe().ok(),
            path: env::var_os("PATH"),
        }
    }

    /// Finds the ptxas to use; `version_of` runs an executable for its version.
    pub(super) fn resolve(
        &self,
        version_of: impl Fn(&Path) -> Result<String, PtxasError>,
    ) -> Result<Ptxas, PtxasError> {
        if let Some(named) = self.resolve_override(&version_of)? {
            return Ok(named);
        }
        let path = self
            .pinned()
            .or_else(|| self.on_path("ptxas".as_ref()))
            .ok_or(PtxasError::NotFound)?;
        let version = version_of(&path)?;
        if version == VERSION {
            Ok(Ptxas { path, version })
        } else {
            Err(PtxasError::WrongVersion {
                path,
                found: version,
            })
        }
    }

    /// Returns the ptxas that `$PTXAS` names; a bare name is looked up on the `PATH`.
    pub(super) fn resolve_override(
        &self,
        version_of: impl Fn(&Path) -> Result<String, PtxasError>,
    ) -> Result<Option<Ptxas>, PtxasError> {
        let Some(named) = self.named.as_ref().filter(|named| !named.is_empty()) else {
            return Ok(None);
        };
        let named = Path::new(named);
        let path = if named.components().count() == 1 && !named.is_absolute() {
            self.on_path(named)
        } else {
            None
        };
        let path = path.unwrap_or_else(|| absolute(named));
        let version = version_of(&path)?;
        Ok(Some(Ptxas { path, version }))
    }

    fn pinned(&self) -> Option<PathBuf> {
        let configured = self.target_dir.iter().map(PathBuf::from);
        let above = ancestors(&self.current_dir).map(|folder| folder.join("target"));
        // Cargo puts executables inside the target directory, whose name may differ.
        let near_executable = ancestors(&self.current_exe)
            .flat_map(|folder| [folder.to_owned(), folder.join("target")]);
        configured
            .chain(above)
            .chain(near_executable)
            .map(|target_dir| pinned_path(&absolute(&target_dir)))
            .find(|path| path.is_file())
    }

    fn on_path(&self, name: &Path) -> Option<PathBuf> {
        env::split_paths(self.path.as_ref()?)
            .map(|folder| absolute(&folder.join(name)))
            .find(|path| path.is_file())
    }
}

/// Makes `path` absolute, or returns it unchanged if that fails.
pub(super) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Parses the version in `Cuda compilation tools, release 13.0, V13.0.88`.
pub(super) fn parse_version(output: &str) -> Option<String> {
    let line = output.lines().find(|line| line.contains("release "))?;
    let (_, version) = line.rsplit_once(", V")?;
    let version = version.trim();
    let numbers = version.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    (numbers && !version.is_empty()).then(|| version.to_owned())
}

fn ancestors(path: &Option<PathBuf>) -> impl Iterator<Item = &Path> {
    path.iter().flat_map(|path| path.ancestors())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Creates an empty file and its parent directories.
    fn create_file(path: PathBuf) -> PathBuf {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        path
    }

    fn pinned_version(_: &Path) -> Result<String, PtxasError> {
        Ok(VERSION.to_owned())
    }

    fn older_version(_: &Path) -> Result<String, PtxasError> {
        Ok("12.4.131".to_owned())
    }

    #[test]
    fn the_version_is_parsed_from_the_output() {
        let output = "ptxas: NVIDIA (R) Ptx optimizing assembler\n\
                    Copyright (c) 2005-2025 NVIDIA Corporation\n\
                    Built on Wed_Aug_20_01:55:12_PM_PDT_2025\n\
                    Cuda compilation tools, release 13.0, V13.0.88\n\
                    Build cuda_13.0.r13.0/compiler.36424714_0\n";
        assert_eq!(parse_version(output).as_deref(), Some("13.0.88"));
        assert_eq!(parse_version("usage: something, Vim"), None);
        assert_eq!(parse_version(""), None);
    }

    #[test]
    fn an_override_has_precedence_and_may_have_any_version() {
        let root = tempfile::tempdir().unwrap();
        create_file(pinned_path(&root.path().join("target")));
        let named = create_file(root.path().join("cuda/ptxas"));
        let search = Search {
            named: Some(named.clone().into()),
            current_dir: Some(root.path().to_owned()),
            ..Search::default()
        };
        let found = search.resolve(older_version).unwrap();
        assert_eq!(found.path, named);
        assert_eq!(found.version, "12.4.131");
    }

    #[test]
    fn an_empty_override_is_none() {
        let search = Search {
            named: Some(OsString::new()),
            ..Search::default()
        };
        assert!(search.resolve_override(older_version).unwrap().is_none());
    }

    #[test]
    fn a_bare_override_is_looked_up_on_the_path() {
        let root = tempfile::tempdir().unwrap();
        let executable = create_file(root.path().join("ptxas-12"));
        let search = Search {
            named: Some("ptxas-12".into()),
            path: Some(root.path().into()),
            ..Search::default()
        };
        assert_eq!(search.resolve(older_version).unwrap().path, executable);
    }

    #[test]
    fn the_configured_target_directory_has_precedence() {
        let root = tempfile::tempdir().unwrap();
        let configured = create_file(pinned_path(&root.path().join("out")));
        let found_above = create_file(pinned_path(&root.path().join("target")));
        let nested_dir = root.path().join("crates/ptx");
        let mut search = Search {
            target_dir: Some(root.path().join("out").into()),
            current_dir: Some(nested_dir),
            ..Search::default()
        };
        assert_eq!(search.resolve(pinned_version).unwrap().path, configured);
        search.target_dir = None;
        assert_eq!(search.resolve(pinned_version).unwrap().path, found_above);
    }

    #[test]
    fn the_search_includes_the_directories_of_the_executable() {
        let root = tempfile::tempdir().unwrap();
        let executable = create_file(pinned_path(&root.path().join("out")));
        let search = Search {
            current_exe: Some(root.path().join("out/debug/deps/warpline")),
            ..Search::default()
        };
        assert_eq!(search.resolve(pinned_version).unwrap().path, executable);
    }

    #[test]
    fn a_ptxas_on_the_path_must_have_the_pinned_version() {
        let root = tempfile::tempdir().unwrap();
        let executable = create_file(root.path().join("ptxas"));
        let search = Search {
            path: Some(root.path().into()),
            ..Search::default()
        };
        assert_eq!(search.resolve(pinned_version).unwrap().path, executable);
        let error = search.resolve(older_version).unwrap_err();
        assert!(matches!(error, PtxasError::WrongVersion { .. }), "{error}");
        let message = error.to_string();
        let named = format!("PTXAS={}", executable.display());
        for part in ["12.4.131", "13.0.88", &named, "cargo xtask ptxas"] {
            assert!(message.contains(part), "{part} in {message}");
        }
    }

    #[test]
    fn a_missing_ptxas_error_has_help() {
        let error = Search::default().resolve(pinned_version).unwrap_err();
        assert!(matches!(error, PtxasError::NotFound), "{error}");
        let message = error.to_string();
        assert!(message.contains("cargo xtask ptxas"), "{message}");
        assert!(message.contains("PTXAS=/path/to/ptxas"), "{message}");
    }
}

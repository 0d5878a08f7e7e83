//! The Warpline dependency of a new crate: a checkout, or the Git repository.

use crate::errors::Failure;
use serde::{Serialize, Serializer};
use serde_json::json;
use std::fmt;
use std::fs;
use std::path::Path;

/// The Git repository, used without a checkout.
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// The crates that a new crate depends on, and their folders in a checkout.
const CRATES: [(&str, &str); 3] = [
    ("warpline-cli", "crates/cli"),
    ("warpline-family", "crates/family"),
    ("warpline-ir", "crates/ir"),
];

/// The source of the Warpline crates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// A folder on this machine, as an absolute path.
    Checkout(String),
    /// The Git repository.
    Git,
}

impl Source {
    /// Returns the given checkout, else the one that built this program, else the repository.
    pub(super) fn find(requested: Option<&Path>) -> Result<Self, Failure> {
        let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        match requested {
            Some(folder) if is_checkout(folder) => checkout(folder),
            Some(folder) => Err(Failure::bad_input(
                "no-checkout",
                format!(
                    "--warpline must be a checkout of Warpline, but {} has no crates/cli/Cargo.toml",
                    folder.display()
                ),
            )),
            // Cargo may delete a checkout that it fetched itself.
            None if is_checkout(&built) && !built.join(".cargo-ok").exists() => checkout(&built),
            None => Ok(Self::Git),
        }
    }

    /// Returns the dependency lines of the manifest.
    pub(super) fn dependencies(&self) -> String {
        let line = |(name, folder)| match self {
            Self::Checkout(root) => {
                let path = toml_string(&format!("{root}/{folder}"));
                format!("{name} = {{ path = {path} }}")
            }
            Self::Git => format!("{name} = {{ git = {} }}", toml_string(REPOSITORY)),
        };
        CRATES.map(line).join("\n")
    }

    /// Returns the lock file of a checkout: the versions that Warpline is tested with.
    pub(super) fn lock(&self) -> Option<String> {
        match self {
            Self::Checkout(root) => fs::read_to_string(format!("{root}/Cargo.lock")).ok(),
            Self::Git => None,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checkout(root) => write!(f, "the checkout {root}"),
            Self::Git => write!(f, "the repository {REPOSITORY}"),
        }
    }
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Checkout(root) => json!({ "path": root }),
            Self::Git => json!({ "git": REPOSITORY }),
        }
        .serialize(s)
    }
}

fn is_checkout(folder: &Path) -> bool {
    folder.join("crates/cli/Cargo.toml").is_file()
}

/// Returns a checkout by its absolute path.
fn checkout(folder: &Path) -> Result<Source, Failure> {
    let reject = |why: String| {
        let text = format!("cannot use the checkout {}: {why}", folder.display());
        Failure::bad_input("no-checkout", text)
    };
    let root = fs::canonicalize(folder).map_err(|e| reject(e.to_string()))?;
    match root.to_str() {
        Some(root) => Ok(Source::Checkout(root.to_owned())),
        None => Err(reject("its path is not valid UTF-8".into())),
    }
}

/// Quotes a TOML string; JSON's escapes are valid in TOML.
fn toml_string(text: &str) -> String {
    json!(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_is_the_checkout_that_built_this_program() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"))
            .canonicalize()
            .unwrap();
        let source = Source::find(None).unwrap();
        let line = format!("warpline-cli = {{ path = \"{}\" }}", here.display());
        assert!(source.dependencies().contains(&line), "{source}");
        assert!(source.lock().unwrap().contains("name = \"warpline-cli\""));
    }

    #[test]
    fn without_a_checkout_it_is_the_git_repository() {
        let lines = Source::Git.dependencies();
        let line = "warpline-ir = { git = \"https://github.com/warpline/warpline\" }";
        assert!(lines.contains(line), "{lines}");
        assert_eq!(Source::Git.lock(), None);
    }

    #[test]
    fn quotes_in_a_path_are_escaped() {
        let lines = Source::Checkout("/a \"b\" \\c".into()).dependencies();
        assert!(
            lines.contains(r#"path = "/a \"b\" \\c/crates/ir""#),
            "{lines}"
        );
    }

    #[test]
    fn other_folders_are_rejected_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let failure = Source::find(Some(folder.path())).unwrap_err();
        let name = folder.path().display().to_string();
        assert!(failure.message.contains(&name), "{failure}");
        assert!(failure.message.ends_with("has no crates/cli/Cargo.toml"));
        assert_eq!((failure.code, failure.exit), ("no-checkout", 2));
    }
}

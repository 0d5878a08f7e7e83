//! Where a new crate takes Warpline from: a checkout, or its repository.

use crate::errors::Failure;
use serde::{Serialize, Serializer};
use serde_json::json;
use std::fmt;
use std::fs;
use std::path::Path;

/// The repository, for when there is no checkout.
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// The crates that it depends on, and their folders in a checkout.
const CRATES: [(&str, &str); 3] = [
    ("warpline-cli", "crates/cli"),
    ("warpline-family", "crates/family"),
    ("warpline-ir", "crates/ir"),
];

/// Where Warpline comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// A folder on this machine, from the root.
    Checkout(String),
    /// The repository.
    Git,
}

impl Source {
    /// The checkout that was asked for, else the one that built this program, else the repository.
    pub(super) fn find(asked: Option<&Path>) -> Result<Self, Failure> {
        let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        match asked {
            Some(folder) if is_checkout(folder) => checkout(folder),
            Some(folder) => Err(Failure::input(
                "no-checkout",
                format!(
                    "--warpline is a checkout of Warpline, and {} has no crates/cli/Cargo.toml",
                    folder.display()
                ),
            )),
            // One that Cargo fetched is Cargo's to remove.
            None if is_checkout(&built) && !built.join(".cargo-ok").exists() => checkout(&built),
            None => Ok(Self::Git),
        }
    }

    /// The lines of the manifest.
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

    /// The lock file of a checkout: the versions that Warpline is tested with.
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

/// A checkout by its path from the root, which a manifest can hold.
fn checkout(folder: &Path) -> Result<Source, Failure> {
    let refused = |why: String| {
        let text = format!("cannot take Warpline from {}: {why}", folder.display());
        Failure::input("no-checkout", text)
    };
    let root = fs::canonicalize(folder).map_err(|e| refused(e.to_string()))?;
    match root.to_str() {
        Some(root) => Ok(Source::Checkout(root.to_owned())),
        None => Err(refused("a manifest cannot hold its path".into())),
    }
}

/// A string of TOML: JSON's escapes are among its own.
fn toml_string(text: &str) -> String {
    json!(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checkout_that_built_this_is_taken_by_its_path() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"))
            .canonicalize()
            .unwrap();
        let source = Source::find(None).unwrap();
        let line = format!("warpline-cli = {{ path = \"{}\" }}", here.display());
        assert!(source.dependencies().contains(&line), "{source}");
        assert!(source.lock().unwrap().contains("name = \"warpline-cli\""));
    }

    #[test]
    fn without_a_checkout_it_is_the_repository() {
        let lines = Source::Git.dependencies();
        let line = "warpline-ir = { git = \"https://github.com/warpline/warpline\" }";
        assert!(lines.contains(line), "{lines}");
        assert_eq!(Source::Git.lock(), None);
    }

    #[test]
    fn a_path_with_quotes_stays_one_string() {
        let lines = Source::Checkout("/a \"b\" \\c".into()).dependencies();
        assert!(
            lines.contains(r#"path = "/a \"b\" \\c/crates/ir""#),
            "{lines}"
        );
    }

    #[test]
    fn a_folder_that_is_no_checkout_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let said = Source::find(Some(folder.path())).unwrap_err();
        let name = folder.path().display().to_string();
        assert!(said.message.contains(&name), "{said}");
        assert!(said.message.ends_with("has no crates/cli/Cargo.toml"));
        assert_eq!((said.code, said.exit), ("no-checkout", 2));
    }
}

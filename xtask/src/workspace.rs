//! The folders of the workspace.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The folders that every task needs.
pub(crate) struct Workspace {
    /// The folder of the workspace's `Cargo.toml`.
    pub(crate) root: PathBuf,
    /// Cargo's target directory.
    pub(crate) target_dir: PathBuf,
}

impl Workspace {
    /// Reads the folders from `cargo metadata`.
    pub(crate) fn load() -> Result<Self> {
        let output = Command::new(cargo_path())
            .args(["metadata", "--no-deps", "--format-version=1"])
            .args([
                "--manifest-path",
                concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
            ])
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run `cargo metadata`")?;
        ensure!(
            output.status.success(),
            "`cargo metadata` failed: {}",
            output.status
        );
        let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)
            .context("the output of `cargo metadata` is not JSON")?;
        let folder = |key: &str| {
            let folder = metadata[key].as_str();
            folder
                .map(PathBuf::from)
                .with_context(|| format!("`cargo metadata` has no {key}"))
        };
        Ok(Self {
            root: folder("workspace_root")?,
            target_dir: folder("target_directory")?,
        })
    }

    /// Returns a cargo command at the root of the workspace.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = Command::new(cargo_path());
        command.current_dir(&self.root);
        command
    }
}

/// Returns the cargo that runs this task.
fn cargo_path() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

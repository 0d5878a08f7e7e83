//! The generated parts of the documentation: performance pages, charts, counts, terminal pictures.
//!
//! `cargo xtask docs` writes them; a test fails where a file is not current.
//!
//! | module | content |
//! |---|---|
//! | [`bench`] | the recorded benchmark runs in `docs/perf/data` |
//! | [`perf`] | a performance page: one chart and one table |
//! | [`chart`] | horizontal bar charts as SVG, for light and dark pages |
//! | [`quoted`] | paths and commands that Markdown quotes |

pub mod bench;
pub mod chart;
pub mod perf;
pub mod quoted;

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// A generated file: its path from the root of the repository, and its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Generated {
    /// The path from the root of the repository.
    pub path: PathBuf,
    /// The whole text.
    pub text: String,
}

/// Returns every generated file.
pub fn generate(root: &Path) -> Result<Vec<Generated>> {
    perf::pages(root)
}

/// Writes the generated files that are not current and returns their paths.
pub fn write(root: &Path) -> Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    for file in stale(root)? {
        let path = root.join(&file.path);
        std::fs::write(&path, &file.text)
            .with_context(|| format!("cannot write {}", path.display()))?;
        written.push(file.path);
    }
    Ok(written)
}

/// Returns the generated files whose text on disk is not current.
pub fn stale(root: &Path) -> Result<Vec<Generated>> {
    let mut all = generate(root)?;
    all.retain(|file| {
        std::fs::read_to_string(root.join(&file.path))
            .ok()
            .as_deref()
            != Some(&file.text)
    });
    Ok(all)
}

//! The generated parts of the documentation: performance pages, charts, counts, terminal pictures.
//!
//! `cargo xtask docs` writes them; a test fails if a file is not current.
//!
//! | module | content |
//! |---|---|
//! | [`mod@bench`] | the recorded benchmark runs in `docs/perf/data` |
//! | [`perf`] | a performance page: one chart and one table |
//! | [`ladder`] | the page of the GEMM ladder |
//! | [`pictures`] | diagrams of example kernels |
//! | [`counts`] | counts inside Markdown |
//! | [`chart`] | horizontal bar charts as SVG, for light and dark pages |
//! | [`terminal`] | the terminal picture, from a real run |
//! | [`quoted`] | paths and commands that Markdown quotes |

pub mod bench;
pub mod chart;
pub mod counts;
pub mod ladder;
pub mod perf;
pub mod pictures;
pub mod quoted;
pub mod terminal;

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// A generated file: its path from the root of the repository, and its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Generated {
    /// The path from the root of the repository.
    pub path: PathBuf,
    /// The text.
    pub text: String,
}

/// Returns every generated file.
pub fn generate(root: &Path) -> Result<Vec<Generated>> {
    let mut files = perf::pages(root)?;
    files.extend(ladder::page(root)?);
    files.extend(pictures::pictures()?);
    let counts = counts::counts(root)?;
    for path in quoted::Tree::read(root)?.markdown() {
        let text = std::fs::read_to_string(root.join(path))?;
        if text.contains(counts::START) {
            files.push(Generated {
                path: path.into(),
                text: counts::fill(&text, &counts)?,
            });
        }
    }
    Ok(files)
}

/// Writes the generated files that are not current and returns their paths.
pub fn write(root: &Path) -> Result<Vec<PathBuf>> {
    let stale = stale(root)?;
    write_files(root, stale)
}

/// Records the terminal picture again. [`generate`] leaves it out, because it shows the time of the
/// proof.
pub fn write_terminal(root: &Path) -> Result<Vec<PathBuf>> {
    write_files(root, vec![terminal::record(root)?])
}

fn write_files(root: &Path, files: Vec<Generated>) -> Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    for file in files {
        let path = root.join(&file.path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
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

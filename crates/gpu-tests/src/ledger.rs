//! The GPU ledger: the programs that were verified on hardware.

use crate::workloads::ShippedKernel;
use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the path of the ledger of this repository.
pub fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("ledger.json")
}

/// The verified programs, by program hash.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ledger(pub BTreeMap<String, LedgerEntry>);

/// A program that passed in its final build.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// The name of the kernel.
    pub kernel: String,
    /// The date: `2026-11-15`.
    pub date: String,
    /// The CUDA version of the driver.
    pub driver: String,
    /// The device.
    pub device: String,
}

impl Ledger {
    /// Reads a ledger; returns an empty one if the file does not exist.
    pub fn read(path: &Path) -> Result<Self> {
        match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .with_context(|| format!("{} is not a GPU ledger", path.display())),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(e) => Err(e).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Writes the ledger, sorted by program hash.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Adds the programs that passed, and removes those that do not ship.
    pub fn update(&mut self, passed: &BTreeMap<String, LedgerEntry>, shipped: &[ShippedKernel]) {
        self.0
            .extend(passed.iter().map(|(hash, e)| (hash.clone(), e.clone())));
        self.0
            .retain(|hash, _| shipped.iter().any(|s| s.hash == *hash));
    }

    /// Returns the shipped programs that were never verified on a GPU.
    pub fn missing<'a>(&self, shipped: &'a [ShippedKernel]) -> Vec<&'a ShippedKernel> {
        let is_missing = |s: &&ShippedKernel| !self.0.contains_key(&s.hash);
        shipped.iter().filter(is_missing).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passed_program_stays_while_it_ships() {
        let entry = |kernel: &str| LedgerEntry {
            kernel: kernel.to_owned(),
            date: "2026-11-15".to_owned(),
            driver: "13.0".to_owned(),
            device: "H200".to_owned(),
        };
        let shipped = |hash: &str| ShippedKernel {
            hash: hash.to_owned(),
            kernel: "add".to_owned(),
            workload: "vector-add".to_owned(),
        };
        let mut ledger = Ledger::default();
        ledger.0.insert("old".to_owned(), entry("old"));
        let passed = BTreeMap::from([("b".to_owned(), entry("add"))]);
        let all = [shipped("a"), shipped("b")];
        ledger.update(&passed, &all);
        assert_eq!(ledger.0.keys().collect::<Vec<_>>(), ["b"]);
        assert_eq!(ledger.missing(&all), [&shipped("a")]);

        let file = tempfile::NamedTempFile::new().unwrap();
        ledger.write(file.path()).unwrap();
        assert_eq!(Ledger::read(file.path()).unwrap(), ledger);
    }
}

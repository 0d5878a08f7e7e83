//! The ledger: which programs have run on a GPU and were right.

use crate::works::Shipped;
use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where the ledger of this repository lies.
pub fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("ledger.json")
}

/// Programs that have run, by program hash.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ledger(pub BTreeMap<String, Entry>);

/// A program that was right in its final build.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Its kernel.
    pub kernel: String,
    /// When: `2026-11-15`.
    pub date: String,
    /// The CUDA version of the driver.
    pub driver: String,
    /// The device.
    pub device: String,
}

impl Ledger {
    /// Reads a ledger; an empty one if there is no such file.
    pub fn read(path: &Path) -> Result<Self> {
        match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .with_context(|| format!("{} is no ledger", path.display())),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(e) => Err(e).with_context(|| format!("{} cannot be read", path.display())),
        }
    }

    /// Writes it, one program after the other by hash.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
    }

    /// Takes in what passed, and drops what no longer ships.
    pub fn update(&mut self, passed: &BTreeMap<String, Entry>, shipped: &[Shipped]) {
        self.0
            .extend(passed.iter().map(|(hash, e)| (hash.clone(), e.clone())));
        self.0
            .retain(|hash, _| shipped.iter().any(|s| s.hash == *hash));
    }

    /// What ships and has never been seen right on a GPU.
    pub fn missing<'a>(&self, shipped: &'a [Shipped]) -> Vec<&'a Shipped> {
        let known = |s: &&Shipped| !self.0.contains_key(&s.hash);
        shipped.iter().filter(known).collect()
    }
}

/// Today, as UTC has it.
pub fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    date(since.map_or(0, |d| d.as_secs() / 86400))
}

/// The date so many days after 1970-01-01.
fn date(days: u64) -> String {
    let leap = |y: u64| (y.is_multiple_of(4) && !y.is_multiple_of(100)) || y.is_multiple_of(400);
    let (mut year, mut day) = (1970, days);
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        let cases = [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_772, "2026-11-15"),
            (20_818, "2026-12-31"),
        ];
        for (days, text) in cases {
            assert_eq!(date(days), text);
        }
    }

    #[test]
    fn what_passed_is_kept_while_it_ships() {
        let entry = |kernel: &str| Entry {
            kernel: kernel.to_owned(),
            date: "2026-11-15".to_owned(),
            driver: "13.0".to_owned(),
            device: "H200".to_owned(),
        };
        let shipped = |hash: &str| Shipped {
            hash: hash.to_owned(),
            kernel: "add".to_owned(),
            of: "vector-add".to_owned(),
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

//! Cache entries of autotuning: a readable, versioned text.

use super::key::TuneKey;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The format name in the header of an entry.
pub(super) const FORMAT: &str = "warpline tuned config";
/// The format version. It changes when a field is removed or changes its meaning.
pub(super) const VERSION: u32 = 1;

/// The cached result of a tuning run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TuneCacheEntry {
    /// The format name.
    pub format: String,
    /// The format version.
    pub version: u32,
    /// The cache key.
    pub key: TuneKey,
    /// The problem that was measured.
    pub problem: Value,
    /// The winner, then the runner-up. The outputs of both passed the comparison with the reference.
    pub ranked: Vec<TunedConfig>,
    /// The number of candidates.
    pub candidates: usize,
    /// The time of the tuning run: `2026-11-16T09:30:00Z`.
    pub tuned_at: String,
    /// The Warpline version that tuned it: `warpline 0.1.0`.
    pub tuned_by: String,
}

/// A tuned config with its timing.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TunedConfig {
    /// The config.
    pub config: Value,
    /// The program hashes of its kernels, in the order of the plan.
    pub programs: Vec<String>,
    /// The median seconds of one launch.
    pub median_s: f64,
    /// The interquartile range divided by the median.
    pub spread: f64,
}

/// The fields that every format version has.
#[derive(Deserialize)]
struct FormatHeader {
    format: String,
    version: u32,
}

impl TuneCacheEntry {
    /// Returns a new entry of this build with the current time.
    pub(super) fn new(
        key: TuneKey,
        problem: Value,
        ranked: Vec<TunedConfig>,
        candidates: usize,
    ) -> Self {
        Self {
            format: FORMAT.into(),
            version: VERSION,
            key,
            problem,
            ranked,
            candidates,
            tuned_at: super::time::now(),
            tuned_by: concat!("warpline ", env!("CARGO_PKG_VERSION")).into(),
        }
    }

    /// Parses an entry; the error says why the text is not one.
    pub(super) fn read(text: &[u8]) -> Result<Self, String> {
        check_format(text, FORMAT)?;
        let entry: Self =
            serde_json::from_slice(text).map_err(|e| format!("it is corrupt: {e}"))?;
        if entry.ranked.is_empty() {
            return Err("it is corrupt: it has no config".into());
        }
        Ok(entry)
    }

    /// Formats the entry as JSON, one field per line.
    pub(super) fn text(&self) -> String {
        format!("{:#}\n", serde_json::json!(self))
    }
}

/// Rejects a text with another format name or version.
pub(super) fn check_format(text: &[u8], format: &str) -> Result<(), String> {
    let header: FormatHeader = serde_json::from_slice(text).map_err(|e| match e.is_eof() {
        true => "it is truncated".to_owned(),
        false => format!("it is corrupt: {e}"),
    })?;
    if header.format != format {
        return Err(format!("its format is {:?}, not {format:?}", header.format));
    }
    if header.version != VERSION {
        return Err(format!(
            "its format version is {}, but this build reads version {VERSION}",
            header.version
        ));
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::tune::key::tests::key;
    use serde_json::json;

    /// Returns a test entry.
    pub(in crate::tune) fn entry(rows: u64) -> TuneCacheEntry {
        let ranked = TunedConfig {
            config: json!({ "schedule": "direct" }),
            programs: vec!["abc".into()],
            median_s: 1e-5,
            spread: 0.01,
        };
        TuneCacheEntry {
            tuned_at: "2026-11-16T09:30:00Z".into(),
            ..TuneCacheEntry::new(key(rows), json!({ "rows": rows }), vec![ranked], 7)
        }
    }

    #[test]
    fn an_entry_round_trips_through_its_text() {
        let entry = entry(8);
        assert_eq!(
            TuneCacheEntry::read(entry.text().as_bytes()),
            Ok(entry.clone())
        );
        assert!(entry.text().contains("\n  \"tuned_by\": \"warpline "));
    }

    #[test]
    fn an_invalid_entry_is_rejected_with_the_reason() {
        let text = entry(8).text();
        let why = |text: &str| TuneCacheEntry::read(text.as_bytes()).unwrap_err();
        assert_eq!(why(""), "it is truncated");
        for cut in 1..text.len() - 2 {
            // A truncated number still parses as a number.
            let error = why(&text[..cut]);
            assert!(
                error == "it is truncated" || error.contains("invalid number"),
                "{cut}: {error}"
            );
        }
        assert!(why("hello").starts_with("it is corrupt: expected value"));
        let newer = text.replace("\"version\": 1", "\"version\": 2");
        let error = "its format version is 2, but this build reads version 1";
        assert_eq!(why(&newer), error);
        let other = text.replace(FORMAT, "shopping list");
        assert!(why(&other).starts_with("its format is \"shopping list\""));
        let mut none = entry(8);
        none.ranked.clear();
        assert_eq!(why(&none.text()), "it is corrupt: it has no config");
        let missing = text.replace("\"problem\"", "\"trouble\"");
        assert!(why(&missing).contains("missing field `problem`"));
    }
}

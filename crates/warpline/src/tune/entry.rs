//! What is remembered of a tuning: a versioned text that people can read.

use super::key::Key;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Says what a file is.
pub(super) const FORMAT: &str = "warpline tuned config";
/// The version of the format. It changes when a field goes or changes its meaning.
pub(super) const VERSION: u32 = 1;

/// What is remembered of a tuning.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// Says what it is.
    pub format: String,
    /// The version of the format.
    pub version: u32,
    /// What it is looked up by.
    pub key: Key,
    /// The problem that was measured.
    pub problem: Value,
    /// The winner, then the runner-up; the outputs of each were compared with the reference.
    pub ranked: Vec<Ranked>,
    /// How many candidates there were.
    pub candidates: usize,
    /// When it was tuned: `2026-11-16T09:30:00Z`.
    pub tuned_at: String,
    /// What tuned it: `warpline 0.1.0`.
    pub tuned_by: String,
}

/// A config that did well.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Ranked {
    /// The config.
    pub config: Value,
    /// The program hashes of its kernels, in the order of the plan.
    pub programs: Vec<String>,
    /// Seconds of one launch, in the median.
    pub median_s: f64,
    /// The middle half of the times, as a share of the median.
    pub spread: f64,
}

/// The part that every version has.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
}

impl Entry {
    /// An entry of this build, made now.
    pub(super) fn new(key: Key, problem: Value, ranked: Vec<Ranked>, candidates: usize) -> Self {
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

    /// Reads an entry, or says why it is none.
    pub(super) fn read(text: &[u8]) -> Result<Self, String> {
        judge(text, FORMAT)?;
        let entry: Self =
            serde_json::from_slice(text).map_err(|e| format!("it is damaged: {e}"))?;
        if entry.ranked.is_empty() {
            return Err("it is damaged: it has no config".into());
        }
        Ok(entry)
    }

    /// As text, one field a line.
    pub(super) fn text(&self) -> String {
        format!("{:#}\n", serde_json::json!(self))
    }
}

/// Refuses a text that is of another format or version.
pub(super) fn judge(text: &[u8], format: &str) -> Result<(), String> {
    let head: Head = serde_json::from_slice(text).map_err(|e| match e.is_eof() {
        true => "it is cut off".to_owned(),
        false => format!("it is damaged: {e}"),
    })?;
    if head.format != format {
        return Err(format!(
            "it is of the format {:?}, not {format:?}",
            head.format
        ));
    }
    if head.version != VERSION {
        return Err(format!(
            "it is of version {} of the format, and this build reads version {VERSION}",
            head.version
        ));
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::tune::key::tests::key;
    use serde_json::json;

    /// An entry to test with.
    pub(in crate::tune) fn entry(rows: u64) -> Entry {
        let ranked = Ranked {
            config: json!({ "form": "direct" }),
            programs: vec!["abc".into()],
            median_s: 1e-5,
            spread: 0.01,
        };
        Entry {
            tuned_at: "2026-11-16T09:30:00Z".into(),
            ..Entry::new(key(rows), json!({ "rows": rows }), vec![ranked], 7)
        }
    }

    #[test]
    fn an_entry_comes_back_from_its_text() {
        let entry = entry(8);
        assert_eq!(Entry::read(entry.text().as_bytes()), Ok(entry.clone()));
        assert!(entry.text().contains("\n  \"tuned_by\": \"warpline "));
    }

    #[test]
    fn what_is_no_entry_is_told_why() {
        let text = entry(8).text();
        let why = |text: &str| Entry::read(text.as_bytes()).unwrap_err();
        assert_eq!(why(""), "it is cut off");
        for cut in 1..text.len() - 2 {
            // Inside of a number it is not seen that more was to come.
            let said = why(&text[..cut]);
            assert!(
                said == "it is cut off" || said.contains("invalid number"),
                "{cut}: {said}"
            );
        }
        assert!(why("hello").starts_with("it is damaged: expected value"));
        let newer = text.replace("\"version\": 1", "\"version\": 2");
        let said = "it is of version 2 of the format, and this build reads version 1";
        assert_eq!(why(&newer), said);
        let other = text.replace(FORMAT, "shopping list");
        assert!(why(&other).starts_with("it is of the format \"shopping list\""));
        let mut none = entry(8);
        none.ranked.clear();
        assert_eq!(why(&none.text()), "it is damaged: it has no config");
        let missing = text.replace("\"problem\"", "\"trouble\"");
        assert!(why(&missing).contains("missing field `problem`"));
    }
}

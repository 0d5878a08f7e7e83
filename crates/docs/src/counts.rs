//! Counts in Markdown: the number in `<!-- count:ops -->199<!-- /count -->` comes from the code.

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The start marker of a count.
pub(crate) const START: &str = "<!-- count:";
const END: &str = "<!-- /count -->";

/// The result of `cargo xtask mutants --record`, as committed.
#[derive(Deserialize)]
struct Mutants {
    kernels: u64,
    mutants: u64,
    killed: u64,
    undecided: u64,
    survived: u64,
}

/// Returns the value of every count, by name.
pub fn counts(root: &Path) -> Result<BTreeMap<&'static str, u64>> {
    let json = |path: &str| -> Result<String> {
        std::fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))
    };
    let ledger: BTreeMap<String, serde_json::Value> =
        serde_json::from_str(&json("crates/gpu-tests/ledger.json")?)?;
    let mutants: Mutants = serde_json::from_str(&json("crates/mutants/result.json")?)?;
    Ok(BTreeMap::from([
        ("ops", warpline_ir::ops::TABLE.len() as u64),
        ("codes", warpline_check::CODES.len() as u64),
        ("bugs", warpline_corpus::all().len() as u64),
        ("programs", ledger.len() as u64),
        ("mutated-kernels", mutants.kernels),
        ("mutants", mutants.mutants),
        ("mutants-killed", mutants.killed),
        ("mutants-undecided", mutants.undecided),
        ("mutants-survived", mutants.survived),
    ]))
}

/// Replaces the number in every count of a Markdown text.
pub fn fill(text: &str, counts: &BTreeMap<&'static str, u64>) -> Result<String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(START) {
        let (name, after) = after.split_once(" -->").context("a count has no name")?;
        let (_, after) = after
            .split_once(END)
            .with_context(|| format!("count {name} has no end marker {END}"))?;
        let Some(count) = counts.get(name) else {
            let known: Vec<_> = counts.keys().copied().collect();
            bail!("unknown count {name}; the counts are: {}", known.join(", "));
        };
        out += &format!("{before}{START}{name} -->{count}{END}");
        rest = after;
    }
    Ok(out + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_replaced() {
        let counts = BTreeMap::from([("ops", 7)]);
        let text = "has <!-- count:ops -->3<!-- /count --> ops";
        assert_eq!(
            fill(text, &counts).unwrap(),
            "has <!-- count:ops -->7<!-- /count --> ops"
        );
        assert!(fill("<!-- count:rings -->1<!-- /count -->", &counts).is_err());
    }
}

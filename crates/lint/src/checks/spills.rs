//! Registers that ptxas spills to local memory.

use super::registers::nearest;
use crate::finding::LintFinding;
use crate::input::{FindingList, LintInput};

pub(crate) fn run(input: &LintInput<'_>, mut findings: FindingList<'_>) -> Vec<LintFinding> {
    let entry = match &input.ptxas_report {
        Ok(entry) => entry,
        Err(why) => return findings.skip(why),
    };
    let (stored, loaded) = (entry.spill_store_bytes, entry.spill_load_bytes);
    if stored + loaded > 0 {
        let text = format!(
            "ptxas spills {stored} bytes of registers and reloads {loaded}; \
             the role nearest to its budget is shown"
        );
        findings.warn_role(text, nearest(input).map(|(role, _)| role));
    }
    findings.or_pass(|| "no spills".to_owned())
}

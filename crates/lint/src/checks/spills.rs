//! Registers that ptxas keeps in memory.

use super::registers::nearest;
use crate::case::{Answers, Case};
use crate::finding::Finding;

pub(crate) fn look(case: &Case<'_>, mut answers: Answers<'_>) -> Vec<Finding> {
    let entry = match &case.entry {
        Ok(entry) => entry,
        Err(why) => return answers.and_not_looked(why),
    };
    let (stored, loaded) = (entry.spill_store_bytes, entry.spill_load_bytes);
    if stored + loaded > 0 {
        let text = format!(
            "{stored} bytes of registers are stored to memory and {loaded} loaded back; \
             the role nearest to its budget is shown"
        );
        answers.warn_role(text, nearest(case).map(|(role, _)| role));
    }
    answers.or_pass(|| "every register fits".to_owned())
}

//! Assumptions about global memory, which the report prints.

use super::RuleContext;
use super::dependent_launch;
use super::global_words::Pointers;
use super::poll::Poll;
use crate::codes;
use crate::diagnostic::Findings;
use std::collections::BTreeMap;
use warpline_ir::{Loc, ParamId};

pub(crate) fn check<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    assume_disjoint_writes(cx, found);
    assume_flag_counts(cx, found);
}

/// Assumes that threads write disjoint bytes. Only a launch determines the bytes that a CTA writes.
fn assume_disjoint_writes<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    let written = dependent_launch::written_params(cx);
    let Some(first) = dependent_launch::first_write(cx) else {
        return;
    };
    let names: Vec<_> = (written.iter())
        .map(|p| cx.kernel.param(*p).name.as_str())
        .collect();
    let text = format!(
        "threads write disjoint bytes of {} or order their accesses, and buffers of different parameters do not overlap",
        names.join(", ")
    );
    found.assume(&codes::A_WRITER, first, text);
}

/// Assumes that flags are set often enough. The checker examines the statements that set flags, not
/// the index of each flag.
fn assume_flag_counts<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    let polls = Poll::loads(Poll::all(cx));
    if polls.is_empty() {
        return;
    }
    let pointers = Pointers::of(cx.kernel, &cx.ops);
    let mut first: BTreeMap<ParamId, Loc> = BTreeMap::new();
    for poll in &polls {
        if let Some(word) = pointers.word(poll.addr, poll.offset) {
            first.entry(word.param).or_insert(cx.ops[poll.op].loc());
        }
    }
    for (param, loc) in first {
        let name = &cx.kernel.param(param).name;
        let text = format!(
            "the words of {name} are zero at launch, and each word that a CTA waits for is set as often as the wait requires"
        );
        found.assume(&codes::A_FLAGS, loc, text);
    }
}

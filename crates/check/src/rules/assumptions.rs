//! Assumptions about global memory, which the report prints.

use super::RuleContext;
use super::dependent_launch;
use super::global_words::Pointers;
use super::poll::Poll;
use crate::codes;
use crate::diagnostic::Findings;
use std::collections::BTreeMap;
use warpline_ir::{Loc, ParamId};

pub(crate) fn judge<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    one_writer(cx, found);
    flags(cx, found);
}

/// Only a launch determines the bytes that a CTA writes, so their disjointness is assumed.
fn one_writer<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    let written = dependent_launch::writes(cx);
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

/// The checker examines the statements that set flags, not each index, so the counts are assumed.
fn flags<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    let polls = Poll::loads(Poll::all(cx));
    if polls.is_empty() {
        return;
    }
    let pointers = Pointers::of(cx.kernel, &cx.ops);
    let mut first: BTreeMap<ParamId, Loc> = BTreeMap::new();
    for poll in &polls {
        if let Some(spot) = pointers.at(poll.addr, poll.offset) {
            first.entry(spot.param).or_insert(cx.ops[poll.op].loc());
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

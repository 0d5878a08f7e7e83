//! Facts about global memory that no rule proves: a verdict prints them.

use super::Case;
use super::early;
use super::pointers::Pointers;
use super::poll::Poll;
use crate::refusal::Findings;
use std::collections::BTreeMap;
use warpline_ir::{Loc, ParamId};

pub(crate) fn judge<'k>(case: &Case<'k>, found: &mut Findings<'k>) {
    one_writer(case, found);
    flags(case, found);
}

/// Which bytes a CTA writes is known of a launch alone.
fn one_writer<'k>(case: &Case<'k>, found: &mut Findings<'k>) {
    let written = early::writes(case);
    let Some(first) = early::first_write(case) else {
        return;
    };
    let names: Vec<_> = (written.iter())
        .map(|p| case.kernel.param(*p).name.as_str())
        .collect();
    let text = format!(
        "threads write disjoint bytes of {} or order their accesses, and buffers of different parameters do not overlap",
        names.join(", ")
    );
    found.assume("A.writer", first, text);
}

/// Flags are judged by the statements that raise them, not index by index.
fn flags<'k>(case: &Case<'k>, found: &mut Findings<'k>) {
    let polls = Poll::loads(Poll::all(case));
    if polls.is_empty() {
        return;
    }
    let pointers = Pointers::of(case.kernel, &case.ops);
    let mut first: BTreeMap<ParamId, Loc> = BTreeMap::new();
    for poll in &polls {
        if let Some(spot) = pointers.at(poll.addr, poll.offset) {
            first.entry(spot.param).or_insert(case.ops[poll.op].loc());
        }
    }
    for (param, loc) in first {
        let name = &case.kernel.param(param).name;
        let text = format!(
            "the words of {name} are zero at launch, and each word that a CTA waits for is raised as often as the wait asks"
        );
        found.assume("A.flags", loc, text);
    }
}

//! Random valid calls run proved plans.

use crate::configs::draw::for_each_draw;
use crate::configs::fallback::Ones;
use warpline::fuzz::{CallVerdict, FuzzSummary, check_call};
use warpline::kernels::vector_add::VectorAdd;
use warpline_testkit::kernel::TARGET;

/// Takes about 20 seconds on two cores: 6 calls of each family.
#[test]
fn every_valid_call_is_proved() {
    for_each_draw(6, 300, |family, draw| {
        let checked = check_call(family, draw.seed(), 0, &TARGET);
        let flags = checked.call.request.flags();
        match checked.verdict {
            CallVerdict::Proved => Ok(()),
            verdict => Err(format!("{flags}: {verdict:?}: {:?}", checked.reason)),
        }
    });
}

/// Takes seconds, because the family examines kernels to find an undecided one.
#[test]
fn a_call_without_a_proved_plan_is_reported() {
    let calls = (0..8).map(|i| check_call(&Ones, 1, i, &TARGET));
    let calls: Vec<_> = calls.collect();
    for checked in calls.iter().filter(|c| !c.call.is_explicit) {
        // The baseline replaces the selected config, or no proved config does.
        let is_safe = checked.call.request.get("safe") != Some("false");
        let expected = match is_safe {
            true => (CallVerdict::Proved, true),
            false => (CallVerdict::Undecided, false),
        };
        assert_eq!((checked.verdict, checked.uses_baseline), expected);
        assert_eq!(checked.reason.is_some(), !is_safe);
    }
    let summary = FuzzSummary::new(&calls);
    assert!(summary.baseline > 0 && summary.undecided > 0, "{summary:?}");
    assert_eq!(summary.proved + summary.undecided, summary.problems);
}

#[test]
fn a_seed_determines_the_calls() {
    let draw = |seed| {
        let flags = |i| {
            let checked = check_call(&VectorAdd, seed, i, &TARGET);
            checked.call.request.flags()
        };
        (0..20).map(flags).collect::<Vec<_>>()
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
}

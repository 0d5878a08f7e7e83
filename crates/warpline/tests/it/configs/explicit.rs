//! Drawn configs: proved and right, or rejected by a sentence before a kernel is built.

use crate::configs::draw::{Size, each, parse, problem};
use std::sync::atomic::{AtomicU64, Ordering};
use warpline::kernels::FamilyError;
use warpline::{Device, RunOptions, Timing, prepare_exactly, run};
use warpline_testkit::kernel::TARGET;

#[test]
fn every_config_is_proved_and_right_or_rejected_by_a_sentence() {
    let (taken, rejected) = (AtomicU64::new(0), AtomicU64::new(0));
    each(24, 1500, |family, draw| {
        let mut flags = problem(draw, family, Size::Small);
        let at = |flags: &[String], e: String| format!("{}: {e}", flags.join(" "));
        let selected = parse(family, &flags).map_err(|e| at(&flags, e.to_string()))?;
        flags.extend(draw.config(family, &selected.config()));
        let at = |e: String| at(&flags, e);
        let work = match parse(family, &flags) {
            Ok(work) => work,
            Err(FamilyError::Config(_)) => {
                rejected.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            Err(e) => return Err(at(e.to_string())),
        };
        taken.fetch_add(1, Ordering::Relaxed);
        let prepared = prepare_exactly(work.as_ref(), &TARGET).map_err(|e| at(e.to_string()))?;
        // The simulator runs CTA by CTA, also those that find nothing to do.
        if prepared.steps.iter().any(|step| step.ctas() > 4096) {
            return Ok(());
        }
        let mut options = RunOptions::default();
        options.timing = Timing::Random;
        let outcome = run(work.as_ref(), &Device::cpu(), &options);
        let outcome = outcome.map_err(|e| at(e.to_string()))?;
        match outcome.passed() {
            true => Ok(()),
            false => Err(at(format!("{} is wrong", work.config()))),
        }
    });
    // Both happen often, or nothing was tested.
    let [taken, rejected] = [taken, rejected].map(AtomicU64::into_inner);
    assert!(
        4 * taken > rejected && 8 * rejected > taken,
        "{taken} taken, {rejected} rejected"
    );
}

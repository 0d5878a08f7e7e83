//! Random configs: proved and correct, or rejected before a kernel is built.

use crate::configs::draw::{Size, draw_problem, for_each_draw, parse};
use std::sync::atomic::{AtomicU64, Ordering};
use warpline::kernels::FamilyError;
use warpline::{Device, RunOptions, Timing, prepare_selected, run};
use warpline_testkit::kernel::TARGET;

#[test]
fn every_config_is_proved_and_correct_or_rejected() {
    let (accepted, rejected) = (AtomicU64::new(0), AtomicU64::new(0));
    for_each_draw(10, 1500, |family, draw| {
        let mut flags = draw_problem(draw, family, Size::Small);
        let context = |flags: &[String], e: String| format!("{}: {e}", flags.join(" "));
        let selected = parse(family, &flags).map_err(|e| context(&flags, e.to_string()))?;
        flags.extend(draw.config(family, &selected.config()));
        let context = |e: String| context(&flags, e);
        let work = match parse(family, &flags) {
            Ok(work) => work,
            Err(FamilyError::Config(_)) => {
                rejected.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            Err(e) => return Err(context(e.to_string())),
        };
        accepted.fetch_add(1, Ordering::Relaxed);
        let prepared =
            prepare_selected(work.as_ref(), &TARGET).map_err(|e| context(e.to_string()))?;
        // The CPU executor also runs CTAs without work, so large grids take long.
        if prepared.steps.iter().any(|step| step.ctas() > 4096) {
            return Ok(());
        }
        let mut options = RunOptions::default();
        options.timing = Timing::Random;
        let report = run(work.as_ref(), &Device::cpu(), &options);
        let report = report.map_err(|e| context(e.to_string()))?;
        match report.passed() {
            true => Ok(()),
            false => Err(context(format!(
                "{} computes a wrong result",
                work.config()
            ))),
        }
    });
    // Both must be frequent for a meaningful test.
    let [accepted, rejected] = [accepted, rejected].map(AtomicU64::into_inner);
    assert!(
        4 * accepted > rejected && 8 * rejected > accepted,
        "{accepted} accepted, {rejected} rejected"
    );
}

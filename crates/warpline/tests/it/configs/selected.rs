//! The selected config and the baseline of random problems.

use crate::configs::draw::{Size, draw_problem, for_each_draw, parse};
use warpline::kernels::AnyWorkload;
use warpline::{Device, RunOptions, Timing, prepare_selected, run};
use warpline_testkit::kernel::TARGET;

/// Returns an error unless every kernel of the workload is proved.
fn check_proved(work: &dyn AnyWorkload) -> Result<(), String> {
    let proved = prepare_selected(work, &TARGET).map(|_| ());
    proved.map_err(|e| format!("with {}: {e}", work.config()))
}

#[test]
fn the_selected_config_of_every_problem_is_proved() {
    for_each_draw(5, 400, |family, draw| {
        let flags = draw_problem(draw, family, Size::Any);
        let context = |e| format!("{}: {e}", flags.join(" "));
        let work = parse(family, &flags).map_err(|e| context(e.to_string()))?;
        check_proved(work.as_ref()).map_err(context)
    });
}

#[test]
fn the_baseline_of_every_problem_is_proved_and_correct() {
    for_each_draw(5, 400, |family, draw| {
        let size = match draw.percent(50) {
            true => Size::Small,
            false => Size::Any,
        };
        let flags = draw_problem(draw, family, size);
        let context = |e: String| format!("{}: {e}", flags.join(" "));
        let work = parse(family, &flags).map_err(|e| context(e.to_string()))?;
        // `None` if the selected config is the baseline.
        let work = work.baseline(&TARGET).unwrap_or(work);
        check_proved(work.as_ref()).map_err(context)?;
        if size == Size::Small {
            let mut options = RunOptions::default();
            options.timing = Timing::Late;
            let report = run(work.as_ref(), &Device::cpu(), &options);
            let report = report.map_err(|e| context(e.to_string()))?;
            if !report.passed() {
                return Err(context(format!(
                    "{} computes a wrong result",
                    work.config()
                )));
            }
        }
        Ok(())
    });
}

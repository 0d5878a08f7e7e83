//! The selected config and the baseline of drawn problems.

use crate::configs::draw::{Size, each, parse, problem};
use warpline::kernels::AnyWork;
use warpline::{Device, RunOptions, Timing, prepare_exactly, run};
use warpline_testkit::kernel::TARGET;

/// Is every kernel of the work proved?
fn proved(work: &dyn AnyWork) -> Result<(), String> {
    let proved = prepare_exactly(work, &TARGET).map(|_| ());
    proved.map_err(|e| format!("with {}: {e}", work.config()))
}

#[test]
fn the_selected_config_of_every_problem_is_proved() {
    each(12, 400, |family, draw| {
        let flags = problem(draw, family, Size::Any);
        let at = |e| format!("{}: {e}", flags.join(" "));
        let work = parse(family, &flags).map_err(|e| at(e.to_string()))?;
        proved(work.as_ref()).map_err(at)
    });
}

#[test]
fn the_baseline_of_every_problem_is_proved_and_right() {
    each(12, 400, |family, draw| {
        let size = match draw.percent(50) {
            true => Size::Small,
            false => Size::Any,
        };
        let flags = problem(draw, family, size);
        let at = |e: String| format!("{}: {e}", flags.join(" "));
        let work = parse(family, &flags).map_err(|e| at(e.to_string()))?;
        // None: the selected config is the baseline.
        let work = work.baseline(&TARGET).unwrap_or(work);
        proved(work.as_ref()).map_err(at)?;
        if size == Size::Small {
            let mut options = RunOptions::default();
            options.timing = Timing::Late;
            let outcome = run(work.as_ref(), &Device::cpu(), &options);
            let outcome = outcome.map_err(|e| at(e.to_string()))?;
            if !outcome.passed() {
                return Err(at(format!("{} is wrong", work.config())));
            }
        }
        Ok(())
    });
}

//! The family tables on a GPU: the same cases and the same expectation as on
//! the simulator. Without a GPU this says why, and runs nothing.

use warpline::kernels::registry;
use warpline::{Device, RunOptions, run};

#[test]
fn every_case_of_every_family_is_right_on_the_gpu() {
    let (device, reason) = Device::auto();
    if device.is_simulator() {
        eprintln!("not run: {}", reason.unwrap_or_default());
        return;
    }
    let mut options = RunOptions::default();
    options.repeat = std::num::NonZeroU32::new(2);
    let mut count = 0;
    for family in registry() {
        for case in family.cases(&device.target()) {
            let work = case.unwrap();
            let what = format!("{} {} {}", family.name(), work.problem(), work.config());
            match run(work.as_ref(), &device, &options) {
                Ok(outcome) => assert!(outcome.passed(), "{what}: {:?}", outcome.outputs),
                Err(e) => panic!("{what}: {e}"),
            }
            count += 1;
        }
    }
    eprintln!("{count} cases are right on {}", device.info().description);
}

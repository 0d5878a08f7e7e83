//! The family tables on a GPU: the same cases and the same expectation as on
//! the simulator. On a machine with an H100 or H200:
//! `cargo test --release -p warpline --test gpu -- --ignored`.

use warpline::kernels::registry;
use warpline::{Device, RunOptions, run};

#[test]
#[ignore = "needs an H100 or H200"]
fn every_case_of_every_family_is_right_on_the_gpu() {
    let (device, reason) = Device::auto();
    assert!(
        !device.is_simulator(),
        "no GPU: {}",
        reason.unwrap_or_default()
    );
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

#[test]
#[ignore = "needs an H100 or H200"]
fn the_runtime_keeps_its_promises() {
    let device = Device::cuda(0).unwrap();
    for (name, promise) in warpline::gpu::promises::ALL {
        match promise(&device) {
            Ok(said) => eprintln!("{name}: {said}"),
            Err(why) => panic!("{name}: {why}"),
        }
    }
}

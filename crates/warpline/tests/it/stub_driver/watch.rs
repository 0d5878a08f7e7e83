//! Watchdog builds: driver calls and hang reports.

use crate::stub_driver::harness::{calls, with_driver};
use crate::stub_driver::zeros::{run_zeros, work};
use std::time::Duration;
use warpline::{Build, Device, Error, RunOptions, gpu, run_watchdog};
use warpline_ir::builder::cta_sync;
use warpline_ir::{Kernel, Target};

fn options() -> RunOptions {
    let mut options = RunOptions::default();
    options.build = Build::Watchdog;
    options.timeout = Duration::from_millis(50);
    options
}

#[test]
fn a_watchdog_build_is_launched_once_with_two_more_arguments() {
    with_driver(
        "watch::a_watchdog_build_is_launched_once_with_two_more_arguments",
        "free=999999999 l2=1048576 params=8:8",
        || {
            let device = Device::cuda(0).unwrap();
            let (report, called) = calls(|| run_zeros(&device, &options()).unwrap());
            assert_eq!(report.times.all_s.len(), 1);
            assert_eq!(called.matches("cuLaunchKernelEx").count(), 1);
            assert_eq!(called.matches("  param 8=0x").count(), 2);
        },
    );
    // The CPU executor finds hangs without a watchdog build.
    run_zeros(&Device::cpu(), &options()).unwrap();
}

#[test]
fn a_kernel_that_never_ends_is_reported() {
    with_driver(
        "watch::a_kernel_that_never_ends_is_reported",
        "free=999999999 params=8:8 fail=cuEventQuery:600",
        || {
            let device = Device::cuda(0).unwrap();
            let hang = run_watchdog(&work(8, &device), &device, &options()).unwrap_err();
            assert_eq!((hang.code(), hang.exit_code()), ("hang", 3));
            // The warps of the stub write no status.
            assert!(hang.to_string().contains("no warp is in a wait"), "{hang}");
        },
    );
}

#[test]
fn a_fault_without_an_aborted_wait_is_a_fault() {
    with_driver(
        "watch::a_fault_without_an_aborted_wait_is_a_fault",
        "free=999999999 params=8:8 fail=cuEventQuery:700",
        || {
            let device = Device::cuda(0).unwrap();
            let kernel = Kernel::build("alone", &Target::SM_90A, |k| {
                k.role("all").warps(1).body(cta_sync)
            });
            let fault = gpu::watch::run_kernel(&kernel.unwrap(), [1, 1, 1], &device).unwrap_err();
            assert_eq!(fault.code(), "cuda-device-fault");
            assert!(!matches!(fault, Error::HangReport(_)));
        },
    );
}

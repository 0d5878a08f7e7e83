//! From work to outcome on a GPU, and what goes wrong on the way.

use crate::stand_in::harness::with_driver;
use crate::stand_in::zeros::{work, zeros};
use std::time::Duration;
use warpline::kernels::Place;
use warpline::{Device, Origin, RunOptions, devices, run};

#[test]
fn what_no_kernel_wrote_is_wrong_whatever_its_bound() {
    with_driver(
        "run::what_no_kernel_wrote_is_wrong_whatever_its_bound",
        "free=999999999 l2=1048576",
        || {
            let outcome = zeros(&Device::cuda(0).unwrap(), &RunOptions::default()).unwrap();
            assert!(!outcome.passed());
            assert_eq!(outcome.outputs[0].failed, 8);
            assert!(outcome.outputs[0].worst.as_ref().unwrap().value.is_nan());
        },
    );
    let outcome = zeros(&Device::cpu(), &RunOptions::default()).unwrap();
    assert_eq!(outcome.outputs[0].never_written, 8);
}

#[test]
fn times_are_taken_as_often_as_asked_for() {
    with_driver(
        "run::times_are_taken_as_often_as_asked_for",
        "free=999999999 l2=1048576",
        || {
            let device = Device::cuda(0).unwrap();
            let outcome = zeros(&device, &RunOptions::default()).unwrap();
            assert_eq!(outcome.times.all_s.len(), 10);
            let rates = outcome.rates.unwrap();
            // The stand-in says 1.5 ms of every interval.
            assert!((rates.bytes_per_s - 32.0 / 1.5e-3).abs() < 1.0);
            assert_eq!(rates.memory_share, None, "it tells no memory clock");

            let mut options = RunOptions::default();
            options.repeat = std::num::NonZeroU32::new(3);
            assert_eq!(zeros(&device, &options).unwrap().times.all_s.len(), 3);
        },
    );
}

#[test]
fn a_kernel_that_does_not_end_is_a_hang() {
    with_driver(
        "run::a_kernel_that_does_not_end_is_a_hang",
        "free=999999999 l2=1048576 fail=cuEventQuery:600",
        || {
            let mut options = RunOptions::default();
            options.timeout = Duration::from_millis(50);
            let hang = zeros(&Device::cuda(0).unwrap(), &options).unwrap_err();
            assert_eq!((hang.code(), hang.exit_code()), ("hang", 3));
            assert!(
                hang.to_string()
                    .starts_with("kernel scale did not finish on cuda:0")
            );
        },
    );
}

#[test]
fn a_device_fault_is_told_by_its_exit_code() {
    with_driver(
        "run::a_device_fault_is_told_by_its_exit_code",
        "free=999999999 l2=1048576 fail=cuEventQuery:700",
        || {
            let fault = zeros(&Device::cuda(0).unwrap(), &RunOptions::default()).unwrap_err();
            assert_eq!((fault.code(), fault.exit_code()), ("cuda-device-fault", 3));
        },
    );
}

#[test]
fn a_gpu_without_room_says_how_much_there_is() {
    with_driver(
        "run::a_gpu_without_room_says_how_much_there_is",
        "free=16",
        || {
            let full = zeros(&Device::cuda(0).unwrap(), &RunOptions::default()).unwrap_err();
            assert_eq!((full.code(), full.exit_code()), ("cuda-out-of-memory", 2));
        },
    );
}

#[test]
fn a_gpu_of_another_kind_is_listed_and_passed_over() {
    with_driver(
        "run::a_gpu_of_another_kind_is_listed_and_passed_over",
        "cc=8.0",
        || {
            let listed = devices();
            assert_eq!(listed[1].name, "cuda:0");
            let why = listed[1].why_not.clone().unwrap();
            assert!(why.contains("compute capability is 8.0"), "{why}");
            let (device, reason) = Device::auto();
            assert!(device.is_simulator());
            assert_eq!(reason, Some(why));
            let refused = Device::parse("cuda").unwrap_err();
            assert_eq!(
                (refused.code(), refused.exit_code()),
                ("cuda-unsuitable-device", 2)
            );
        },
    );
}

#[test]
fn a_usable_gpu_is_taken_and_a_missing_one_is_named() {
    with_driver(
        "run::a_usable_gpu_is_taken_and_a_missing_one_is_named",
        "devices=1",
        || {
            let (device, reason) = Device::auto();
            assert_eq!((device.name().as_str(), reason), ("cuda:0", None));
            assert_eq!(device.place(), Place::Gpu);
            let missing = Device::parse("cuda:9").unwrap_err();
            assert_eq!(
                missing.to_string(),
                "there is no device cuda:9: this machine has 1 CUDA device (cuda:0)"
            );
        },
    );
}

#[test]
fn a_problem_too_large_for_the_gpu_is_refused_and_the_next_one_runs() {
    with_driver(
        "run::a_problem_too_large_for_the_gpu_is_refused_and_the_next_one_runs",
        "free=4194304 l2=1048576",
        || {
            let device = Device::cuda(0).unwrap();
            let options = RunOptions::default();
            let full = run(&work(2_000_000, &device), &device, &options).unwrap_err();
            assert_eq!(
                full.to_string(),
                "out of memory on cuda:0: 8000000 bytes were asked for, 4194304 of 137438953472 are free"
            );
            assert_eq!((full.code(), full.exit_code()), ("cuda-out-of-memory", 2));
            assert_eq!(zeros(&device, &options).unwrap().elements(), 8);
        },
    );
}

#[test]
fn a_run_says_how_long_its_kernels_took_to_make_and_where_they_came_from() {
    with_driver(
        "run::a_run_says_how_long_its_kernels_took_to_make_and_where_they_came_from",
        "free=999999999 l2=1048576",
        || {
            let device = Device::cuda(0).unwrap();
            let first = zeros(&device, &RunOptions::default()).unwrap();
            assert_eq!(first.kernels[0].origin, Some(Origin::Compiled));
            let build = first.build;
            for stage in [build.build, build.check, build.print, build.jit] {
                assert!(stage > Duration::ZERO, "{build:?}");
            }
            let second = zeros(&device, &RunOptions::default()).unwrap();
            assert_eq!(second.kernels[0].origin, Some(Origin::Process));
            assert_eq!(second.build.print + second.build.jit, Duration::ZERO);
            let json = serde_json::to_value(&second).unwrap();
            assert!(json["build"]["check_ms"].as_f64().unwrap() > 0.0);
            assert_eq!(json["kernels"][0]["origin"], "process");
        },
    );
    let outcome = zeros(&Device::cpu(), &RunOptions::default()).unwrap();
    assert_eq!(outcome.build.print + outcome.build.jit, Duration::ZERO);
    assert_eq!(outcome.kernels[0].origin, None);
}

#[test]
fn the_cache_is_flushed_by_reading_alone() {
    with_driver(
        "run::the_cache_is_flushed_by_reading_alone",
        "free=999999999 l2=1048576",
        || {
            let device = Device::cuda(0).unwrap();
            let flush = warpline::Flush::new(&device).unwrap();
            let stream = warpline::cuda::Stream::new(device.context().unwrap()).unwrap();
            let (_, called) = crate::stand_in::harness::calls(|| flush.run(&stream).unwrap());
            assert!(called.starts_with("cuLaunchKernelEx\n"), "{called}");
            assert_eq!(called.matches("cu").count(), 1, "{called}");
        },
    );
}

#[test]
fn a_kernel_that_was_compiled_otherwise_is_refused_where_that_is_strict() {
    with_driver(
        "run::a_kernel_that_was_compiled_otherwise_is_refused_where_that_is_strict",
        "free=999999999 l2=1048576 serialized=999",
        || {
            let device = Device::cuda(0).unwrap();
            let mut options = RunOptions::default();
            zeros(&device, &options).unwrap();
            options.strict = true;
            let refused = zeros(&device, &options).unwrap_err();
            assert_eq!((refused.code(), refused.exit_code()), ("jit-advisory", 1));
            let said = refused.to_string();
            assert!(
                said.starts_with(
                    "the driver did not compile kernel scale as it was written:\n  crates/warpline/tests/it/stand_in/zeros.rs:"
                ),
                "{said}"
            );
            assert!(
                said.contains("serialized") && said.ends_with("(C7510)"),
                "{said}"
            );

            // From disk it is the same kernel, with the same remark.
            drop(device);
            let device = Device::cuda(0).unwrap();
            let again = zeros(&device, &options).unwrap_err();
            assert_eq!(again.to_string(), said);
        },
    );
}

#[test]
fn an_old_driver_is_named() {
    with_driver("run::an_old_driver_is_named", "driver=11040", || {
        let old = Device::cuda(0).unwrap_err();
        assert_eq!((old.code(), old.exit_code()), ("cuda-driver-too-old", 2));
        assert!(Device::auto().0.is_simulator());
    });
}

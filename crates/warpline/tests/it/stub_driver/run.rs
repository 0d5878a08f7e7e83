//! Runs on a GPU, and their errors.

use crate::stub_driver::harness::with_driver;
use crate::stub_driver::zeros::{run_zeros, work};
use std::time::Duration;
use warpline::kernels::DeviceKind;
use warpline::{CodeOrigin, Device, RunOptions, devices, run};

#[test]
fn unwritten_elements_fail_with_any_tolerance() {
    with_driver(
        "run::unwritten_elements_fail_with_any_tolerance",
        "free=999999999 l2=1048576",
        || {
            let report = run_zeros(&Device::cuda(0).unwrap(), &RunOptions::default()).unwrap();
            assert!(!report.passed());
            assert_eq!(report.outputs[0].failed, 8);
            assert!(report.outputs[0].worst.as_ref().unwrap().value.is_nan());
        },
    );
    let report = run_zeros(&Device::cpu(), &RunOptions::default()).unwrap();
    assert_eq!(report.outputs[0].never_written, 8);
}

#[test]
fn the_repeat_option_sets_the_number_of_times() {
    with_driver(
        "run::the_repeat_option_sets_the_number_of_times",
        "free=999999999 l2=1048576",
        || {
            let device = Device::cuda(0).unwrap();
            let report = run_zeros(&device, &RunOptions::default()).unwrap();
            assert_eq!(report.times.all_s.len(), 10);
            let rates = report.rates.unwrap();
            // The stub reports 1.5 ms for every interval.
            assert!((rates.bytes_per_s - 32.0 / 1.5e-3).abs() < 1.0);
            assert_eq!(
                rates.memory_fraction, None,
                "the stub reports no memory clock"
            );

            let mut options = RunOptions::default();
            options.repeat = std::num::NonZeroU32::new(3);
            assert_eq!(run_zeros(&device, &options).unwrap().times.all_s.len(), 3);
        },
    );
}

#[test]
fn a_kernel_that_never_ends_is_a_hang() {
    with_driver(
        "run::a_kernel_that_never_ends_is_a_hang",
        "free=999999999 l2=1048576 fail=cuEventQuery:600",
        || {
            let mut options = RunOptions::default();
            options.timeout = Duration::from_millis(50);
            let hang = run_zeros(&Device::cuda(0).unwrap(), &options).unwrap_err();
            assert_eq!((hang.code(), hang.exit_code()), ("hang", 3));
            assert!(
                hang.to_string()
                    .starts_with("kernel scale hangs: it did not finish on cuda:0")
            );
        },
    );
}

#[test]
fn a_device_fault_has_its_own_exit_code() {
    with_driver(
        "run::a_device_fault_has_its_own_exit_code",
        "free=999999999 l2=1048576 fail=cuEventQuery:700",
        || {
            let fault = run_zeros(&Device::cuda(0).unwrap(), &RunOptions::default()).unwrap_err();
            assert_eq!((fault.code(), fault.exit_code()), ("cuda-device-fault", 3));
        },
    );
}

#[test]
fn a_full_gpu_is_an_out_of_memory_error() {
    with_driver(
        "run::a_full_gpu_is_an_out_of_memory_error",
        "free=16",
        || {
            let full = run_zeros(&Device::cuda(0).unwrap(), &RunOptions::default()).unwrap_err();
            assert_eq!((full.code(), full.exit_code()), ("cuda-out-of-memory", 2));
        },
    );
}

#[test]
fn an_unsupported_gpu_is_listed_and_skipped() {
    with_driver(
        "run::an_unsupported_gpu_is_listed_and_skipped",
        "cc=8.0",
        || {
            let listed = devices();
            assert_eq!(listed[1].name, "cuda:0");
            let why = listed[1].unavailable.clone().unwrap();
            assert!(why.contains("compute capability 8.0"), "{why}");
            let (device, reason) = Device::auto();
            assert!(device.is_cpu());
            assert_eq!(reason, Some(why));
            let error = Device::parse("cuda").unwrap_err();
            assert_eq!(
                (error.code(), error.exit_code()),
                ("cuda-unsupported-device", 2)
            );
        },
    );
}

#[test]
fn a_supported_gpu_is_selected_and_a_missing_one_is_named() {
    with_driver(
        "run::a_supported_gpu_is_selected_and_a_missing_one_is_named",
        "devices=1",
        || {
            let (device, reason) = Device::auto();
            assert_eq!((device.name().as_str(), reason), ("cuda:0", None));
            assert_eq!(device.kind(), DeviceKind::Gpu);
            let missing = Device::parse("cuda:9").unwrap_err();
            assert_eq!(
                missing.to_string(),
                "device cuda:9 does not exist; available: 1 CUDA device (cuda:0)"
            );
        },
    );
}

#[test]
fn a_problem_too_large_for_the_gpu_is_rejected_and_the_next_one_runs() {
    with_driver(
        "run::a_problem_too_large_for_the_gpu_is_rejected_and_the_next_one_runs",
        "free=4194304 l2=1048576",
        || {
            let device = Device::cuda(0).unwrap();
            let options = RunOptions::default();
            let full = run(&work(2_000_000, &device), &device, &options).unwrap_err();
            assert_eq!(
                full.to_string(),
                "out of memory on cuda:0: 8000000 bytes requested, 4194304 of 137438953472 bytes free"
            );
            assert_eq!((full.code(), full.exit_code()), ("cuda-out-of-memory", 2));
            assert_eq!(run_zeros(&device, &options).unwrap().elements(), 8);
        },
    );
}

#[test]
fn a_report_has_build_times_and_code_origins() {
    with_driver(
        "run::a_report_has_build_times_and_code_origins",
        "free=999999999 l2=1048576",
        || {
            let device = Device::cuda(0).unwrap();
            let first = run_zeros(&device, &RunOptions::default()).unwrap();
            assert_eq!(first.kernels[0].origin, Some(CodeOrigin::Compiled));
            let build = first.build;
            for stage in [build.build, build.check, build.print, build.jit] {
                assert!(stage > Duration::ZERO, "{build:?}");
            }
            let second = run_zeros(&device, &RunOptions::default()).unwrap();
            assert_eq!(second.kernels[0].origin, Some(CodeOrigin::Process));
            assert_eq!(second.build.print + second.build.jit, Duration::ZERO);
            let json = serde_json::to_value(&second).unwrap();
            assert!(json["build"]["check_ms"].as_f64().unwrap() > 0.0);
            assert_eq!(json["kernels"][0]["origin"], "process");
        },
    );
    let report = run_zeros(&Device::cpu(), &RunOptions::default()).unwrap();
    assert_eq!(report.build.print + report.build.jit, Duration::ZERO);
    assert_eq!(report.kernels[0].origin, None);
}

#[test]
fn the_flush_is_a_single_launch() {
    with_driver(
        "run::the_flush_is_a_single_launch",
        "free=999999999 l2=1048576",
        || {
            let device = Device::cuda(0).unwrap();
            let flush = warpline::Flush::new(&device).unwrap();
            let stream = warpline::cuda::Stream::new(device.context().unwrap()).unwrap();
            let (_, called) = crate::stub_driver::harness::calls(|| flush.run(&stream).unwrap());
            assert!(called.starts_with("cuLaunchKernelEx\n"), "{called}");
            assert_eq!(called.matches("cu").count(), 1, "{called}");
        },
    );
}

#[test]
fn strict_mode_rejects_compiler_advisories() {
    with_driver(
        "run::strict_mode_rejects_compiler_advisories",
        "free=999999999 l2=1048576 serialized=999",
        || {
            let device = Device::cuda(0).unwrap();
            let mut options = RunOptions::default();
            run_zeros(&device, &options).unwrap();
            options.strict = true;
            let error = run_zeros(&device, &options).unwrap_err();
            assert_eq!((error.code(), error.exit_code()), ("jit-advisory", 1));
            let text = error.to_string();
            assert!(
                text.starts_with(
                    "the driver did not compile kernel scale as written:\n  crates/warpline/tests/it/stub_driver/zeros.rs:"
                ),
                "{text}"
            );
            assert!(
                text.contains("serialized") && text.ends_with("(C7510)"),
                "{text}"
            );

            // The cubin on disk has the same advisory.
            drop(device);
            let device = Device::cuda(0).unwrap();
            let again = run_zeros(&device, &options).unwrap_err();
            assert_eq!(again.to_string(), text);
        },
    );
}

#[test]
fn an_old_driver_is_named() {
    with_driver("run::an_old_driver_is_named", "driver=11040", || {
        let old = Device::cuda(0).unwrap_err();
        assert_eq!((old.code(), old.exit_code()), ("cuda-driver-too-old", 2));
        assert!(Device::auto().0.is_cpu());
    });
}

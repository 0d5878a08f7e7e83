//! The way to a GPU, through a stand-in for the driver: memory is there,
//! kernels do nothing. What a kernel should have done must be missed.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use warpline::kernels::{
    Case, Cost, Family, FamilyError, HostTensor, Place, Plan, Step, TensorSpec, Work,
};
use warpline::{Device, Error, Outcome, RunOptions, devices, run};
use warpline_ir::{DType, Kernel, Target};

/// Runs `body` in a process of its own, whose driver is the stand-in with that configuration.
fn with_driver(test: &str, words: &str, body: impl FnOnce()) {
    const CHILD: &str = "WARPLINE_STAND_IN_CHILD";
    if env::var(CHILD).as_deref() == Ok(test) {
        return body();
    }
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, test)
        .env("WARPLINE_STUB", words)
        .env("LD_LIBRARY_PATH", library())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    // A misspelt name would pass by running nothing.
    let counted = String::from_utf8_lossy(&output.stdout);
    assert!(counted.contains("1 passed"), "{counted}");
}

/// The folder with the stand-in, compiled once.
fn library() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../cuda/tests/stub/driver.c");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-pthread", "-o"])
            .arg(folder.join("libcuda.so.1"))
            .arg(source)
            .status()
            .expect("these tests need a C compiler named cc");
        assert!(built.success());
        folder
    })
}

/// Fills a vector with zeros, by the one kernel that the stand-in knows.
struct Zeros;

#[derive(Clone, Debug, Default, Args, Serialize)]
struct Nothing {}

#[derive(Clone, Debug, Args, Serialize)]
struct Size {
    #[arg(long)]
    n: usize,
}

impl Family for Zeros {
    type Problem = Size;
    type Choice = Nothing;
    type Config = ();

    const NAME: &'static str = "zeros";
    const ABOUT: &'static str = "a vector of zeros";

    fn default_problem(_: Place) -> Size {
        Size { n: 8 }
    }
    fn check(_: &Size) -> Result<(), FamilyError> {
        Ok(())
    }
    fn config(_: &Size, _: &Nothing, _: &Target) -> Result<(), FamilyError> {
        Ok(())
    }
    fn candidates(_: &Size, _: &Target) -> Vec<()> {
        vec![()]
    }
    fn plan(_: &Size, _: &(), _: &Target) -> Result<Plan, FamilyError> {
        let kernel = Kernel::build("scale", |k| k.role("all").warps(1).body(|| {}))?;
        let step = Step {
            kernel,
            grid: [1, 1, 1],
            args: vec![],
        };
        Ok(Plan {
            steps: vec![step],
            workspace: 64,
        })
    }
    fn cost(p: &Size) -> Cost {
        Cost {
            flops: 0.0,
            bytes: 4.0 * p.n as f64,
        }
    }
    fn inputs(_: &Size, _: u64) -> Vec<HostTensor> {
        vec![]
    }
    fn outputs(p: &Size) -> Vec<TensorSpec> {
        vec![TensorSpec {
            name: "zeros",
            dtype: DType::F32,
            shape: vec![p.n],
        }]
    }
    fn reference(p: &Size, _: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        vec![vec![(0.0, f64::INFINITY); p.n]]
    }
    fn cases() -> Vec<Case<Size, Nothing>> {
        vec![]
    }
}

fn zeros(device: &Device, options: &RunOptions) -> Result<Outcome, Error> {
    let work = Work::<Zeros>::new(Size { n: 8 }, &Nothing {}, &device.target())?;
    run(&work, device, options)
}

#[test]
fn what_no_kernel_wrote_is_wrong_whatever_its_bound() {
    with_driver(
        "what_no_kernel_wrote_is_wrong_whatever_its_bound",
        "free=999999999",
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
        "times_are_taken_as_often_as_asked_for",
        "free=999999999",
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
        "a_kernel_that_does_not_end_is_a_hang",
        "free=999999999 fail=cuEventQuery:600",
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
        "a_device_fault_is_told_by_its_exit_code",
        "free=999999999 fail=cuEventQuery:700",
        || {
            let fault = zeros(&Device::cuda(0).unwrap(), &RunOptions::default()).unwrap_err();
            assert_eq!((fault.code(), fault.exit_code()), ("cuda-device-fault", 3));
        },
    );
}

#[test]
fn a_gpu_without_room_says_how_much_there_is() {
    with_driver(
        "a_gpu_without_room_says_how_much_there_is",
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
        "a_gpu_of_another_kind_is_listed_and_passed_over",
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
        "a_usable_gpu_is_taken_and_a_missing_one_is_named",
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

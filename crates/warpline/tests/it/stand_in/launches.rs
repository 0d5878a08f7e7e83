//! Launches: what reaches the driver, and what is refused before.

use crate::stand_in::harness::{calls, with_driver};
use crate::stand_in::zeros::plan;
use warpline::cuda::Stream;
use warpline::kernels::{Bound, Plan, Step};
use warpline::{Device, Error, Prepared};
use warpline_ir::build::wait_prerequisites;
use warpline_ir::{Kernel, Target};
use warpline_testkit::kernel::build;

fn opened() -> (Device, Stream) {
    let device = Device::cuda(0).unwrap();
    let stream = Stream::new(device.context().unwrap()).unwrap();
    (device, stream)
}

fn bound() -> Bound {
    Bound {
        outputs: vec![0x1000],
        workspace: 0x2000,
        ..Bound::default()
    }
}

/// Kernels of one warp each, in a plan.
fn chain(steps: Vec<Step>, target: &Target) -> Result<Prepared, Error> {
    let plan = Plan::new(steps, 0).unwrap();
    Prepared::new(plan, target)
}

fn kernel(cluster: u32) -> Kernel {
    build("scale", |k| {
        k.cluster(cluster, 1, 1);
        k.role("all").warps(1).body(wait_prerequisites);
    })
}

#[test]
fn a_launch_is_one_call_for_each_kernel() {
    with_driver("launches::a_launch_is_one_call_for_each_kernel", "", || {
        let (device, stream) = opened();
        let launches = plan(&device).load(&device).unwrap().bind(&bound()).unwrap();
        let (_, called) = calls(|| {
            for _ in 0..3 {
                launches.launch(&stream).unwrap();
            }
        });
        let names: Vec<_> = called.lines().filter(|l| l.starts_with("cu")).collect();
        assert_eq!(names, ["cuLaunchKernelEx"; 3], "no allocation, no wait");
    });
}

#[test]
fn a_capture_takes_launches_and_refuses_to_compile() {
    with_driver(
        "launches::a_capture_takes_launches_and_refuses_to_compile",
        "",
        || {
            let (device, stream) = opened();
            let plan = plan(&device);
            let launch = |s: &Stream| plan.launch(&device, s, &bound());
            let refused = stream.capture(launch).unwrap_err();
            assert_eq!((refused.code(), refused.exit_code()), ("jit-in-capture", 1));
            assert_eq!(
                refused.to_string(),
                "kernel scale is not on the device yet, and it cannot be compiled while a stream \
                 is captured: run the op once, or call `Prepared::load`, before the capture"
            );

            plan.load(&device).unwrap();
            let (_, called) = calls(|| {
                let graph = stream.capture(launch).unwrap();
                graph.instantiate().unwrap().launch(&stream).unwrap();
            });
            let names: Vec<_> = called.lines().filter(|l| l.starts_with("cu")).collect();
            assert_eq!(
                names,
                [
                    "cuStreamBeginCapture_v2",
                    "cuStreamIsCapturing",
                    "cuLaunchKernelEx",
                    "cuStreamEndCapture",
                    "cuGraphInstantiateWithFlags",
                    "cuGraphLaunch",
                    "cuGraphExecDestroy",
                    "cuGraphDestroy",
                ]
            );
        },
    );
}

#[test]
fn outside_of_a_capture_a_launch_loads_what_it_needs() {
    with_driver(
        "launches::outside_of_a_capture_a_launch_loads_what_it_needs",
        "",
        || {
            let (device, stream) = opened();
            let (_, called) = calls(|| plan(&device).launch(&device, &stream, &bound()).unwrap());
            assert_eq!(called.matches("cuLinkAddData_v2").count(), 1);
            assert_eq!(called.matches("cuLaunchKernelEx").count(), 1);
        },
    );
}

#[test]
fn a_dependent_step_and_a_cluster_are_told_to_the_driver() {
    with_driver(
        "launches::a_dependent_step_and_a_cluster_are_told_to_the_driver",
        "",
        || {
            let (device, stream) = opened();
            let steps = vec![
                Step::new(kernel(1), [4, 1, 1]),
                Step::new(kernel(2), [4, 1, 1]).dependent(),
            ];
            let ready = chain(steps, &device.target())
                .unwrap()
                .load(&device)
                .unwrap();
            let (_, called) = calls(|| ready.launch(&stream, &Bound::default()).unwrap());
            let said: Vec<_> = called.lines().filter(|l| l.contains("attribute")).collect();
            assert!(said[0].ends_with("attributes=0") && said[1].ends_with("attributes=2"));
            assert_eq!(said[2..], ["  attribute 4=2,1,1", "  attribute 6=1,0,0"]);
        },
    );
}

#[test]
fn a_cluster_beyond_the_portable_size_is_asked_for() {
    with_driver(
        "launches::a_cluster_beyond_the_portable_size_is_asked_for",
        "",
        || {
            let (device, _) = opened();
            let loaded = |size: u32| {
                let step = Step::new(kernel(size), [16, 1, 1]);
                let plan = chain(vec![step], &device.target()).unwrap();
                calls(|| plan.load(&device).unwrap()).1
            };
            assert!(loaded(16).contains("  set 14=1\n"));
            assert!(!loaded(8).contains("  set 14=1\n"));
        },
    );
}

#[test]
fn what_does_not_fit_the_device_is_refused_in_a_sentence() {
    with_driver(
        "launches::what_does_not_fit_the_device_is_refused_in_a_sentence",
        "resident=0",
        || {
            let (device, _) = opened();
            let refused = |size: u32| {
                let step = Step::new(kernel(size), [8, 1, 1]);
                let plan = chain(vec![step], &device.target()).unwrap();
                plan.load(&device).unwrap_err().to_string()
            };
            assert_eq!(
                refused(8),
                "kernel scale cannot be launched: a cluster of 8×1×1 CTAs with 32 threads of 8 \
                 registers and 0 bytes of shared memory does not fit the device"
            );
            assert!(refused(1).contains("a CTA with 32 threads"));
        },
    );
}

#[test]
fn ctas_that_wait_for_each_other_must_all_fit() {
    with_driver(
        "launches::ctas_that_wait_for_each_other_must_all_fit",
        "resident=1",
        || {
            let (device, _) = opened();
            let mut waiting = kernel(1);
            waiting.co_resident = true;
            let bind = |grid: u32| {
                let step = Step::new(waiting.clone(), [grid, 1, 1]);
                let plan = chain(vec![step], &device.target()).unwrap();
                plan.load(&device).unwrap().bind(&Bound::default())
            };
            bind(132).unwrap();
            let refused = bind(133).unwrap_err();
            assert_eq!(
                refused.to_string(),
                "kernel scale cannot be launched: its CTAs wait for each other, so all 133 must \
                 be on the device at once, and it holds 132"
            );
        },
    );
}

#[test]
fn the_simulator_loads_no_kernels() {
    let device = Device::cpu();
    let refused = plan(&device).load(&device).unwrap_err();
    assert_eq!((refused.code(), refused.exit_code()), ("no-gpu", 2));
}

#[test]
fn promises_are_kept_but_for_the_numbers_that_no_kernel_wrote() {
    with_driver(
        "launches::promises_are_kept_but_for_the_numbers_that_no_kernel_wrote",
        "free=999999999",
        || {
            let (device, _) = opened();
            for (name, promise) in warpline::gpu::promises::ALL {
                let kept = promise(&device);
                match name {
                    "capture-and-replay" => assert_eq!(
                        kept,
                        Err("1000003 elements of a replay are wrong".to_owned())
                    ),
                    _ => assert!(kept.is_ok(), "{name}: {kept:?}"),
                }
            }
        },
    );
}

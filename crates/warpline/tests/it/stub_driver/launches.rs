//! Launches: driver calls, and launches that are rejected before them.

use crate::stub_driver::harness::{calls, with_driver};
use crate::stub_driver::zeros::plan;
use warpline::cuda::Stream;
use warpline::kernels::{BufferAddresses, LaunchStep, Plan};
use warpline::{Device, Error, Prepared};
use warpline_ir::builder::wait_prerequisites;
use warpline_ir::{Kernel, Target};
use warpline_testkit::kernel::build;

fn open_device() -> (Device, Stream) {
    let device = Device::cuda(0).unwrap();
    let stream = Stream::new(device.context().unwrap()).unwrap();
    (device, stream)
}

fn addresses() -> BufferAddresses {
    BufferAddresses {
        outputs: vec![0x1000],
        workspace: 0x2000,
        ..BufferAddresses::default()
    }
}

/// Prepares a plan of steps.
fn prepared(steps: Vec<LaunchStep>, target: &Target) -> Result<Prepared, Error> {
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
        let (device, stream) = open_device();
        let plan = plan(&device)
            .load(&device)
            .unwrap()
            .bind(&addresses())
            .unwrap();
        let (_, called) = calls(|| {
            for _ in 0..3 {
                plan.launch(&stream).unwrap();
            }
        });
        let names: Vec<_> = called.lines().filter(|l| l.starts_with("cu")).collect();
        assert_eq!(names, ["cuLaunchKernelEx"; 3], "no allocation and no wait");
    });
}

#[test]
fn a_capture_records_launches_and_rejects_compilation() {
    with_driver(
        "launches::a_capture_records_launches_and_rejects_compilation",
        "",
        || {
            let (device, stream) = open_device();
            let plan = plan(&device);
            let launch = |s: &Stream| plan.launch(&device, s, &addresses());
            let error = stream.capture(launch).unwrap_err();
            assert_eq!((error.code(), error.exit_code()), ("jit-in-capture", 1));
            assert_eq!(
                error.to_string(),
                "kernel scale is not loaded and cannot be compiled during stream capture\n\
                 help: run the op once, or call `Prepared::load`, before the capture"
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
fn outside_of_a_capture_a_launch_loads_its_kernels() {
    with_driver(
        "launches::outside_of_a_capture_a_launch_loads_its_kernels",
        "",
        || {
            let (device, stream) = open_device();
            let (_, called) = calls(|| {
                plan(&device)
                    .launch(&device, &stream, &addresses())
                    .unwrap()
            });
            assert_eq!(called.matches("cuLinkAddData_v2").count(), 1);
            assert_eq!(called.matches("cuLaunchKernelEx").count(), 1);
        },
    );
}

#[test]
fn dependent_launches_and_clusters_set_launch_attributes() {
    with_driver(
        "launches::dependent_launches_and_clusters_set_launch_attributes",
        "",
        || {
            let (device, stream) = open_device();
            let steps = vec![
                LaunchStep::new(kernel(1), [4, 1, 1]),
                LaunchStep::new(kernel(2), [4, 1, 1]).dependent(),
            ];
            let loaded = prepared(steps, &device.target())
                .unwrap()
                .load(&device)
                .unwrap();
            let (_, called) =
                calls(|| loaded.launch(&stream, &BufferAddresses::default()).unwrap());
            let attributes: Vec<_> = called.lines().filter(|l| l.contains("attribute")).collect();
            assert!(
                attributes[0].ends_with("attributes=0") && attributes[1].ends_with("attributes=2")
            );
            assert_eq!(
                attributes[2..],
                ["  attribute 4=2,1,1", "  attribute 6=1,0,0"]
            );
        },
    );
}

#[test]
fn a_non_portable_cluster_size_is_enabled() {
    with_driver(
        "launches::a_non_portable_cluster_size_is_enabled",
        "",
        || {
            let (device, _) = open_device();
            let loaded = |size: u32| {
                let step = LaunchStep::new(kernel(size), [16, 1, 1]);
                let plan = prepared(vec![step], &device.target()).unwrap();
                calls(|| plan.load(&device).unwrap()).1
            };
            assert!(loaded(16).contains("  set 14=1\n"));
            assert!(!loaded(8).contains("  set 14=1\n"));
        },
    );
}

#[test]
fn a_kernel_that_does_not_fit_is_rejected() {
    with_driver(
        "launches::a_kernel_that_does_not_fit_is_rejected",
        "resident=0",
        || {
            let (device, _) = open_device();
            let error = |size: u32| {
                let step = LaunchStep::new(kernel(size), [8, 1, 1]);
                let plan = prepared(vec![step], &device.target()).unwrap();
                plan.load(&device).unwrap_err().to_string()
            };
            assert_eq!(
                error(8),
                "kernel scale cannot be launched: a cluster of 8×1×1 CTAs with 32 threads of 8 \
                 registers and 0 bytes of shared memory does not fit on the device"
            );
            assert!(error(1).contains("a CTA with 32 threads"));
        },
    );
}

#[test]
fn co_resident_ctas_must_all_fit() {
    with_driver(
        "launches::co_resident_ctas_must_all_fit",
        "resident=1",
        || {
            let (device, _) = open_device();
            let mut waiting = kernel(1);
            waiting.co_resident = true;
            let bind = |grid: u32| {
                let step = LaunchStep::new(waiting.clone(), [grid, 1, 1]);
                let plan = prepared(vec![step], &device.target()).unwrap();
                plan.load(&device)
                    .unwrap()
                    .bind(&BufferAddresses::default())
            };
            bind(132).unwrap();
            let error = bind(133).unwrap_err();
            assert_eq!(
                error.to_string(),
                "kernel scale cannot be launched: its 133 CTAs wait for each other and must be \
                 co-resident, but the device holds 132"
            );
        },
    );
}

#[test]
fn the_cpu_executor_loads_no_kernels() {
    let device = Device::cpu();
    let error = plan(&device).load(&device).unwrap_err();
    assert_eq!((error.code(), error.exit_code()), ("no-gpu", 2));
}

#[test]
fn guarantees_hold_except_for_results_that_the_stub_does_not_compute() {
    with_driver(
        "launches::guarantees_hold_except_for_results_that_the_stub_does_not_compute",
        "free=999999999",
        || {
            let (device, _) = open_device();
            for (name, guarantee) in warpline::gpu::guarantees::ALL {
                let result = guarantee(&device);
                match name {
                    "capture-and-replay" => assert_eq!(
                        result,
                        Err("1000003 elements of the replay are wrong".to_owned())
                    ),
                    _ => assert!(result.is_ok(), "{name}: {result:?}"),
                }
            }
        },
    );
}

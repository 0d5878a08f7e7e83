//! Op calls on raw addresses: plan caching and rejected calls.

// The stub launches nothing, so any address is valid.
#![allow(unsafe_code)]

use crate::stub_driver::harness::{calls, with_driver};
use warpline::cuda::Stream;
use warpline::ops::{Call, TensorView};
use warpline::{DType, Device, Error};

fn open_device() -> (Device, Stream) {
    let device = Device::cuda(0).unwrap();
    let stream = Stream::new(device.context().unwrap()).unwrap();
    (device, stream)
}

fn launch(call: &Call, device: &Device, stream: &Stream) -> Result<(), Error> {
    // SAFETY: the stub reads and writes nothing.
    unsafe { call.launch(device, stream) }
}

fn softmax(rows: u64, cols: u64, x: u64, y: u64) -> Call {
    let view = |address| TensorView::dense(DType::Bf16, &[rows, cols], address);
    let call = Call::new("softmax").unwrap().tensor("x", view(x)).unwrap();
    call.out(view(y))
}

const X: u64 = 1 << 40;
const Y: u64 = 1 << 41;

#[test]
fn a_second_call_only_launches() {
    with_driver("ops::a_second_call_only_launches", "", || {
        let (device, stream) = open_device();
        launch(&softmax(4, 1024, X, Y), &device, &stream).unwrap();
        let (_, called) = calls(|| {
            launch(&softmax(4, 1024, X + 4096, Y + 4096), &device, &stream).unwrap();
        });
        let names: Vec<_> = called.lines().filter(|l| l.starts_with("cu")).collect();
        assert_eq!(names, ["cuLaunchKernelEx"], "no allocation and no wait");
        assert_eq!(Call::cached_plan_count(&device), 1);
    });
}

fn linear(x: u64, weight: u64, y: u64) -> Call {
    let view = |rows, cols, at| TensorView::dense(DType::Bf16, &[rows, cols], at);
    let call = Call::new("linear").unwrap();
    let call = call.tensor("x", view(256, 512, x)).unwrap();
    let call = call.tensor("weight", view(1024, 512, weight)).unwrap();
    call.out(view(256, 1024, y))
}

#[test]
fn a_second_call_patches_the_tensor_maps_whose_address_differs() {
    with_driver(
        "ops::a_second_call_patches_the_tensor_maps_whose_address_differs",
        "",
        || {
            const W: u64 = 3 << 40;
            let (device, stream) = open_device();
            let called = |call: &Call| {
                let (_, called) = calls(|| launch(call, &device, &stream).unwrap());
                let lines = called.lines().filter(|line| !line.contains("grid="));
                lines.map(str::to_owned).collect::<Vec<_>>()
            };
            let first = called(&linear(X, W, Y));
            assert!(first.iter().any(|line| line == "cuTensorMapEncodeTiled"));

            assert_eq!(called(&linear(X, W, Y)), ["cuLaunchKernelEx"]);
            let patched = called(&linear(X + 4096, W, Y));
            assert_eq!(
                patched[..2],
                ["cuTensorMapReplaceAddress", "  base=0x10000001000"]
            );
            assert_eq!(patched.last().unwrap(), "cuLaunchKernelEx");
            assert!(!patched.iter().any(|line| line.contains("Encode")));
            assert_eq!(called(&linear(X + 4096, W, Y)), ["cuLaunchKernelEx"]);
            // The maps are those of the last call, not of the first.
            assert_eq!(called(&linear(X, W, Y)).len(), 3);
            assert_eq!(Call::cached_plan_count(&device), 1);
        },
    );
}

#[test]
fn threads_launch_one_plan_at_once() {
    with_driver("ops::threads_launch_one_plan_at_once", "", || {
        let (device, stream) = open_device();
        launch(&linear(X, X + (1 << 30), Y), &device, &stream).unwrap();
        let (_, called) = calls(|| {
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    let (device, stream) = (&device, &stream);
                    scope.spawn(move || {
                        for i in 0..50 {
                            let at = X + ((thread * 50 + i) << 32);
                            launch(&linear(at, at + (1 << 30), Y), device, stream).unwrap();
                        }
                    });
                }
            });
        });
        assert_eq!(called.matches("cuLaunchKernelEx").count(), 200);
    });
}

#[test]
fn a_misaligned_address_is_rejected_after_an_aligned_one() {
    with_driver(
        "ops::a_misaligned_address_is_rejected_after_an_aligned_one",
        "",
        || {
            let (device, stream) = open_device();
            launch(&softmax(4, 1024, X + 2, Y), &device, &stream).unwrap();
            launch(&softmax(4, 1024, X + 6, Y), &device, &stream).unwrap();
            // Elements of two bytes have even addresses.
            let error = launch(&softmax(4, 1024, X + 7, Y), &device, &stream).unwrap_err();
            assert!(error.to_string().contains("multiple of 2"), "{error}");
            launch(&softmax(4, 1024, X + 10, Y), &device, &stream).unwrap();
        },
    );
}

#[test]
fn other_extents_of_a_class_are_not_compiled_again() {
    with_driver(
        "ops::other_extents_of_a_class_are_not_compiled_again",
        "",
        || {
            let (device, stream) = open_device();
            let (_, called) = calls(|| {
                for rows in 1..50 {
                    launch(&softmax(rows, 1024, X, Y), &device, &stream).unwrap();
                }
            });
            assert_eq!(called.matches("cuLinkAddData_v2").count(), 1);
            assert_eq!(called.matches("cuLaunchKernelEx").count(), 49);
            assert_eq!(Call::cached_plan_count(&device), 49);
        },
    );
}

#[test]
fn overlapping_tensors_are_rejected_even_with_a_cached_plan() {
    with_driver(
        "ops::overlapping_tensors_are_rejected_even_with_a_cached_plan",
        "",
        || {
            let (device, stream) = open_device();
            launch(&softmax(4, 1024, X, Y), &device, &stream).unwrap();
            let overlapping = softmax(4, 1024, X, X + 16);
            let error = launch(&overlapping, &device, &stream).unwrap_err();
            assert_eq!(
                error.to_string(),
                "softmax: y shares memory with x; an output must not overlap another tensor"
            );
        },
    );
}

#[test]
fn each_stream_has_its_own_workspace() {
    with_driver("ops::each_stream_has_its_own_workspace", "", || {
        let (device, first) = open_device();
        let second = Stream::new(device.context().unwrap()).unwrap();
        // Long rows use the specialized schedule, whose work queue needs a workspace.
        let call = softmax(300, 65536, X, Y);
        assert!(call.plan(&device, &first).unwrap().workspace() > 0);
        let (_, called) = calls(|| {
            for stream in [&first, &second, &first, &second] {
                launch(&call, &device, stream).unwrap();
            }
        });
        assert_eq!(called.matches("cuMemAlloc_v2").count(), 2);
        assert_eq!(called.matches("cuMemsetD8Async").count(), 2);
        assert_eq!(called.matches("cuLaunchKernelEx").count(), 4);
    });
}

#[test]
fn a_capture_needs_an_earlier_call() {
    with_driver("ops::a_capture_needs_an_earlier_call", "", || {
        let (device, stream) = open_device();
        let call = softmax(300, 65536, X, Y);
        let captured = |s: &Stream| launch(&call, &device, s);
        let error = stream.capture(captured).unwrap_err();
        assert_eq!(error.code(), "jit-in-capture");

        call.plan(&device, &stream).unwrap();
        let error = stream.capture(captured).unwrap_err();
        assert_eq!(
            (error.code(), error.exit_code()),
            ("workspace-in-capture", 1)
        );

        launch(&call, &device, &stream).unwrap();
        let (_, called) = calls(|| stream.capture(captured).unwrap());
        assert_eq!(called.matches("cuMemAlloc_v2").count(), 0);
        assert_eq!(called.matches("cuLaunchKernelEx").count(), 1);
        // Other extents of the class need no compilation and no allocation.
        let other = softmax(301, 65536, X, Y);
        stream.capture(|s| launch(&other, &device, s)).unwrap();
    });
}

#[test]
fn empty_outputs_launch_nothing() {
    with_driver("ops::empty_outputs_launch_nothing", "", || {
        let (device, stream) = open_device();
        let (_, called) = calls(|| {
            launch(&softmax(0, 1024, X, Y), &device, &stream).unwrap();
        });
        assert_eq!(called.matches("cuLaunchKernelEx").count(), 0);
    });
}

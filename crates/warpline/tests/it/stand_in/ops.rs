//! Ops on addresses: what is planned once, and what is refused each time.

// The stand-in launches nothing, so any address will do.
#![allow(unsafe_code)]

use crate::stand_in::harness::{calls, with_driver};
use warpline::cuda::Stream;
use warpline::ops::{Call, TensorView};
use warpline::{DType, Device, Error};

fn opened() -> (Device, Stream) {
    let device = Device::cuda(0).unwrap();
    let stream = Stream::new(device.context().unwrap()).unwrap();
    (device, stream)
}

fn launch(call: &Call, device: &Device, stream: &Stream) -> Result<(), Error> {
    // SAFETY: the stand-in reads and writes nothing.
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
        let (device, stream) = opened();
        launch(&softmax(4, 1024, X, Y), &device, &stream).unwrap();
        let (_, called) = calls(|| {
            launch(&softmax(4, 1024, X + 4096, Y + 4096), &device, &stream).unwrap();
        });
        let names: Vec<_> = called.lines().filter(|l| l.starts_with("cu")).collect();
        assert_eq!(names, ["cuLaunchKernelEx"], "no allocation, no wait");
        assert_eq!(Call::plans(&device), 1);
    });
}

#[test]
fn other_extents_of_a_class_are_not_compiled_again() {
    with_driver(
        "ops::other_extents_of_a_class_are_not_compiled_again",
        "",
        || {
            let (device, stream) = opened();
            let (_, called) = calls(|| {
                for rows in 1..50 {
                    launch(&softmax(rows, 1024, X, Y), &device, &stream).unwrap();
                }
            });
            assert_eq!(called.matches("cuLinkAddData_v2").count(), 1);
            assert_eq!(called.matches("cuLaunchKernelEx").count(), 49);
            assert_eq!(Call::plans(&device), 49);
        },
    );
}

#[test]
fn tensors_that_meet_are_refused_also_where_the_plan_is_known() {
    with_driver(
        "ops::tensors_that_meet_are_refused_also_where_the_plan_is_known",
        "",
        || {
            let (device, stream) = opened();
            launch(&softmax(4, 1024, X, Y), &device, &stream).unwrap();
            let meets = softmax(4, 1024, X, X + 16);
            let refused = launch(&meets, &device, &stream).unwrap_err();
            assert_eq!(
                refused.to_string(),
                "softmax: y shares memory with x, and an output must lie apart"
            );
        },
    );
}

#[test]
fn each_stream_has_a_workspace_of_its_own() {
    with_driver("ops::each_stream_has_a_workspace_of_its_own", "", || {
        let (device, one) = opened();
        let two = Stream::new(device.context().unwrap()).unwrap();
        // Long rows come through a ring, whose blocks are taken from a queue.
        let call = softmax(300, 65536, X, Y);
        assert!(call.plan(&device, &one).unwrap().workspace() > 0);
        let (_, called) = calls(|| {
            for stream in [&one, &two, &one, &two] {
                launch(&call, &device, stream).unwrap();
            }
        });
        assert_eq!(called.matches("cuMemAlloc_v2").count(), 2);
        assert_eq!(called.matches("cuMemsetD8Async").count(), 2);
        assert_eq!(called.matches("cuLaunchKernelEx").count(), 4);
    });
}

#[test]
fn a_capture_takes_what_was_called_before_and_refuses_the_rest() {
    with_driver(
        "ops::a_capture_takes_what_was_called_before_and_refuses_the_rest",
        "",
        || {
            let (device, stream) = opened();
            let call = softmax(300, 65536, X, Y);
            let captured = |s: &Stream| launch(&call, &device, s);
            let refused = stream.capture(captured).unwrap_err();
            assert_eq!(refused.code(), "jit-in-capture");

            call.plan(&device, &stream).unwrap();
            let refused = stream.capture(captured).unwrap_err();
            assert_eq!(
                (refused.code(), refused.exit_code()),
                ("workspace-in-capture", 1)
            );

            launch(&call, &device, &stream).unwrap();
            let (_, called) = calls(|| stream.capture(captured).unwrap());
            assert_eq!(called.matches("cuMemAlloc_v2").count(), 0);
            assert_eq!(called.matches("cuLaunchKernelEx").count(), 1);
            // Other extents of the class need nothing new of the driver.
            let other = softmax(301, 65536, X, Y);
            stream.capture(|s| launch(&other, &device, s)).unwrap();
        },
    );
}

#[test]
fn nothing_is_launched_where_nothing_comes_out() {
    with_driver(
        "ops::nothing_is_launched_where_nothing_comes_out",
        "",
        || {
            let (device, stream) = opened();
            let (_, called) = calls(|| {
                launch(&softmax(0, 1024, X, Y), &device, &stream).unwrap();
            });
            assert_eq!(called.matches("cuLaunchKernelEx").count(), 0);
        },
    );
}

//! The bindings against a stub driver: device properties, error messages, and the exact calls
//! that reach the driver.
#![allow(unsafe_code)]

use std::process::Command;

use crate::stub::{Stub, compile, temporary_path};
use warpline_cuda::{
    Args, Context, CudaError, DeviceBuffer, Driver, EncodedTensorMap, Event, GlobalTensor,
    Im2colMap, JitOptions, L2Promotion, LaunchConfig, Module, Stream, TensorMapSwizzle,
    TensorMapType, TiledMap, launch,
};

const PTX: &str = ".version 8.0\n.target sm_90a\n";

fn context(stub: &Stub) -> Context {
    stub.driver().unwrap().device(0).unwrap().context().unwrap()
}

fn error<T: std::fmt::Debug>(result: Result<T, CudaError>, code: &str) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    error.to_string()
}

#[test]
fn a_missing_library_is_reported_as_no_driver() {
    let sentence = error(Driver::open("/nowhere/libcuda.so.1"), "cuda-no-driver");
    assert!(
        sentence.starts_with("no CUDA driver found: cannot load /nowhere/libcuda.so.1 ("),
        "{sentence}"
    );
    assert!(sentence.contains("No such file"), "{sentence}");
}

#[test]
fn a_library_without_driver_functions_is_rejected_by_symbol() {
    assert_eq!(
        error(Driver::open("libm.so.6"), "cuda-missing-symbol"),
        "the CUDA driver library libm.so.6 has no function cuDriverGetVersion"
    );
    let path = temporary_path("partial.so");
    compile(&path, &["-DWITHOUT_TENSOR_MAPS"]);
    let sentence = error(Driver::open(&path), "cuda-missing-symbol");
    std::fs::remove_file(&path).unwrap();
    assert!(sentence.ends_with("has no function cuTensorMapEncodeTiled"));
}

#[test]
fn an_old_driver_is_rejected_with_its_version() {
    assert_eq!(
        error(Stub::new("driver=11040").driver(), "cuda-driver-too-old"),
        "the CUDA driver supports CUDA 11.4; Warpline requires 12.0 or newer (PTX 8.0, tensor maps)\nhelp: update the NVIDIA driver"
    );
    let stub = Stub::new("driver=12000");
    assert_eq!(stub.driver().unwrap().version().to_string(), "12.0");
}

#[test]
fn devices_are_listed_with_their_properties() {
    let stub = Stub::new("devices=2");
    let devices = stub.driver().unwrap().devices().unwrap();
    assert_eq!(devices.len(), 2);
    let second = &devices[1];
    assert_eq!((second.ordinal, second.name.as_str()), (1, "Stand-in 1"));
    assert_eq!(second.compute_capability.to_string(), "9.0");
    assert_eq!((second.sms, second.memory_bytes), (132, 1 << 37));
    assert_eq!(second.shared_bytes_per_block, 232_448);
    assert_eq!(second.l2_bytes, 60 << 20);
    assert_eq!(second.clock_khz, Some(1_980_000));
    assert_eq!(second.memory_clock_khz, None);
    assert_eq!(second.memory_bus_bits, Some(6144));
    assert_eq!(second.driver.to_string(), "12.8");
    assert_eq!(second.check_supported(), Ok(()));
}

#[test]
fn an_unsupported_device_is_listed_and_rejected() {
    let stub = Stub::new("cc=8.6");
    let driver = stub.driver().unwrap();
    let sentence = "cuda:0 (Stand-in 0) has compute capability 8.6; Warpline's kernels require 9.0 (sm_90a: wgmma, TMA, clusters)";
    let info = &driver.devices().unwrap()[0];
    assert_eq!(
        error(info.check_supported(), "cuda-unsupported-device"),
        sentence
    );
    let device = driver.device(0).unwrap();
    assert_eq!(error(device.context(), "cuda-unsupported-device"), sentence);
    assert_eq!(stub.live_objects(), 0);
}

#[test]
fn an_unknown_ordinal_is_rejected_with_the_available_devices() {
    for (count, available) in [
        (0, "none"),
        (1, "1 CUDA device (cuda:0)"),
        (2, "2 CUDA devices (cuda:0, cuda:1)"),
        (8, "8 CUDA devices (cuda:0 to cuda:7)"),
    ] {
        let stub = Stub::new(&format!("devices={count}"));
        let driver = stub.driver().unwrap();
        assert_eq!(driver.devices().unwrap().len(), count);
        assert_eq!(
            error(driver.device(9), "cuda-no-such-device"),
            format!("device cuda:9 does not exist; available: {available}")
        );
        error(driver.device(u32::MAX), "cuda-no-such-device");
    }
}

#[test]
fn a_failed_call_is_named_with_result_and_text() {
    let stub = Stub::new("fail=cuInit:999");
    assert_eq!(
        error(stub.driver(), "cuda-driver-call"),
        "cuInit failed: CUresult 999 (999), no description from the driver"
    );
    let stub = Stub::new("fail=cuDevicePrimaryCtxRetain:2");
    let device = stub.driver().unwrap().device(0).unwrap();
    assert_eq!(
        error(device.context(), "cuda-out-of-memory"),
        "cuDevicePrimaryCtxRetain failed: CUDA_ERROR_OUT_OF_MEMORY (2), a text of the stub"
    );
}

#[test]
fn synchronize_reports_a_kernel_fault() {
    let stub = Stub::new("");
    let stream = Stream::new(&context(&stub)).unwrap();
    stub.configure("fail=cuStreamSynchronize:700");
    let fault = stream.synchronize().unwrap_err();
    assert!(fault.is_fault());
    assert_eq!(
        error::<()>(Err(fault), "cuda-device-fault"),
        "cuStreamSynchronize failed: CUDA_ERROR_ILLEGAL_ADDRESS (700), an illegal memory access was encountered"
    );
    assert_eq!(stub.context_depth(), 0);
}

#[test]
fn buffer_contents_round_trip() {
    let stub = Stub::new("");
    let context = context(&stub);
    let stream = Stream::new(&context).unwrap();
    let bytes: Vec<u8> = (0..100).collect();
    let mut a = DeviceBuffer::from_host(&context, &bytes, &stream).unwrap();
    a.write(10, &[0xaa; 5], &stream).unwrap();
    let mut b = DeviceBuffer::alloc(&context, 100).unwrap();
    b.fill(7, &stream).unwrap();
    let mut back = [0; 3];
    b.read(97, &mut back, &stream).unwrap();
    assert_eq!(back, [7; 3]);
    b.copy_from(&a, &stream).unwrap();
    let mut back = [0; 7];
    b.read(9, &mut back, &stream).unwrap();
    assert_eq!(back, [9, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 15]);

    assert_eq!(
        error(a.read(95, &mut back, &stream), "cuda-bad-argument"),
        "reading a buffer: 7 bytes at offset 95 exceed the buffer of 100 bytes"
    );
    error(a.write(usize::MAX, &[1], &stream), "cuda-bad-argument");
    let small = DeviceBuffer::alloc(&context, 8).unwrap();
    error(b.copy_from(&small, &stream), "cuda-bad-argument");
}

#[test]
fn an_empty_buffer_needs_no_memory() {
    let stub = Stub::new("");
    let context = context(&stub);
    let stream = Stream::new(&context).unwrap();
    let mut empty = DeviceBuffer::from_host(&context, &[], &stream).unwrap();
    empty.fill(1, &stream).unwrap();
    empty.read(0, &mut [], &stream).unwrap();
    assert!(empty.is_empty());
    assert!(!stub.calls().contains("cuMem"));
}

#[test]
fn out_of_memory_reports_the_free_bytes() {
    let stub = Stub::new("free=4096");
    let context = context(&stub);
    assert_eq!(
        error(DeviceBuffer::alloc(&context, 4097), "cuda-out-of-memory"),
        "out of memory on cuda:0: 4097 bytes requested, 4096 of 137438953472 bytes free"
    );
    DeviceBuffer::alloc(&context, 4096).unwrap();
}

#[test]
fn every_object_is_released_and_the_context_stack_is_restored() {
    let stub = Stub::new("");
    {
        let context = context(&stub);
        let stream = Stream::new(&context).unwrap();
        let (start, end) = (Event::new(&context).unwrap(), Event::new(&context).unwrap());
        let module = Module::from_ptx(&context, PTX, &JitOptions::default()).unwrap();
        let function = module.function("scale").unwrap();
        let _buffer = DeviceBuffer::alloc(&context, 64).unwrap();
        drop((module, context));
        start.record(&stream).unwrap();
        end.record(&stream).unwrap();
        stream.wait(&end).unwrap();
        end.synchronize().unwrap();
        assert!(end.is_done().unwrap());
        assert_eq!(end.ms_since(&start).unwrap(), 1.5);
        assert_eq!(stub.live_objects(), 6);
        assert_eq!(function.attributes().registers, 8);
    }
    assert_eq!(stub.live_objects(), 0);
    assert_eq!(stub.context_depth(), 0);
    let calls = stub.calls();
    assert_eq!(calls.lines().last(), Some("cuDevicePrimaryCtxRelease_v2"));
}

#[test]
fn a_module_and_a_rejection_carry_the_compiler_log() {
    let stub = Stub::new("params=8");
    let context = context(&stub);
    let mut options = JitOptions::default();
    options.max_registers = Some(168);
    let module = Module::from_ptx(&context, PTX, &options).unwrap();
    assert_eq!(module.log(), "ptxas info : Used 8 registers");
    assert!(
        stub.calls()
            .contains("  jit 4=65536\n  jit 6=65536\n  jit 12=1\n  jit 13=1\n  jit 0=168\n")
    );

    let rejected = Module::from_ptx(&context, "BAD", &options);
    assert_eq!(
        error(rejected, "cuda-jit-rejected"),
        "the driver rejected the module: CUDA_ERROR_INVALID_PTX\nptxas application ptx input, line 7; error : Unknown symbol 'BAD'"
    );
    error(
        Module::from_ptx(&context, "a\0b", &options),
        "cuda-bad-argument",
    );
    assert_eq!(
        error(module.function("none"), "cuda-bad-argument"),
        "kernel name: the module has no kernel named \"none\""
    );
    assert_eq!(
        error(Module::from_cubin(&context, b"junk"), "cuda-bad-argument"),
        "cubin: not a 64-bit ELF file"
    );
    let mut cubin = vec![0; 64];
    cubin[..6].copy_from_slice(b"\x7fELF\x02\x01");
    Module::from_cubin(&context, &cubin).unwrap();
}

#[test]
fn a_launch_passes_grid_cluster_and_arguments_in_order() {
    let stub = Stub::new("params=8:4:128:4");
    let context = context(&stub);
    let stream = Stream::new(&context).unwrap();
    let module = Module::from_ptx(&context, PTX, &JitOptions::default()).unwrap();
    let mut function = module.function("scale").unwrap();
    function.set_max_dynamic_shared(200_000).unwrap();
    function.allow_non_portable_clusters().unwrap();
    assert!(stub.calls().contains("  set 8=200000\n"));
    assert!(stub.calls().contains("  set 14=1\n"));

    let map = TiledMap::new(
        GlobalTensor::new(TensorMapType::F32, 0x100, &[64], &[]),
        &[64],
    );
    let map = EncodedTensorMap::tiled(&context, &map).unwrap();
    let config = LaunchConfig::new([32, 2, 1], [128, 2, 1])
        .cluster(Some([16, 1, 1]))
        .shared_bytes(200_000);
    let mut args = Args::new();
    args.pointer(0xabcd_0000)
        .push(77u32)
        .tensor_map(&map)
        .push(1.0f32);
    let before = stub.calls();
    launch(&function, &config, &stream, &args).unwrap();
    assert_eq!(
        stub.calls()[before.len()..],
        "cuLaunchKernelEx\n\
         \x20 grid=32,2,1 block=128,2,1 shared=200000 extra=0 stream=1 attributes=1\n\
         \x20 attribute 4=16,1,1\n\
         \x20 param 8=0xabcd0000 aligned=1\n\
         \x20 param 4=0x4d aligned=1\n\
         \x20 param 128=0x1000 aligned=1\n\
         \x20 param 4=0x3f800000 aligned=1\n"
            .to_owned(),
        "a launch is one call and nothing else"
    );

    let plain = LaunchConfig::new([1, 1, 1], [32, 1, 1]);
    launch(&function, &plain, &Stream::default_stream(&context), &args).unwrap();
    assert!(stub.calls().contains("stream=0 attributes=0\n"));
    assert_eq!(stub.context_depth(), 0);
}

#[test]
fn a_launch_that_breaks_a_rule_never_reaches_the_driver() {
    let stub = Stub::new("params=8:4");
    let context = context(&stub);
    let stream = Stream::new(&context).unwrap();
    let module = Module::from_ptx(&context, PTX, &JitOptions::default()).unwrap();
    let mut function = module.function("scale").unwrap();
    let mut valid = Args::new();
    valid.pointer(1).push(2u32);
    let config = |grid, block| LaunchConfig::new(grid, block);
    let plain = config([4, 1, 1], [32, 1, 1]);
    for (config, part) in [
        (config([0, 1, 1], [32, 1, 1]), "must not contain a 0"),
        (config([1, 1, 1], [32, 0, 1]), "must not contain a 0"),
        (config([1, 65_536, 1], [32, 1, 1]), "exceeds the limit"),
        (
            config([1, 1, 1], [1025, 1, 1]),
            "exceeds this kernel's limit of 1024 threads",
        ),
        (config([1, 1, 1], [u32::MAX; 3]), "limit of 1024 threads"),
        (
            plain.shared_bytes(49_137),
            "49137 bytes of dynamic shared memory exceed this kernel's limit of 49136 bytes",
        ),
        (
            plain.cluster(Some([3, 1, 1])),
            "cluster [3, 1, 1] does not divide grid [4, 1, 1]",
        ),
        (plain.cluster(Some([0, 1, 1])), "does not divide"),
        (
            config([16, 1, 1], [32, 1, 1]).cluster(Some([16, 1, 1])),
            "exceeds the limit of 8 CTAs",
        ),
    ] {
        let sentence = error(
            launch(&function, &config, &stream, &valid),
            "cuda-bad-argument",
        );
        assert!(sentence.starts_with("launch of scale: "), "{sentence}");
        assert!(sentence.contains(part), "{sentence}");
    }

    let mut few = Args::new();
    few.pointer(1);
    assert_eq!(
        error(
            launch(&function, &plain, &stream, &few),
            "cuda-bad-argument"
        ),
        "launch of scale: the kernel takes 2 arguments, got 1"
    );
    few.push(2u64);
    assert_eq!(
        error(
            launch(&function, &plain, &stream, &few),
            "cuda-bad-argument"
        ),
        "launch of scale: argument 1 has 8 bytes, the kernel's parameter has 4"
    );
    assert_eq!(
        error(
            function.set_max_dynamic_shared(232_448),
            "cuda-bad-argument"
        ),
        "kernel scale: 232448 bytes of dynamic and 16 bytes of static shared memory exceed the device's limit of 232448 bytes per CTA\nhelp: request at most 232432 bytes of dynamic shared memory"
    );
    assert!(!stub.calls().contains("cuLaunchKernelEx"));
    launch(&function, &plain, &stream, &valid).unwrap();
}

#[test]
fn streams_and_buffers_of_two_devices_cannot_be_mixed() {
    let stub = Stub::new("devices=2");
    let driver = stub.driver().unwrap();
    let first = driver.device(0).unwrap().context().unwrap();
    let second = driver.device(1).unwrap().context().unwrap();
    let stream = Stream::new(&second).unwrap();
    let mut buffer = DeviceBuffer::alloc(&first, 4).unwrap();
    assert_eq!(
        error(buffer.fill(0, &stream), "cuda-bad-argument"),
        "filling a buffer: the stream belongs to cuda:1, the operands to cuda:0"
    );
}

#[test]
fn a_tensor_map_is_encoded_field_by_field() {
    let stub = Stub::new("");
    let context = context(&stub);
    let tensor = GlobalTensor::new(TensorMapType::Bf16, 0xf000, &[64, 100, 32], &[4096, 128]);
    let mut tiled = TiledMap::new(tensor, &[64, 128, 2]);
    tiled.tensor.swizzle = TensorMapSwizzle::B128;
    let map = EncodedTensorMap::tiled(&context, &tiled).unwrap();
    assert_eq!(map.to_bytes()[..4], [0, 0x10, 0, 0]);
    assert!(stub.calls().ends_with(
        "cuTensorMapEncodeTiled\n\
         \x20 dtype=9 rank=3 base=0xf000 interleave=0 swizzle=3 l2=2 fill=0\n\
         \x20 dim 64 stride 4096 box 64 step 1\n\
         \x20 dim 100 stride 128 box 128 step 1\n\
         \x20 dim 32 stride 0 box 2 step 1\n"
    ));
    tiled.tensor.strides = &[4096, 100];
    assert_eq!(
        error(
            EncodedTensorMap::tiled(&context, &tiled),
            "cuda-bad-argument"
        ),
        "tensor map: a stride must be a multiple of 16 bytes below 2^40, not 100"
    );
}

#[test]
fn an_im2col_map_is_encoded_field_by_field() {
    let stub = Stub::new("");
    let context = context(&stub);
    let mut tensor = GlobalTensor::new(
        TensorMapType::F16,
        0xf000,
        &[64, 14, 10, 8],
        &[128, 1792, 17920],
    );
    tensor.swizzle = TensorMapSwizzle::B64;
    tensor.l2_promotion = L2Promotion::B256;
    let mut im2col = Im2colMap {
        tensor,
        lower: &[-1, -2],
        upper: &[-1, 2],
        channels: 32,
        pixels: 96,
        element_strides: &[2, 3],
    };
    let map = EncodedTensorMap::im2col(&context, &im2col).unwrap();
    assert_eq!(map.to_bytes()[..4], [0, 0x20, 0, 0]);
    assert!(stub.calls().ends_with(
        "cuTensorMapEncodeIm2col\n\
         \x20 dtype=6 rank=4 base=0xf000 interleave=0 swizzle=2 l2=3 fill=0 channels=32 pixels=96\n\
         \x20 dim 64 stride 128 step 1\n\
         \x20 dim 14 stride 1792 step 2\n\
         \x20 dim 10 stride 17920 step 3\n\
         \x20 dim 8 stride 0 step 1\n\
         \x20 corners -1 -1\n\
         \x20 corners -2 2\n"
    ));
    im2col.pixels = 1025;
    assert_eq!(
        error(
            EncodedTensorMap::im2col(&context, &im2col),
            "cuda-bad-argument"
        ),
        "tensor map: the pixels of an im2col copy must be 1 to 1024, not 1025"
    );
}

#[test]
fn two_threads_share_a_kernel() {
    let stub = Stub::new("params=8:4");
    let context = context(&stub);
    let module = Module::from_ptx(&context, PTX, &JitOptions::default()).unwrap();
    let function = module.function("scale").unwrap();
    std::thread::scope(|scope| {
        for id in 0..2u8 {
            let (context, function, stub) = (&context, &function, &stub);
            scope.spawn(move || {
                let stream = Stream::new(context).unwrap();
                let config = LaunchConfig::new([1, 1, 1], [32, 1, 1]);
                let mut args = Args::new();
                for _ in 0..100 {
                    let buffer = DeviceBuffer::from_host(context, &[id; 64], &stream).unwrap();
                    args.clear();
                    args.buffer(&buffer).push(64u32);
                    launch(function, &config, &stream, &args).unwrap();
                    let mut back = [0; 64];
                    buffer.read(0, &mut back, &stream).unwrap();
                    assert_eq!(back, [id; 64]);
                }
                assert_eq!(stub.context_depth(), 0);
            });
        }
    });
    drop((function, module, context));
    assert_eq!(stub.live_objects(), 0);
}

/// `Driver::load` finds the library by name and caches its result, so this test runs itself in
/// a child process.
#[test]
fn the_driver_is_found_by_name_and_loaded_once() {
    if std::env::var_os("WARPLINE_STUB").is_some() {
        let driver = Driver::load().unwrap();
        assert!(std::ptr::eq(driver, Driver::load().unwrap()));
        let devices = warpline_cuda::devices().unwrap();
        assert_eq!(devices.len(), 3);
        assert_eq!(devices[2].driver.to_string(), "12.4");
        return;
    }
    let folder = temporary_path("library");
    std::fs::create_dir_all(&folder).unwrap();
    compile(&folder.join(Driver::LIBRARY), &[]);
    let test = "driver::the_driver_is_found_by_name_and_loaded_once";
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("WARPLINE_STUB", "devices=3 driver=12040")
        .env("LD_LIBRARY_PATH", &folder)
        .output()
        .unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}

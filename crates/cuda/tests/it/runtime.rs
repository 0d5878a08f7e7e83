//! Runtime features against the stub driver: cubins, graph captures, pinned host memory,
//! dependent launches, occupancy.
#![allow(unsafe_code)]

use crate::stub::Stub;
use std::thread;
use warpline_cuda::{
    Args, Context, CudaError, DeviceBuffer, HostBuffer, JitOptions, LaunchConfig, Module, Stream,
    launch,
};

const PTX: &str = ".version 8.0\n.target sm_90a\n";

fn context(stub: &Stub) -> Context {
    stub.driver().unwrap().device(0).unwrap().context().unwrap()
}

/// Returns the stub's log of the calls that `work` makes.
fn calls(stub: &Stub, work: impl FnOnce()) -> String {
    let before = stub.calls().len();
    work();
    stub.calls()[before..].to_owned()
}

#[test]
fn a_cubin_is_compiled_for_sm_90a_with_its_log_and_loaded_without_compiling() {
    let stub = Stub::new("");
    let context = context(&stub);
    let live = stub.live_objects();
    let mut options = JitOptions::default();
    options.max_registers = Some(168);
    let cubin = Module::compile(&context, PTX, &options).unwrap();
    assert_eq!(cubin.log, "ptxas info : Used 8 registers");
    assert_eq!(cubin.bytes[..4], *b"\x7fELF");
    assert_eq!(stub.live_objects(), live, "the compiler is gone");
    let called = stub.calls();
    assert!(called.contains("  jit 0=168\n  jit 9=65626\n"), "{called}");

    let called = calls(&stub, || {
        let module = Module::from_cubin(&context, &cubin.bytes).unwrap();
        assert_eq!(module.log(), "");
        module.function_with_params("scale", &[]).unwrap();
    });
    assert!(!called.contains("cuLink"), "{called}");
}

#[test]
fn a_rejected_text_carries_the_compiler_errors() {
    let stub = Stub::new("");
    let context = context(&stub);
    let live = stub.live_objects();
    let rejected = Module::compile(&context, "BAD", &JitOptions::default()).unwrap_err();
    assert_eq!(
        rejected.to_string(),
        "the driver rejected the module: CUDA_ERROR_INVALID_PTX\n\
         ptxas application ptx input, line 7; error : Unknown symbol 'BAD'"
    );
    stub.configure("fail=cuLinkComplete:2");
    let full = Module::compile(&context, PTX, &JitOptions::default()).unwrap_err();
    assert_eq!(full.code(), "cuda-out-of-memory");
    assert!(full.to_string().starts_with("cuLinkComplete failed: "));
    assert_eq!((stub.live_objects(), stub.context_depth()), (live, 0));
}

#[test]
fn a_capture_becomes_one_graph_launch() {
    let stub = Stub::new("");
    let context = context(&stub);
    let stream = Stream::new(&context).unwrap();
    let mut buffer = DeviceBuffer::alloc(&context, 64).unwrap();
    assert!(!stream.is_capturing().unwrap());
    let called = calls(&stub, || {
        let graph = stream
            .capture(|s| {
                assert!(s.is_capturing()?);
                buffer.fill(1, s)
            })
            .unwrap();
        let exec = graph.instantiate().unwrap();
        drop(graph);
        exec.launch(&stream).unwrap();
        exec.launch(&stream).unwrap();
    });
    let called: Vec<&str> = called.lines().collect();
    assert_eq!(
        called,
        [
            "cuStreamBeginCapture_v2",
            "cuStreamIsCapturing",
            "cuMemsetD8Async",
            "cuStreamEndCapture",
            "cuGraphInstantiateWithFlags",
            "cuGraphDestroy",
            "cuGraphLaunch",
            "cuGraphLaunch",
            "cuGraphExecDestroy",
        ]
    );
}

#[test]
fn a_failed_capture_ends_and_the_stream_stays_usable() {
    let stub = Stub::new("");
    let context = context(&stub);
    let stream = Stream::new(&context).unwrap();
    let live = stub.live_objects();
    let failed: Result<_, CudaError> = stream.capture(|s| s.synchronize());
    assert_eq!(failed.unwrap_err().code(), "cuda-driver-call");
    assert!(!stream.is_capturing().unwrap());
    stream.synchronize().unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        stream.capture::<CudaError>(|_| panic!("a panic of the caller"))
    }));
    assert!(panicked.is_err());
    assert!(!stream.is_capturing().unwrap());
    assert_eq!(stub.live_objects(), live, "no graph leaks");

    let default = Stream::default_stream(&context);
    let rejected: Result<_, CudaError> = default.capture(|_| Ok(()));
    assert_eq!(rejected.unwrap_err().code(), "cuda-driver-call");
}

#[test]
fn a_graph_stays_on_its_device() {
    let stub = Stub::new("devices=2");
    let driver = stub.driver().unwrap();
    let [first, second] = [0, 1].map(|i| driver.device(i).unwrap().context().unwrap());
    let graph = Stream::new(&first)
        .unwrap()
        .capture::<CudaError>(|_| Ok(()));
    let exec = graph.unwrap().instantiate().unwrap();
    let other = Stream::new(&second).unwrap();
    assert_eq!(
        exec.launch(&other).unwrap_err().to_string(),
        "launch of a graph: the stream belongs to cuda:1, the operands to cuda:0"
    );
}

#[test]
fn host_memory_is_zeroed_accessed_by_words_and_released() {
    let stub = Stub::new("");
    let context = context(&stub);
    let live = stub.live_objects();
    let memory = HostBuffer::zeroed(&context, 20).unwrap();
    assert_eq!(memory.len(), 24);
    assert_ne!(memory.address(), 0);
    for offset in [0, 8, 16] {
        assert_eq!(memory.u64(offset).unwrap(), 0);
    }
    memory.set_u32(4, 7).unwrap();
    assert_eq!(memory.u64(0).unwrap(), 7 << 32);
    memory.set_u64(16, u64::MAX).unwrap();
    assert_eq!(memory.u32(20).unwrap(), u32::MAX);
    // Device memory of the stub is host memory.
    assert_eq!(memory.u32(4).unwrap(), 7);
    for bad in [1, 2, 22, 24, usize::MAX - 3] {
        assert_eq!(memory.u32(bad).unwrap_err().code(), "cuda-bad-argument");
    }
    assert_eq!(
        memory.u64(20).unwrap_err().to_string(),
        "host memory: offset 20 is misaligned or out of range (word size 8, buffer size 24)"
    );
    HostBuffer::zeroed(&context, usize::MAX).unwrap_err();
    drop(memory);
    assert_eq!(stub.live_objects(), live);
}

#[test]
fn a_dependent_launch_passes_its_attribute_next_to_the_cluster() {
    let stub = Stub::new("params=4");
    let context = context(&stub);
    let stream = Stream::new(&context).unwrap();
    let module = Module::from_ptx(&context, PTX, &JitOptions::default()).unwrap();
    let function = module.function_with_params("scale", &[4]).unwrap();
    let mut args = Args::new();
    args.push(3u32);
    let plain = LaunchConfig::new([4, 1, 1], [32, 1, 1]);
    let attributes = |config: &LaunchConfig| {
        let called = calls(&stub, || {
            launch(&function, config, &stream, &args).unwrap();
        });
        let lines = called.lines().filter(|l| l.contains("attribute "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(attributes(&plain), Vec::<String>::new());
    assert_eq!(attributes(&plain.dependent(true)), ["  attribute 6=1,0,0"]);
    assert_eq!(
        attributes(&plain.dependent(true).cluster(Some([2, 1, 1]))),
        ["  attribute 4=2,1,1", "  attribute 6=1,0,0"]
    );
}

#[test]
fn occupancy_comes_from_the_driver() {
    let stub = Stub::new("resident=3");
    let context = context(&stub);
    let module = Module::from_ptx(&context, PTX, &JitOptions::default()).unwrap();
    let function = module.function_with_params("scale", &[]).unwrap();
    let plain = LaunchConfig::new([4, 1, 1], [32, 1, 1]);
    assert_eq!(function.max_active_blocks(&plain), Ok(3));
    assert_eq!(function.max_active_clusters(&plain), Ok(0));
    let clustered = plain.cluster(Some([4, 1, 1]));
    assert_eq!(function.max_active_clusters(&clustered), Ok(3));
}

#[test]
fn threads_can_share_one_argument_list() {
    let stub = Stub::new("params=8:4");
    let context = context(&stub);
    let module = Module::from_ptx(&context, PTX, &JitOptions::default()).unwrap();
    let function = module.function_with_params("scale", &[8, 4]).unwrap();
    let mut args = Args::new();
    args.pointer(0xabc0).push(5u32);
    let config = LaunchConfig::new([4, 1, 1], [32, 1, 1]);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let stream = Stream::new(&context).unwrap();
                for _ in 0..8 {
                    launch(&function, &config, &stream, &args).unwrap();
                }
            });
        }
    });
    let called = stub.calls();
    assert_eq!(called.matches("cuLaunchKernelEx").count(), 32);
    assert_eq!(called.matches("param 8=0xabc0").count(), 32);
    assert_eq!(called.matches("param 4=0x5").count(), 32);
}

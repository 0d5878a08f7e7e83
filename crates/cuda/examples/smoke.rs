//! Smoke test on a real GPU: device properties, one small kernel, its result. Exit code 0: pass,
//! 1: wrong result, 2: no supported device, 3: any other driver error.
//!
//! ```text
//! cargo run --release -p warpline-cuda --example smoke
//! ```

use std::process::ExitCode;
use std::time::Instant;

use warpline_cuda::{
    Args, Context, CudaError, DeviceBuffer, Driver, EncodedTensorMap, Event, GlobalTensor,
    HostBuffer, JitOptions, LaunchConfig, Module, Stream, TensorMapSwizzle, TensorMapType,
    TiledMap, launch,
};

/// `data[i] *= 2` for `i < n`.
const PTX: &str = r#"
.version 8.0
.target sm_90a
.address_size 64

.visible .entry scale(.param .u64 data, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<5>;
    .reg .f32 %f;
    .reg .b64 %a<3>;
    ld.param.u64 %a0, [data];
    ld.param.u32 %r0, [n];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    setp.ge.u32 %p, %r4, %r0;
    @%p bra DONE;
    cvta.to.global.u64 %a0, %a0;
    mul.wide.u32 %a1, %r4, 4;
    add.u64 %a2, %a0, %a1;
    ld.global.f32 %f, [%a2];
    add.f32 %f, %f, %f;
    st.global.f32 [%a2], %f;
DONE:
    ret;
}
"#;

const N: u32 = 1_000_003;
const THREADS: u32 = 256;

fn main() -> ExitCode {
    let context = match open() {
        Ok(context) => context,
        Err(reason) => {
            eprintln!("{reason} [{}]", reason.code());
            return ExitCode::from(2);
        }
    };
    match run(&context) {
        Ok(0) => {
            println!("PASS: {N} values doubled");
            ExitCode::SUCCESS
        }
        Ok(wrong) => {
            println!("FAIL: {wrong} of {N} values are wrong");
            ExitCode::from(1)
        }
        Err(reason) => {
            eprintln!("{reason} [{}]", reason.code());
            ExitCode::from(3)
        }
    }
}

fn open() -> Result<Context, CudaError> {
    let driver = Driver::load()?;
    for device in driver.devices()? {
        println!("{device:#?}");
        if let Err(reason) = device.check_supported() {
            println!("{reason}");
        }
    }
    driver.device(0)?.context()
}

/// Runs the kernel and returns the number of wrong values.
fn run(context: &Context) -> Result<usize, CudaError> {
    let stream = Stream::new(context)?;
    let started = Instant::now();
    let cubin = Module::compile(context, PTX, &JitOptions::default())?;
    println!("compiled in {:?}; log: {:?}", started.elapsed(), cubin.log);
    let started = Instant::now();
    let module = Module::from_cubin(context, &cubin.bytes)?;
    println!(
        "{} bytes loaded in {:?}",
        cubin.bytes.len(),
        started.elapsed()
    );
    let mut kernel = module.function("scale")?;
    println!(
        "{:?}, parameters {:?}, dynamic shared memory up to {}",
        kernel.attributes(),
        kernel.params(),
        kernel.max_dynamic_shared()
    );
    let max_shared = context.device().shared_bytes_per_block;
    kernel.set_max_dynamic_shared(max_shared - kernel.attributes().static_shared_bytes)?;

    let input: Vec<f32> = (0..N).map(|i| i as f32 * 0.25).collect();
    let bytes: Vec<u8> = input.iter().flat_map(|x| x.to_le_bytes()).collect();
    let data = DeviceBuffer::from_host(context, &bytes, &stream)?;
    let (start, end) = (Event::new(context)?, Event::new(context)?);
    // Exercises clusters and more shared memory than the default limit.
    let grid = N.div_ceil(THREADS).next_multiple_of(2);
    let config = LaunchConfig::new([grid, 1, 1], [THREADS, 1, 1])
        .cluster(Some([2, 1, 1]))
        .shared_bytes(100_000);
    let mut args = Args::new();
    args.buffer(&data).push(N);
    start.record(&stream)?;
    launch(&kernel, &config, &stream, &args)?;
    end.record(&stream)?;
    let mut bytes = vec![0; data.len()];
    data.read(0, &mut bytes, &stream)?;
    println!("kernel: {:.3} ms", end.ms_since(&start)?);
    let outputs = bytes
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    let wrong = outputs.zip(&input).filter(|(y, x)| *y != **x * 2.0).count();

    let clusters = kernel.max_active_clusters(&config)?;
    let blocks = kernel.max_active_blocks(&config)?;
    println!("resident: {clusters} clusters on the device, {blocks} CTAs per SM");
    print_launch_cost(&kernel, &config, &stream, &args)?;
    print_rejections(context, &data)?;
    Ok(wrong + count_wrong_replays(&kernel, context)?)
}

/// Doubles words of pinned host memory with three graph launches; returns the number of wrong
/// words.
fn count_wrong_replays(
    kernel: &warpline_cuda::Function,
    context: &Context,
) -> Result<usize, CudaError> {
    const WORDS: u32 = 64;
    let stream = Stream::new(context)?;
    let memory = HostBuffer::zeroed(context, WORDS as usize * 4)?;
    for i in 0..WORDS {
        memory.set_u32(i as usize * 4, (i as f32).to_bits())?;
    }
    let mut args = Args::new();
    args.pointer(memory.address()).push(WORDS);
    let config = LaunchConfig::new([1, 1, 1], [WORDS, 1, 1]).dependent(true);
    let graph = stream.capture(|s| launch(kernel, &config, s, &args))?;
    let graph = graph.instantiate()?;
    for _ in 0..3 {
        graph.launch(&stream)?;
        stream.synchronize()?;
    }
    let mut wrong = 0;
    for i in 0..WORDS {
        let seen = f32::from_bits(memory.u32(i as usize * 4)?);
        wrong += usize::from(seen != i as f32 * 8.0);
    }
    println!("graph replay: {wrong} of {WORDS} words are wrong after three launches");
    Ok(wrong)
}

fn print_launch_cost(
    kernel: &warpline_cuda::Function,
    config: &LaunchConfig,
    stream: &Stream,
    args: &Args,
) -> Result<(), CudaError> {
    stream.synchronize()?;
    let started = Instant::now();
    for _ in 0..100 {
        launch(kernel, config, stream, args)?;
    }
    println!("host cost of a launch: {:?}", started.elapsed() / 100);
    stream.synchronize()
}

/// Prints the driver's response to a tensor map, invalid PTX and a huge allocation.
fn print_rejections(context: &Context, data: &DeviceBuffer) -> Result<(), CudaError> {
    let tensor = GlobalTensor::new(TensorMapType::Bf16, data.address(), &[512, 64], &[1024]);
    let mut tiled = TiledMap::new(tensor, &[64, 64]);
    tiled.tensor.swizzle = TensorMapSwizzle::B128;
    let map = EncodedTensorMap::tiled(context, &tiled)?;
    println!("tensor map: {:02x?} …", &map.to_bytes()[..16]);
    for rejected in [
        Module::from_ptx(context, "junk", &JitOptions::default()).err(),
        DeviceBuffer::alloc(context, 1 << 50).err(),
    ] {
        match rejected {
            Some(reason) => println!("rejected as expected: {reason} [{}]", reason.code()),
            None => println!("FAIL: accepted an invalid request"),
        }
    }
    Ok(())
}

//! Flush of the L2 cache.

use super::loaded_plan::BoundPlan;
use crate::device::Device;
use crate::error::Error;
use crate::prepare::Prepared;
use warpline_cuda::{DeviceBuffer, Stream};
use warpline_ir::builder::*;
use warpline_ir::{BuildErrors, Kernel, Target};
use warpline_kernels::{Buffer as PlanBuffer, BufferAddresses, FamilyError, LaunchStep, Plan};

const WARPS: u32 = 8;
/// The number of 16-byte loads in flight per thread.
const UNROLL: u32 = 4;

/// Flushes the L2 cache by reading twice its size.
///
/// It writes nothing: dirty lines of a flush would be written back while the next run is timed.
#[derive(Debug)]
pub struct Flush {
    plan: BoundPlan,
    /// Zeros that the kernel reads; it must outlive the launches.
    _scratch: DeviceBuffer,
}

impl Flush {
    /// Prepares the flush of a GPU.
    pub fn new(device: &Device) -> Result<Self, Error> {
        let context = device.context().ok_or(Error::NoGpu)?;
        let chunk = u64::from(WARPS * 32 * UNROLL * 16);
        let bytes = (2 * context.device().l2_bytes).next_multiple_of(chunk);
        let prepared = Prepared::new(plan((bytes / chunk) as u32, device)?, &device.target())?;
        let loaded = prepared.load(device)?;

        let stream = Stream::new(context)?;
        let mut scratch = DeviceBuffer::alloc(context, bytes as usize)?;
        scratch.fill(0, &stream)?;
        stream.synchronize()?;
        let plan = loaded.bind(&BufferAddresses {
            inputs: vec![scratch.address()],
            ..BufferAddresses::default()
        })?;
        Ok(Self {
            plan,
            _scratch: scratch,
        })
    }

    /// Enqueues the flush in `stream` without waiting.
    pub fn run(&self, stream: &Stream) -> Result<(), Error> {
        self.plan.launch(stream)
    }
}

fn plan(chunks: u32, device: &Device) -> Result<Plan, FamilyError> {
    let grid = [device.target().sms * 2, 1, 1];
    Plan::new(vec![step(kernel(&device.target())?, grid, chunks)], 0)
}

fn step(kernel: Kernel, grid: [u32; 3], chunks: u32) -> LaunchStep {
    LaunchStep::new(kernel, grid)
        .scalar("chunks", chunks)
        .pointer("data", PlanBuffer::Input(0))
}

/// Builds the kernel, which reads all data and stores only if a value is not 0.
fn kernel(target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("flush_level_2", target, |k| {
        let (chunks, data) = (k.param::<u32>("chunks"), k.pointer::<u32>("data"));
        k.role("all").warps(WARPS).body(|| {
            let bits = Var::new(0u32);
            let stride = WARPS * 32 * 4;
            range(cta_id(), chunks).step_by(grid_ctas()).each(|chunk| {
                let data = data.offset(chunk.mul_wide(stride * UNROLL));
                let words: Vec<[Reg<u32>; 4]> = (0..UNROLL)
                    .map(|i| data.load_as(thread_id() * 4 + i * stride))
                    .collect();
                for word in words.into_iter().flatten() {
                    bits.set(bits.get() | word);
                }
            });
            // Never true, because all data is 0. The compiler cannot remove the loads.
            if_(bits.get().ne(0u32), || data.store(thread_id(), bits.get()));
        });
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_cpu::{GlobalMemory, Options};

    #[test]
    fn the_flush_reads_everything_and_writes_nothing() {
        let kernel = kernel(&Target::SM_90A).unwrap();
        let chunk = (WARPS * 32 * UNROLL * 16) as usize;
        for chunks in [1, 3, 5] {
            let mut memory = GlobalMemory::new();
            let at = memory.alloc_from(&vec![0; chunks * chunk], "scratch");
            let addresses = BufferAddresses {
                inputs: vec![at],
                ..BufferAddresses::default()
            };
            let checked = warpline_check::check(kernel.clone(), &Target::SM_90A).unwrap();
            let launch = step(kernel.clone(), [2, 1, 1], chunks as u32).launch(&addresses);
            let stats = warpline_cpu::run(&checked, &launch, &memory, &Options::default()).unwrap();
            let moved = (stats.bytes.global_load, stats.bytes.global_store);
            assert_eq!(moved, ((chunks * chunk) as u64, 0));
        }
    }
}

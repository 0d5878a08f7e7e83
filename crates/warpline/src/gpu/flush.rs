//! Nothing of the last run left in the level-2 cache.

use super::ready::Launches;
use crate::device::Device;
use crate::error::Error;
use crate::prepare::Prepared;
use warpline_cuda::{Buffer, Stream};
use warpline_ir::build::*;
use warpline_ir::{BuildErrors, Kernel, Target};
use warpline_kernels::{Bound, Buffer as PlanBuffer, FamilyError, Plan, Step};

const WARPS: u32 = 8;
/// 16-byte loads of a thread that are in flight together.
const DEPTH: u32 = 4;

/// Reads twice the level-2 cache, so that nothing of the run before is in it.
///
/// It writes nothing: lines that a flush had written would be put back to
/// memory while the next run is timed.
#[derive(Debug)]
pub struct Flush {
    launches: Launches,
    /// Zeros, which the kernel counts on; kept as long as it may run.
    _scratch: Buffer,
}

impl Flush {
    /// Prepares a flush of that GPU.
    pub fn new(device: &Device) -> Result<Self, Error> {
        let context = device.context().ok_or(Error::NoGpu)?;
        let chunk = u64::from(WARPS * 32 * DEPTH * 16);
        let bytes = (2 * context.device().l2_bytes).next_multiple_of(chunk);
        let prepared = Prepared::new(plan((bytes / chunk) as u32, device)?, &device.target())?;
        let ready = prepared.load(device)?;

        let stream = Stream::new(context)?;
        let mut scratch = Buffer::alloc(context, bytes as usize)?;
        scratch.fill(0, &stream)?;
        stream.synchronize()?;
        let launches = ready.bind(&Bound {
            inputs: vec![scratch.address()],
            ..Bound::default()
        })?;
        Ok(Self {
            launches,
            _scratch: scratch,
        })
    }

    /// Flushes, in the order of `stream`; does not wait.
    pub fn run(&self, stream: &Stream) -> Result<(), Error> {
        self.launches.launch(stream)
    }
}

fn plan(chunks: u32, device: &Device) -> Result<Plan, FamilyError> {
    let grid = [device.target().sms * 2, 1, 1];
    Plan::new(vec![step(kernel(&device.target())?, grid, chunks)], 0)
}

fn step(kernel: Kernel, grid: [u32; 3], chunks: u32) -> Step {
    Step::new(kernel, grid)
        .scalar("chunks", chunks)
        .pointer("data", PlanBuffer::Input(0))
}

/// Adds up everything, and would write only if that were not 0.
fn kernel(target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("flush_level_2", target, |k| {
        let (chunks, data) = (k.param::<u32>("chunks"), k.pointer::<u32>("data"));
        k.role("all").warps(WARPS).body(|| {
            let sum = Var::new(0u32);
            let stride = WARPS * 32 * 4;
            range(cta_id(), chunks).by(grid_ctas()).each(|chunk| {
                let data = data.offset(chunk.mul_wide(stride * DEPTH));
                let words: Vec<[Reg<u32>; 4]> = (0..DEPTH)
                    .map(|i| data.load_as(thread_id() * 4 + i * stride))
                    .collect();
                for word in words.into_iter().flatten() {
                    sum.set(sum.get() | word);
                }
            });
            // Never so, as all of it is 0; the compiler cannot know.
            if_(sum.get().ne(0u32), || data.store(thread_id(), sum.get()));
        });
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_cpu::{Memory, Options};

    #[test]
    fn all_of_the_scratch_is_read_and_none_is_written() {
        let kernel = kernel(&Target::SM_90A).unwrap();
        let chunk = (WARPS * 32 * DEPTH * 16) as usize;
        for chunks in [1, 3, 5] {
            let mut memory = Memory::new();
            let at = memory.alloc_from(&vec![0; chunks * chunk], "scratch");
            let bound = Bound {
                inputs: vec![at],
                ..Bound::default()
            };
            let checked = warpline_check::check(kernel.clone(), &Target::SM_90A).unwrap();
            let launch = step(kernel.clone(), [2, 1, 1], chunks as u32).launch(&bound);
            let stats = warpline_cpu::run(&checked, &launch, &memory, &Options::default()).unwrap();
            let moved = (stats.bytes.global_load, stats.bytes.global_store);
            assert_eq!(moved, ((chunks * chunk) as u64, 0));
        }
    }
}

//! Launches of a plan: parameters, tables and buffers.

use crate::plan::FuzzPlan;
use crate::project::{DATA_WORDS, OUT_WORDS, TABLE_ENTRIES};
use crate::rng::Rng;
use serde::{Deserialize, Serialize};
use warpline_cpu::GlobalMemory;
use warpline_ir::{Arg, Kernel, Launch, ParamKind};

/// The argument values of one launch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FuzzLaunchValues {
    /// The number of CTAs.
    pub ctas: u32,
    /// The parameters `small` and `other`.
    pub small: [u32; 2],
    /// The parameter `wide`.
    pub wide: u32,
    /// The parameter `signed`.
    pub signed: i32,
    /// The parameter `long`.
    pub long: u64,
    /// The seed of the tables.
    pub tables: u64,
}

const SMALL: [u32; 8] = [0, 1, 2, 3, 4, 5, 7, 9];
const WIDE: [u32; 14] = [
    0,
    1,
    2,
    3,
    255,
    256,
    257,
    65_535,
    65_536,
    65_538,
    (1 << 24) + 1,
    (1 << 24) + 3,
    1 << 31,
    u32::MAX,
];
const SIGNED: [i32; 9] = [0, 1, 2, 5, -1, -2, 70_000, i32::MIN, i32::MAX];
const LONG: [u64; 9] = [
    0,
    1,
    3,
    1 << 32,
    (1 << 32) + 2,
    3 << 33,
    (1 << 33) + 1,
    u64::MAX,
    70_000,
];

/// Returns launches of a plan: boundary values first, then random values.
pub fn launch_values(plan: &FuzzPlan, seed: u64, count: usize) -> Vec<FuzzLaunchValues> {
    let mut r = Rng::new(seed);
    (0..count)
        .map(|i| FuzzLaunchValues {
            ctas: match plan.has_flags() {
                true => plan.max_ctas(),
                false => plan.cluster,
            },
            small: match i {
                0 => [3, 2],
                1 => [0, 0],
                2 => [0, 1],
                3 => [5, 0],
                _ => [r.pick(&SMALL), r.pick(&SMALL)],
            },
            wide: match i {
                0 => 65_538,
                _ => r.pick(&WIDE),
            },
            signed: match i {
                0 => -1,
                1 => 2,
                _ => r.pick(&SIGNED),
            },
            long: match i {
                0 => (1 << 32) + 2,
                _ => r.pick(&LONG),
            },
            tables: r.draw(),
        })
        .collect()
}

/// Returns launches with counts that are small enough to explore all interleavings.
pub fn small_launch_values(plan: &FuzzPlan, seed: u64) -> Vec<FuzzLaunchValues> {
    let mut all = launch_values(plan, seed, 2);
    for (v, small) in all.iter_mut().zip([[2, 1], [1, 2]]) {
        v.small = small;
    }
    all
}

impl FuzzLaunchValues {
    /// Returns the words of the tables.
    pub fn words(&self) -> Vec<u32> {
        let mut r = Rng::new(self.tables);
        let style = r.below(4);
        let word = |r: &mut Rng| match (style, r.below(3)) {
            (0, _) => r.below(4) as u32,
            (1, _) | (_, 0) => r.pick(&WIDE),
            (2, _) => (r.below(6) as i32 - 3) as u32,
            _ => r.draw() as u32,
        };
        (0..TABLE_ENTRIES).map(|_| word(&mut r)).collect()
    }

    /// Returns the launch, its global memory, and the address and size of each output.
    pub fn launch(
        &self,
        plan: &FuzzPlan,
        kernel: &Kernel,
    ) -> (Launch, GlobalMemory, Vec<(u64, usize)>) {
        let mut memory = GlobalMemory::new();
        let words = self.words();
        let narrow: Vec<u16> = words.iter().map(|&w| w as u16).collect();
        let bytes: Vec<u8> = words.iter().map(|&w| w as u8).collect();
        let warps: u32 = plan.warps.iter().sum();
        let mut outputs = Vec::new();
        let mut args = Vec::new();
        for param in &kernel.params {
            let name = param.name.as_str();
            args.push(match (&param.kind, name) {
                (ParamKind::Scalar(_), "small") => Arg::scalar(self.small[0]),
                (ParamKind::Scalar(_), "other") => Arg::scalar(self.small[1]),
                (ParamKind::Scalar(_), "wide") => Arg::scalar(self.wide),
                (ParamKind::Scalar(_), "signed") => Arg::scalar(self.signed),
                (ParamKind::Scalar(_), _) => Arg::scalar(self.long),
                (_, "u8s") => Arg::Pointer(memory.alloc_slice(&bytes, name)),
                (_, "u16s") => Arg::Pointer(memory.alloc_slice(&narrow, name)),
                (_, "u32s" | "i32s") => Arg::Pointer(memory.alloc_slice(&words, name)),
                (_, "data") => {
                    let data: Vec<u32> = (0..DATA_WORDS)
                        .map(|i| i.wrapping_mul(2_654_435_761))
                        .collect();
                    Arg::Pointer(memory.alloc_slice(&data, name))
                }
                (_, "out") => {
                    let bytes = (self.ctas * warps * OUT_WORDS * 4) as usize;
                    let at = memory.alloc_from(&vec![0; bytes], name);
                    outputs.push((at, bytes));
                    Arg::Pointer(at)
                }
                (_, "scratch") => {
                    let mut steps = 0;
                    plan.each_step(&mut |_| steps += 1);
                    let bytes = (plan.scratch_pitch() * 4) as usize * steps;
                    let at = memory.alloc_from(&vec![0; bytes], name);
                    outputs.push((at, bytes));
                    Arg::Pointer(at)
                }
                // Flags and locks.
                _ => Arg::Pointer(memory.alloc_from(&[0; 256], name)),
            });
        }
        let grid = [self.ctas, 1, 1];
        (Launch { grid, args }, memory, outputs)
    }
}

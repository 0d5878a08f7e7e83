//! Trials of every op: the same small kernels for the CPU and the GPU.

mod atomics;
mod bulk;
mod control;
mod copies;
mod matrices;
mod mbarriers;
mod memory;
mod mma;
mod numbers;
mod remote;
mod tensors;
mod threads;

use crate::columns::Columns;
use crate::trial::OpTrial;
use warpline_ir::builder::Builder;
use warpline_ir::{Kernel, Target, Type};
use warpline_kernels::numbers::Random;

/// The amount of random operands of each form of an op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataSize {
    /// One block: recorded on a GPU and replayed on the CPU.
    Recorded,
    /// Thousands of operands; more for approximate ops.
    Full,
}

impl DataSize {
    fn blocks(self, op: &str) -> usize {
        match self {
            DataSize::Recorded => 1,
            DataSize::Full if crate::tolerance::error_bound_of(op).is_some() => 1024,
            DataSize::Full => 32,
        }
    }
}

/// The ops that their trials test only in part, and the reasons.
pub const PARTIALLY_TESTED: &[(&str, &str)] = &[
    (
        "special",
        "the SM ID and the clocks depend on the machine; the trial tests that the ID is below the SM count and that clocks do not decrease",
    ),
    (
        "nanosleep",
        "its duration depends on the machine; the trial tests that the timer does not decrease",
    ),
    (
        "prefetch",
        "it changes no memory; the trial tests that later loads are correct",
    ),
    (
        "apply_priority",
        "it changes no memory; the trial tests that later loads are correct",
    ),
    (
        "discard",
        "the discarded bytes are undefined; the trial writes them again and tests that adjacent bytes are unchanged",
    ),
    (
        "bulk_prefetch",
        "it changes no memory; the trial tests that later loads are correct",
    ),
    (
        "tensor_prefetch",
        "it changes no memory; the trial tests that later loads are correct",
    ),
    (
        "tensor_prefetch_box",
        "it changes no memory; the trial tests that later loads are correct",
    ),
    (
        "launch_dependents",
        "a launch of one kernel has no dependents; the trial tests that the kernel continues",
    ),
    (
        "wait_prerequisites",
        "a launch of one kernel has no prerequisites; the trial tests that the kernel continues",
    ),
    (
        "trap",
        "no thread reaches the trap, because a trap ends the context; a runtime test executes one",
    ),
    (
        "set_max_regs",
        "the register count of a warp is not observable; the trial tests the results of the roles",
    ),
];

/// Returns all trials; together they cover every op.
pub fn all(data_size: DataSize) -> Vec<OpTrial> {
    let columns = [
        numbers::arith(),
        numbers::bits(),
        numbers::compare(),
        numbers::convert(),
        numbers::math(),
        threads::columns(),
        memory::columns(),
        atomics::columns(),
    ];
    let trial = |c: Columns| {
        let blocks = data_size.blocks(c.op_name());
        c.trial(blocks)
    };
    let mut all: Vec<OpTrial> = columns.into_iter().flatten().map(trial).collect();
    all.extend(threads::trials());
    all.extend(memory::trials());
    all.extend(atomics::trials());
    all.extend(control::trials());
    all.extend(copies::trials());
    all.extend(mbarriers::trials());
    all.extend(bulk::trials());
    all.extend(tensors::trials());
    all.extend(remote::trials());
    all.extend(matrices::trials());
    all.extend(mma::trials(data_size));
    all
}

/// Builds a kernel; panics on a build error.
#[track_caller]
fn kernel(name: &str, body: impl FnOnce(Builder)) -> Kernel {
    Kernel::build(&format!("op_{name}"), &Target::default(), body)
        .unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Returns random words.
fn words(n: usize, seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed);
    (0..n).map(|_| random.bits() as u32).collect()
}

/// Returns random and special values of a type as bytes.
fn values(ty: Type, n: usize, seed: u64) -> Vec<u8> {
    let column = crate::data::columns(&[ty], n, seed).remove(0);
    let width = ty.bytes();
    (column.iter())
        .flat_map(|x| x.to_le_bytes().into_iter().take(width))
        .collect()
}

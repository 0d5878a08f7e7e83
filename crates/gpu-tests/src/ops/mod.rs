//! Every op on data: the same small kernels for the CPU and the GPU.

mod atomics;
mod bulk;
mod control;
mod copies;
mod matrices;
mod mbarriers;
mod memory;
mod numbers;
mod products;
mod remote;
mod tensors;
mod threads;

use crate::columns::Columns;
use crate::trial::Trial;
use warpline_ir::builder::Builder;
use warpline_ir::{Kernel, Target, Type};
use warpline_kernels::numbers::Random;

/// Blocks of operands that are drawn for each form of an op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amount {
    /// One: what is recorded, and replayed wherever there is no GPU.
    Recorded,
    /// Thousands of operands; more where the hardware approximates.
    Full,
}

impl Amount {
    fn blocks(self, op: &str) -> usize {
        match self {
            Amount::Recorded => 1,
            Amount::Full if crate::rule::bound_of(op).is_some() => 1024,
            Amount::Full => 32,
        }
    }
}

/// Ops whose trial shows less than their row of the table says, and why.
pub const WEAKER: &[(&str, &str)] = &[
    (
        "special",
        "the SM's number and the clocks are the machine's own: a number is below the count of SMs, and no clock runs backwards",
    ),
    (
        "nanosleep",
        "its length is the machine's own: no time passes backwards over it",
    ),
    (
        "prefetch",
        "it changes no byte: what is loaded after it is what is there",
    ),
    (
        "apply_priority",
        "it changes no byte: what is loaded after it is what is there",
    ),
    (
        "discard",
        "the bytes it drops are no function of anything: they are written anew, and those beside them stay",
    ),
    (
        "bulk_prefetch",
        "it changes no byte: what is loaded after it is what is there",
    ),
    (
        "tensor_prefetch",
        "it changes no byte: what is loaded after it is what is there",
    ),
    (
        "tensor_prefetch_box",
        "it changes no byte: what is loaded after it is what is there",
    ),
    (
        "launch_dependents",
        "a launch of one kernel has no dependents: it goes on",
    ),
    (
        "wait_prerequisites",
        "a launch of one kernel waits for nobody: it goes on",
    ),
    (
        "trap",
        "it stands where no thread comes: behind a trap there is no context to read results from (a test of the runtime lets one come)",
    ),
    (
        "set_max_regs",
        "how many registers a warp has is not told: roles that gave and took some compute what they should",
    ),
];

/// Every trial; together they show every op.
pub fn all(amount: Amount) -> Vec<Trial> {
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
        let blocks = amount.blocks(c.op_name());
        c.trial(blocks)
    };
    let mut all: Vec<Trial> = columns.into_iter().flatten().map(trial).collect();
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
    all.extend(products::trials(amount));
    all
}

/// A kernel of this crate, which is fine.
#[track_caller]
fn kernel(name: &str, body: impl FnOnce(Builder)) -> Kernel {
    Kernel::build(&format!("op_{name}"), &Target::default(), body)
        .unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Random words.
fn words(n: usize, seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed);
    (0..n).map(|_| random.bits() as u32).collect()
}

/// Random values of a type, special ones among them, as bytes.
fn values(ty: Type, n: usize, seed: u64) -> Vec<u8> {
    let column = crate::data::columns(&[ty], n, seed).remove(0);
    let width = ty.bytes();
    (column.iter())
        .flat_map(|x| x.to_le_bytes().into_iter().take(width))
        .collect()
}

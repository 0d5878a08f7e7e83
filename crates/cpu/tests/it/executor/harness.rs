//! What the tests of the executor share.

use bytemuck::Pod;
use warpline_cpu::{Memory, Options, RunError, Stats, Timing, run};
use warpline_ir::{Arg, Block, FaultKind, Kernel, Launch, Op, StmtKind};

/// The seeds that `random` is tried with.
pub(crate) const SEEDS: u64 = 12;

/// Every timing; `random` with some seeds.
pub(crate) fn timings() -> impl Iterator<Item = Options> {
    let seeded = |seed| Options {
        seed,
        ..Options::timed(Timing::Random)
    };
    [Options::timed(Timing::Eager), Options::timed(Timing::Late)]
        .into_iter()
        .chain((0..SEEDS).map(seeded))
}

/// The timings that look for races.
pub(crate) fn strict() -> impl Iterator<Item = Options> {
    timings().filter(|o| o.timing != Timing::Eager)
}

/// Buffers and arguments of a launch.
#[derive(Default)]
pub(crate) struct Setup {
    pub(crate) memory: Memory,
    pub(crate) args: Vec<Arg>,
    pub(crate) addresses: Vec<u64>,
}

impl Setup {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A buffer with values, passed as a pointer.
    pub(crate) fn input<T: Pod>(mut self, name: &str, values: &[T]) -> Self {
        let at = self.memory.alloc_from(bytemuck::cast_slice(values), name);
        self.addresses.push(at);
        self.args.push(Arg::Pointer(at));
        self
    }

    /// A buffer nothing has written, passed as a pointer.
    pub(crate) fn output(mut self, name: &str, bytes: usize) -> Self {
        let at = self.memory.alloc(bytes, name);
        self.addresses.push(at);
        self.args.push(Arg::Pointer(at));
        self
    }

    /// A number.
    pub(crate) fn scalar(mut self, x: u32) -> Self {
        self.args.push(Arg::scalar(x));
        self
    }

    /// Runs a kernel with a grid along x.
    pub(crate) fn run(
        &self,
        kernel: &Kernel,
        ctas: u32,
        options: &Options,
    ) -> Result<Stats, Box<RunError>> {
        let launch = Launch {
            grid: [ctas, 1, 1],
            args: self.args.clone(),
        };
        run(kernel, &launch, &self.memory, options)
    }

    /// The values of the `i`th buffer.
    pub(crate) fn values<T: Pod>(&self, i: usize) -> Vec<T> {
        let at = self.addresses[i];
        let len = self.memory.len_of(at).unwrap();
        let bytes = self
            .memory
            .read(at, len)
            .unwrap_or_else(|f| panic!("{}", f.text));
        let size = size_of::<T>();
        bytes
            .chunks_exact(size)
            .map(bytemuck::pod_read_unaligned)
            .collect()
    }
}

/// Runs a kernel that takes no arguments, on one cluster, and expects a fault.
#[track_caller]
pub(crate) fn expect_fault(kernel: &Kernel, options: &Options, kind: FaultKind) -> Box<RunError> {
    let ctas = kernel.cluster_size();
    match Setup::new().run(kernel, ctas, options) {
        Ok(_) => panic!("{} ran through with {options:?}", kernel.name),
        Err(e) => {
            assert_eq!(e.kind, kind, "{options:?}: {e}");
            e
        }
    }
}

/// Runs a kernel that takes no arguments, on one cluster, and expects it to pass.
#[track_caller]
pub(crate) fn expect_pass(kernel: &Kernel, options: &Options) -> Stats {
    let ctas = kernel.cluster_size();
    Setup::new()
        .run(kernel, ctas, options)
        .unwrap_or_else(|e| panic!("{} with {options:?}: {e}", kernel.name))
}

/// The line of an error's op.
pub(crate) fn line(e: &RunError) -> u32 {
    e.at.as_ref().and_then(|s| s.frame).map_or(0, |f| f.line)
}

/// The line of the other side of an error.
pub(crate) fn other_line(e: &RunError) -> u32 {
    e.other.as_ref().and_then(|s| s.frame).map_or(0, |f| f.line)
}

/// Changes every op of a role's body, at any depth; `None` drops it.
pub(crate) fn edit(k: &mut Kernel, role: usize, change: &dyn Fn(Op) -> Option<Op>) {
    fn block(b: &mut Block, change: &dyn Fn(Op) -> Option<Op>) {
        b.0.retain_mut(|s| match &mut s.kind {
            StmtKind::Op(op) => match change(op.clone()) {
                Some(new) => {
                    *op = new;
                    true
                }
                None => false,
            },
            StmtKind::If { then, other, .. } => {
                block(then, change);
                block(other, change);
                true
            }
            StmtKind::For { body, .. } | StmtKind::Elect { body } => {
                block(body, change);
                true
            }
            StmtKind::While { head, body, .. } => {
                block(head, change);
                block(body, change);
                true
            }
        });
    }
    block(&mut k.roles[role].body, change);
}

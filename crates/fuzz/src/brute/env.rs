//! What does not change in a run: the kernel, its code and its launch.

use super::code::{Inst, compile, is_foreign};
use super::know::Events;
use super::state::{Bar, Gate, Named, State, Warp};
use crate::launch::Values;
use crate::plan::Plan;
use warpline_ir::{Arg, Kernel, Mask, Op, StmtKind, WARP};

/// Jobs in flight at a time whose issuers' knowledge is kept.
const JOBS: usize = 24;

pub(super) struct Env<'k> {
    pub(super) kernel: &'k Kernel,
    pub(super) code: Vec<Vec<Inst<'k>>>,
    pub(super) ctas: usize,
    pub(super) scalars: Vec<u64>,
    /// First slot of each array of mbarriers, and how many a CTA has.
    pub(super) first_bar: Vec<usize>,
    pub(super) bars: usize,
    /// Does `elect` pick the highest lane?
    pub(super) highest: bool,
}

impl<'k> Env<'k> {
    /// The launch of a kernel; `None` where it is outside of what this machine runs.
    pub(super) fn new(
        plan: &Plan,
        kernel: &'k Kernel,
        values: &Values,
        highest: bool,
    ) -> Option<(Self, State)> {
        let mut foreign = values.ctas != kernel.cluster_size();
        kernel.each_stmt(&mut |_, s| {
            foreign |= matches!(&s.kind, StmtKind::Op(op) if is_foreign(op));
            foreign |= matches!(&s.kind, StmtKind::Op(Op::StrongLoad(_)));
        });
        if foreign {
            return None;
        }
        let (launch, memory, _) = values.launch(plan, kernel);
        let mut global = Vec::new();
        let mut scalars = Vec::new();
        for arg in &launch.args {
            scalars.push(match *arg {
                Arg::Scalar(_, bits) => bits,
                Arg::Pointer(at) => {
                    let len = memory.buffer_len(at)?;
                    global.push(memory.read_lossy(at, len).ok()?);
                    at
                }
                Arg::TensorMap(_) => return None,
            });
        }
        let mut bars = 0;
        let mut first_bar = Vec::new();
        for b in &kernel.barriers {
            first_bar.push(bars);
            bars += b.len as usize;
        }
        let ctas = values.ctas as usize;
        let env = Self {
            kernel,
            code: compile(kernel),
            ctas,
            scalars,
            first_bar,
            bars,
            highest,
        };
        let warps = kernel.warps();
        let all = (0..ctas).flat_map(|cta| (0..warps).map(move |w| (cta, w)));
        let warp = |(cta, index): (usize, u32)| Warp {
            role: kernel.role_of_warp(index).index(),
            cta,
            index,
            pc: 0,
            active: Mask::MAX,
            frames: Vec::new(),
            regs: vec![[0; WARP]; kernel.regs.len()],
            gate: Gate::Open,
            arrived_at: 0,
            bulk: vec![vec![Vec::new()]; WARP],
            copies: vec![vec![Vec::new()]; WARP],
            done: false,
        };
        let cells = ctas * (kernel.shared_bytes as usize + bars);
        let state = State {
            warps: all.map(warp).collect(),
            shared: vec![vec![0; kernel.shared_bytes as usize]; ctas],
            global,
            bars: vec![Bar::default(); ctas * bars],
            named: vec![Named::default(); ctas * kernel.named.len()],
            cluster: (0, 0),
            flights: Vec::new(),
            events: Events::new(env.knowers(), cells),
        };
        Some((env, state))
    }

    pub(super) fn lanes(&self) -> usize {
        self.ctas * self.kernel.warps() as usize * WARP
    }

    fn knowers(&self) -> usize {
        self.job_slot(0) + JOBS
    }

    /// The knower of what arrivals of a CTA handed to a barrier: in this phase or before, at the
    /// scope of the CTA or wider.
    pub(super) fn bar_slot(&self, bar: usize, done: bool, wide: bool, cta: usize) -> usize {
        let each = 4 * self.ctas;
        self.lanes() + bar * each + (2 * usize::from(done) + usize::from(wide)) * self.ctas + cta
    }

    /// The knower of what threads handed to a named barrier, a CTA's own, or the cluster's.
    pub(super) fn named_slot(&self, cta: usize, id: usize) -> usize {
        let bars = self.lanes() + 4 * self.ctas * self.ctas * self.bars;
        bars + cta * self.kernel.named.len() + id
    }

    pub(super) fn cta_slot(&self, cta: usize) -> usize {
        self.named_slot(self.ctas, 0) + cta
    }

    pub(super) fn cluster_slot(&self, done: bool) -> usize {
        self.cta_slot(self.ctas) + usize::from(done)
    }

    pub(super) fn job_slot(&self, job: usize) -> usize {
        self.cluster_slot(true) + 1 + job % JOBS
    }

    /// The cell of a byte of shared memory.
    pub(super) fn cell(&self, cta: usize, byte: usize) -> usize {
        cta * self.kernel.shared_bytes as usize + byte
    }

    /// The cell of a barrier.
    pub(super) fn bar_cell(&self, bar: usize) -> usize {
        self.ctas * self.kernel.shared_bytes as usize + bar
    }
}

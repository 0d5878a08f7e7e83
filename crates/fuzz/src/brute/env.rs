//! The constants of a run: the kernel, its code and its launch.

use super::code::{Inst, compile, is_unsupported};
use super::happens_before::Events;
use super::state::{BarrierState, MbarrierState, NamedBarrierState, State, Warp};
use crate::launch::FuzzLaunchValues;
use crate::plan::FuzzPlan;
use warpline_ir::{Arg, Kernel, Mask, Op, StmtKind, WARP};

/// Asynchronous jobs with an observer slot of their own; later jobs reuse the slots.
const JOB_SLOTS: usize = 24;

pub(super) struct LaunchEnv<'k> {
    pub(super) kernel: &'k Kernel,
    pub(super) code: Vec<Vec<Inst<'k>>>,
    pub(super) ctas: usize,
    pub(super) scalars: Vec<u64>,
    /// The first slot of each mbarrier array; `bars` is the number of mbarriers of a CTA.
    pub(super) first_bar_slot: Vec<usize>,
    pub(super) bars: usize,
    /// Whether `elect` picks the highest lane.
    pub(super) elects_highest: bool,
}

impl<'k> LaunchEnv<'k> {
    /// Prepares the launch of a kernel; `None` if the machine does not support it.
    pub(super) fn new(
        plan: &FuzzPlan,
        kernel: &'k Kernel,
        values: &FuzzLaunchValues,
        elects_highest: bool,
    ) -> Option<(Self, State)> {
        let mut unsupported = values.ctas != kernel.cluster_size();
        kernel.each_stmt(&mut |_, s| {
            unsupported |= matches!(&s.kind, StmtKind::Op(op) if is_unsupported(op));
            unsupported |= matches!(&s.kind, StmtKind::Op(Op::StrongLoad(_)));
        });
        if unsupported {
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
        let mut first_bar_slot = Vec::new();
        for b in &kernel.barriers {
            first_bar_slot.push(bars);
            bars += b.len as usize;
        }
        let ctas = values.ctas as usize;
        let env = Self {
            kernel,
            code: compile(kernel),
            ctas,
            scalars,
            first_bar_slot,
            bars,
            elects_highest,
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
            barrier: BarrierState::Idle,
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
            bars: vec![MbarrierState::default(); ctas * bars],
            named: vec![NamedBarrierState::default(); ctas * kernel.named.len()],
            cluster: (0, 0),
            in_flight: Vec::new(),
            events: Events::new(env.observers(), cells),
        };
        Some((env, state))
    }

    pub(super) fn lanes(&self) -> usize {
        self.ctas * self.kernel.warps() as usize * WARP
    }

    fn observers(&self) -> usize {
        self.job_slot(0) + JOB_SLOTS
    }

    /// Returns the observer slot of the arrivals of a CTA at an mbarrier: of the current or the
    /// completed phase, at CTA scope or wider.
    pub(super) fn bar_slot(&self, bar: usize, done: bool, wide: bool, cta: usize) -> usize {
        let each = 4 * self.ctas;
        self.lanes() + bar * each + (2 * usize::from(done) + usize::from(wide)) * self.ctas + cta
    }

    /// Returns the observer slot of a named barrier.
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
        self.cluster_slot(true) + 1 + job % JOB_SLOTS
    }

    /// Returns the cell of a byte of shared memory.
    pub(super) fn cell(&self, cta: usize, byte: usize) -> usize {
        cta * self.kernel.shared_bytes as usize + byte
    }

    /// Returns the cell of an mbarrier.
    pub(super) fn bar_cell(&self, bar: usize) -> usize {
        self.ctas * self.kernel.shared_bytes as usize + bar
    }
}

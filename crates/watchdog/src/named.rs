//! Replacement of named barriers by mbarriers.
//!
//! A wait at a named barrier has no timeout. A wait at an mbarrier can have one, but it needs the
//! parity of the phase. Each warp counts its phases, which is correct only if every warp takes part
//! in every phase: the warps that use the barrier must not exceed its thread count.

use warpline_ir::{BarId, Kernel, NamedId, Op, RoleId, StmtKind};

/// A named barrier and the mbarrier that replaces it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplacedBarrier {
    pub(crate) named: NamedId,
    pub(crate) bar: BarId,
    /// The arrival count: one per warp.
    pub(crate) warps: u32,
}

/// Returns the named barriers that can be replaced, with their arrival counts.
pub(crate) fn replaceable(kernel: &Kernel) -> Vec<(NamedId, u32)> {
    let mut uses: Vec<BarrierUses> = vec![BarrierUses::default(); kernel.named.len()];
    kernel.each_stmt(&mut |role, s| {
        let (bar, threads) = match &s.kind {
            StmtKind::Op(Op::NamedSync(o)) => (o.bar, Some(o.threads)),
            StmtKind::Op(Op::NamedArrive(o)) => (o.bar, Some(o.threads)),
            StmtKind::Op(Op::NamedReduce(o)) => (o.bar, None),
            _ => return,
        };
        uses[bar.index()].add(role, threads);
    });
    let replace = |(i, u): (usize, &BarrierUses)| Some((NamedId(i as u32), u.warps(kernel)?));
    uses.iter().enumerate().filter_map(replace).collect()
}

/// The uses of a named barrier.
#[derive(Clone, Default)]
struct BarrierUses {
    roles: Vec<RoleId>,
    threads: Option<u32>,
    /// Whether an mbarrier cannot express one of the uses.
    unsupported: bool,
}

impl BarrierUses {
    fn add(&mut self, role: Option<RoleId>, threads: Option<u32>) {
        match role {
            Some(r) if !self.roles.contains(&r) => self.roles.push(r),
            Some(_) => {}
            None => self.unsupported = true,
        }
        self.unsupported |= threads.is_none() || self.threads.is_some_and(|t| Some(t) != threads);
        self.threads = threads;
    }

    /// Returns the arrival count, if the barrier can be replaced.
    fn warps(&self, kernel: &Kernel) -> Option<u32> {
        let warps = self.threads? / 32;
        let users: u32 = self
            .roles
            .iter()
            .map(|r| kernel.roles[r.index()].warps)
            .sum();
        (!self.unsupported && warps > 0 && users <= warps).then_some(warps)
    }
}

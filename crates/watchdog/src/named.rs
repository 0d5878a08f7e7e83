//! Named barriers that can be mbarriers, so that waits for them end.
//!
//! A wait at a named barrier cannot be given up; one for an mbarrier can, but
//! must know the parity of its phase. Each warp counts the phases it took part
//! in, which is right if no warp ever sits one out: so no more warps may use
//! the barrier than it waits for.

use warpline_ir::{BarId, Kernel, NamedId, Op, RoleId, StmtKind};

/// A named barrier, as an mbarrier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turned {
    pub(crate) named: NamedId,
    pub(crate) bar: BarId,
    /// Arrivals of a phase: one of each warp.
    pub(crate) warps: u32,
}

/// The named barriers that can be turned, and the warps each waits for.
pub(crate) fn turnable(kernel: &Kernel) -> Vec<(NamedId, u32)> {
    let mut uses: Vec<Uses> = vec![Uses::default(); kernel.named.len()];
    kernel.each_stmt(&mut |role, s| {
        let (bar, threads) = match &s.kind {
            StmtKind::Op(Op::NamedSync(o)) => (o.bar, Some(o.threads)),
            StmtKind::Op(Op::NamedArrive(o)) => (o.bar, Some(o.threads)),
            StmtKind::Op(Op::NamedTally(o)) => (o.bar, None),
            _ => return,
        };
        uses[bar.index()].add(role, threads);
    });
    let turn = |(i, u): (usize, &Uses)| Some((NamedId(i as u32), u.warps(kernel)?));
    uses.iter().enumerate().filter_map(turn).collect()
}

/// Who uses a named barrier.
#[derive(Clone, Default)]
struct Uses {
    roles: Vec<RoleId>,
    threads: Option<u32>,
    /// It is used as no mbarrier can be.
    odd: bool,
}

impl Uses {
    fn add(&mut self, role: Option<RoleId>, threads: Option<u32>) {
        match role {
            Some(r) if !self.roles.contains(&r) => self.roles.push(r),
            Some(_) => {}
            None => self.odd = true,
        }
        self.odd |= threads.is_none() || self.threads.is_some_and(|t| Some(t) != threads);
        self.threads = threads;
    }

    /// The warps it waits for, if it can be turned.
    fn warps(&self, kernel: &Kernel) -> Option<u32> {
        let warps = self.threads? / 32;
        let users: u32 = self
            .roles
            .iter()
            .map(|r| kernel.roles[r.index()].warps)
            .sum();
        (!self.odd && warps > 0 && users <= warps).then_some(warps)
    }
}

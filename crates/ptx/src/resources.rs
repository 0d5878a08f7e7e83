//! Resource estimate of a kernel, without ptxas.
//!
//! The register estimate is the peak of a backward liveness analysis over the structured program,
//! assuming that every counted loop runs. ptxas needs more registers for addresses and aligned
//! pairs, and sometimes fewer because it recomputes values or stores them early.

use serde::Serialize;
use std::fmt;
use warpline_check::Facts;
use warpline_ir::{Block, Kernel, Operand, RegId, Role, StmtKind, SyncOp, Target, Type};

/// The estimated resources of a kernel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ResourceEstimate {
    /// Always `estimate`, in contrast to numbers from ptxas.
    pub source: &'static str,
    /// Threads of a CTA.
    pub threads: u32,
    /// Shared memory of a CTA, in bytes.
    pub shared_bytes: u32,
    /// mbarriers in shared memory.
    pub mbarriers: u32,
    /// Named barriers, plus the CTA barrier if it is used.
    pub barriers: u32,
    /// Registers, by role.
    pub roles: Vec<RoleEstimate>,
}

/// Registers of one role.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RoleEstimate {
    /// The role's name.
    pub name: String,
    /// The number of warps.
    pub warps: u32,
    /// The peak number of live 32-bit registers.
    pub registers: u32,
    /// The register budget per thread.
    pub budget: u32,
}

impl ResourceEstimate {
    /// Estimates the resources of a kernel.
    pub fn of(kernel: &Kernel, target: &Target) -> Self {
        let entry = target.entry_registers(kernel.threads());
        let mut at_epilogue = Live::new(kernel);
        at_epilogue.block(&kernel.epilogue);
        let mut at_roles = Live::new(kernel);
        let bodies: Vec<u32> = kernel
            .roles
            .iter()
            .map(|role| {
                let mut live = at_epilogue.clone();
                live.block(&role.body);
                at_roles.join(&live);
                live.peak
            })
            .collect();
        at_roles.peak = 0;
        at_roles.block(&kernel.prologue);
        let roles = kernel
            .roles
            .iter()
            .zip(bodies)
            .map(|(role, body)| RoleEstimate {
                name: role.name.clone(),
                warps: role.warps,
                registers: body.max(at_roles.peak),
                budget: budget(role).unwrap_or(entry),
            });
        Self {
            source: "estimate",
            threads: kernel.threads(),
            shared_bytes: kernel.shared_bytes,
            mbarriers: kernel.barriers.iter().map(|b| b.len).sum(),
            barriers: kernel.named.len() as u32 + u32::from(uses_cta_barrier(kernel)),
            roles: roles.collect(),
        }
    }
}

impl fmt::Display for ResourceEstimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "estimate (without ptxas): {} threads, {} bytes of shared memory, {} mbarriers, {} barriers",
            self.threads, self.shared_bytes, self.mbarriers, self.barriers
        )?;
        for r in &self.roles {
            writeln!(
                f,
                "  role {}: {} warps, about {} of {} registers",
                r.name, r.warps, r.registers, r.budget
            )?;
        }
        Ok(())
    }
}

/// Returns the last `setmaxnreg` count of a role.
fn budget(role: &Role) -> Option<u32> {
    let mut count = None;
    role.body.each(&mut |s| {
        if let StmtKind::Op(op) = &s.kind {
            for sync in Facts::of(op).syncs {
                if let SyncOp::SetMaxRegs { count: n, .. } = sync {
                    count = Some(n);
                }
            }
        }
    });
    count
}

/// Returns whether the kernel uses the CTA barrier.
fn uses_cta_barrier(kernel: &Kernel) -> bool {
    let mut uses = false;
    kernel.each_stmt(&mut |_, s| {
        if let StmtKind::Op(op) = &s.kind {
            uses |= Facts::of(op).syncs.contains(&SyncOp::Cta);
        }
    });
    uses
}

/// The live registers at a point of the program.
#[derive(Clone)]
struct Live<'k> {
    kernel: &'k Kernel,
    live: Vec<bool>,
    registers: u32,
    peak: u32,
}

impl<'k> Live<'k> {
    fn new(kernel: &'k Kernel) -> Self {
        Self {
            kernel,
            live: vec![false; kernel.regs.len()],
            registers: 0,
            peak: 0,
        }
    }

    fn size(&self, r: RegId) -> u32 {
        match self.kernel.ty(r) {
            Type::Pred => 0,
            ty if ty.bytes() == 8 => 2,
            _ => 1,
        }
    }

    fn add(&mut self, r: RegId) {
        if !std::mem::replace(&mut self.live[r.index()], true) {
            self.registers += self.size(r);
            self.peak = self.peak.max(self.registers);
        }
    }

    fn remove(&mut self, r: RegId) {
        if std::mem::replace(&mut self.live[r.index()], false) {
            self.registers -= self.size(r);
        }
    }

    fn read(&mut self, o: Operand) {
        if let Some(r) = o.as_reg() {
            self.add(r);
        }
    }

    /// Adds the live registers of another path; returns whether the set grew.
    fn join(&mut self, other: &Live) -> bool {
        self.peak = self.peak.max(other.peak);
        let before = self.registers;
        let mut grew = false;
        for (i, &live) in other.live.iter().enumerate() {
            if live && !self.live[i] {
                grew = true;
                self.add(RegId(i as u32));
            }
        }
        grew || self.registers != before
    }

    /// Walks a block backwards.
    fn block(&mut self, block: &Block) {
        for s in block.0.iter().rev() {
            match &s.kind {
                StmtKind::Op(op) => {
                    let facts = Facts::of(op);
                    facts.defs.iter().for_each(|&r| self.add(r));
                    facts.defs.iter().for_each(|&r| self.remove(r));
                    facts.uses().for_each(|r| self.add(r));
                }
                StmtKind::If { cond, then, other } => {
                    let mut path = self.clone();
                    path.block(other);
                    self.block(then);
                    self.join(&path);
                    self.add(*cond);
                }
                StmtKind::For {
                    var,
                    from,
                    to,
                    step,
                    body,
                    ..
                } => {
                    self.add(*var);
                    [to, step].into_iter().for_each(|o| self.read(*o));
                    // The loop runs at least once, so a register that it writes first is not live
                    // before it.
                    *self = self.iterate(|live| live.block(body));
                    self.remove(*var);
                    self.read(*from);
                }
                StmtKind::While { head, cond, body } => {
                    self.add(*cond);
                    self.block(head);
                    self.iterate(|live| {
                        live.block(body);
                        live.add(*cond);
                        live.block(head);
                    });
                }
                StmtKind::Elect { body } => {
                    let mut path = self.clone();
                    path.block(body);
                    self.join(&path);
                }
            }
        }
    }

    /// Computes the fixed point of a loop: returns the live set before an iteration; `self` becomes
    /// the live set after it.
    fn iterate(&mut self, iteration: impl Fn(&mut Self)) -> Self {
        loop {
            let mut iterated = self.clone();
            iteration(&mut iterated);
            if !self.join(&iterated) {
                return iterated;
            }
        }
    }
}

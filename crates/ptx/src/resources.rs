//! Our estimate of what a kernel needs, without ptxas.
//!
//! Registers are those that hold a value still wanted, counted backwards
//! through the structured program, as if every counted loop ran. ptxas needs
//! some more (addresses, pairs that must be aligned) and sometimes fewer
//! (values it computes again, or stores early).

use serde::Serialize;
use std::fmt;
use warpline_check::Facts;
use warpline_ir::{Block, Kernel, Operand, RegId, Role, StmtKind, Sync, Target, Type};

/// What a kernel needs, as far as we can tell.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Estimate {
    /// Always `estimate`: ptxas has not been asked.
    pub source: &'static str,
    /// Threads of a CTA.
    pub threads: u32,
    /// Shared memory of a CTA, in bytes.
    pub shared_bytes: u32,
    /// mbarriers in shared memory.
    pub mbarriers: u32,
    /// Barriers of threads: the named ones, and the CTA's own where it is used.
    pub barriers: u32,
    /// Registers, by role.
    pub roles: Vec<RoleEstimate>,
}

/// Registers of one role.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RoleEstimate {
    /// The role's name.
    pub name: String,
    /// Its warps.
    pub warps: u32,
    /// The most 32-bit registers that hold a value at one time.
    pub registers: u32,
    /// The registers a thread of the role may have.
    pub budget: u32,
}

impl Estimate {
    /// Estimates a kernel.
    pub fn of(kernel: &Kernel, target: &Target) -> Self {
        let entry = target.entry_registers(kernel.threads());
        let mut after = Live::new(kernel);
        after.block(&kernel.epilogue);
        let mut before = Live::new(kernel);
        let bodies: Vec<u32> = kernel
            .roles
            .iter()
            .map(|role| {
                let mut live = after.clone();
                live.block(&role.body);
                before.join(&live);
                live.peak
            })
            .collect();
        before.peak = 0;
        before.block(&kernel.prologue);
        let roles = kernel
            .roles
            .iter()
            .zip(bodies)
            .map(|(role, body)| RoleEstimate {
                name: role.name.clone(),
                warps: role.warps,
                registers: body.max(before.peak),
                budget: budget(role).unwrap_or(entry),
            });
        Self {
            source: "estimate",
            threads: kernel.threads(),
            shared_bytes: kernel.shared_bytes,
            mbarriers: kernel.barriers.iter().map(|b| b.len).sum(),
            barriers: kernel.named.len() as u32 + u32::from(meets(kernel)),
            roles: roles.collect(),
        }
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "estimate, without ptxas: {} threads, {} bytes of shared memory, {} mbarriers, {} barriers",
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

/// The registers a role settles on by setmaxnreg.
fn budget(role: &Role) -> Option<u32> {
    let mut count = None;
    role.body.each(&mut |s| {
        if let StmtKind::Op(op) = &s.kind {
            for sync in Facts::of(op).syncs {
                if let Sync::SetMaxRegs { count: n, .. } = sync {
                    count = Some(n);
                }
            }
        }
    });
    count
}

/// Does the CTA meet at its own barrier?
fn meets(kernel: &Kernel) -> bool {
    let mut meets = false;
    kernel.each_stmt(&mut |_, s| {
        if let StmtKind::Op(op) = &s.kind {
            meets |= Facts::of(op).syncs.contains(&Sync::Cta);
        }
    });
    meets
}

/// Registers that hold a value still wanted, at a point of the program.
#[derive(Clone)]
struct Live<'k> {
    kernel: &'k Kernel,
    set: Vec<bool>,
    weight: u32,
    peak: u32,
}

impl<'k> Live<'k> {
    fn new(kernel: &'k Kernel) -> Self {
        Self {
            kernel,
            set: vec![false; kernel.regs.len()],
            weight: 0,
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
        if !std::mem::replace(&mut self.set[r.index()], true) {
            self.weight += self.size(r);
            self.peak = self.peak.max(self.weight);
        }
    }

    fn remove(&mut self, r: RegId) {
        if std::mem::replace(&mut self.set[r.index()], false) {
            self.weight -= self.size(r);
        }
    }

    fn read(&mut self, o: Operand) {
        if let Some(r) = o.as_reg() {
            self.add(r);
        }
    }

    /// Adds what is wanted on another way; tells whether there was more.
    fn join(&mut self, other: &Live) -> bool {
        self.peak = self.peak.max(other.peak);
        let before = self.weight;
        let mut more = false;
        for (i, &live) in other.set.iter().enumerate() {
            if live && !self.set[i] {
                more = true;
                self.add(RegId(i as u32));
            }
        }
        more || self.weight != before
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
                    let mut way = self.clone();
                    way.block(other);
                    self.block(then);
                    self.join(&way);
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
                    // At least one round: what it writes first is not wanted before.
                    *self = self.rounds(|live| live.block(body));
                    self.remove(*var);
                    self.read(*from);
                }
                StmtKind::While { head, cond, body } => {
                    self.add(*cond);
                    self.block(head);
                    self.rounds(|live| {
                        live.block(body);
                        live.add(*cond);
                        live.block(head);
                    });
                }
                StmtKind::Elect { body } => {
                    let mut way = self.clone();
                    way.block(body);
                    self.join(&way);
                }
            }
        }
    }

    /// What the rounds of a loop want, of one another too; `self` becomes what is wanted after each.
    fn rounds(&mut self, round: impl Fn(&mut Self)) -> Self {
        loop {
            let mut once = self.clone();
            round(&mut once);
            if !self.join(&once) {
                return once;
            }
        }
    }
}

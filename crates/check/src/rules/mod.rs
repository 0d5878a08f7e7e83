//! The rules, one file per group.
//!
//! A group is a few [`Rule`] constants and one `judge` that looks
//! for breaches. [`references`] comes first and alone: the other groups follow
//! ids without asking.

use crate::assumption::Assumption;
use crate::facts::Facts;
use crate::refusal::{Findings, Refusal, Rule};
use crate::uniform::Uniformity;
use crate::walk::{Site, sites};
use code::Code;
use warpline_ir::{Kernel, Loc, Op, ParamId, StmtKind, Target, View};

mod assumed;
pub mod between;
mod claims;
pub mod cluster;
mod code;
pub mod convergence;
pub mod defined;
pub mod early;
pub mod endless;
pub mod flight;
mod flow;
mod follows;
pub mod indices;
pub mod legal;
mod locks;
mod looks;
pub mod named;
pub mod operands;
mod parts;
mod pointers;
mod poll;
pub mod proxy;
mod published;
pub mod read_only;
pub mod references;
pub mod registers;
pub mod roles;
mod scope;
pub mod shared;
mod stall;
pub mod tensor_maps;
mod values;
pub mod wgmma;

/// Every rule, in the order in which groups are judged.
pub const ALL: &[&[Rule]] = &[
    references::RULES,
    legal::RULES,
    roles::RULES,
    cluster::RULES,
    registers::RULES,
    named::RULES,
    shared::RULES,
    indices::RULES,
    operands::RULES,
    defined::RULES,
    tensor_maps::RULES,
    wgmma::RULES,
    flight::RULES,
    convergence::RULES,
    early::RULES,
    endless::RULES,
    between::RULES,
    proxy::RULES,
    read_only::RULES,
];

/// What every group reads.
pub(crate) struct Case<'k> {
    pub(crate) kernel: &'k Kernel,
    pub(crate) target: &'k Target,
    /// All statements, in program order.
    pub(crate) sites: Vec<Site<'k>>,
    /// The ops among them.
    pub(crate) ops: Vec<OpSite<'k>>,
    /// Their control flow.
    pub(crate) code: Code,
}

/// An op, what surrounds it and what it does.
pub(crate) struct OpSite<'k> {
    /// Its number among the ops.
    pub(crate) id: usize,
    pub(crate) op: &'k Op,
    pub(crate) site: Site<'k>,
    pub(crate) facts: Facts,
}

impl OpSite<'_> {
    pub(crate) fn loc(&self) -> Loc {
        self.site.stmt.loc
    }
}

impl<'k> Case<'k> {
    /// Can addresses be computed from a view? If not, it has been refused for that.
    pub(crate) fn is_sound(&self, v: &View) -> bool {
        shared::bad_tile(self.kernel.tile(v.tile)).is_none()
            && indices::bad_view(self.kernel, v).is_none()
    }

    fn new(kernel: &'k Kernel, target: &'k Target) -> Self {
        let uniformity = Uniformity::of(kernel);
        let (mut all, mut ops) = (Vec::new(), Vec::new());
        sites(kernel, &uniformity, &mut |site| {
            all.push(*site);
            if let StmtKind::Op(op) = &site.stmt.kind {
                ops.push(OpSite {
                    id: ops.len(),
                    op,
                    site: *site,
                    facts: Facts::of(op),
                });
            }
        });
        Self {
            kernel,
            target,
            sites: all,
            code: Code::of(kernel, &ops),
            ops,
        }
    }
}

/// All breaches of a kernel, by group, and the facts that a proof of it rests on.
pub(crate) fn judge(kernel: &Kernel, target: &Target) -> (Vec<Refusal>, Vec<Assumption>) {
    let mut found = Findings::new(kernel);
    references::judge(kernel, &mut found);
    if found.is_empty() {
        let case = Case::new(kernel, target);
        for group in [
            legal::judge,
            roles::judge,
            cluster::judge,
            registers::judge,
            named::judge,
            shared::judge,
            indices::judge,
            operands::judge,
            defined::judge,
            tensor_maps::judge,
            wgmma::judge,
            flight::judge,
            convergence::judge,
            early::judge,
            endless::judge,
            between::judge,
            proxy::judge,
            read_only::judge,
            assumed::judge,
        ] {
            group(&case, &mut found);
        }
    }
    found.into_parts()
}

/// Breaches of a kernel that may start before the grids before it have ended:
/// what a plan asks of such a step, whose references must be in range.
pub fn early_start(kernel: &Kernel, target: &Target) -> Vec<Refusal> {
    let mut found = Findings::new(kernel);
    early::judge_early(&Case::new(kernel, target), &mut found);
    found.into_list()
}

/// Breaches of the rules of global memory alone (R18), of a kernel whose
/// references must be in range.
pub fn global_memory(kernel: &Kernel, target: &Target) -> Vec<Refusal> {
    let mut found = Findings::new(kernel);
    let case = Case::new(kernel, target);
    between::judge(&case, &mut found);
    proxy::judge(&case, &mut found);
    found.into_list()
}

/// Breaches of a kernel that starts early while a grid may still write behind
/// these of its parameters.
pub fn unsettled(kernel: &Kernel, written: &[ParamId]) -> Vec<Refusal> {
    let mut found = Findings::new(kernel);
    early::judge_settled(kernel, written, &mut found);
    found.into_list()
}

/// The parameters behind which a kernel may write: what a plan asks of the
/// steps that may still run when another starts early.
pub fn writes(kernel: &Kernel, target: &Target) -> Vec<ParamId> {
    early::writes(&Case::new(kernel, target))
}

/// Breaches that keep a reader from following ids and computing addresses at
/// all: what a printer asks of a kernel that was let through unproved.
pub fn unreadable(kernel: &Kernel) -> Vec<Refusal> {
    let mut found = Findings::new(kernel);
    references::judge(kernel, &mut found);
    if found.is_empty() {
        shared::judge_tiles(kernel, &mut found);
        indices::judge_views(kernel, &mut found);
    }
    found.into_list()
}

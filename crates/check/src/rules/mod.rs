//! The rules of structure and resources, one file per group.
//!
//! A group has a few [`Rule`] constants and one function `check` that reports violations. The group
//! [`references`] runs first and alone, because the other groups rely on declared ids.

use crate::assumption::Assumption;
use crate::diagnostic::{Diagnostic, Findings, Rule};
use crate::facts::Facts;
use crate::uniform::Uniformity;
use crate::walk::{StmtSite, sites};
use control_flow::Code;
use warpline_ir::{AccessKind, Kernel, Loc, MemoryAccess, Op, ParamId, StmtKind, Target, View};

mod assumptions;
mod bounds;
mod claims;
pub mod cluster;
mod control_flow;
pub mod convergence;
pub mod cross_cta;
pub mod dependent_launch;
mod dependents;
mod divergence;
mod flag_deadlock;
mod flag_reads;
mod flow;
pub mod global_proxy;
mod global_words;
pub mod indices;
pub mod initialization;
pub mod legality;
mod locks;
pub mod loops;
pub mod named_barriers;
pub mod operands;
mod poll;
mod published_stores;
pub mod read_only;
pub mod references;
pub mod registers;
pub mod roles;
mod scope;
pub mod shared_memory;
pub mod tensor_maps;
pub mod wgmma;
pub mod wgmma_in_flight;

/// Every rule, in the order in which the groups run.
pub const ALL: &[&[Rule]] = &[
    references::RULES,
    legality::RULES,
    roles::RULES,
    cluster::RULES,
    registers::RULES,
    named_barriers::RULES,
    shared_memory::RULES,
    indices::RULES,
    operands::RULES,
    initialization::RULES,
    tensor_maps::RULES,
    wgmma::RULES,
    wgmma_in_flight::RULES,
    convergence::RULES,
    dependent_launch::RULES,
    loops::RULES,
    cross_cta::RULES,
    global_proxy::RULES,
    read_only::RULES,
];

/// The input of every group.
pub(crate) struct RuleContext<'k> {
    pub(crate) kernel: &'k Kernel,
    pub(crate) target: &'k Target,
    /// All statements, in program order.
    pub(crate) sites: Vec<StmtSite<'k>>,
    /// The ops among the statements.
    pub(crate) ops: Vec<OpSite<'k>>,
    /// The control flow of the ops.
    pub(crate) code: Code,
}

/// An op, its surroundings and its facts.
pub(crate) struct OpSite<'k> {
    /// The index of the op.
    pub(crate) id: usize,
    pub(crate) op: &'k Op,
    pub(crate) site: StmtSite<'k>,
    pub(crate) facts: Facts,
}

impl OpSite<'_> {
    pub(crate) fn loc(&self) -> Loc {
        self.site.stmt.loc
    }

    /// Returns the memory accesses that write. A strong load reports [`AccessKind::Atomic`], but does
    /// not write.
    pub(crate) fn writes(&self) -> impl Iterator<Item = &MemoryAccess> {
        let is_strong_load = matches!(self.op, Op::StrongLoad(_));
        let touches = self.facts.touches.iter();
        touches.filter(move |t| t.access != AccessKind::Read && !is_strong_load)
    }
}

impl<'k> RuleContext<'k> {
    /// Can addresses be computed from a view? If not, another group reports it.
    pub(crate) fn is_sound(&self, v: &View) -> bool {
        shared_memory::bad_tile(self.kernel.tile(v.tile)).is_none()
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

/// Returns all violations of a kernel, by group, and the assumptions of its proof.
pub(crate) fn check(kernel: &Kernel, target: &Target) -> (Vec<Diagnostic>, Vec<Assumption>) {
    let mut found = Findings::new(kernel);
    references::check(kernel, &mut found);
    if found.is_empty() {
        let cx = RuleContext::new(kernel, target);
        for group in [
            legality::check,
            roles::check,
            cluster::check,
            registers::check,
            named_barriers::check,
            shared_memory::check,
            indices::check,
            operands::check,
            initialization::check,
            tensor_maps::check,
            wgmma::check,
            wgmma_in_flight::check,
            convergence::check,
            dependent_launch::check,
            loops::check,
            cross_cta::check,
            global_proxy::check,
            read_only::check,
            assumptions::check,
        ] {
            group(&cx, &mut found);
        }
    }
    found.into_parts()
}

/// Returns the violations of a kernel of a dependent launch (PDL), which starts before the preceding
/// grids end. The ids of the kernel must be declared.
pub fn dependent_launch(kernel: &Kernel, target: &Target) -> Vec<Diagnostic> {
    let mut found = Findings::new(kernel);
    dependent_launch::check_before_wait(&RuleContext::new(kernel, target), &mut found);
    found.into_list()
}

/// Returns the violations of the rules of global memory (R18) only. The ids of the kernel must be
/// declared.
pub fn global_memory(kernel: &Kernel, target: &Target) -> Vec<Diagnostic> {
    let mut found = Findings::new(kernel);
    let cx = RuleContext::new(kernel, target);
    cross_cta::check(&cx, &mut found);
    global_proxy::check(&cx, &mut found);
    found.into_list()
}

/// Returns the parameters declared PDL-safe that a grid may still write when this kernel starts, as
/// diagnostics.
pub fn pdl_unsafe(kernel: &Kernel, written: &[ParamId]) -> Vec<Diagnostic> {
    let mut found = Findings::new(kernel);
    dependent_launch::check_pdl_safe(kernel, written, &mut found);
    found.into_list()
}

/// Returns the parameters whose memory a kernel may write. A plan uses it to check PDL-safe
/// parameters of dependent launches.
pub fn written_params(kernel: &Kernel, target: &Target) -> Vec<ParamId> {
    dependent_launch::written_params(&RuleContext::new(kernel, target))
}

/// Returns the parameters that point to memory that may change while a kernel runs.
pub(crate) fn changing_params(kernel: &Kernel, target: &Target) -> Vec<ParamId> {
    dependent_launch::changing_params(&RuleContext::new(kernel, target))
}

/// Returns the violations that make a kernel malformed: undeclared ids, and tiles and views without
/// valid addresses. The printers require this even of an unproved kernel.
pub fn malformed(kernel: &Kernel) -> Vec<Diagnostic> {
    let mut found = Findings::new(kernel);
    references::check(kernel, &mut found);
    if found.is_empty() {
        shared_memory::check_tiles(kernel, &mut found);
        indices::check_views(kernel, &mut found);
    }
    found.into_list()
}

//! What ops do to the registers of products.

use crate::bits::Bits;
use crate::rules::{Case, OpSite};
use warpline_ir::ops::wgmma::{MatrixA, Wgmma};
use warpline_ir::{Loc, Op, RegId, RoleId, Sync};

/// One op, as far as products are concerned.
pub(super) enum Act<'k> {
    Access(Access<'k>),
    /// The product of this number.
    Product(usize),
    Fence,
    Commit,
    /// How many groups may stay open.
    Wait(usize),
}

/// An access of registers that products use, by anything else.
pub(super) struct Access<'k> {
    pub(super) at: Origin,
    pub(super) op: &'k Op,
    pub(super) regs: Vec<usize>,
}

/// One wgmma.
pub(super) struct Product {
    pub(super) at: Origin,
    /// Accumulators, in order.
    pub(super) list: Vec<RegId>,
    /// Columns, and elements of K.
    pub(super) shape: (u32, u32),
    pub(super) sums: Bits,
    /// The registers of its A.
    pub(super) left: Bits,
    /// Both.
    pub(super) all: Bits,
}

/// Where an op stands.
#[derive(Clone, Copy)]
pub(super) struct Origin {
    pub(super) loc: Loc,
    /// Its role; `None`: what every role runs.
    pub(super) role: Option<RoleId>,
}

/// The products of a role and their registers.
pub(super) struct Acts {
    /// The registers that a product uses; all sets are over these.
    pub(super) regs: Vec<RegId>,
    /// By register of the kernel: its number among those.
    number: Vec<Option<usize>>,
    pub(super) products: Vec<Product>,
    /// How many products there are in all.
    pub(super) issues: usize,
    /// Ages of committed groups that a wait can tell apart, the oldest one
    /// standing for all that are older.
    pub(super) ages: usize,
}

/// A wait that leaves more groups open than this is taken to cover none.
const MOST_PENDING: usize = 8;

impl Acts {
    /// The registers of a role's products; `None` if it has no product.
    pub(super) fn of(case: &Case, role: RoleId) -> Option<Self> {
        let mut acts = Self {
            regs: Vec::new(),
            number: vec![None; case.kernel.regs.len()],
            products: Vec::new(),
            issues: 0,
            ages: 1,
        };
        for op in case.ops_of(role) {
            match op.op {
                Op::Wgmma(product) => {
                    acts.issues += 1;
                    acts.add(&product.d);
                    acts.add(left(product));
                }
                Op::WgmmaWait(wait) if wait.pending as usize <= MOST_PENDING => {
                    acts.ages = acts.ages.max(wait.pending as usize + 1);
                }
                _ => {}
            }
        }
        (acts.issues > 0).then_some(acts)
    }

    fn add(&mut self, regs: &[RegId]) {
        for &r in regs {
            let number = &mut self.number[r.index()];
            if number.is_none() {
                *number = Some(self.regs.len());
                self.regs.push(r);
            }
        }
    }

    /// What an op does; products are numbered as they come.
    pub(super) fn read<'k>(&mut self, op: &OpSite<'k>) -> Option<Act<'k>> {
        let at = Origin {
            loc: op.loc(),
            role: op.site.role,
        };
        if let Op::Wgmma(product) = op.op {
            let product = self.product(product, at);
            self.products.push(product);
            return Some(Act::Product(self.products.len() - 1));
        }
        let act = op.facts.syncs.iter().find_map(|s| match s {
            Sync::WgmmaFence => Some(Act::Fence),
            Sync::WgmmaCommit => Some(Act::Commit),
            Sync::WgmmaWait { pending } => Some(Act::Wait(*pending as usize)),
            _ => None,
        });
        act.or_else(|| {
            let regs = op.facts.uses().chain(op.facts.defs.iter().copied());
            let regs: Vec<_> = regs.filter_map(|r| self.number[r.index()]).collect();
            let op = op.op;
            (!regs.is_empty()).then_some(Act::Access(Access { at, op, regs }))
        })
    }

    fn product(&self, product: &Wgmma, at: Origin) -> Product {
        let set = |regs: &[RegId]| {
            let mut set = Bits::new(self.regs.len());
            let numbers = regs.iter().filter_map(|r| self.number[r.index()]);
            numbers.for_each(|r| set.insert(r));
            set
        };
        let (sums, left) = (set(&product.d), set(left(product)));
        let mut all = sums.clone();
        all.add(&left);
        Product {
            at,
            list: product.d.clone(),
            shape: (product.n, product.a_ty.k()),
            sums,
            left,
            all,
        }
    }
}

/// The registers of a product's A.
fn left(product: &Wgmma) -> &[RegId] {
    match &product.a {
        MatrixA::Regs(regs) => regs,
        MatrixA::Shared(..) => &[],
    }
}

//! Launch parameters as terms, within their declared bounds.

use crate::symbolic::{Arg, Decisions, Node, Range, Sym, TermId, Terms, type_range};
use warpline_ir::{Extent, Kernel, ParamId, ParamKind, Type};

/// The last address of global memory: NVIDIA GPUs have virtual addresses of at most 57 bits.
const MOST_ADDRESS: i128 = (1 << 57) - 1;

/// A parameter, within its declared bounds.
pub(super) fn param(terms: &Terms, kernel: &Kernel, p: ParamId, ty: Type) -> TermId {
    let bounds = &kernel.param(p).bounds;
    let all = match kernel.param(p).kind {
        ParamKind::Pointer(_) => Range::new(0, MOST_ADDRESS),
        _ => type_range(ty),
    };
    let declared = Range::new(bounds.least, bounds.most);
    let range = all.and(declared).multiples_of(bounds.multiple_of.into());
    terms.bounded(Node::Param(p.0), range)
}

/// What the declared limits of products and sums of parameters decide.
pub(super) fn limits(terms: &Terms, kernel: &Kernel) -> Decisions {
    let mut decided = Decisions::default();
    for limit in &kernel.limits {
        if let Some(Arg::Sym(s)) = sum(terms, kernel, &limit.sum) {
            let most = i128::from(limit.most) - s.off;
            terms.restrict(&mut decided, s.term, Range::new(Range::ANY.lo, most));
        }
    }
    decided
}

fn sum(terms: &Terms, kernel: &Kernel, of: &Extent) -> Option<Arg> {
    let mut all = Arg::Num(0);
    for part in of.terms() {
        let mut product = Arg::Num(1);
        for &p in &part.params {
            let ParamKind::Scalar(ty) = kernel.param(p).kind else {
                return None;
            };
            let term = param(terms, kernel, p, ty);
            product = terms.product(product, Arg::Sym(Sym { term, off: 0 }))?;
        }
        all = terms.sum(all, product, part.times.into())?;
    }
    Some(all)
}

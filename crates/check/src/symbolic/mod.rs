//! Integers that a launch or memory decides, as terms in a normal form.
//!
//! A register whose value does not follow from the program alone holds a
//! *term*. A term stands for one mathematical integer: the value of the
//! register under the register's type. Arithmetic that could wrap around is
//! either shown not to wrap, or the term says so ([`Node::Wrap`]).
//!
//! Equal integers get equal terms as far as the normal form goes: linear
//! combinations with constant coefficients, products, floor division and
//! remainder by constants ([`normal`]). So `(n + 63) / 64` in one role and
//! `div_ceil(n, 64)` in another are the same term, and what is decided of it
//! for one role is decided for all.
//!
//! | where | what |
//! |---|---|
//! | `term` | terms and where they are kept |
//! | `normal` | sums, products, quotients and remainders in normal form |
//! | `range` | the integers that a term may be: an interval and a residue |
//! | `decide` | decisions about terms, and predicates that follow from them |
//! | `model` | integers for which decisions hold |

mod decide;
mod model;
mod normal;
mod range;
mod term;
#[cfg(test)]
mod tests;

pub(crate) use decide::{Decided, Question};
pub(crate) use model::Model;
pub(crate) use normal::Fit;
pub(crate) use range::{Range, type_range};
pub(crate) use term::{Arg, Node, Sym, TermId, Terms, operands};

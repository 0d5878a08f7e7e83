//! Integers that depend on the launch or on memory, as terms in a normal form.
//!
//! A register whose value does not follow from the program alone holds a *term*. A term denotes one
//! mathematical integer: the value of the register in the type of the register. Arithmetic either
//! provably does not wrap around, or the term contains the wrap ([`Node::Wrap`]).
//!
//! The normal form gives equal integers equal terms: linear combinations with constant
//! coefficients, products, floor division and remainder by constants ([`normal`]). So
//! `(n + 63) / 64` in one role and `div_ceil(n, 64)` in another are the same term, and a decision
//! about it holds for all roles.
//!
//! | where | what |
//! |---|---|
//! | `term` | terms and their table |
//! | `normal` | sums, products, quotients and remainders in normal form |
//! | `range` | the possible values of a term: an interval and a residue |
//! | `decide` | decisions about terms, and the predicates that they imply |
//! | `model` | integers that satisfy decisions |

mod decide;
mod model;
mod normal;
mod range;
mod term;
#[cfg(test)]
mod tests;

pub(crate) use decide::{Decisions, Question};
pub(crate) use model::Model;
pub(crate) use normal::Fit;
pub(crate) use range::{Range, type_range};
pub(crate) use term::{Arg, Node, Sym, TermId, Terms, operands};

//! Ops: the functions that a family serves, declared once.
//!
//! A family states for each op its [`Signature`] and how a call becomes a
//! problem. Python functions, torch schemas, fake implementations, type stubs
//! and the calls of Rust users follow from it.
//!
//! | where | what |
//! |---|---|
//! | [`signature`] | names, parameters, what comes out |
//! | [`call`] | the values of one call, by name |
//! | [`view`] | a tensor as its caller has it: type, shape, strides, address |
//! | [`layout`] | dimensions of several tensors, walked as few |

pub mod call;
pub mod layout;
pub mod signature;
pub mod view;

pub use call::{Call, Value};
pub use signature::{Default, Kind, Output, Param, Side, Signature};
pub use view::TensorView;

use crate::erased::{AnyWork, Work};
use crate::error::FamilyError;
use crate::family::Family;
use std::fmt;
use warpline_ir::Target;

/// The problem that a call asks, and what it fixes of the config.
pub type Asked<F> = Result<(<F as Family>::Problem, <F as Family>::Choice), FamilyError>;

/// An op of a family.
pub struct Op<F: Family> {
    /// What callers see of it.
    pub signature: Signature,
    /// The problem that a call asks, and what the call fixes of the config:
    /// addresses that are not on 16 bytes exclude vectors.
    pub problem: fn(&Call<'_>) -> Asked<F>,
    /// The arguments that ask a problem, in the order of the parameters, for
    /// benchmarks; tensors have no address.
    pub args: fn(&F::Problem) -> Vec<Value>,
}

/// What a call comes to: work on the call's tensors.
type Solve =
    dyn Fn(&Call<'_>, &Target) -> Result<Option<Box<dyn AnyWork>>, FamilyError> + Send + Sync;

/// An op without the types of its family.
pub struct AnyOp {
    /// What callers see of it.
    pub signature: Signature,
    /// The family's name.
    pub family: &'static str,
    solve: Box<Solve>,
}

impl fmt::Debug for AnyOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut s = f.debug_struct("AnyOp");
        s.field("signature", &self.signature)
            .field("family", &self.family)
            .finish()
    }
}

impl AnyOp {
    pub(crate) fn new<F: Family>(op: Op<F>) -> Self {
        let (name, problem) = (op.signature.name, op.problem);
        Self {
            signature: op.signature,
            family: F::NAME,
            solve: Box::new(move |call, target| {
                let (problem, choice) = problem(call)?;
                if call.outs.iter().all(|out| out.elements() == 0) {
                    return Ok(None);
                }
                let work = Work::<F>::new(problem, &choice, target);
                Ok(Some(Box::new(work.map_err(|e| named(name, e))?)))
            }),
        }
    }

    /// The work that a call asks for; none where nothing comes out.
    ///
    /// The plan's inputs are the tensors that are given, in the order of the
    /// parameters, and its outputs those of the call. Lists of integers have
    /// their place among the inputs too, and no kernel reads them.
    pub fn solve(
        &self,
        args: &[Value],
        outs: &[TensorView],
        target: &Target,
    ) -> Result<Option<Box<dyn AnyWork>>, FamilyError> {
        let call = Call::new(&self.signature, args, outs)?;
        (self.solve)(&call, target)
    }

    /// Refuses outputs that share memory with an input or with each other:
    /// what must hold of every call anew, as addresses change.
    pub fn apart(&self, args: &[Value], outs: &[TensorView]) -> Result<(), FamilyError> {
        Call {
            signature: &self.signature,
            args,
            outs,
        }
        .apart()
    }
}

/// What a family refuses, with the op's name before it.
fn named(op: &str, error: FamilyError) -> FamilyError {
    match error {
        FamilyError::Problem(text) => FamilyError::Problem(format!("{op}: {text}")),
        FamilyError::Config(text) => FamilyError::Config(format!("{op}: {text}")),
        other => other,
    }
}

/// A call that benchmarks make.
pub struct MeasuredCall {
    /// The suite.
    pub suite: &'static str,
    /// The op's name.
    pub op: &'static str,
    /// Its arguments, in the order of the parameters.
    pub args: Vec<Value>,
    /// The work behind it: problem and cost.
    pub work: Box<dyn AnyWork>,
}

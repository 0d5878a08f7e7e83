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

use crate::error::FamilyError;
use crate::family::{AnyWork, Family, Work};
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

/// Every op of every family that ships, in the order of the registry.
pub fn ops() -> Vec<AnyOp> {
    let families = crate::registry();
    families.into_iter().flat_map(|f| f.ops()).collect()
}

/// A call that benchmarks make.
pub struct Measured {
    /// The suite.
    pub suite: &'static str,
    /// The op's name.
    pub op: &'static str,
    /// Its arguments, in the order of the parameters.
    pub args: Vec<Value>,
    /// The work behind it: problem and cost.
    pub work: Box<dyn AnyWork>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The problem, less where points are drawn: no argument says that.
    fn asked(work: &dyn AnyWork) -> serde_json::Value {
        let mut problem = work.problem();
        if let Some(fields) = problem.as_object_mut() {
            fields.remove("locations");
        }
        problem
    }

    #[test]
    fn what_is_measured_is_asked_by_its_arguments() {
        for family in crate::registry() {
            let ops = family.ops();
            for measured in family.calls(&Target::SM_90A).unwrap() {
                let op = ops.iter().find(|op| op.signature.name == measured.op);
                let op = op.unwrap();
                let (args, outputs) = (&measured.args, &op.signature.outputs);
                let expected = op.signature.expected(&outputs[0], args).unwrap();
                let out = TensorView::dense(expected.0, &expected.1, 0);
                let solved = op.solve(args, &[out], &Target::SM_90A);
                let work = solved.unwrap().unwrap();
                assert_eq!(asked(&*work), asked(&*measured.work));
                assert_eq!(work.config(), measured.work.config());
            }
        }
    }
}

//! Work on tensors that a caller gives.

use crate::error::FamilyError;
use crate::family::{AnyWork, Cost};
use crate::plan::Plan;
use crate::tensor::{HostTensor, TensorSpec};
use warpline_ir::Target;

/// Work on tensors that are given, in place of those that a seed draws.
///
/// ```
/// use warpline_kernels::vector_add::{Choice, Float, Problem, VectorAdd};
/// use warpline_kernels::{AnyWork, Given, HostTensor, Work};
/// use warpline_ir::Target;
///
/// let problem = Problem { n: 2, dtype: Float::F32 };
/// let work = Work::<VectorAdd>::new(problem, &Choice::default(), &Target::SM_90A)?;
/// let ones = |x: &HostTensor| HostTensor::round(x.spec.clone(), [1.0, 1.0]);
/// let inputs = work.inputs(0).iter().map(ones).collect();
/// let work = Given::new(work, inputs);
/// assert_eq!(work.reference(&work.inputs(0))[0][0].0, 2.0);
/// # Ok::<(), warpline_kernels::FamilyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Given<W> {
    work: W,
    inputs: Vec<HostTensor>,
    answer: Option<Vec<Vec<(f64, f64)>>>,
}

impl<W: AnyWork> Given<W> {
    /// That work on these tensors, in the order of its inputs.
    pub fn new(work: W, inputs: Vec<HostTensor>) -> Self {
        Self {
            work,
            inputs,
            answer: None,
        }
    }

    /// The same with what must come out, and by how much it may be off, in
    /// place of the family's own answer.
    pub fn answered(self, answer: Vec<Vec<(f64, f64)>>) -> Self {
        Self {
            answer: Some(answer),
            ..self
        }
    }
}

impl<W: AnyWork> AnyWork for Given<W> {
    fn family(&self) -> &'static str {
        self.work.family()
    }
    fn problem(&self) -> serde_json::Value {
        self.work.problem()
    }
    fn config(&self) -> serde_json::Value {
        self.work.config()
    }
    fn plan(&self, target: &Target) -> Result<Plan, FamilyError> {
        self.work.plan(target)
    }
    fn baseline(&self, target: &Target) -> Option<Box<dyn AnyWork>> {
        let work = self.work.baseline(target)?;
        Some(Box::new(Given {
            work,
            inputs: self.inputs.clone(),
            answer: self.answer.clone(),
        }))
    }
    fn cost(&self) -> Cost {
        self.work.cost()
    }
    fn inputs(&self, _: u64) -> Vec<HostTensor> {
        self.inputs.clone()
    }
    fn outputs(&self) -> Vec<TensorSpec> {
        self.work.outputs()
    }
    fn reference(&self, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        match &self.answer {
            Some(answer) => answer.clone(),
            None => self.work.reference(inputs),
        }
    }
}

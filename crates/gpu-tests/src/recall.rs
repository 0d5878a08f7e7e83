//! What a problem gives, for all works of it in a row.
//!
//! Inputs and float64 references depend on the problem alone, and take the
//! host longer than a GPU takes for the work.

use serde_json::Value;
use std::sync::Arc;
use warpline_ir::Target;
use warpline_kernels::{AnyWork, Cost, FamilyError, HostTensor, Plan, TensorSpec};

/// The inputs and the reference of the last problem.
#[derive(Default)]
pub struct Recall {
    last: Option<Arc<Known>>,
}

struct Known {
    of: Question,
    seed: u64,
    inputs: Vec<HostTensor>,
    reference: Vec<Vec<(f64, f64)>>,
}

/// What inputs and reference depend on, besides the seed.
type Question = (&'static str, Value, Vec<TensorSpec>);

fn question(work: &dyn AnyWork) -> Question {
    (work.family(), work.problem(), work.outputs())
}

impl Recall {
    /// The same work, whose inputs from `seed` and their reference are known.
    pub fn work<'a>(&mut self, work: &'a dyn AnyWork, seed: u64) -> impl AnyWork + 'a {
        let of = question(work);
        let fits = |known: &&Arc<Known>| known.seed == seed && known.of == of;
        let known = match self.last.as_ref().filter(fits) {
            Some(known) => known.clone(),
            None => {
                // Both at once would be twice the memory.
                self.last = None;
                let inputs = work.inputs(seed);
                let reference = work.reference(&inputs);
                Arc::new(Known {
                    of,
                    seed,
                    inputs,
                    reference,
                })
            }
        };
        self.last = Some(known.clone());
        Recalled { work, known }
    }
}

/// Work with its answer.
struct Recalled<'a> {
    work: &'a dyn AnyWork,
    known: Arc<Known>,
}

impl AnyWork for Recalled<'_> {
    fn family(&self) -> &'static str {
        self.work.family()
    }
    fn problem(&self) -> Value {
        self.work.problem()
    }
    fn config(&self) -> Value {
        self.work.config()
    }
    fn plan(&self, target: &Target) -> Result<Plan, FamilyError> {
        self.work.plan(target)
    }
    fn cost(&self) -> Cost {
        self.work.cost()
    }
    fn inputs(&self, seed: u64) -> Vec<HostTensor> {
        if seed == self.known.seed {
            self.known.inputs.clone()
        } else {
            self.work.inputs(seed)
        }
    }
    fn outputs(&self) -> Vec<TensorSpec> {
        self.work.outputs()
    }
    fn reference(&self, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        if inputs == self.known.inputs {
            self.known.reference.clone()
        } else {
            self.work.reference(inputs)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::works;

    /// Bits, so that a NaN is itself.
    fn bits(reference: &[Vec<(f64, f64)>]) -> Vec<Vec<(u64, u64)>> {
        let both = |&(x, y): &(f64, f64)| (x.to_bits(), y.to_bits());
        let one = |values: &Vec<_>| values.iter().map(both).collect();
        reference.iter().map(one).collect()
    }

    /// Of every set the works of its first problems: nothing but the problem matters.
    #[test]
    fn what_is_recalled_is_what_the_work_itself_says() {
        let all = works::all(&Target::SM_90A).unwrap();
        let mut recall = Recall::default();
        let mut recalled = 0;
        for pair in all.windows(2) {
            let [a, b] = [&pair[0], &pair[1]].map(|named| named.work.as_ref());
            let large = b.cost().bytes > 1e5 || b.cost().flops > 1e8;
            if large || question(a) != question(b) {
                continue;
            }
            recall.work(a, 3);
            let known = recall.work(b, 3);
            assert!(known.inputs(3) == b.inputs(3), "{}", pair[1].name);
            let inputs = b.inputs(3);
            let (got, want) = (known.reference(&inputs), b.reference(&inputs));
            assert!(bits(&got) == bits(&want), "{}", pair[1].name);
            recalled += 1;
        }
        assert!(recalled > 50, "{recalled}");
    }

    #[test]
    fn another_seed_is_another_answer() {
        let all = works::all(&Target::SM_90A).unwrap();
        let some = all.iter().find(|named| named.work.cost().bytes > 0.0);
        let work = some.unwrap().work.as_ref();
        let mut recall = Recall::default();
        let known = recall.work(work, 3);
        assert!(known.inputs(4) == work.inputs(4));
        assert!(known.inputs(4) != known.inputs(3));
        assert!(recall.work(work, 4).inputs(4) == work.inputs(4));
    }
}

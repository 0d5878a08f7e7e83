//! A cache of the inputs and the reference of the last problem.
//!
//! Inputs and float64 references depend only on the problem, and take the host longer than the GPU
//! takes for the kernel. Consecutive workloads of one problem share them.

use serde_json::Value;
use std::sync::Arc;
use warpline::RunData;
use warpline_family::{AnyWorkload, TensorSpec};

/// The inputs and the reference of the last problem.
#[derive(Default)]
pub struct CachedReference {
    last: Option<(CacheKey, Arc<RunData>)>,
}

/// The cache key: family, problem, outputs and seed.
type CacheKey = (&'static str, Value, Vec<TensorSpec>, u64);

fn cache_key(workload: &dyn AnyWorkload, seed: u64) -> CacheKey {
    (
        workload.family(),
        workload.problem(),
        workload.outputs(),
        seed,
    )
}

impl CachedReference {
    /// Returns the inputs of a seed and their reference.
    pub fn data(&mut self, workload: &dyn AnyWorkload, seed: u64) -> Arc<RunData> {
        let key = cache_key(workload, seed);
        if let Some((_, data)) = self.last.as_ref().filter(|(cached, _)| *cached == key) {
            return data.clone();
        }
        // Free the old data first, to keep only one problem in memory.
        self.last = None;
        let inputs = workload.draw(seed);
        let reference = Some(workload.reference(&inputs));
        let data = Arc::new(RunData { inputs, reference });
        self.last = Some((key, data.clone()));
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_ir::Target;

    /// Returns the bits, so that NaNs compare equal.
    fn bits(reference: &[Vec<(f64, f64)>]) -> Vec<Vec<(u64, u64)>> {
        let pair_bits = |&(x, y): &(f64, f64)| (x.to_bits(), y.to_bits());
        let all_bits = |values: &Vec<_>| values.iter().map(pair_bits).collect();
        reference.iter().map(all_bits).collect()
    }

    /// Consecutive workloads of the same small problem share inputs and reference.
    #[test]
    fn cached_reference_equals_a_computed_one() {
        let target = Target::SM_90A;
        let families = warpline_kernels::registry().into_iter();
        let all: Vec<_> = families
            .flat_map(|family| family.cases(&target))
            .map(Result::unwrap)
            .collect();
        let mut cache = CachedReference::default();
        let mut cached = 0;
        for pair in all.windows(2) {
            let [a, b] = [&pair[0], &pair[1]].map(AsRef::as_ref);
            let is_large = b.cost().bytes > 1e5 || b.cost().flops > 1e8;
            if is_large || cache_key(a, 3) != cache_key(b, 3) {
                continue;
            }
            let first = cache.data(a, 3);
            let second = cache.data(b, 3);
            assert!(Arc::ptr_eq(&first, &second), "{}", b.problem());
            assert!(second.inputs == b.draw(3), "{}", b.problem());
            let got = second.reference.clone().unwrap();
            assert!(
                bits(&got) == bits(&b.reference(&second.inputs)),
                "{}",
                b.problem()
            );
            cached += 1;
        }
        assert!(cached > 50, "{cached}");
    }

    #[test]
    fn another_seed_draws_other_inputs() {
        let family = warpline_kernels::registry().into_iter().next().unwrap();
        let mut cases = family.cases(&Target::SM_90A).into_iter();
        let case = cases.find_map(|case| case.ok().filter(|case| case.cost().bytes > 0.0));
        let workload = case.as_deref().unwrap();
        let mut cache = CachedReference::default();
        let [three, four] = [3, 4].map(|seed| cache.data(workload, seed));
        assert!(three.inputs == workload.draw(3));
        assert!(four.inputs == workload.draw(4));
        assert!(three.inputs != four.inputs);
    }
}

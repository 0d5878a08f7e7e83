//! Type-erased families: candidates, suites, periods.

use serde_json::json;
use warpline_kernels::vector_add::VectorAdd;
use warpline_kernels::{AnyFamily, AnyWorkload, DeviceKind, Request, TensorSpec, registry};
use warpline_testkit::kernel::TARGET;

fn candidates(flags: &str) -> Vec<serde_json::Value> {
    let request = Request::from_flags(flags.split_whitespace()).unwrap();
    let all = AnyFamily::candidates(&VectorAdd, &request, DeviceKind::Gpu, &TARGET);
    all.unwrap().iter().map(|w| w.config()).collect()
}

#[test]
fn candidates_agree_with_the_fixed_flags() {
    let all = candidates("--n 1000000");
    let fixed = candidates("--n 1000000 --schedule specialized --stages 3");
    assert!(!fixed.is_empty() && fixed.len() < all.len());
    for config in &fixed {
        assert_eq!(config["schedule"], json!("specialized"));
        assert_eq!(config["stages"], json!(3));
        assert!(all.contains(config));
    }
}

#[test]
fn a_suite_returns_the_problems_of_its_families() {
    let target = TARGET;
    assert_eq!(VectorAdd.suites(), ["memory"]);
    let works = VectorAdd.bench("memory", &target).unwrap();
    assert_eq!(works[0].problem()["n"], json!(1u64 << 28));
    assert!(VectorAdd.bench("gemm-probes", &target).unwrap().is_empty());
}

#[test]
fn the_period_of_a_benchmark_problem_has_the_same_tensors_with_fewer_rows() {
    let target = TARGET;
    for family in registry() {
        let suites = family.suites().into_iter();
        let works = suites.flat_map(|suite| family.bench(suite, &target).unwrap());
        // The smallest benchmark problem: its inputs are generated fastest.
        let bytes = |w: &dyn AnyWorkload| w.cost().bytes;
        let Some(large) = works.min_by(|x, y| bytes(x.as_ref()).total_cmp(&bytes(y.as_ref())))
        else {
            continue;
        };
        let Some(period) = large.period() else {
            continue;
        };
        let tensors = |work: &dyn AnyWorkload| [work.inputs(), work.outputs()].concat();
        let (small, large) = (tensors(period.as_ref()), tensors(large.as_ref()));
        assert_eq!(small.len(), large.len(), "{}", family.name());
        for (small, large) in small.iter().zip(&large) {
            assert_eq!((small.name, small.dtype), (large.name, large.dtype));
            let inner = |spec: &TensorSpec| spec.shape[1..].to_vec();
            assert_eq!(
                inner(small),
                inner(large),
                "{} {}",
                family.name(),
                small.name
            );
            assert!(small.bytes() <= large.bytes());
        }
    }
}

#[test]
fn drawn_inputs_match_their_specs_and_depend_on_the_seed() {
    for family in registry() {
        let work = family.default_workload(DeviceKind::Cpu, &TARGET).unwrap();
        let (first, second) = (work.draw(1), work.draw(2));
        let specs: Vec<_> = first.iter().map(|tensor| tensor.spec.clone()).collect();
        assert_eq!(specs, work.inputs(), "{}", family.name());
        assert!(first.iter().all(|t| t.data.len() == t.spec.bytes()));
        assert_ne!(first, second, "{}: the seed has no effect", family.name());
    }
}

#[test]
fn the_period_of_a_large_problem_has_the_same_class_and_config() {
    let works = VectorAdd.bench("memory", &TARGET).unwrap();
    let small = works[0].period().unwrap();
    assert_eq!(small.config(), works[0].config());
    assert_eq!(small.problem()["dtype"], works[0].problem()["dtype"]);
    assert!(small.outputs()[0].elements() < works[0].outputs()[0].elements());
    assert!(small.period().is_none(), "a small problem has no period");
}

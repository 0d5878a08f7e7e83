//! Ops: names, rejected calls, calls of the benchmarks.

use warpline_ir::DType;
use warpline_kernels::op::{ArgValue, TensorView};
use warpline_kernels::{AnyOp, AnyWorkload, ops, registry};
use warpline_testkit::kernel::TARGET;

#[test]
fn op_and_parameter_names_are_unique() {
    let mut names: Vec<_> = ops().iter().map(|op| op.signature.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "two ops have the same name");
    for op in ops() {
        let s = &op.signature;
        let params = s.params.iter().map(|p| p.name);
        let mut names: Vec<_> = params.chain(s.outputs.iter().map(|o| o.name)).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{}", s.name);
    }
}

fn softmax() -> AnyOp {
    let op = ops().into_iter().find(|op| op.signature.name == "softmax");
    op.unwrap()
}

fn outcome(args: &[ArgValue], outs: &[TensorView]) -> String {
    let solved = softmax().workload(args, outs, &TARGET);
    match solved {
        Ok(_) => "PASS".into(),
        Err(e) => e.to_string(),
    }
}

fn view(address: u64) -> TensorView {
    TensorView::dense(DType::F32, &[2, 8], address)
}

#[test]
fn arguments_of_wrong_types_and_shapes_are_rejected() {
    let x = || ArgValue::Tensor(view(0));
    let (last, flag) = (ArgValue::Integer(-1), ArgValue::Flag(false));
    assert_eq!(
        outcome(&[x(), last.clone(), flag.clone()], &[view(1 << 20)]),
        "PASS"
    );
    assert_eq!(
        outcome(&[x()], &[view(0)]),
        "softmax: the op takes 3 arguments and 1 outputs, not 1 and 1"
    );
    assert_eq!(
        outcome(&[ArgValue::None, last.clone(), flag.clone()], &[view(0)]),
        "softmax: x must be a tensor, not None"
    );
    assert_eq!(
        outcome(&[x(), ArgValue::Number(0.5), flag.clone()], &[view(0)]),
        "softmax: dim must be an integer, not 0.5"
    );
    let other = TensorView::dense(DType::Bf16, &[2, 9], 0);
    assert_eq!(
        outcome(&[x(), last, flag], &[other]),
        "softmax: y must be f32 [2, 8], not bf16 [2, 9]"
    );
}

#[test]
fn an_output_that_overlaps_an_input_is_rejected() {
    let args = |address| {
        let x = ArgValue::Tensor(view(address));
        [x, ArgValue::Integer(-1), ArgValue::Flag(false)]
    };
    let message = "softmax: y shares memory with x; an output must not overlap another tensor";
    assert_eq!(outcome(&args(1024), &[view(1024)]), message);
    assert_eq!(outcome(&args(1024), &[view(1024 + 60)]), message);
    assert_eq!(outcome(&args(1024), &[view(1024 + 64)]), "PASS");
}

#[test]
fn an_empty_output_needs_no_launch() {
    let empty = TensorView::dense(DType::F32, &[0, 8], 0);
    let args = [empty.clone().into(), ArgValue::Integer(-1), false.into()];
    let solved = softmax().workload(&args, &[empty], &TARGET);
    assert!(solved.unwrap().is_none());
}

/// Returns the problem without `locations`, which no op argument sets.
fn problem_of(work: &dyn AnyWorkload) -> serde_json::Value {
    let mut problem = work.problem();
    if let Some(fields) = problem.as_object_mut() {
        fields.remove("locations");
    }
    problem
}

#[test]
fn benchmark_calls_solve_the_benchmark_problem() {
    for family in registry() {
        let ops = family.ops();
        for measured in family.bench_calls(&TARGET).unwrap() {
            let op = ops.iter().find(|op| op.signature.name == measured.op);
            let op = op.unwrap();
            let (args, outputs) = (&measured.args, &op.signature.outputs);
            let expected = op.signature.expected(&outputs[0], args).unwrap();
            let out = TensorView::dense(expected.0, &expected.1, 0);
            let solved = op.workload(args, &[out], &TARGET);
            let work = solved.unwrap().unwrap();
            assert_eq!(problem_of(&*work), problem_of(&*measured.workload));
            assert_eq!(work.config(), measured.workload.config());
        }
    }
}

//! Ops: names, calls that are rejected, calls that benchmarks make.

use warpline_ir::DType;
use warpline_kernels::op::{TensorView, Value};
use warpline_kernels::{AnyOp, AnyWork, ops, registry};
use warpline_testkit::kernel::TARGET;

#[test]
fn names_are_used_once() {
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

fn said(args: &[Value], outs: &[TensorView]) -> String {
    let solved = softmax().solve(args, outs, &TARGET);
    match solved {
        Ok(_) => "good".into(),
        Err(e) => e.to_string(),
    }
}

fn view(address: u64) -> TensorView {
    TensorView::dense(DType::F32, &[2, 8], address)
}

#[test]
fn a_call_that_does_not_fit_is_refused_by_a_sentence() {
    let x = || Value::Tensor(view(0));
    let last = Value::Integer(-1);
    assert_eq!(said(&[x(), last.clone()], &[view(1 << 20)]), "good");
    assert_eq!(
        said(&[x()], &[view(0)]),
        "softmax: 2 arguments and 1 outputs are needed, not 1 and 1"
    );
    assert_eq!(
        said(&[Value::None, last.clone()], &[view(0)]),
        "softmax: x is a tensor, not nothing"
    );
    assert_eq!(
        said(&[x(), Value::Number(0.5)], &[view(0)]),
        "softmax: dim is an integer, not 0.5"
    );
    let other = TensorView::dense(DType::Bf16, &[2, 9], 0);
    assert_eq!(
        said(&[x(), last], &[other]),
        "softmax: y is f32 [2, 8], and what was given for it is bf16 [2, 9]"
    );
}

#[test]
fn an_output_that_shares_memory_with_an_input_is_refused() {
    let args = |address| [Value::Tensor(view(address)), Value::Integer(-1)];
    let refused = "softmax: y shares memory with x, and an output must lie apart";
    assert_eq!(said(&args(1024), &[view(1024)]), refused);
    assert_eq!(said(&args(1024), &[view(1024 + 60)]), refused);
    assert_eq!(said(&args(1024), &[view(1024 + 64)]), "good");
}

#[test]
fn nothing_is_solved_where_nothing_comes_out() {
    let empty = TensorView::dense(DType::F32, &[0, 8], 0);
    let args = [Value::Tensor(empty.clone()), Value::Integer(-1)];
    let solved = softmax().solve(&args, &[empty], &TARGET);
    assert!(solved.unwrap().is_none());
}

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
    for family in registry() {
        let ops = family.ops();
        for measured in family.calls(&TARGET).unwrap() {
            let op = ops.iter().find(|op| op.signature.name == measured.op);
            let op = op.unwrap();
            let (args, outputs) = (&measured.args, &op.signature.outputs);
            let expected = op.signature.expected(&outputs[0], args).unwrap();
            let out = TensorView::dense(expected.0, &expected.1, 0);
            let solved = op.solve(args, &[out], &TARGET);
            let work = solved.unwrap().unwrap();
            assert_eq!(asked(&*work), asked(&*measured.work));
            assert_eq!(work.config(), measured.work.config());
        }
    }
}

//! Ops and the calls that benchmarks make, as JSON: what the Python package reads.

use crate::erased::{AnyOp, MeasuredCall};
use crate::op::{Param, Value as Argument};
use serde_json::{Value, json};

impl AnyOp {
    /// The op as JSON: its signature, its family, the schemas that torch registers, its type stub.
    pub fn declared(&self) -> Value {
        let signature = &self.signature;
        let mut all = json!(signature);
        let params = all["params"].as_array_mut().into_iter().flatten();
        for (param, json) in signature.params.iter().zip(params) {
            json["optional"] = param.is_optional().into();
        }
        all["family"] = self.family.into();
        all["schema"] = signature.schema().into();
        all["out_schema"] = signature.out_schema().into();
        all["stub"] = signature.stub().into();
        all
    }
}

impl MeasuredCall {
    /// The call as JSON, with the parameters of its op: its suite, its problem, its cost, and
    /// every argument by name.
    pub fn declared(&self, params: &[Param]) -> Value {
        let cost = self.work.cost();
        let args = params.iter().zip(&self.args);
        json!({
            "suite": self.suite,
            "family": self.work.family(),
            "op": self.op,
            "problem": self.work.problem(),
            "flops": cost.flops,
            "bytes": cost.bytes,
            "args": args.map(argument).collect::<Vec<_>>(),
        })
    }
}

fn argument((param, value): (&Param, &Argument)) -> Value {
    match value {
        Argument::None => json!({ "name": param.name, "value": null }),
        Argument::Number(x) => json!({ "name": param.name, "value": x }),
        Argument::Integer(n) => json!({ "name": param.name, "value": n }),
        Argument::Integers(all) => json!({ "name": param.name, "value": all }),
        Argument::Text(word) => json!({ "name": param.name, "value": word }),
        Argument::Flag(yes) => json!({ "name": param.name, "value": yes }),
        Argument::Tensor(view) => json!({
            "name": param.name,
            "tensor": { "dtype": view.dtype.name(), "shape": view.shape, "strides": view.strides },
        }),
    }
}

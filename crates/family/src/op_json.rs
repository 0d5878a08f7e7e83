//! Ops and benchmark calls as JSON, for the Python package.

use crate::erased::{AnyOp, BenchCall};
use crate::op::{ArgValue, OpParam};
use serde_json::{Value, json};

impl AnyOp {
    /// Returns the op as JSON: signature, family, torch schemas and Python type stub.
    pub fn to_json(&self) -> Value {
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

impl BenchCall {
    /// Returns the call as JSON: suite, problem, cost and every argument by name. `params` are the
    /// parameters of the op.
    pub fn to_json(&self, params: &[OpParam]) -> Value {
        let cost = self.workload.cost();
        let args = params.iter().zip(&self.args);
        json!({
            "suite": self.suite,
            "family": self.workload.family(),
            "op": self.op,
            "problem": self.workload.problem(),
            "flops": cost.flops,
            "bytes": cost.bytes,
            "args": args.map(argument).collect::<Vec<_>>(),
        })
    }
}

fn argument((param, value): (&OpParam, &ArgValue)) -> Value {
    match value {
        ArgValue::None => json!({ "name": param.name, "value": null }),
        ArgValue::Number(x) => json!({ "name": param.name, "value": x }),
        ArgValue::Integer(n) => json!({ "name": param.name, "value": n }),
        ArgValue::Integers(all) => json!({ "name": param.name, "value": all }),
        ArgValue::Pair(pair) => json!({ "name": param.name, "value": pair }),
        ArgValue::Text(word) => json!({ "name": param.name, "value": word }),
        ArgValue::Flag(yes) => json!({ "name": param.name, "value": yes }),
        ArgValue::Tensor(view) => json!({
            "name": param.name,
            "tensor": { "dtype": view.dtype.name(), "shape": view.shape, "strides": view.strides },
        }),
    }
}

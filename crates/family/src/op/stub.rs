//! Ops as Python type stubs.

use super::signature::{Default, Kind, Param, Signature};

/// Options of every Python function, behind those of its op.
const OPTIONS: [&str; 4] = [
    "simulate: bool = False",
    "stream: int | None = None",
    "tune: bool = False",
    "deterministic: bool | None = None",
];

impl Signature {
    /// The Python function as a type stub; `_A` is an array of any library.
    ///
    /// ```
    /// use warpline_family::op::{Output, Param, Side, Signature};
    /// let scale = Signature {
    ///     name: "scale",
    ///     about: "Multiplies by a number",
    ///     params: vec![Param::tensor("x", ""), Param::number("by", 2.0, "")],
    ///     outputs: vec![Output { name: "y", sides: &[Side::All("x")], dtype_of: "x", dtype_by: None }],
    ///     example: "",
    /// };
    /// assert!(scale.stub().starts_with("def scale(\n    x: _A,\n    by: float = 2.0,\n    *,\n"));
    /// ```
    pub fn stub(&self) -> String {
        let result = match self.outputs.len() {
            1 => "_A".to_owned(),
            n => format!("tuple[{}]", vec!["_A"; n].join(", ")),
        };
        let params = self.params.iter().map(parameter);
        let out = ["*".to_owned(), format!("out: {result} | None = None")];
        let options = OPTIONS.map(str::to_owned);
        let lines = params.chain(out).chain(options);
        let lines: String = lines.map(|line| format!("    {line},\n")).collect();
        format!("def {}(\n{lines}) -> {result}: ...\n", self.name)
    }
}

fn parameter(param: &Param) -> String {
    let ty = match param.kind {
        Kind::Tensor => "_A",
        Kind::Number => "float",
        Kind::Integer => "int",
        Kind::Integers | Kind::Pairs | Kind::Type => "Any",
        Kind::Text => "str",
        Kind::Flag => "bool",
    };
    match param.default {
        None => format!("{}: {ty}", param.name),
        Some(Default::Nothing) if ty != "Any" => format!("{}: {ty} | None = None", param.name),
        Some(default) => format!("{}: {ty} = {}", param.name, default.text()),
    }
}

//! Python type stubs of ops.

use super::signature::{DefaultValue, OpParam, OpParamKind, OptionalOutput, Signature};

/// The keyword options that every Python function has in addition to its own parameters.
const OPTIONS: [&str; 4] = [
    "simulate: bool = False",
    "stream: int | None = None",
    "tune: bool = False",
    "deterministic: bool | None = None",
];

impl Signature {
    /// Returns the type stub of the Python function; `_A` is an array of any library.
    ///
    /// ```
    /// use warpline_family::op::{OpOutput, OpParam, OutputDim, Signature};
    /// let scale = Signature {
    ///     name: "scale",
    ///     about: "Multiplies by a number",
    ///     params: vec![OpParam::tensor("x", ""), OpParam::number("by", 2.0, "")],
    ///     outputs: vec![OpOutput { name: "y", dims: &[OutputDim::All("x")], dtype_of: "x", dtype_override: None, fixed_dtype: None }],
    ///     optional_output: None,
    ///     example: "",
    /// };
    /// assert!(scale.stub().starts_with("def scale(\n    x: _A,\n    by: float = 2.0,\n    *,\n"));
    /// ```
    pub fn stub(&self) -> String {
        let result = self.result();
        let variant = self.optional_output.zip(self.with_optional_output());
        let Some((OptionalOutput { flag, .. }, variant)) = variant else {
            return self.definition(&result, None);
        };
        // The flag is false, true, or not known.
        let (with, either) = (variant.result(), format!("{result} | {}", variant.result()));
        let overloads = [
            (&result, format!("{flag}: Literal[False] = False")),
            (&with, format!("{flag}: Literal[True]")),
            (&either, format!("{flag}: bool")),
        ];
        let overload = |(result, flag): (&String, String)| {
            format!("@overload\n{}", self.definition(result, Some(flag)))
        };
        overloads.map(overload).concat()
    }

    /// Returns the type of the results.
    fn result(&self) -> String {
        match self.outputs.len() {
            1 => "_A".to_owned(),
            n => format!("tuple[{}]", vec!["_A"; n].join(", ")),
        }
    }

    fn definition(&self, result: &str, flag: Option<String>) -> String {
        let params = self.params.iter().map(parameter);
        let out = format!("out: {result} | None = None");
        let options = OPTIONS.map(str::to_owned);
        let lines = params
            .chain(["*".to_owned()])
            .chain(flag)
            .chain([out])
            .chain(options);
        let lines: String = lines.map(|line| format!("    {line},\n")).collect();
        format!("def {}(\n{lines}) -> {result}: ...\n", self.name)
    }
}

fn parameter(param: &OpParam) -> String {
    let ty = match param.kind {
        OpParamKind::Tensor => "_A",
        OpParamKind::Number => "float",
        OpParamKind::Integer => "int",
        OpParamKind::Integers | OpParamKind::Pairs | OpParamKind::Type => "Any",
        OpParamKind::Pair => "tuple[int, int]",
        OpParamKind::Text => "str",
        OpParamKind::Flag => "bool",
    };
    match param.default {
        None => format!("{}: {ty}", param.name),
        Some(DefaultValue::Nothing) if ty != "Any" => format!("{}: {ty} | None = None", param.name),
        Some(default) => format!("{}: {ty} = {}", param.name, default.text()),
    }
}

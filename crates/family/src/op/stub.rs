//! Python type stubs of ops.

use super::signature::{DefaultValue, OpParam, OpParamKind, Signature};

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
        let Some(optional) = &self.optional_output else {
            return self.definition(self.name, None);
        };
        // One overload for each value of the flag.
        let without = self.definition(self.name, Some((optional.flag, "Literal[False] = False")));
        let with = self
            .with_optional_output()
            .map(|variant| variant.definition(self.name, Some((optional.flag, "Literal[True]"))));
        format!(
            "@overload\n{without}@overload\n{}",
            with.unwrap_or_default()
        )
    }

    /// Returns the definition of a function, with the type of the flag that selects it.
    fn definition(&self, name: &str, flag: Option<(&str, &str)>) -> String {
        let result = match self.outputs.len() {
            1 => "_A".to_owned(),
            n => format!("tuple[{}]", vec!["_A"; n].join(", ")),
        };
        let params = self.params.iter().map(parameter);
        let flag = flag.map(|(flag, ty)| format!("{flag}: {ty}"));
        let out = format!("out: {result} | None = None");
        let options = OPTIONS.map(str::to_owned);
        let lines = params
            .chain(["*".to_owned()])
            .chain(flag)
            .chain([out])
            .chain(options);
        let lines: String = lines.map(|line| format!("    {line},\n")).collect();
        format!("def {name}(\n{lines}) -> {result}: ...\n")
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

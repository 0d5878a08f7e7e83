//! Launch parameters.

use crate::names::{Names, sanitize};
use warpline_ir::{Param, ParamKind, Type};

/// Returns the PTX names of the parameters, by id.
pub(crate) fn names(params: &[Param]) -> Vec<String> {
    let mut names = Names::default();
    params
        .iter()
        .map(|p| names.unique(format!("param_{}", sanitize(&p.name))))
        .collect()
}

/// Returns the declaration of a parameter.
pub(crate) fn declaration(param: &Param, name: &str) -> String {
    match &param.kind {
        ParamKind::Scalar(ty) => format!(".param .{} {name}", scalar_type(*ty)),
        // A launch guarantees only the alignment of the element type.
        ParamKind::Pointer(dtype) => {
            format!(".param .u64 .ptr .global .align {} {name}", dtype.bytes())
        }
        ParamKind::TensorMap(_) => format!(".param .align 64 .b8 {name}[128]"),
    }
}

/// Returns the PTX type of a scalar parameter; a type without a PTX name is passed as bits.
fn scalar_type(ty: Type) -> &'static str {
    match ty {
        Type::Pred => "b8",
        Type::F16 | Type::Bf16 | Type::E4m3x2 | Type::E5m2x2 => "b16",
        Type::Tf32 | Type::F16x2 | Type::Bf16x2 | Type::E4m3x4 | Type::E5m2x4 => "b32",
        number => number.ptx(),
    }
}

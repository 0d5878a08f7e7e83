//! Actions of the entry: its directives and parameters.

use super::ProgramAction;
use crate::action::{Action, ActionKind};
use crate::value::OperandValue;
use warpline_ir::{Kernel, ParamKind};

/// Returns the kernel's name as a PTX identifier: other characters become underscores, and the
/// name of the shared memory is reserved.
pub(crate) fn entry_name(kernel: &Kernel) -> String {
    let identifier_char = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut name: String = kernel.name.chars().map(identifier_char).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.insert(0, 'k');
    }
    if name == "smem" {
        name.push_str("_2");
    }
    name
}

/// Returns the actions of the entry.
pub(super) fn actions<'a>(kernel: &'a Kernel, name: &'a str) -> Vec<ProgramAction<'a>> {
    let list = |numbers: &[u32]| OperandValue::List(numbers.iter().map(|&n| n.into()).collect());
    let clustered = kernel.cluster_size() > 1;
    let cluster = match clustered {
        true => list(&kernel.cluster),
        false => OperandValue::Absent,
    };
    let shared = match kernel.shared_bytes {
        0 => OperandValue::Absent,
        _ => kernel.shared_align().into(),
    };
    let facts = [
        ("name", OperandValue::Name(name)),
        ("threads", list(&[kernel.threads(), 1, 1])),
        // Without this directive ptxas ignores `setmaxnreg`.
        ("CTAs per SM", list(&[1])),
        ("cluster", cluster),
        ("explicit cluster", OperandValue::flag(clustered)),
        ("shared memory alignment", shared),
    ];
    let facts = facts.into_iter().map(|(name, value)| ProgramAction {
        action: Action::new(ActionKind::Entry).with(name, value),
        at: None,
        role: None,
    });
    let params = kernel.params.iter().map(|p| ProgramAction {
        action: parameter(&p.kind),
        at: Some(p.loc),
        role: None,
    });
    facts.chain(params).collect()
}

fn parameter<'a>(kind: &ParamKind) -> Action<'a> {
    let (bytes, align, pointer) = match kind {
        // A predicate is passed as a byte.
        ParamKind::Scalar(ty) => (ty.bytes().max(1), None, false),
        ParamKind::Pointer(dtype) => (8, Some(dtype.bytes()), true),
        ParamKind::TensorMap(_) => (128, Some(64), false),
    };
    let number = |n: usize| OperandValue::Number(n as u64);
    Action::new(ActionKind::Parameter)
        .with("bytes", number(bytes))
        .with("alignment", align.map_or(OperandValue::Absent, number))
        .with("global pointer", OperandValue::flag(pointer))
}

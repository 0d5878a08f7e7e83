//! What the head of the entry must say.

use super::Meant;
use crate::act::{Act, Kind};
use crate::value::Value;
use warpline_ir::{Kernel, ParamKind};

/// The kernel's name as PTX can spell it: other characters are underscores,
/// and the name of its shared memory is taken.
pub(crate) fn name(kernel: &Kernel) -> String {
    let spelled = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut name: String = kernel.name.chars().map(spelled).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.insert(0, 'k');
    }
    if name == "smem" {
        name.push_str("_2");
    }
    name
}

/// The acts of the head.
pub(super) fn acts<'a>(kernel: &'a Kernel, name: &'a str) -> Vec<Meant<'a>> {
    let list = |numbers: &[u32]| Value::List(numbers.iter().map(|&n| n.into()).collect());
    let clustered = kernel.cluster_size() > 1;
    let cluster = match clustered {
        true => list(&kernel.cluster),
        false => Value::Nothing,
    };
    let shared = match kernel.shared_bytes {
        0 => Value::Nothing,
        _ => kernel.shared_align().into(),
    };
    let facts = [
        ("name", Value::Name(name)),
        ("threads", list(&[kernel.threads(), 1, 1])),
        // Without it ptxas ignores `setmaxnreg`.
        ("CTAs of an SM", list(&[1])),
        ("cluster", cluster),
        ("launched with its cluster", Value::yes(clustered)),
        ("alignment of shared memory", shared),
    ];
    let facts = facts.into_iter().map(|(name, value)| Meant {
        act: Act::new(Kind::Entry).with(name, value),
        at: None,
        role: None,
    });
    let params = kernel.params.iter().map(|p| Meant {
        act: parameter(&p.kind),
        at: Some(p.loc),
        role: None,
    });
    facts.chain(params).collect()
}

fn parameter<'a>(kind: &ParamKind) -> Act<'a> {
    let (bytes, align, pointer) = match kind {
        // A predicate is passed in a byte.
        ParamKind::Scalar(ty) => (ty.bytes().max(1), None, false),
        ParamKind::Pointer(dtype) => (8, Some(dtype.bytes()), true),
        ParamKind::TensorMap(_) => (128, Some(64), false),
    };
    let number = |n: usize| Value::Number(n as u64);
    Act::new(Kind::Parameter)
        .with("bytes", number(bytes))
        .with("alignment", align.map_or(Value::Nothing, number))
        .with("a pointer to global memory", Value::yes(pointer))
}

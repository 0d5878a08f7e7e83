//! R18, the read-only path: what the kernel writes is not read by `ld.global.nc`.

use super::pointers::{Pointers, Spot};
use super::{Case, OpSite};
use crate::refusal::{Findings, Rule};
use warpline_ir::ops::memory::LoadPath;
use warpline_ir::{Access, At, Memory, Op};

/// The rules of this group.
pub const RULES: &[Rule] = &[READ_ONLY];

const READ_ONLY: Rule = Rule {
    code: "R18.read-only",
    holds: "memory that is read through the read-only path (ld.global.nc) is not written during the launch",
};

pub(crate) fn judge<'k>(case: &Case<'k>, found: &mut Findings<'k>) {
    if !case.ops.iter().any(|op| read_only(op).is_some()) {
        return;
    }
    let pointers = Pointers::of(case.kernel, &case.ops);
    let writes: Vec<(&OpSite, Spot)> = (case.ops.iter())
        .flat_map(|op| written(op, &pointers).map(move |spot| (op, spot)))
        .collect();
    for op in &case.ops {
        let spot = read_only(op).and_then(|(addr, offset)| pointers.at(addr, offset));
        let Some(spot) = spot else { continue };
        if let Some((write, _)) = writes.iter().find(|(_, w)| w.may_be(spot)) {
            let name = &case.kernel.param(spot.param).name;
            let text = format!(
                "read-only load of written memory: {} reads {name} through the read-only path, and {} writes {name} in the same kernel, so the load may return stale bytes",
                op.op.name(),
                write.op.name()
            );
            found.refuse(&READ_ONLY, op.loc(), op.site.role, text);
            found.beside("the write", write.loc(), write.site.role);
            found.help(format!(
                "read {name} with `load` (the coherent path) instead of `LoadCache::READ_ONLY`"
            ));
        }
    }
}

/// The address of a load through the read-only path.
fn read_only(op: &OpSite) -> Option<(warpline_ir::Operand, i32)> {
    match op.op {
        Op::Load(o) if o.cache.path == LoadPath::ReadOnly => match o.at {
            At::Global { addr, offset } => Some((addr, offset)),
            At::Shared(_) => None,
        },
        _ => None,
    }
}

/// Where an op writes to global memory, as far as it is known.
fn written(op: &OpSite, pointers: &Pointers) -> impl Iterator<Item = Spot> {
    let is_load = matches!(op.op, Op::StrongLoad(_));
    let writes = op
        .facts
        .touches
        .iter()
        .filter(move |t| t.access != Access::Read && !is_load);
    writes.filter_map(|t| match t.memory {
        Memory::At(At::Global { addr, offset }, _) => pointers.at(addr, offset),
        // A copy writes from there on.
        Memory::Global(addr, _) => pointers.at(addr, 0).map(|s| Spot::behind(s.param)),
        Memory::Tensor(param) => Some(Spot::behind(param)),
        _ => None,
    })
}

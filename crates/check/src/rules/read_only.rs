//! R18, the read-only path: `ld.global.nc` does not read memory that the kernel writes.

use super::global_words::{GlobalWord, Pointers};
use super::{OpSite, RuleContext};
use crate::codes;
use crate::diagnostic::{Findings, Message, Rule};
use warpline_ir::ops::memory::LoadPath;
use warpline_ir::{MemoryAddress, MemoryRegion, Op};

/// The rules of this group.
pub const RULES: &[Rule] = &[READ_ONLY];

const READ_ONLY: Rule = codes::R18_READ_ONLY;

pub(crate) fn check<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    if !cx.ops.iter().any(|op| read_only(op).is_some()) {
        return;
    }
    let pointers = Pointers::of(cx.kernel, &cx.ops);
    let writes: Vec<(&OpSite, GlobalWord)> = (cx.ops.iter())
        .flat_map(|op| written(op, &pointers).map(move |word| (op, word)))
        .collect();
    for op in &cx.ops {
        let word = read_only(op).and_then(|(addr, offset)| pointers.word(addr, offset));
        let Some(word) = word else { continue };
        if let Some((write, _)) = writes.iter().find(|(_, w)| w.may_equal(word)) {
            let name = &cx.kernel.param(word.param).name;
            let text = Message::new(format!(
                "`{}` reads `{name}` through the read-only path, and `{}` writes `{name}` in the same kernel",
                op.op.name(),
                write.op.name()
            ))
            .label(format!("reads `{name}` here"))
            .cause("the read-only cache is not coherent, so the load may return stale bytes");
            found.report(&READ_ONLY, op.loc(), op.site.role, text);
            found.label(
                format!("writes `{name}` here"),
                write.loc(),
                write.site.role,
            );
            found.help(format!(
                "read `{name}` with `load` (the coherent path) instead of `LoadCache::READ_ONLY`"
            ));
        }
    }
}

/// Returns the address of a load through the read-only path.
fn read_only(op: &OpSite) -> Option<(warpline_ir::Operand, i32)> {
    match op.op {
        Op::Load(o) if o.cache.path == LoadPath::ReadOnly => match o.at {
            MemoryAddress::Global { addr, offset } => Some((addr, offset)),
            MemoryAddress::Shared(_) => None,
        },
        _ => None,
    }
}

/// Returns the known words of global memory that an op writes.
fn written(op: &OpSite, pointers: &Pointers) -> impl Iterator<Item = GlobalWord> {
    op.writes().filter_map(|t| match t.memory {
        MemoryRegion::PerLane(MemoryAddress::Global { addr, offset }, _) => {
            pointers.word(addr, offset)
        }
        // A copy writes an unknown number of bytes from the address on.
        MemoryRegion::Global(addr, _) => pointers
            .word(addr, 0)
            .map(|s| GlobalWord::unknown_in(s.param)),
        MemoryRegion::Tensor(param) => Some(GlobalWord::unknown_in(param)),
        _ => None,
    })
}

//! Parser of `wgmma` and `mma`.

use super::parts::Parts;
use super::registers::number;
use crate::action::{Action, ActionKind};
use crate::value::OperandValue;

/// Parses `wgmma`.
pub(super) fn wgmma<'a>(mut p: Parts<'_, 'a>) -> Action<'a> {
    let verb = p.next();
    let aligned = OperandValue::flag(p.take("sync") && p.take("aligned"));
    let action = match verb {
        "fence" => Action::new(ActionKind::WgmmaFence),
        "commit_group" => Action::new(ActionKind::WgmmaCommit),
        "wait_group" => Action::new(ActionKind::WgmmaWait).with("pending groups", p.operand()),
        "mma_async" => {
            let action = Action::new(ActionKind::Wgmma)
                .with("shape", shape(p.next()))
                .with("types", p.rest())
                .with("accumulators", p.operand())
                .with("A", p.operand())
                .with("B", p.operand())
                .with("scale-d", p.operand())
                .with("sign of A", p.operand())
                .with("sign of B", p.operand());
            let transposed = (0..p.len()).map(|_| p.operand()).collect();
            action.with("transposed", OperandValue::List(transposed))
        }
        _ => return p.unknown(),
    };
    p.done(action.with("aligned", aligned))
}

/// Parses `mma.sync`.
pub(super) fn mma<'a>(mut p: Parts<'_, 'a>) -> Action<'a> {
    let aligned = OperandValue::flag(p.take("sync") && p.take("aligned"));
    let action = Action::new(ActionKind::Mma)
        .with("shape", shape(p.next()))
        .with("types", p.rest())
        .with("D", p.operand())
        .with("A", p.operand())
        .with("B", p.operand())
        .with("C", p.operand())
        .with("aligned", aligned);
    p.done(action)
}

/// Parses a shape such as `m64n256k16`.
fn shape(word: &str) -> OperandValue<'_> {
    let sides: Vec<_> = word.split(['m', 'n', 'k']).skip(1).map(number).collect();
    match sides[..] {
        [Some(m), Some(n), Some(k)] => {
            OperandValue::Computed("shape", [m, n, k].map(OperandValue::Number).to_vec())
        }
        _ => OperandValue::Name(word),
    }
}

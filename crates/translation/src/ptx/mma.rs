//! Parser of `wgmma` and `mma`.

use super::instruction_parser::InstructionParser;
use super::registers::number;
use crate::action::{Action, ActionKind};
use crate::value::OperandValue;

/// Parses `wgmma`.
pub(super) fn wgmma<'a>(mut p: InstructionParser<'_, 'a>) -> Action<'a> {
    let verb = p.next_modifier();
    let aligned = OperandValue::flag(p.take_modifier("sync") && p.take_modifier("aligned"));
    let action = match verb {
        "fence" => Action::new(ActionKind::WgmmaFence),
        "commit_group" => Action::new(ActionKind::WgmmaCommit),
        "wait_group" => Action::new(ActionKind::WgmmaWait).with("pending groups", p.operand()),
        "mma_async" => {
            let action = Action::new(ActionKind::Wgmma)
                .with("shape", shape(p.next_modifier()))
                .with("types", p.remaining_modifiers())
                .with("accumulators", p.operand())
                .with("A", p.operand())
                .with("B", p.operand())
                .with("scale-d", p.operand())
                .with("sign of A", p.operand())
                .with("sign of B", p.operand());
            let transposed = (0..p.remaining_operands()).map(|_| p.operand()).collect();
            action.with("transposed", OperandValue::List(transposed))
        }
        _ => return p.unknown(),
    };
    p.finish(action.with("aligned", aligned))
}

/// Parses `mma.sync`.
pub(super) fn mma<'a>(mut p: InstructionParser<'_, 'a>) -> Action<'a> {
    let aligned = OperandValue::flag(p.take_modifier("sync") && p.take_modifier("aligned"));
    let action = Action::new(ActionKind::Mma)
        .with("shape", shape(p.next_modifier()))
        .with("types", p.remaining_modifiers())
        .with("D", p.operand())
        .with("A", p.operand())
        .with("B", p.operand())
        .with("C", p.operand())
        .with("aligned", aligned);
    p.finish(action)
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

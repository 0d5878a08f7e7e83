//! Matrix products.

use super::parts::Parts;
use super::registers::number;
use crate::act::{Act, Kind};
use crate::value::Value;

/// `wgmma`.
pub(super) fn wgmma<'a>(mut p: Parts<'_, 'a>) -> Act<'a> {
    let verb = p.next();
    let whole = Value::yes(p.take("sync") && p.take("aligned"));
    let act = match verb {
        "fence" => Act::new(Kind::WgmmaFence),
        "commit_group" => Act::new(Kind::WgmmaCommit),
        "wait_group" => Act::new(Kind::WgmmaWait).with("groups that may stay open", p.operand()),
        "mma_async" => {
            let act = Act::new(Kind::Wgmma)
                .with("shape", shape(p.next()))
                .with("types", p.rest())
                .with("accumulators", p.operand())
                .with("A", p.operand())
                .with("B", p.operand())
                .with("adds", p.operand())
                .with("sign of A", p.operand())
                .with("sign of B", p.operand());
            let transposed = (0..p.len()).map(|_| p.operand()).collect();
            act.with("transposed", Value::List(transposed))
        }
        _ => return p.unknown(),
    };
    p.done(act.with("by whole warps", whole))
}

/// `mma.sync`.
pub(super) fn mma<'a>(mut p: Parts<'_, 'a>) -> Act<'a> {
    let whole = Value::yes(p.take("sync") && p.take("aligned"));
    let act = Act::new(Kind::Mma)
        .with("shape", shape(p.next()))
        .with("types", p.rest())
        .with("D", p.operand())
        .with("A", p.operand())
        .with("B", p.operand())
        .with("C", p.operand())
        .with("by whole warps", whole);
    p.done(act)
}

/// A shape, `m64n256k16`, as its three numbers.
fn shape(word: &str) -> Value<'_> {
    let sides: Vec<_> = word.split(['m', 'n', 'k']).skip(1).map(number).collect();
    match sides[..] {
        [Some(m), Some(n), Some(k)] => Value::Made("shape", [m, n, k].map(Value::Number).to_vec()),
        _ => Value::Name(word),
    }
}

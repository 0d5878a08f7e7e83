//! Which threads a condition parts.

use super::Case;
use super::code::Def;
use warpline_ir::{Op, RegId, Special};

/// Who takes one arm of a branch while others take the other.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Parts {
    /// Lanes of every warp.
    Lanes,
    /// Threads of the CTA.
    Threads,
    /// All threads of a CTA may take the same: the CTA, the launch or data decides.
    Elsewhere,
}

impl Parts {
    /// The threads that a condition sends to different branches.
    pub(super) fn of(case: &Case, cond: RegId) -> Self {
        let mut seen = vec![cond];
        let (mut at, mut parts) = (0, Parts::Elsewhere);
        while let Some(&r) = seen.get(at) {
            at += 1;
            // A register that is written twice may change over time, in all threads alike.
            let [Def::Op(id)] = *case.code.defs(r) else {
                return Parts::Elsewhere;
            };
            let op = &case.ops[id];
            match op.op {
                Op::ReadSpecial(o) => match o.which {
                    Special::ClusterSize | Special::ClusterDim(_) => {}
                    Special::LaneId if parts == Parts::Elsewhere => parts = Parts::Lanes,
                    Special::LaneId => {}
                    Special::Tid | Special::WarpId => parts = Parts::Threads,
                    _ => return Parts::Elsewhere,
                },
                Op::ReadParam(_) => return Parts::Elsewhere,
                _ if !op.facts.touches.is_empty() || !op.facts.syncs.is_empty() => {
                    return Parts::Elsewhere;
                }
                _ => {
                    for r in op.facts.named_reads() {
                        if !seen.contains(&r) {
                            seen.push(r);
                        }
                    }
                }
            }
        }
        parts
    }
}

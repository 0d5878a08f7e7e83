//! The threads that a condition sends to different branches.

use super::RuleContext;
use super::control_flow::Def;
use warpline_ir::{Op, RegId, Special};

/// The threads that take different arms of a branch.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Divergence {
    /// Lanes of one warp take different arms, in every warp.
    Lanes,
    /// Threads of the CTA take different arms.
    Threads,
    /// All threads of a CTA may take the same arm: the condition depends on the CTA, the launch or
    /// data.
    PossiblyUniform,
}

impl Divergence {
    /// Returns the threads that a condition sends to different branches.
    pub(super) fn of(cx: &RuleContext, cond: RegId) -> Self {
        let mut seen = vec![cond];
        let (mut next, mut divergence) = (0, Divergence::PossiblyUniform);
        while let Some(&r) = seen.get(next) {
            next += 1;
            // A loop counter or a register with several definitions may be the same in all threads.
            let [Def::Op(id)] = *cx.code.defs(r) else {
                return Divergence::PossiblyUniform;
            };
            let op = &cx.ops[id];
            match op.op {
                Op::ReadSpecial(o) => match o.which {
                    Special::ClusterSize | Special::ClusterDim(_) => {}
                    Special::LaneId if divergence == Divergence::PossiblyUniform => {
                        divergence = Divergence::Lanes;
                    }
                    Special::LaneId => {}
                    Special::Tid | Special::WarpId => divergence = Divergence::Threads,
                    _ => return Divergence::PossiblyUniform,
                },
                Op::ReadParam(_) => return Divergence::PossiblyUniform,
                _ if !op.facts.touches.is_empty() || !op.facts.syncs.is_empty() => {
                    return Divergence::PossiblyUniform;
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
        divergence
    }
}

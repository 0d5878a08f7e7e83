//! Warp votes.

use super::{converged_masks, uniformity_in_mask};
use crate::domain::Domain;
use crate::lanes::mask_of;
use crate::machine::{Asm, Effects, Exec, ExecStatus, Machine};
use crate::ops::compare::predicate;
use crate::ops::{Exactness, Instr, OpInfo, Uniform};
use crate::types::Type;
use crate::value::{Operand, RegId};

/// The mode of a [`Vote`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VoteMode {
    /// True if the predicate is true in all lanes.
    All,
    /// True if the predicate is true in any lane.
    Any,
    /// True if the predicate is the same in all lanes.
    Uniform,
}

impl VoteMode {
    /// Returns the name in PTX and in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            VoteMode::All => "all",
            VoteMode::Any => "any",
            VoteMode::Uniform => "uni",
        }
    }
}

/// Reduces a predicate across the lanes of the mask.
#[derive(Clone, PartialEq, Debug)]
pub struct Vote {
    /// The mode.
    pub mode: VoteMode,
    /// Result, a predicate.
    pub dst: RegId,
    /// Each lane's predicate.
    pub src: Operand,
    /// The member mask (`u32`).
    pub mask: Operand,
}

impl Instr for Vote {
    const INFO: OpInfo = OpInfo {
        name: "vote",
        ptx: "vote.sync.{all,any,uni}.pred",
        doc: "tests whether a predicate is true in all lanes, in any lane, or uniform",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("vote.{}", self.mode.name())
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.arg(self.src, Type::Pred);
        e.arg(self.mask, Type::U32);
    }
    fn uniform(&self, operands: Uniform) -> Uniform {
        uniformity_in_mask(self.mask, operands)
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (d, p) = (a.reg(self.dst), predicate(a, self.src));
        let mask = a.operand(self.mask, Type::U32);
        a.emit(format!(
            "vote.sync.{}.pred {d}, {p}, {mask}",
            self.mode.name()
        ));
    }
    fn transfer<D: Domain>(&self, d: &mut D) {
        let p = d.read(self.src, Type::Pred);
        let v = d.vote(self.mode, p);
        d.write(self.dst, v);
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let masks = converged_masks(m, self.mask)?;
        let true_lanes = m.pred(self.src);
        let results = masks.map(|mask| match self.mode {
            VoteMode::All => true_lanes & mask == mask,
            VoteMode::Any => true_lanes & mask != 0,
            VoteMode::Uniform => true_lanes & mask == mask || true_lanes & mask == 0,
        });
        m.set_pred(self.dst, mask_of(&results));
        Ok(ExecStatus::Completed)
    }
}

/// Collects a predicate of all lanes of the mask, one bit per lane.
#[derive(Clone, PartialEq, Debug)]
pub struct Ballot {
    /// The bits (`U32`).
    pub dst: RegId,
    /// The predicate.
    pub src: Operand,
    /// The member mask (`u32`).
    pub mask: Operand,
}

impl Instr for Ballot {
    const INFO: OpInfo = OpInfo {
        name: "ballot",
        ptx: "vote.sync.ballot.b32",
        doc: "collects a predicate of all lanes of the member mask, one bit per lane",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "ballot".into()
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.arg(self.src, Type::Pred);
        e.arg(self.mask, Type::U32);
    }
    fn uniform(&self, operands: Uniform) -> Uniform {
        uniformity_in_mask(self.mask, operands)
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (d, p) = (a.reg(self.dst), predicate(a, self.src));
        let mask = a.operand(self.mask, Type::U32);
        a.emit(format!("vote.sync.ballot.b32 {d}, {p}, {mask}"));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let masks = converged_masks(m, self.mask)?;
        let true_lanes = m.pred(self.src);
        m.set(self.dst, &masks.map(|mask| true_lanes & mask));
        Ok(ExecStatus::Completed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::fake::{Warp, arg, ptx, reg};
    use crate::machine::FaultKind;

    #[test]
    fn a_vote_ignores_lanes_outside_the_mask() {
        let vote = |mode, mask: u32| Vote {
            mode,
            dst: reg(0),
            src: arg(1),
            mask: Operand::imm(mask),
        };
        let vote_result = |mode, true_lanes: u32, mask: u32| {
            let warp = Warp::new().with_pred(1, true_lanes).with_active(mask);
            match warp.run(&vote(mode, mask)).read_pred(0) {
                0 => false,
                m => {
                    assert_eq!(m, mask, "every lane has the same result");
                    true
                }
            }
        };
        assert!(vote_result(VoteMode::All, 0xff, 0xff));
        assert!(!vote_result(VoteMode::All, 0xfe, 0xff));
        assert!(vote_result(VoteMode::Any, 0x10, 0xff));
        assert!(!vote_result(VoteMode::Any, 0xff00, 0xff));
        assert!(vote_result(VoteMode::Uniform, 0xff00, 0xff));
        assert!(vote_result(VoteMode::Uniform, 0xff, 0xff));
        assert!(!vote_result(VoteMode::Uniform, 1, 0xff));
        let warp = Warp::new().with_active(1);
        assert_eq!(
            warp.fault(&vote(VoteMode::All, 3)).kind,
            FaultKind::Convergence
        );
        assert_eq!(
            ptx(&vote(VoteMode::Uniform, 3)),
            ["vote.sync.uni.pred %0, %1, 3"]
        );
    }

    #[test]
    fn a_ballot_is_the_predicate_within_the_mask() {
        let ballot = Ballot {
            dst: reg(0),
            src: arg(1),
            mask: Operand::imm(0xf0u32),
        };
        let warp = Warp::new()
            .with_pred(1, 0x5a)
            .with_active(0xf0)
            .run(&ballot);
        assert_eq!(warp.read::<u32>(0)[3..5], [0, 0x50]);
        assert_eq!(ptx(&ballot), ["vote.sync.ballot.b32 %0, %1, 240"]);
    }
}

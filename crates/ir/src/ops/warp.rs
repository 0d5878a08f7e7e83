//! Exchange and synchronization between the lanes of one warp.
//!
//! Every op here has a member mask. Each active lane must be in its own mask,
//! and all lanes of the mask must be active with the same mask. PTX leaves
//! other cases undefined; the executor reports a [`FaultKind::Convergence`] fault.

mod matching;
mod redux;
mod shuffle;
mod vote;

pub use matching::{MatchAll, MatchAny};
pub use redux::{Redux, ReduxMode};
pub use shuffle::{Shuffle, ShuffleMode};
pub use vote::{Ballot, Vote, VoteMode};

use super::{Exactness, Instr, OpInfo, Uniform};
use crate::lanes::lanes_of;
use crate::machine::{Asm, Effects, Exec, Fault, FaultKind, Machine, Mask, PerLane, WARP};
use crate::sync::SyncOp;
use crate::types::Type;
use crate::value::Operand;

fn convergence_fault(text: String) -> Fault {
    Fault::new(FaultKind::Convergence, text)
}

/// Returns the member mask of every lane, after checking the rule of the module.
fn converged_masks<M: Machine>(m: &mut M, mask: Operand) -> Result<PerLane<Mask>, Fault> {
    let masks = m.get::<u32>(mask);
    let active = m.active();
    if active == Mask::MAX && masks == [Mask::MAX; WARP] {
        return Ok(masks);
    }
    for i in lanes_of(active) {
        let mask = masks[i];
        if mask >> i & 1 == 0 {
            return Err(convergence_fault(format!(
                "is executed by lane {i}, which is not in its own member mask {mask:#010x}; every executing lane must be a member"
            )));
        }
        if mask & !active != 0 {
            return Err(convergence_fault(format!(
                "has member mask {mask:#010x} in lane {i}, but only lanes {active:#010x} are active; all members must execute it together"
            )));
        }
        if let Some(j) = lanes_of(mask).find(|&j| masks[j] != mask) {
            return Err(convergence_fault(format!(
                "has member mask {mask:#010x} in lane {i} and {:#010x} in lane {j}; all members must have the same mask",
                masks[j]
            )));
        }
    }
    Ok(masks)
}

/// Returns the uniformity of a result that is equal in all lanes of a member mask.
fn uniformity_in_mask(mask: Operand, operands: Uniform) -> Uniform {
    match mask {
        Operand::Imm(0xffff_ffff) => operands.max(Uniform::Warp),
        _ => operands,
    }
}

/// Synchronizes the lanes of the mask and orders their memory accesses.
#[derive(Clone, PartialEq, Debug)]
pub struct WarpSync {
    /// The member mask (`u32`).
    pub mask: Operand,
}

impl Instr for WarpSync {
    const INFO: OpInfo = OpInfo {
        name: "warp_sync",
        ptx: "bar.warp.sync",
        doc: "synchronizes the lanes of the member mask and orders their memory accesses",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "warp_sync".into()
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.sync(&SyncOp::Warp { mask: self.mask });
    }
    fn asm(&self, a: &mut dyn Asm) {
        let mask = a.operand(self.mask, Type::U32);
        a.emit(format!("bar.warp.sync {mask}"));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        converged_masks(m, self.mask)?;
        m.sync(&SyncOp::Warp { mask: self.mask })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::fake::{Warp, arg, ptx, reg};

    /// Returns a butterfly shuffle of register 1 to register 0 by register 2.
    fn butterfly(mask: Operand) -> Shuffle {
        Shuffle {
            mode: ShuffleMode::Bfly,
            ty: Type::U32,
            dst: reg(0),
            src: arg(1),
            lane: arg(2),
            clamp: 31,
            mask,
        }
    }

    /// Returns a warp with 100 + lane in register 1 and `number` in register 2.
    fn warp(number: u32) -> Warp {
        let lanes: [u32; 32] = std::array::from_fn(|i| 100 + i as u32);
        Warp::new().with(1, &lanes).with(2, &[number; 32])
    }

    #[test]
    fn all_members_of_a_mask_must_be_active() {
        let op = butterfly(Operand::Imm(0xff));
        let got = warp(1).with_active(0xff).run(&op).read::<u32>(0);
        assert_eq!(got[..9], [101, 100, 103, 102, 105, 104, 107, 106, 0]);

        let fault = warp(1).with_active(0x0f).fault(&op);
        assert_eq!(fault.kind, FaultKind::Convergence);
        assert_eq!(
            fault.text,
            "has member mask 0x000000ff in lane 0, but only lanes 0x0000000f are active; all members must execute it together"
        );
        let fault = warp(1).fault(&op);
        assert_eq!(
            fault.text,
            "is executed by lane 8, which is not in its own member mask 0x000000ff; every executing lane must be a member"
        );
        let fault = warp(8).with_active(0xff).fault(&op);
        assert_eq!(
            fault.text,
            "in lane 0 reads lane 8, which is not in the member mask 0x000000ff"
        );

        // Two groups with disjoint masks are independent shuffles.
        let masks: [u32; 32] = std::array::from_fn(|i| if i < 16 { 0xffff } else { 0xffff_0000 });
        let op = butterfly(arg(3));
        let got = warp(3).with(3, &masks).run(&op).read::<u32>(0);
        assert_eq!((got[0], got[16]), (103, 119));
        let mut inconsistent = masks;
        inconsistent[5] = 0xff;
        let fault = warp(3).with(3, &inconsistent).fault(&op);
        assert_eq!(
            fault.text,
            "has member mask 0x0000ffff in lane 0 and 0x000000ff in lane 5; all members must have the same mask"
        );
    }

    #[test]
    fn warp_sync_is_one_sync_op() {
        let op = WarpSync {
            mask: Operand::imm(3u32),
        };
        let warp = Warp::new().with_active(3).run(&op);
        assert_eq!(warp.syncs, [SyncOp::Warp { mask: op.mask }]);
        assert_eq!(
            Warp::new().with_active(1).fault(&op).kind,
            FaultKind::Convergence
        );
        assert_eq!(ptx(&op), ["bar.warp.sync 3"]);
    }
}

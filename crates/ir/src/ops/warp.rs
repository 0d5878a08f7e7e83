//! Lanes of one warp among themselves.
//!
//! Every op here names its lanes by a mask, and all of them must be there:
//! each active lane is in its own mask, and the lanes it names are active with
//! the same mask. PTX leaves the rest undefined; the executor calls it a
//! [`FaultKind::Convergence`] fault.

mod matching;
mod redux;
mod shuffle;
mod vote;

pub use matching::{MatchAll, MatchAny};
pub use redux::{Redux, ReduxMode};
pub use shuffle::{Shuffle, ShuffleMode};
pub use vote::{Ballot, Vote, VoteMode};

use super::{Exactness, Info, Instr, Uniform};
use crate::lanes::lanes_of;
use crate::machine::{Asm, Effects, Exec, Fault, FaultKind, Lanes, Machine, Mask, WARP};
use crate::sync::Sync;
use crate::types::Type;
use crate::value::Operand;

fn diverged(text: String) -> Fault {
    Fault::new(FaultKind::Convergence, text)
}

/// The mask of every lane, after the rule of this group.
fn converged<M: Machine>(m: &mut M, mask: Operand) -> Result<Lanes<Mask>, Fault> {
    let masks = m.get::<u32>(mask);
    let active = m.active();
    if active == Mask::MAX && masks == [Mask::MAX; WARP] {
        return Ok(masks);
    }
    for i in lanes_of(active) {
        let mask = masks[i];
        if mask >> i & 1 == 0 {
            return Err(diverged(format!(
                "lane {i} is not in its own mask {mask:#010x}"
            )));
        }
        if mask & !active != 0 {
            return Err(diverged(format!(
                "lane {i} names the lanes {mask:#010x}, but only {active:#010x} are active"
            )));
        }
        if let Some(j) = lanes_of(mask).find(|&j| masks[j] != mask) {
            return Err(diverged(format!(
                "lanes {i} and {j} meet with different masks, {mask:#010x} and {:#010x}",
                masks[j]
            )));
        }
    }
    Ok(masks)
}

/// Who agrees on what all lanes of a mask are told.
fn told(mask: Operand, operands: Uniform) -> Uniform {
    match mask {
        Operand::Imm(0xffff_ffff) => operands.max(Uniform::Warp),
        _ => operands,
    }
}

/// The lanes of the mask meet and see each other's memory.
#[derive(Clone, PartialEq, Debug)]
pub struct WarpSync {
    /// The lanes that take part (`u32`).
    pub mask: Operand,
}

impl Instr for WarpSync {
    const INFO: Info = Info {
        name: "warp_sync",
        ptx: "bar.warp.sync",
        doc: "the lanes of the mask meet and see each other's memory",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "warp_sync".into()
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.sync(&Sync::Warp { mask: self.mask });
    }
    fn asm(&self, a: &mut dyn Asm) {
        let mask = a.operand(self.mask, Type::U32);
        a.emit(format!("bar.warp.sync {mask}"));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        converged(m, self.mask)?;
        m.sync(&Sync::Warp { mask: self.mask })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::fake::{Warp, arg, ptx, reg};

    /// A shuffle of register 1 to register 0, crosswise by register 2.
    fn cross(mask: Operand) -> Shuffle {
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

    /// A warp whose register 1 holds 100 + lane, and register 2 the same number in every lane.
    fn warp(number: u32) -> Warp {
        let lanes: [u32; 32] = std::array::from_fn(|i| 100 + i as u32);
        Warp::new().with(1, &lanes).with(2, &[number; 32])
    }

    #[test]
    fn lanes_of_a_mask_must_be_there() {
        let op = cross(Operand::Imm(0xff));
        let got = warp(1).with_active(0xff).run(&op).read::<u32>(0);
        assert_eq!(got[..9], [101, 100, 103, 102, 105, 104, 107, 106, 0]);

        let fault = warp(1).with_active(0x0f).fault(&op);
        assert_eq!(fault.kind, FaultKind::Convergence);
        assert_eq!(
            fault.text,
            "lane 0 names the lanes 0x000000ff, but only 0x0000000f are active"
        );
        let fault = warp(1).fault(&op);
        assert_eq!(fault.text, "lane 8 is not in its own mask 0x000000ff");
        let fault = warp(8).with_active(0xff).fault(&op);
        assert_eq!(
            fault.text,
            "lane 0 reads lane 8, which is not in the mask 0x000000ff"
        );

        // Two groups beside each other are two shuffles.
        let masks: [u32; 32] = std::array::from_fn(|i| if i < 16 { 0xffff } else { 0xffff_0000 });
        let op = cross(arg(3));
        let got = warp(3).with(3, &masks).run(&op).read::<u32>(0);
        assert_eq!((got[0], got[16]), (103, 119));
        let mut torn = masks;
        torn[5] = 0xff;
        let fault = warp(3).with(3, &torn).fault(&op);
        assert_eq!(
            fault.text,
            "lanes 0 and 5 meet with different masks, 0x0000ffff and 0x000000ff"
        );
    }

    #[test]
    fn a_warp_sync_is_an_act_of_synchronisation() {
        let op = WarpSync {
            mask: Operand::imm(3u32),
        };
        let warp = Warp::new().with_active(3).run(&op);
        assert_eq!(warp.syncs, [Sync::Warp { mask: op.mask }]);
        assert_eq!(
            Warp::new().with_active(1).fault(&op).kind,
            FaultKind::Convergence
        );
        assert_eq!(ptx(&op), ["bar.warp.sync 3"]);
    }
}

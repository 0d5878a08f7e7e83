//! Lanes of one warp among themselves.
//!
//! Every op here names its lanes by a mask, and all of them must be there:
//! each active lane is in its own mask, and the lanes it names are active with
//! the same mask. PTX leaves the rest undefined; the executor calls it a
//! [`FaultKind::Convergence`] fault.

use super::compare::predicate;
use super::{Exactness, Info, Instr, Uniform};
use crate::lanes::lanes_of;
use crate::machine::{Asm, Effects, Exec, Fault, FaultKind, Lanes, Machine, Mask, Step, WARP};
use crate::sync::Sync;
use crate::target::Target;
use crate::types::Type;
use crate::value::{Operand, RegId};

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

/// Where a lane of a [`Shuffle`] reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ShuffleMode {
    /// The lane of that number.
    Idx,
    /// That many lanes below.
    Up,
    /// That many lanes above.
    Down,
    /// Its own number xor that number.
    Bfly,
}

impl ShuffleMode {
    /// The name in PTX and in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            ShuffleMode::Idx => "idx",
            ShuffleMode::Up => "up",
            ShuffleMode::Down => "down",
            ShuffleMode::Bfly => "bfly",
        }
    }
}

/// Reads a register of another lane.
///
/// `clamp` is PTX's packed operand: bits 8 to 12 are the bits of a lane's
/// number that the source shares with the reader (they cut the warp into
/// segments), bits 0 to 4 bound the source within its segment. The whole warp
/// is `31`, and `0` for [`ShuffleMode::Up`]. A lane whose source is out of
/// bounds reads itself.
#[derive(Clone, PartialEq, Debug)]
pub struct Shuffle {
    /// Which lane is read.
    pub mode: ShuffleMode,
    /// Any type of 32 bits.
    pub ty: Type,
    /// Result.
    pub dst: RegId,
    /// The register that is read.
    pub src: Operand,
    /// The number that `mode` speaks of (`u32`, taken mod 32).
    pub lane: Operand,
    /// Segments and bound.
    pub clamp: u32,
    /// The lanes that take part (`u32`).
    pub mask: Operand,
}

impl Shuffle {
    /// The lane that `lane` reads, given its operand.
    fn source(&self, lane: usize, number: u32) -> usize {
        let lane = lane as i32;
        let number = (number & 31) as i32;
        let (bound, segment) = ((self.clamp & 31) as i32, (self.clamp >> 8 & 31) as i32);
        let first = lane & segment;
        let last = first | bound & !segment;
        let (from, inside) = match self.mode {
            ShuffleMode::Up => (lane - number, lane - number >= last),
            ShuffleMode::Down => (lane + number, lane + number <= last),
            ShuffleMode::Bfly => (lane ^ number, lane ^ number <= last),
            ShuffleMode::Idx => (first | number & !segment, first | number & !segment <= last),
        };
        if inside { from as usize } else { lane as usize }
    }
}

impl Instr for Shuffle {
    const INFO: Info = Info {
        name: "shuffle",
        ptx: "shfl.sync.{idx,up,down,bfly}.b32",
        doc: "reads a register of another lane",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("shuffle.{}.{}.{:#x}", self.mode.name(), self.ty, self.clamp)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.arg(self.src, self.ty);
        e.arg(self.lane, Type::U32);
        e.arg(self.mask, Type::U32);
    }
    fn uniform(&self, operands: Uniform) -> Uniform {
        // All lanes read the one that is named.
        match (self.mode, self.lane, self.clamp, self.mask) {
            (ShuffleMode::Idx, Operand::Imm(_), 31, Operand::Imm(0xffff_ffff)) => {
                operands.max(Uniform::Warp)
            }
            _ => operands,
        }
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (d, s) = (a.reg(self.dst), a.in_reg(self.src, self.ty));
        let (lane, mask) = (
            a.operand(self.lane, Type::U32),
            a.operand(self.mask, Type::U32),
        );
        let mode = self.mode.name();
        a.emit(format!(
            "shfl.sync.{mode}.b32 {d}, {s}, {lane}, {:#x}, {mask}",
            self.clamp
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let masks = converged(m, self.mask)?;
        let (src, number) = (m.get::<u32>(self.src), m.get::<u32>(self.lane));
        let mut r = src;
        for i in lanes_of(m.active()) {
            let from = self.source(i, number[i]);
            if masks[i] >> from & 1 == 0 {
                return Err(diverged(format!(
                    "lane {i} reads lane {from}, which is not in the mask {:#010x}",
                    masks[i]
                )));
            }
            r[i] = src[from];
        }
        m.set(self.dst, &r);
        Ok(Step::Next)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        if self.ty.bytes() != 4 {
            return Err(format!("shuffle takes types of 32 bits, not {}", self.ty));
        }
        if self.clamp & !0x1f1f != 0 {
            return Err(format!(
                "shuffle's clamp has five bits of bound and, from bit 8 on, five of segment; {:#x} has others",
                self.clamp
            ));
        }
        Ok(())
    }
}

/// Who agrees on the answer of a vote.
fn votes(mask: Operand, operands: Uniform) -> Uniform {
    match mask {
        Operand::Imm(0xffff_ffff) => operands.max(Uniform::Warp),
        _ => operands,
    }
}

/// What a [`Vote`] asks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VoteMode {
    /// Does the predicate hold in all lanes?
    All,
    /// Does it hold in any?
    Any,
    /// Is it the same in all?
    Uniform,
}

impl VoteMode {
    /// The name in PTX and in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            VoteMode::All => "all",
            VoteMode::Any => "any",
            VoteMode::Uniform => "uni",
        }
    }
}

/// Asks all lanes of the mask about a predicate.
#[derive(Clone, PartialEq, Debug)]
pub struct Vote {
    /// The question.
    pub mode: VoteMode,
    /// The answer, a predicate.
    pub dst: RegId,
    /// What is asked about, a predicate.
    pub src: Operand,
    /// The lanes that take part (`u32`).
    pub mask: Operand,
}

impl Instr for Vote {
    const INFO: Info = Info {
        name: "vote",
        ptx: "vote.sync.{all,any,uni}.pred",
        doc: "whether a predicate holds in all lanes, in any, or in all or none",
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
        votes(self.mask, operands)
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (d, p) = (a.reg(self.dst), predicate(a, self.src));
        let mask = a.operand(self.mask, Type::U32);
        a.emit(format!(
            "vote.sync.{}.pred {d}, {p}, {mask}",
            self.mode.name()
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let masks = converged(m, self.mask)?;
        let yes = m.pred(self.src);
        let answer = masks.map(|mask| match self.mode {
            VoteMode::All => yes & mask == mask,
            VoteMode::Any => yes & mask != 0,
            VoteMode::Uniform => yes & mask == mask || yes & mask == 0,
        });
        m.set_pred(self.dst, crate::lanes::mask_of(&answer));
        Ok(Step::Next)
    }
}

/// One bit for each lane of the mask: whether its predicate holds.
#[derive(Clone, PartialEq, Debug)]
pub struct Ballot {
    /// The bits (`U32`).
    pub dst: RegId,
    /// The predicate.
    pub src: Operand,
    /// The lanes that take part (`u32`).
    pub mask: Operand,
}

impl Instr for Ballot {
    const INFO: Info = Info {
        name: "ballot",
        ptx: "vote.sync.ballot.b32",
        doc: "one bit for each lane of the mask: whether its predicate holds",
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
        votes(self.mask, operands)
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (d, p) = (a.reg(self.dst), predicate(a, self.src));
        let mask = a.operand(self.mask, Type::U32);
        a.emit(format!("vote.sync.ballot.b32 {d}, {p}, {mask}"));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let masks = converged(m, self.mask)?;
        let yes = m.pred(self.src);
        m.set(self.dst, &masks.map(|mask| yes & mask));
        Ok(Step::Next)
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

    const FULL: Operand = Operand::Imm(0xffff_ffff);

    fn shuffle(mode: ShuffleMode, clamp: u32, mask: Operand) -> Shuffle {
        Shuffle {
            mode,
            ty: Type::F32,
            dst: reg(0),
            src: arg(1),
            lane: arg(2),
            clamp,
            mask,
        }
    }

    /// A warp whose register 1 holds 100 + lane, and register 2 the same number in every lane.
    fn warp(number: u32) -> Warp {
        let lanes: [u32; 32] = std::array::from_fn(|i| 100 + i as u32);
        Warp::new().with(1, &lanes).with(2, &[number; 32])
    }

    /// From which lane each lane reads.
    fn sources(mode: ShuffleMode, number: u32, clamp: u32) -> [u32; 32] {
        let got = warp(number).run(&shuffle(mode, clamp, FULL)).read::<u32>(0);
        got.map(|x| x - 100)
    }

    #[test]
    fn lanes_read_by_mode() {
        let down = sources(ShuffleMode::Down, 4, 31);
        assert_eq!((down[0], down[27], down[28], down[31]), (4, 31, 28, 31));
        let up = sources(ShuffleMode::Up, 3, 0);
        assert_eq!((up[0], up[2], up[3], up[31]), (0, 2, 0, 28));
        assert_eq!(sources(ShuffleMode::Bfly, 16, 31)[5], 21);
        assert_eq!(sources(ShuffleMode::Idx, 7, 31), [7; 32]);
        assert_eq!(sources(ShuffleMode::Idx, 39, 31), [7; 32]); // mod 32
    }

    #[test]
    fn segments_keep_to_themselves() {
        let eights = 0x1800; // the two high bits of a lane are shared
        let down = sources(ShuffleMode::Down, 3, eights | 31);
        assert_eq!(down[8..16], [11, 12, 13, 14, 15, 13, 14, 15]);
        let up = sources(ShuffleMode::Up, 3, eights);
        assert_eq!(up[8..16], [8, 9, 10, 8, 9, 10, 11, 12]);
        let first = sources(ShuffleMode::Idx, 0, eights | 31);
        assert_eq!((first[7], first[8], first[31]), (0, 8, 24));
        // Bounded at the fourth lane of each segment.
        let bounded = sources(ShuffleMode::Idx, 5, eights | 3);
        assert_eq!(bounded[8..16], [8, 9, 10, 11, 12, 13, 14, 15]);
        let crossed = sources(ShuffleMode::Bfly, 8, eights | 31);
        assert_eq!((crossed[8], crossed[0]), (0, 0)); // a lower segment may be read, a higher not
    }

    #[test]
    fn every_mode_follows_the_isa() {
        let modes = [
            ShuffleMode::Idx,
            ShuffleMode::Up,
            ShuffleMode::Down,
            ShuffleMode::Bfly,
        ];
        for mode in modes {
            for number in 0..32i32 {
                for clamp in [0u32, 31, 15, 0x1c1f, 0x1c00, 0x1e1f, 0x100f, 0x0307] {
                    let got = sources(mode, number as u32, clamp);
                    let (c, segment) = (clamp as i32 & 31, clamp as i32 >> 8 & 31);
                    for (lane, got) in (0..32i32).zip(got) {
                        let max = (lane & segment) | (c & !segment & 31);
                        let min = lane & segment;
                        let (j, inside) = match mode {
                            ShuffleMode::Up => (lane - number, lane - number >= max),
                            ShuffleMode::Down => (lane + number, lane + number <= max),
                            ShuffleMode::Bfly => (lane ^ number, (lane ^ number) <= max),
                            ShuffleMode::Idx => {
                                let j = min | (number & !segment & 31);
                                (j, j <= max)
                            }
                        };
                        assert_eq!(
                            got as i32,
                            if inside { j } else { lane },
                            "{mode:?} {number} {clamp:#x}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn lanes_of_a_mask_must_be_there() {
        let op = shuffle(ShuffleMode::Bfly, 31, Operand::Imm(0xff));
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
        let op = shuffle(ShuffleMode::Bfly, 31, arg(3));
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
    fn votes_count_the_mask_alone() {
        let vote = |mode, mask: u32| Vote {
            mode,
            dst: reg(0),
            src: arg(1),
            mask: Operand::imm(mask),
        };
        let ask = |mode, yes: u32, mask: u32| {
            let warp = Warp::new().with_pred(1, yes).with_active(mask);
            match warp.run(&vote(mode, mask)).read_pred(0) {
                0 => false,
                m => {
                    assert_eq!(m, mask, "every lane has the same answer");
                    true
                }
            }
        };
        assert!(ask(VoteMode::All, 0xff, 0xff));
        assert!(!ask(VoteMode::All, 0xfe, 0xff));
        assert!(ask(VoteMode::Any, 0x10, 0xff));
        assert!(!ask(VoteMode::Any, 0xff00, 0xff));
        assert!(ask(VoteMode::Uniform, 0xff00, 0xff));
        assert!(ask(VoteMode::Uniform, 0xff, 0xff));
        assert!(!ask(VoteMode::Uniform, 1, 0xff));
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

    #[test]
    fn shuffles_are_spelled_and_refused() {
        let op = shuffle(ShuffleMode::Down, 0x181f, FULL);
        assert_eq!(
            ptx(&op),
            ["shfl.sync.down.b32 %0, %1, %2, 0x181f, 4294967295"]
        );
        assert_eq!(op.name(), "shuffle.down.f32.0x181f");
        let narrow = Shuffle {
            ty: Type::F16,
            ..op.clone()
        };
        assert!(narrow.legal(&Target::SM_90A).is_err());
        let odd = Shuffle { clamp: 32, ..op };
        assert!(odd.legal(&Target::SM_90A).is_err());
    }
}

//! Warp shuffles.

use super::{converged_masks, convergence_fault};
use crate::domain::Domain;
use crate::lanes::{lanes_of, mask_of};
use crate::machine::{Asm, Effects, Exec, ExecStatus, Lane, Machine, PerLane};
use crate::ops::compare::predicate;
use crate::ops::{Exactness, Instr, OpInfo, Uniform};
use crate::target::Target;
use crate::types::Type;
use crate::value::{Operand, RegId};

/// The source lane of a [`Shuffle`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ShuffleMode {
    /// The lane with the given index.
    Idx,
    /// The lane's index minus the operand.
    Up,
    /// The lane's index plus the operand.
    Down,
    /// The lane's index xor the operand.
    Bfly,
}

impl ShuffleMode {
    /// Returns the name in PTX and in the text form.
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
/// `clamp` is PTX's packed operand `c`: bits 8 to 12 are the segment mask, which
/// divides the warp into segments; bits 0 to 4 are the clamp value, which
/// bounds the source lane within its segment. The whole warp is `31`, or `0`
/// for [`ShuffleMode::Up`]. A lane with an out-of-range source reads itself.
#[derive(Clone, PartialEq, Debug)]
pub struct Shuffle {
    /// How `lane` selects the source lane.
    pub mode: ShuffleMode,
    /// Any type; other widths than 32 bits are moved as 32-bit words.
    pub ty: Type,
    /// Result.
    pub dst: RegId,
    /// The value to read.
    pub src: Operand,
    /// The lane index or offset (`u32`, mod 32).
    pub lane: Operand,
    /// Segment mask and clamp value.
    pub clamp: u32,
    /// The member mask (`u32`).
    pub mask: Operand,
}

impl Shuffle {
    /// Returns the source lane of `lane` for the operand `number`.
    fn source_lane(&self, lane: usize, number: u32) -> usize {
        let lane = lane as i32;
        let number = (number & 31) as i32;
        let (bound, segment) = ((self.clamp & 31) as i32, (self.clamp >> 8 & 31) as i32);
        let first = lane & segment;
        let last = first | bound & !segment;
        let (from, in_range) = match self.mode {
            ShuffleMode::Up => (lane - number, lane - number >= last),
            ShuffleMode::Down => (lane + number, lane + number <= last),
            ShuffleMode::Bfly => (lane ^ number, lane ^ number <= last),
            ShuffleMode::Idx => (first | number & !segment, first | number & !segment <= last),
        };
        if in_range {
            from as usize
        } else {
            lane as usize
        }
    }

    fn gather<T: Lane, M: Machine>(&self, m: &mut M, from: &PerLane<usize>) {
        let src = m.get::<T>(self.src);
        m.set(self.dst, &from.map(|i| src[i]));
    }
}

impl Instr for Shuffle {
    const INFO: OpInfo = OpInfo {
        name: "shuffle",
        ptx: "shfl.sync.{idx,up,down,bfly}.b32",
        doc: "reads a register of another lane; 64 bits are moved as two words",
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
        // All lanes read the same lane.
        match (self.mode, self.lane, self.clamp, self.mask) {
            (ShuffleMode::Idx, Operand::Imm(_), 31, Operand::Imm(0xffff_ffff)) => {
                operands.max(Uniform::Warp)
            }
            _ => operands,
        }
    }
    fn asm(&self, a: &mut dyn Asm) {
        let d = a.reg(self.dst);
        let (lane, mask) = (
            a.operand(self.lane, Type::U32),
            a.operand(self.mask, Type::U32),
        );
        let (mode, clamp) = (self.mode.name(), self.clamp);
        let shuffle_word =
            |d: &str, s: &str| format!("shfl.sync.{mode}.b32 {d}, {s}, {lane}, {clamp:#x}, {mask}");
        match self.ty.bytes() {
            4 => {
                let s = a.in_reg(self.src, self.ty);
                a.emit(shuffle_word(&d, &s));
            }
            8 => {
                let s = a.in_reg(self.src, self.ty);
                let [lo, hi] = [a.temp(Type::U32), a.temp(Type::U32)];
                a.emit(format!("mov.b64 {{{lo}, {hi}}}, {s}"));
                a.emit(shuffle_word(&lo, &lo));
                a.emit(shuffle_word(&hi, &hi));
                a.emit(format!("mov.b64 {d}, {{{lo}, {hi}}}"));
            }
            0 => {
                let (p, t) = (predicate(a, self.src), a.temp(Type::U32));
                a.emit(format!("selp.b32 {t}, 1, 0, {p}"));
                a.emit(shuffle_word(&t, &t));
                a.emit(format!("setp.ne.u32 {d}, {t}, 0"));
            }
            _ => {
                let (s, t) = (a.in_reg(self.src, self.ty), a.temp(Type::U32));
                a.emit(format!("cvt.u32.u16 {t}, {s}"));
                a.emit(shuffle_word(&t, &t));
                a.emit(format!("cvt.u16.u32 {d}, {t}"));
            }
        }
    }
    fn transfer<D: Domain>(&self, d: &mut D) {
        let full_warp = self.clamp == 31 && self.mask == Operand::Imm(0xffff_ffff);
        let v = match self.mode == ShuffleMode::Idx && full_warp {
            true => {
                let lane = d.read(self.lane, Type::U32);
                d.broadcast(self.src, self.ty, lane)
            }
            false => {
                let v = d.read(self.src, self.ty);
                d.exchange(v)
            }
        };
        d.write(self.dst, v);
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let masks = converged_masks(m, self.mask)?;
        let number = m.get::<u32>(self.lane);
        let mut from: PerLane<usize> = std::array::from_fn(|i| i);
        for i in lanes_of(m.active()) {
            from[i] = self.source_lane(i, number[i]);
            if masks[i] >> from[i] & 1 == 0 {
                return Err(convergence_fault(format!(
                    "in lane {i} reads lane {}, which is not in the member mask {:#010x}",
                    from[i], masks[i]
                )));
            }
        }
        match self.ty.bytes() {
            0 => {
                let src = m.pred(self.src);
                m.set_pred(self.dst, mask_of(&from.map(|i| src >> i & 1 == 1)));
            }
            1 => self.gather::<u8, M>(m, &from),
            2 => self.gather::<u16, M>(m, &from),
            4 => self.gather::<u32, M>(m, &from),
            _ => self.gather::<u64, M>(m, &from),
        }
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        if self.clamp & !0x1f1f != 0 {
            return Err(format!(
                "shuffle clamp {:#x} sets reserved bits; bits 0 to 4 are the clamp value, bits 8 to 12 the segment mask",
                self.clamp
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::fake::{Warp, arg, ptx, reg};

    const ALL_LANES: Operand = Operand::Imm(0xffff_ffff);

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

    /// Returns a warp with 100 + lane in register 1 and `number` in register 2.
    fn warp(number: u32) -> Warp {
        let lanes: [u32; 32] = std::array::from_fn(|i| 100 + i as u32);
        Warp::new().with(1, &lanes).with(2, &[number; 32])
    }

    /// Returns the source of each lane.
    fn sources(mode: ShuffleMode, number: u32, clamp: u32) -> [u32; 32] {
        let got = warp(number)
            .run(&shuffle(mode, clamp, ALL_LANES))
            .read::<u32>(0);
        got.map(|x| x - 100)
    }

    #[test]
    fn each_mode_selects_its_source_lane() {
        let down = sources(ShuffleMode::Down, 4, 31);
        assert_eq!((down[0], down[27], down[28], down[31]), (4, 31, 28, 31));
        let up = sources(ShuffleMode::Up, 3, 0);
        assert_eq!((up[0], up[2], up[3], up[31]), (0, 2, 0, 28));
        assert_eq!(sources(ShuffleMode::Bfly, 16, 31)[5], 21);
        assert_eq!(sources(ShuffleMode::Idx, 7, 31), [7; 32]);
        assert_eq!(sources(ShuffleMode::Idx, 39, 31), [7; 32]); // mod 32
    }

    #[test]
    fn segments_bound_the_source_lane() {
        let segments_of_8 = 0x1800; // the lanes of a segment share their two high bits
        let down = sources(ShuffleMode::Down, 3, segments_of_8 | 31);
        assert_eq!(down[8..16], [11, 12, 13, 14, 15, 13, 14, 15]);
        let up = sources(ShuffleMode::Up, 3, segments_of_8);
        assert_eq!(up[8..16], [8, 9, 10, 8, 9, 10, 11, 12]);
        let first = sources(ShuffleMode::Idx, 0, segments_of_8 | 31);
        assert_eq!((first[7], first[8], first[31]), (0, 8, 24));
        // Bounded at the fourth lane of each segment.
        let bounded = sources(ShuffleMode::Idx, 5, segments_of_8 | 3);
        assert_eq!(bounded[8..16], [8, 9, 10, 11, 12, 13, 14, 15]);
        let crossed = sources(ShuffleMode::Bfly, 8, segments_of_8 | 31);
        assert_eq!((crossed[8], crossed[0]), (0, 0)); // a lower segment is readable, a higher one is not
    }

    #[test]
    fn every_mode_matches_the_ptx_isa() {
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
                        let (j, in_range) = match mode {
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
                            if in_range { j } else { lane },
                            "{mode:?} {number} {clamp:#x}"
                        );
                    }
                }
            }
        }
    }

    /// Returns the value that each lane reads from the next lane.
    fn shuffle_down_one<T: Lane>(ty: Type, values: PerLane<T>) -> PerLane<T> {
        let op = Shuffle {
            ty,
            ..shuffle(ShuffleMode::Down, 31, ALL_LANES)
        };
        assert_eq!(op.legal(&Target::SM_90A), Ok(()));
        let warp = Warp::new().with(1, &values).with(2, &[1u32; 32]);
        warp.run(&op).read::<T>(0)
    }

    #[test]
    fn every_width_is_shuffled() {
        let wide: [u64; 32] = std::array::from_fn(|i| (i as u64) << 36 | i as u64);
        let got = shuffle_down_one(Type::I64, wide);
        assert_eq!((got[0], got[30], got[31]), (wide[1], wide[31], wide[31]));
        let got = shuffle_down_one(Type::Bf16, std::array::from_fn(|i| 0xff00 + i as u16));
        assert_eq!((got[4], got[31]), (0xff05, 0xff1f));
        let got = shuffle_down_one(Type::U8, std::array::from_fn(|i| i as u8));
        assert_eq!((got[4], got[31]), (5, 31));
        let op = Shuffle {
            ty: Type::Pred,
            ..shuffle(ShuffleMode::Down, 31, ALL_LANES)
        };
        let warp = Warp::new().with_pred(1, 0x8000_0102).with(2, &[1u32; 32]);
        assert_eq!(warp.run(&op).read_pred(0), 0xc000_0081);
    }

    #[test]
    fn other_widths_print_as_32_bit_words() {
        let print = |ty| {
            let op = Shuffle {
                ty,
                lane: Operand::Imm(2),
                ..shuffle(ShuffleMode::Bfly, 31, arg(3))
            };
            ptx(&op).join("; ")
        };
        assert_eq!(
            print(Type::U64),
            "mov.b64 {%t0, %t1}, %1; shfl.sync.bfly.b32 %t0, %t0, 2, 0x1f, %3; \
             shfl.sync.bfly.b32 %t1, %t1, 2, 0x1f, %3; mov.b64 %0, {%t0, %t1}"
        );
        assert_eq!(
            print(Type::F16),
            "cvt.u32.u16 %t0, %1; shfl.sync.bfly.b32 %t0, %t0, 2, 0x1f, %3; cvt.u16.u32 %0, %t0"
        );
        assert_eq!(
            print(Type::Pred),
            "selp.b32 %t0, 1, 0, %1; shfl.sync.bfly.b32 %t0, %t0, 2, 0x1f, %3; setp.ne.u32 %0, %t0, 0"
        );
    }

    #[test]
    fn shuffle_prints_its_clamp_and_rejects_reserved_bits() {
        let op = shuffle(ShuffleMode::Down, 0x181f, ALL_LANES);
        assert_eq!(
            ptx(&op),
            ["shfl.sync.down.b32 %0, %1, %2, 0x181f, 4294967295"]
        );
        assert_eq!(op.name(), "shuffle.down.f32.0x181f");
        let reserved_bit = Shuffle { clamp: 32, ..op };
        assert!(reserved_bit.legal(&Target::SM_90A).is_err());
    }
}

//! Functions of 32-bit words: lookup-table logic, byte permutation, bit-field insertion, funnel shifts.

use crate::lanes::map3;
use crate::machine::{Asm, Effects, Exec, ExecStatus, Machine, WARP};
use crate::ops::{Exactness, Instr, OpInfo};
use crate::types::Type;
use crate::value::{Operand, RegId};

/// A bitwise function of three words, given by its lookup table.
///
/// The table is the result of the function for `0xf0`, `0xcc` and `0xaa`:
/// `a & b | c` has the table `0xf0 & 0xcc | 0xaa`.
#[derive(Clone, PartialEq, Debug)]
pub struct Lop3 {
    /// Result (32 bits).
    pub dst: RegId,
    /// First word.
    pub a: Operand,
    /// Second word.
    pub b: Operand,
    /// Third word.
    pub c: Operand,
    /// The lookup table (`immLut`).
    pub table: u8,
}

impl Instr for Lop3 {
    const INFO: OpInfo = OpInfo {
        name: "lop3",
        ptx: "lop3.b32",
        doc: "computes a bitwise function of three words, given by its lookup table",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("lop3.{:#04x}", self.table)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        for o in [self.a, self.b, self.c] {
            e.arg(o, Type::U32);
        }
    }
    fn asm(&self, a: &mut dyn Asm) {
        let words = operand_list(a, [self.a, self.b, self.c]);
        let d = a.reg(self.dst);
        a.emit(format!("lop3.b32 {d}, {words}, {:#04x}", self.table));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        // Entry i of the table, broadcast to all bits of a word.
        let entry: [u32; 8] =
            std::array::from_fn(|i| 0u32.wrapping_sub(u32::from(self.table >> i & 1)));
        map3(
            m,
            self.dst,
            self.a,
            self.b,
            self.c,
            |a: u32, b: u32, c: u32| {
                let pick = |bit: u32, one: u32, zero: u32| bit & one | !bit & zero;
                let by_c = |hi: usize| pick(c, entry[hi + 1], entry[hi]);
                pick(a, pick(b, by_c(6), by_c(4)), pick(b, by_c(2), by_c(0)))
            },
        );
        Ok(ExecStatus::Completed)
    }
}

/// Selects four bytes from the eight bytes of two words.
///
/// Nibble `i` of the selector defines byte `i` of the result: its low three
/// bits select a byte (0 to 3 of `a`, 4 to 7 of `b`); its high bit replicates
/// the sign of that byte instead.
#[derive(Clone, PartialEq, Debug)]
pub struct Prmt {
    /// Result (32 bits).
    pub dst: RegId,
    /// Bytes 0 to 3.
    pub a: Operand,
    /// Bytes 4 to 7.
    pub b: Operand,
    /// The selector (`u32`; the low 16 bits are used).
    pub selector: Operand,
}

impl Instr for Prmt {
    const INFO: OpInfo = OpInfo {
        name: "prmt",
        ptx: "prmt.b32",
        doc: "selects four bytes, or their replicated signs, from the eight bytes of two words",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "prmt".into()
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        for o in [self.a, self.b, self.selector] {
            e.arg(o, Type::U32);
        }
    }
    fn asm(&self, a: &mut dyn Asm) {
        let words = operand_list(a, [self.a, self.b, self.selector]);
        let d = a.reg(self.dst);
        a.emit(format!("prmt.b32 {d}, {words}"));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        map3(
            m,
            self.dst,
            self.a,
            self.b,
            self.selector,
            |a: u32, b: u32, selector: u32| {
                let bytes = u64::from(b) << 32 | u64::from(a);
                (0..4).fold(0, |word, i| {
                    let nibble = selector >> (4 * i) & 0xf;
                    let byte = (bytes >> (8 * (nibble & 7))) as u8;
                    let sign = (byte as i8 >> 7) as u8;
                    let byte = if nibble & 8 == 0 { byte } else { sign };
                    word | u32::from(byte) << (8 * i)
                })
            },
        );
        Ok(ExecStatus::Completed)
    }
}

/// Inserts a bit field into a word.
#[derive(Clone, PartialEq, Debug)]
pub struct Bfi {
    /// Result (32 bits).
    pub dst: RegId,
    /// The bit field, in the low bits.
    pub field: Operand,
    /// The word to insert into.
    pub into: Operand,
    /// The position of the lowest bit (`u32`; the low 8 bits are used).
    pub pos: Operand,
    /// The length (`u32`; the low 8 bits are used). Bits beyond the word are dropped.
    pub len: Operand,
}

impl Instr for Bfi {
    const INFO: OpInfo = OpInfo {
        name: "bfi",
        ptx: "bfi.b32",
        doc: "inserts a bit field into a word",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "bfi".into()
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        for o in [self.field, self.into, self.pos, self.len] {
            e.arg(o, Type::U32);
        }
    }
    fn asm(&self, a: &mut dyn Asm) {
        let words = operand_list(a, [self.field, self.into, self.pos, self.len]);
        let d = a.reg(self.dst);
        a.emit(format!("bfi.b32 {d}, {words}"));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let len = m.get::<u32>(self.len);
        let mask = len.map(|len| (1u64 << (len & 0xff).min(32)) - 1);
        let (field, into) = (m.get::<u32>(self.field), m.get::<u32>(self.into));
        let pos = m.get::<u32>(self.pos);
        let word = std::array::from_fn::<u32, WARP, _>(|i| {
            let pos = (pos[i] & 0xff).min(32);
            let mask = (mask[i] << pos) as u32;
            into[i] & !mask | (u64::from(field[i]) << pos) as u32 & mask
        });
        m.set(self.dst, &word);
        Ok(ExecStatus::Completed)
    }
}

/// Funnel shift of two words by `shift` mod 32 bits.
///
/// Returns the high word of `hi:lo << shift` (left) or the low word of
/// `hi:lo >> shift` (right). With equal words it is a rotation.
#[derive(Clone, PartialEq, Debug)]
pub struct Shf {
    /// Result (32 bits).
    pub dst: RegId,
    /// The low word.
    pub lo: Operand,
    /// The high word.
    pub hi: Operand,
    /// Shift count (`u32`, mod 32).
    pub shift: Operand,
    /// Left shift; otherwise right shift.
    pub left: bool,
}

impl Shf {
    const fn direction(&self) -> &'static str {
        if self.left { "l" } else { "r" }
    }
}

impl Instr for Shf {
    const INFO: OpInfo = OpInfo {
        name: "shf",
        ptx: "shf.{l,r}.wrap.b32",
        doc: "funnel shift: one word of the shifted 64 bits of two words; a rotation if the words are equal",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("shf.{}", self.direction())
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        for o in [self.lo, self.hi, self.shift] {
            e.arg(o, Type::U32);
        }
    }
    fn asm(&self, a: &mut dyn Asm) {
        let words = operand_list(a, [self.lo, self.hi, self.shift]);
        let d = a.reg(self.dst);
        a.emit(format!("shf.{}.wrap.b32 {d}, {words}", self.direction()));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let left = self.left;
        map3(
            m,
            self.dst,
            self.lo,
            self.hi,
            self.shift,
            |lo: u32, hi: u32, n: u32| {
                let (joined, n) = (u64::from(hi) << 32 | u64::from(lo), n & 31);
                if left {
                    (joined << n >> 32) as u32
                } else {
                    (joined >> n) as u32
                }
            },
        );
        Ok(ExecStatus::Completed)
    }
}

/// Prints a list of 32-bit operands.
fn operand_list<const N: usize>(a: &mut dyn Asm, operands: [Operand; N]) -> String {
    operands.map(|o| a.operand(o, Type::U32)).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::fake::{arg, eval, ptx, random_words, reg};

    /// Evaluates one lane of an op with 32-bit operands.
    fn eval_lane<const N: usize>(op: &impl Instr, operands: [u32; N]) -> u32 {
        eval::<u32, u32, N>(op, &[operands])[0]
    }

    #[test]
    fn lop3_computes_every_lookup_table() {
        let mut n = random_words(4).map(|x| x as u32);
        let mut next = || n.next().unwrap_or(0);
        for table in 0..=u8::MAX {
            let [a, b, c] = [next(), next(), next()];
            let want = (0..32).fold(0, |r, i| {
                let index = (a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1;
                r | u32::from(table >> index & 1) << i
            });
            let op = Lop3 {
                dst: reg(0),
                a: arg(1),
                b: arg(2),
                c: arg(3),
                table,
            };
            assert_eq!(eval_lane(&op, [a, b, c]), want, "{table:#x}");
            // The table computed with 0xf0, 0xcc and 0xaa defines the same function.
            let as_table = eval_lane(&op, [0xf0, 0xcc, 0xaa]) as u8;
            assert_eq!(as_table, table);
            if table == 0x1a {
                assert_eq!(want, (a & b | c) ^ a);
                assert_eq!(ptx(&op), ["lop3.b32 %0, %1, %2, %3, 0x1a"]);
                assert_eq!(op.name(), "lop3.0x1a");
            }
        }
    }

    #[test]
    fn prmt_selects_any_byte_or_its_sign() {
        let op = Prmt {
            dst: reg(0),
            a: arg(1),
            b: arg(2),
            selector: arg(3),
        };
        let (a, b) = (0x83_02_81_00, 0x07_86_05_84);
        assert_eq!(eval_lane(&op, [a, b, 0x3210]), a);
        assert_eq!(eval_lane(&op, [a, b, 0x7654]), b);
        assert_eq!(eval_lane(&op, [a, b, 0xffff_0123]), 0x00_81_02_83);
        assert_eq!(eval_lane(&op, [a, b, 0xba98]), 0xff00ff00);
        let bytes: Vec<u8> = [a, b].iter().flat_map(|w: &u32| w.to_le_bytes()).collect();
        let all: Vec<_> = (0..=0xffffu32).map(|selector| [a, b, selector]).collect();
        for (row, got) in all.iter().zip(eval::<u32, u32, 3>(&op, &all)) {
            let want: [u8; 4] = std::array::from_fn(|i| {
                let nibble = row[2] as usize >> (4 * i) & 0xf;
                match (bytes[nibble % 8], nibble / 8) {
                    (byte, 0) => byte,
                    (0x80.., _) => 0xff,
                    _ => 0,
                }
            });
            assert_eq!(got.to_le_bytes(), want, "{:#x}", row[2]);
        }
    }

    #[test]
    fn bfi_matches_the_ptx_isa() {
        let op = Bfi {
            dst: reg(0),
            field: arg(1),
            into: arg(2),
            pos: arg(3),
            len: arg(4),
        };
        let counts = (0..=40).chain([64, 127, 255, 256, 257]);
        for pos in counts.clone() {
            for len in counts.clone() {
                let (field, into) = (0xdead_beef, 0x1234_5678);
                let (p, l) = (pos & 0xff, len & 0xff);
                let want = (0..32).fold(into, |w: u32, i| {
                    let inside = i < l && p + i <= 31;
                    if inside {
                        w & !(1 << (p + i)) | (field >> i & 1) << (p + i)
                    } else {
                        w
                    }
                });
                assert_eq!(eval_lane(&op, [field, into, pos, len]), want, "{pos} {len}");
            }
        }
        assert_eq!(ptx(&op), ["bfi.b32 %0, %1, %2, %3, %4"]);
    }

    #[test]
    fn funnel_shifts_wrap() {
        let shf = |left| Shf {
            dst: reg(0),
            lo: arg(1),
            hi: arg(2),
            shift: arg(3),
            left,
        };
        let (lo, hi) = (0x89ab_cdef, 0x0123_4567);
        for n in 0..70 {
            let l = if n % 32 == 0 {
                hi
            } else {
                hi << (n % 32) | lo >> (32 - n % 32)
            };
            let r = if n % 32 == 0 {
                lo
            } else {
                hi << (32 - n % 32) | lo >> (n % 32)
            };
            assert_eq!(eval_lane(&shf(true), [lo, hi, n]), l);
            assert_eq!(eval_lane(&shf(false), [lo, hi, n]), r);
            assert_eq!(eval_lane(&shf(true), [lo, lo, n]), lo.rotate_left(n));
        }
        assert_eq!(ptx(&shf(false)), ["shf.r.wrap.b32 %0, %1, %2, %3"]);
    }
}

//! Words of bits: logic, shifts, fields and bytes.

use super::{Exactness, Info, Instr};
use crate::lanes::{lanewise, map3};
use crate::machine::{Asm, Effects, Exec, Machine, Step, WARP};
use crate::types::Type;
use crate::value::{Operand, RegId};

lanewise! {
    And "and": "bits set in both operands",
        ptx "and.{b16,b32,b64}",
        types [U16, U32, I32, U64, I64],
        (a: T, b: T) => Integer::and;

    Or "or": "bits set in either operand",
        ptx "or.{b16,b32,b64}",
        types [U16, U32, I32, U64, I64],
        (a: T, b: T) => Integer::or;

    Xor "xor": "bits set in one of the operands",
        ptx "xor.{b16,b32,b64}",
        types [U16, U32, I32, U64, I64],
        (a: T, b: T) => Integer::xor;

    Not "not": "all bits turned",
        ptx "not.{b16,b32,b64}",
        types [U16, U32, I32, U64, I64],
        (a: T) => Integer::not;

    Shl "shl": "a shifted left by b bits; nothing is left of a shift by the width or more",
        ptx "shl.{b16,b32,b64}",
        types [U16, U32, I32, U64, I64],
        (a: T, b: u32) => Integer::shl;

    Shr "shr": "a shifted right by b bits, filled with the sign of its type; a shift by the width or more leaves only the fill",
        ptx "shr.{u16,u32,s32,u64,s64}",
        types [U16, U32, I32, U64, I64],
        (a: T, b: u32) => Integer::shr;

    Popc "popc": "how many bits are set, as a u32",
        ptx "popc.{b32,b64}",
        types [U32, U64],
        (a: T) => Integer::popc;

    Clz "clz": "how many zero bits stand above the highest set one, as a u32",
        ptx "clz.{b32,b64}",
        types [U32, U64],
        (a: T) => Integer::clz;

    Bfe "bfe": "the field of len bits of a from bit pos up, filled with the sign of its type; of pos and len the low 8 bits count",
        ptx "bfe.{u32,s32}",
        types [U32, I32],
        (a: T, pos: u32, len: u32) => Field::bfe;
}

/// Any function of three bits, applied to the bits of three words.
///
/// The function's table is what it makes of `0xf0`, `0xcc` and `0xaa`:
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
    /// The function's table.
    pub table: u8,
}

impl Instr for Lop3 {
    const INFO: Info = Info {
        name: "lop3",
        ptx: "lop3.b32",
        doc: "any function of three bits, by its table, applied to the bits of three words",
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
        let words = words(a, [self.a, self.b, self.c]);
        let d = a.reg(self.dst);
        a.emit(format!("lop3.b32 {d}, {words}, {:#04x}", self.table));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        // Entry i of the table, spread over a word.
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
        Ok(Step::Next)
    }
}

/// Four bytes picked from the eight of two words.
///
/// Nibble `i` of the selector makes byte `i` of the result: its low three bits
/// number a byte (0 to 3 of `a`, 4 to 7 of `b`), its high bit asks for that
/// byte's sign in all eight bits instead.
#[derive(Clone, PartialEq, Debug)]
pub struct Prmt {
    /// Result (32 bits).
    pub dst: RegId,
    /// Bytes 0 to 3.
    pub a: Operand,
    /// Bytes 4 to 7.
    pub b: Operand,
    /// Which bytes (`u32`, the low 16 bits count).
    pub selector: Operand,
}

impl Instr for Prmt {
    const INFO: Info = Info {
        name: "prmt",
        ptx: "prmt.b32",
        doc: "four bytes, or their signs, picked from the eight of two words",
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
        let words = words(a, [self.a, self.b, self.selector]);
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
        Ok(Step::Next)
    }
}

/// A field of bits put into a word.
#[derive(Clone, PartialEq, Debug)]
pub struct Bfi {
    /// Result (32 bits).
    pub dst: RegId,
    /// The field, in the low bits.
    pub field: Operand,
    /// The word it goes into.
    pub into: Operand,
    /// Where its lowest bit goes (`u32`, the low 8 bits count).
    pub pos: Operand,
    /// Its length (`u32`, the low 8 bits count); what reaches beyond the word is lost.
    pub len: Operand,
}

impl Instr for Bfi {
    const INFO: Info = Info {
        name: "bfi",
        ptx: "bfi.b32",
        doc: "a field of bits put into a word",
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
        let words = words(a, [self.field, self.into, self.pos, self.len]);
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
        Ok(Step::Next)
    }
}

/// A word cut out of the 64 bits of two, `shift` mod 32 bits from one end.
///
/// To the left it is the high word of `hi:lo << shift`, to the right the low
/// word of `hi:lo >> shift`; a rotation if both words are the same.
#[derive(Clone, PartialEq, Debug)]
pub struct Shf {
    /// Result (32 bits).
    pub dst: RegId,
    /// The low word.
    pub lo: Operand,
    /// The high word.
    pub hi: Operand,
    /// By how many bits (`u32`, taken mod 32).
    pub shift: Operand,
    /// To the left?
    pub left: bool,
}

impl Shf {
    const fn direction(&self) -> &'static str {
        if self.left { "l" } else { "r" }
    }
}

impl Instr for Shf {
    const INFO: Info = Info {
        name: "shf",
        ptx: "shf.{l,r}.wrap.b32",
        doc: "a word cut out of the 64 bits of two; a rotation if both are the same",
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
        let words = words(a, [self.lo, self.hi, self.shift]);
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
                let (both, n) = (u64::from(hi) << 32 | u64::from(lo), n & 31);
                if left {
                    (both << n >> 32) as u32
                } else {
                    (both >> n) as u32
                }
            },
        );
        Ok(Step::Next)
    }
}

/// 32-bit operands ready to print.
fn words<const N: usize>(a: &mut dyn Asm, operands: [Operand; N]) -> String {
    operands.map(|o| a.operand(o, Type::U32)).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::fake::{Warp, arg, eval, noise, ptx, reg};

    macro_rules! op {
        ($name:ident, $ty:ident, $($arg:ident),*) => {{
            let mut n = 0;
            $name { ty: Type::$ty, dst: reg(0), $($arg: { n += 1; arg(n) }),* }
        }};
    }

    /// One lane of an op whose operands are 32-bit words.
    fn word<const N: usize>(op: &impl Instr, operands: [u32; N]) -> u32 {
        eval::<u32, u32, N>(op, &[operands])[0]
    }

    #[test]
    fn logic_is_bitwise() {
        let (a, b) = (0b1100u16, 0b1010u16);
        assert_eq!(eval::<_, u16, 2>(&op!(And, U16, a, b), &[[a, b]]), [0b1000]);
        assert_eq!(eval::<_, u16, 2>(&op!(Or, U16, a, b), &[[a, b]]), [0b1110]);
        assert_eq!(eval::<_, u16, 2>(&op!(Xor, U16, a, b), &[[a, b]]), [0b0110]);
        assert_eq!(
            eval::<_, u64, 1>(&op!(Not, U64, a), &[[1u64]]),
            [u64::MAX - 1]
        );
        assert_eq!(ptx(&op!(Xor, I64, a, b)), ["xor.b64 %0, %1, %2"]);
    }

    #[test]
    fn shifts_by_the_width_or_more_leave_only_the_fill() {
        fn shift<T: crate::machine::Lane>(op: &impl Instr, a: T, by: u32) -> T {
            let warp = Warp::new().with(1, &[a]).with(2, &[by]);
            warp.run(op).read::<T>(0)[0]
        }
        let (left, right) = (op!(Shl, U32, a, b), op!(Shr, U32, a, b));
        for (by, l, r) in [
            (0, !0, !0),
            (31, 1 << 31, 1),
            (32, 0, 0),
            (33, 0, 0),
            (u32::MAX, 0, 0),
        ] {
            assert_eq!(shift(&left, u32::MAX, by), l);
            assert_eq!(shift(&right, u32::MAX, by), r);
        }
        let right = op!(Shr, I32, a, b);
        for (by, want) in [(1, -4), (31, -1), (32, -1), (u32::MAX, -1)] {
            assert_eq!(shift(&right, -8i32, by), want);
        }
        assert_eq!(shift(&right, 8i32, 64), 0);
        assert_eq!(shift(&op!(Shl, U16, a, b), 0x8001u16, 1), 2);
        assert_eq!(shift(&op!(Shl, U16, a, b), 0x8001u16, 16), 0);
        assert_eq!(shift(&op!(Shr, U16, a, b), 0x8001u16, 15), 1);
        assert_eq!(shift(&op!(Shl, I64, a, b), 1i64, 63), i64::MIN);
        assert_eq!(shift(&op!(Shr, I64, a, b), i64::MIN, 64), -1);
        assert_eq!(shift(&op!(Shr, U64, a, b), u64::MAX, 64), 0);
        assert_eq!(ptx(&op!(Shl, I32, a, b)), ["shl.b32 %0, %1, %2"]);
        assert_eq!(ptx(&op!(Shr, I32, a, b)), ["shr.s32 %0, %1, %2"]);
    }

    #[test]
    fn bits_are_counted() {
        let popc = eval::<_, u32, 1>(&op!(Popc, U32, a), &[[0u32], [0xf0f0], [!0]]);
        assert_eq!(popc, [0, 8, 32]);
        let clz = eval::<_, u32, 1>(&op!(Clz, U32, a), &[[0u32], [1], [1 << 31]]);
        assert_eq!(clz, [32, 31, 0]);
        assert_eq!(eval::<_, u32, 1>(&op!(Popc, U64, a), &[[u64::MAX]]), [64]);
        assert_eq!(
            eval::<_, u32, 1>(&op!(Clz, U64, a), &[[0u64], [1 << 40]]),
            [64, 23]
        );
    }

    #[test]
    fn lop3_follows_every_table() {
        let mut n = noise(4).map(|x| x as u32);
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
            assert_eq!(word(&op, [a, b, c]), want, "{table:#x}");
            // The author's way to make the table gives the same function.
            let as_table = word(&op, [0xf0, 0xcc, 0xaa]) as u8;
            assert_eq!(as_table, table);
            if table == 0x1a {
                assert_eq!(want, (a & b | c) ^ a);
                assert_eq!(ptx(&op), ["lop3.b32 %0, %1, %2, %3, 0x1a"]);
                assert_eq!(op.name(), "lop3.0x1a");
            }
        }
    }

    #[test]
    fn prmt_picks_any_byte_or_its_sign() {
        let op = Prmt {
            dst: reg(0),
            a: arg(1),
            b: arg(2),
            selector: arg(3),
        };
        let (a, b) = (0x83_02_81_00, 0x07_86_05_84);
        assert_eq!(word(&op, [a, b, 0x3210]), a);
        assert_eq!(word(&op, [a, b, 0x7654]), b);
        assert_eq!(word(&op, [a, b, 0xffff_0123]), 0x00_81_02_83);
        assert_eq!(word(&op, [a, b, 0xba98]), 0xff00ff00);
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

    /// The PTX ISA's loop over bits.
    fn bfe(a: u32, pos: u32, len: u32, signed: bool) -> u32 {
        let (pos, len) = (pos & 0xff, len & 0xff);
        let sign = if signed && len > 0 {
            a >> (pos + len - 1).min(31) & 1
        } else {
            0
        };
        (0..32).fold(0, |d, i| {
            let bit = if i < len && pos + i <= 31 {
                a >> (pos + i) & 1
            } else {
                sign
            };
            d | bit << i
        })
    }

    #[test]
    fn fields_come_out_as_the_isa_says() {
        let counts = (0..=40).chain([63, 64, 65, 127, 128, 255, 256, 257, 0x1ff]);
        let (unsigned, signed) = (op!(Bfe, U32, a, pos, len), op!(Bfe, I32, a, pos, len));
        for pos in counts.clone() {
            for len in counts.clone() {
                for a in [0x8000_0001, 0x7fff_fffe, 0xdead_beef, !0] {
                    assert_eq!(
                        word(&unsigned, [a, pos, len]),
                        bfe(a, pos, len, false),
                        "{a:#x} {pos} {len}"
                    );
                    assert_eq!(
                        word(&signed, [a, pos, len]),
                        bfe(a, pos, len, true),
                        "{a:#x} {pos} {len}"
                    );
                }
            }
        }
        assert_eq!(word(&signed, [0x0000_00f0, 4, 4]), !0);
        assert_eq!(word(&unsigned, [0x0000_00f0, 4, 4]), 0xf);
        assert_eq!(ptx(&signed), ["bfe.s32 %0, %1, %2, %3"]);
    }

    #[test]
    fn fields_go_in_as_the_isa_says() {
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
                assert_eq!(word(&op, [field, into, pos, len]), want, "{pos} {len}");
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
            assert_eq!(word(&shf(true), [lo, hi, n]), l);
            assert_eq!(word(&shf(false), [lo, hi, n]), r);
            assert_eq!(word(&shf(true), [lo, lo, n]), lo.rotate_left(n));
        }
        assert_eq!(ptx(&shf(false)), ["shf.r.wrap.b32 %0, %1, %2, %3"]);
    }
}

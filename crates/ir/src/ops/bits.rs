//! Bitwise logic, shifts, bit fields and byte permutation.

mod words;

pub use words::{Bfi, Lop3, Prmt, Shf};

use crate::lanes::lanewise;

lanewise! {
    And "and": "bitwise and",
        ptx "and.{b16,b32,b64}",
        types [U16, U32, I32, U64, I64],
        (a: T, b: T) => Integer::and, transfer and;

    Or "or": "bitwise or",
        ptx "or.{b16,b32,b64}",
        types [U16, U32, I32, U64, I64],
        (a: T, b: T) => Integer::or, transfer or;

    Xor "xor": "bitwise exclusive or",
        ptx "xor.{b16,b32,b64}",
        types [U16, U32, I32, U64, I64],
        (a: T, b: T) => Integer::xor, transfer xor;

    Not "not": "bitwise complement",
        ptx "not.{b16,b32,b64}",
        types [U16, U32, I32, U64, I64],
        (a: T) => Integer::not;

    Shl "shl": "shifts a left by b bits; 0 if b is the width or more",
        ptx "shl.{b16,b32,b64}",
        types [U16, U32, I32, U64, I64],
        (a: T, b: u32) => Integer::shl, transfer shl;

    Shr "shr": "shifts a right by b bits, arithmetic for signed types; only sign bits are left if b is the width or more",
        ptx "shr.{u16,u32,s32,u64,s64}",
        types [U16, U32, I32, U64, I64],
        (a: T, b: u32) => Integer::shr, transfer shr;

    Popc "popc": "counts the set bits (u32)",
        ptx "popc.{b32,b64}",
        types [U32, U64],
        (a: T) => Integer::popc;

    Clz "clz": "counts the leading zero bits (u32)",
        ptx "clz.{b32,b64}",
        types [U32, U64],
        (a: T) => Integer::clz;

    Bfind "bfind": "position of the most significant non-sign bit (u32); all ones if there is none",
        ptx "bfind.{u32,s32,u64,s64}",
        types [U32, I32, U64, I64],
        (a: T) => Integer::bfind;

    Brev "brev": "reverses the bits",
        ptx "brev.{b32,b64}",
        types [U32, U64],
        (a: T) => Integer::brev;

    Bfe "bfe": "extracts len bits of a starting at bit pos, sign-extended for signed types; uses the low 8 bits of pos and len",
        ptx "bfe.{u32,s32}",
        types [U32, I32],
        (a: T, pos: u32, len: u32) => BitFieldExtract::bfe;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::fake::{Warp, arg, eval, ptx, reg};
    use crate::ops::Instr;
    use crate::types::Type;

    macro_rules! op {
        ($name:ident, $ty:ident, $($arg:ident),*) => {{
            let mut n = 0;
            $name { ty: Type::$ty, dst: reg(0), $($arg: { n += 1; arg(n) }),* }
        }};
    }

    /// Evaluates one lane of an op with 32-bit operands.
    fn eval_lane<const N: usize>(op: &impl Instr, operands: [u32; N]) -> u32 {
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
    fn shifts_by_the_width_or_more_leave_only_sign_bits() {
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
    fn popc_and_clz_count_bits() {
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

    /// Computes `bfe` bit by bit, as the PTX ISA defines it.
    fn reference_bfe(a: u32, pos: u32, len: u32, signed: bool) -> u32 {
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
    fn bfe_matches_the_ptx_isa() {
        let counts = (0..=40).chain([63, 64, 65, 127, 128, 255, 256, 257, 0x1ff]);
        let (unsigned, signed) = (op!(Bfe, U32, a, pos, len), op!(Bfe, I32, a, pos, len));
        for pos in counts.clone() {
            for len in counts.clone() {
                for a in [0x8000_0001, 0x7fff_fffe, 0xdead_beef, !0] {
                    assert_eq!(
                        eval_lane(&unsigned, [a, pos, len]),
                        reference_bfe(a, pos, len, false),
                        "{a:#x} {pos} {len}"
                    );
                    assert_eq!(
                        eval_lane(&signed, [a, pos, len]),
                        reference_bfe(a, pos, len, true),
                        "{a:#x} {pos} {len}"
                    );
                }
            }
        }
        assert_eq!(eval_lane(&signed, [0x0000_00f0, 4, 4]), !0);
        assert_eq!(eval_lane(&unsigned, [0x0000_00f0, 4, 4]), 0xf);
        assert_eq!(ptx(&signed), ["bfe.s32 %0, %1, %2, %3"]);
    }

    #[test]
    fn bfind_skips_sign_bits_and_brev_reverses_all_bits() {
        let find = |x: u32| eval_lane(&op!(Bfind, U32, a), [x]);
        assert_eq!([find(0), find(1), find(0x8000_0000)], [!0, 0, 31]);
        let signed = |x: i32| eval_lane(&op!(Bfind, I32, a), [x as u32]);
        assert_eq!(
            [signed(0), signed(-1), signed(-2), signed(5)],
            [!0, !0, 0, 2]
        );
        let long = op!(Bfind, I64, a);
        let got = eval::<_, u32, 1>(&long, &[[1i64 << 40], [-1 << 40], [-1], [i64::MIN]]);
        assert_eq!(got, [40, 39, !0, 62]);
        assert_eq!(
            eval_lane(&op!(Brev, U32, a), [0x8000_0001 | 0x10]),
            0x8800_0001
        );
        let reversed = eval::<_, u64, 1>(&op!(Brev, U64, a), &[[6u64]]);
        assert_eq!(reversed, [3 << 61]);
        assert_eq!(ptx(&op!(Bfind, I64, a)), ["bfind.s64 %0, %1"]);
        assert_eq!(ptx(&op!(Brev, U64, a)), ["brev.b64 %0, %1"]);
    }
}

//! Numbers from one type to another, and the bits of one register as another's.

use super::arith::{copy, register_bits};
use super::{Exactness, Info, Instr};
use crate::lanes::{FloatBits, Narrow, lane_types, map1, map2, no_such_type};
use crate::machine::{Asm, Effects, Exec, Lane, Machine, Step};
use crate::target::Target;
use crate::types::{Bf16x2, F16x2, Tf32, Type};
use crate::value::{Operand, RegId};
use half::{bf16, f16};

/// The same number in another type, as near as that type comes.
///
/// Integers widen by the sign of `from` and narrow by dropping high bits.
/// To a float they round to nearest even. From `F32` to an integer the number
/// is cut towards zero and held within the type; a NaN becomes 0, in 64 bits
/// `1 << 63` (the PTX ISA says 0; this is what the hardware gives). `F32`
/// rounds to `F16` and `Bf16` to nearest even, to `Tf32` to nearest with ties
/// away from zero. A NaN of `F16` becomes the canonical one of `F32`.
#[derive(Clone, PartialEq, Debug)]
pub struct Cvt {
    /// Type of the operand.
    pub from: Type,
    /// Type of the result.
    pub to: Type,
    /// Result.
    pub dst: RegId,
    /// Operand.
    pub src: Operand,
}

/// `cvt.f32.f16`; that of `bf16` is a shift, and keeps a NaN's payload.
#[inline]
fn from_f16(x: f16) -> f32 {
    x.widen().canonical()
}

impl Instr for Cvt {
    const INFO: Info = Info {
        name: "cvt",
        ptx: "cvt{.rn,.rzi,.rna}.{u8,u16,u32,s32,u64,s64,f32,f16,bf16,tf32}.{u8,u16,u32,s32,u64,s64,f32,f16,bf16}",
        doc: "the same number in another type, as near as that type comes",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("cvt.{}.{}", self.to, self.from)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.arg(self.src, self.from);
    }
    fn asm(&self, a: &mut dyn Asm) {
        use Type::{Bf16, F16, F32};
        let (d, s) = (a.reg(self.dst), a.in_reg(self.src, self.from));
        let (to, from) = (self.to.ptx(), self.from.ptx());
        a.emit(match (self.from, self.to) {
            (x, y) if x == y => format!("mov.{} {d}, {s}", register_bits(x)),
            (Type::Tf32, F32) => format!("and.b32 {d}, {s}, {:#x}", !Tf32::UNUSED),
            (F32, Type::Tf32) => format!("cvt.rna.{to}.{from} {d}, {s}"),
            (F32, F16 | Bf16) => format!("cvt.rn.{to}.{from} {d}, {s}"),
            (F32, y) if y.is_int() => format!("cvt.rzi.{to}.{from} {d}, {s}"),
            (x, F32) if x.is_int() => format!("cvt.rn.{to}.{from} {d}, {s}"),
            _ => format!("cvt.{to}.{from} {d}, {s}"),
        });
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        use Type::{Bf16, F16, F32, I64, U64};
        let (d, s) = (self.dst, self.src);
        match (self.from, self.to) {
            (x, y) if x == y => copy(m, x, d, s),
            (F32, F16) => map1(m, d, s, f16::round),
            (F32, Bf16) => map1(m, d, s, bf16::round),
            (F32, Type::Tf32) => map1(m, d, s, Tf32::round),
            (F16, F32) => map1(m, d, s, from_f16),
            (Bf16, F32) => map1(m, d, s, bf16::widen),
            (Type::Tf32, F32) => map1(m, d, s, Tf32::widen),
            (F32, I64) => map1(
                m,
                d,
                s,
                |x: f32| if x.is_nan() { i64::MIN } else { x as i64 },
            ),
            (F32, U64) => map1(
                m,
                d,
                s,
                |x: f32| if x.is_nan() { 1 << 63 } else { x as u64 },
            ),
            // Rust's `as` is PTX's cvt: wrap, round to nearest even, or cut and hold.
            (from, to) => lane_types!(from, [U8, U16, U32, I32, U64, I64, F32], A => {
                lane_types!(to, [U8, U16, U32, I32, U64, I64, F32], B => map1(m, d, s, |x: A| x as B))
            }),
        }
        Ok(Step::Next)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        use Type::{F32, Pred};
        let narrow = |t| matches!(t, Type::F16 | Type::Bf16 | Type::Tf32);
        let whole = |t: Type| t.is_int() || t == F32;
        match (self.from, self.to) {
            (Pred, _) | (_, Pred) => {}
            (x, y) if x == y || whole(x) && whole(y) => return Ok(()),
            (F32, y) if narrow(y) => return Ok(()),
            (x, F32) if narrow(x) => return Ok(()),
            _ => {}
        }
        Err(format!(
            "cvt goes between integers and f32, and between f32 and f16, bf16 or tf32; not from {} to {}",
            self.from, self.to
        ))
    }
}

/// Two numbers side by side in one register.
#[derive(Clone, PartialEq, Debug)]
pub struct Pack {
    /// Type of the numbers.
    pub from: Type,
    /// Type of the pair: `F16x2` or `Bf16x2` from `F32` (rounded to nearest
    /// even) or from its own halves, `U32` from `U16`, `U64` from `U32`.
    pub to: Type,
    /// Result.
    pub dst: RegId,
    /// The low half.
    pub lo: Operand,
    /// The high half.
    pub hi: Operand,
}

impl Instr for Pack {
    const INFO: Info = Info {
        name: "pack",
        ptx: "cvt.rn.{f16x2,bf16x2}.f32, mov.{b32,b64}",
        doc: "two numbers side by side in one register, from f32 rounded to nearest even",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("pack.{}.{}", self.to, self.from)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.arg(self.lo, self.from);
        e.arg(self.hi, self.from);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let d = a.reg(self.dst);
        let (lo, hi) = (a.in_reg(self.lo, self.from), a.in_reg(self.hi, self.from));
        a.emit(match self.from {
            Type::F32 => format!("cvt.rn.{}.f32 {d}, {hi}, {lo}", self.to.ptx()),
            _ => format!("mov.{} {d}, {{{lo}, {hi}}}", self.to.bits()),
        });
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let (d, lo, hi) = (self.dst, self.lo, self.hi);
        match (self.from, self.to) {
            (Type::F32, Type::F16x2) => {
                map2(m, d, lo, hi, |lo, hi| {
                    F16x2::new(f16::round(lo), f16::round(hi))
                });
            }
            (Type::F32, Type::Bf16x2) => {
                map2(m, d, lo, hi, |lo, hi| {
                    Bf16x2::new(bf16::round(lo), bf16::round(hi))
                });
            }
            (Type::U32, Type::U64) => {
                map2(m, d, lo, hi, |lo: u32, hi: u32| {
                    u64::from(hi) << 32 | u64::from(lo)
                });
            }
            _ if halves(self.to) == Some(self.from) => {
                map2(m, d, lo, hi, |lo: u16, hi: u16| {
                    u32::from(hi) << 16 | u32::from(lo)
                });
            }
            _ => return Err(no_such_type(self.to)),
        }
        Ok(Step::Next)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        pair_of("pack", self.from, self.to)
    }
}

/// The two numbers of one register.
#[derive(Clone, PartialEq, Debug)]
pub struct Unpack {
    /// Type of the pair: `F16x2`, `Bf16x2`, `U32` or `U64`.
    pub from: Type,
    /// Type of the numbers: the pair's halves, or `F32` from `F16x2` or `Bf16x2` (exact).
    pub to: Type,
    /// The low half.
    pub lo: RegId,
    /// The high half.
    pub hi: RegId,
    /// The pair.
    pub src: Operand,
}

impl Unpack {
    fn split<T: Lane, R: Lane, M: Machine>(&self, m: &mut M, f: impl Fn(T) -> [R; 2]) {
        map1(m, self.lo, self.src, |x| f(x)[0]);
        map1(m, self.hi, self.src, |x| f(x)[1]);
    }
}

impl Instr for Unpack {
    const INFO: Info = Info {
        name: "unpack",
        ptx: "mov.{b32,b64}, cvt.f32.f16, shl.b32 with and.b32 for bf16x2 to f32",
        doc: "the two numbers of one register, exact in f32",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("unpack.{}.{}", self.to, self.from)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.lo);
        e.def(self.hi);
        e.arg(self.src, self.from);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (lo, hi) = (a.reg(self.lo), a.reg(self.hi));
        let s = a.in_reg(self.src, self.from);
        match (self.from, self.to) {
            // The upper half of an f32 is its bf16.
            (Type::Bf16x2, Type::F32) => {
                a.emit(format!("shl.b32 {lo}, {s}, 16"));
                a.emit(format!("and.b32 {hi}, {s}, 0xffff0000"));
            }
            (Type::F16x2, Type::F32) => {
                let halves = [a.temp(Type::F16), a.temp(Type::F16)];
                a.emit(format!("mov.b32 {{{}}}, {s}", halves.join(", ")));
                a.emit(format!("cvt.f32.f16 {lo}, {}", halves[0]));
                a.emit(format!("cvt.f32.f16 {hi}, {}", halves[1]));
            }
            (from, _) => a.emit(format!("mov.{} {{{lo}, {hi}}}, {s}", from.bits())),
        }
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        match (self.from, self.to) {
            (Type::F16x2, Type::F32) => self.split(m, |x: F16x2| x.split().map(from_f16)),
            (Type::Bf16x2, Type::F32) => self.split(m, |x: Bf16x2| x.split().map(bf16::widen)),
            (Type::U64, Type::U32) => self.split(m, |x: u64| [x as u32, (x >> 32) as u32]),
            _ if halves(self.from) == Some(self.to) => {
                self.split(m, |x: u32| [x as u16, (x >> 16) as u16]);
            }
            _ => return Err(no_such_type(self.from)),
        }
        Ok(Step::Next)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        pair_of("unpack", self.to, self.from)
    }
}

/// The type of the two halves of a pair.
fn halves(pair: Type) -> Option<Type> {
    match pair {
        Type::F16x2 => Some(Type::F16),
        Type::Bf16x2 => Some(Type::Bf16),
        Type::U32 => Some(Type::U16),
        Type::U64 => Some(Type::U32),
        _ => None,
    }
}

/// Refuses a pair that cannot be made of, or taken apart into, two of a type.
fn pair_of(name: &str, half: Type, pair: Type) -> Result<(), String> {
    let floats = half == Type::F32 && matches!(pair, Type::F16x2 | Type::Bf16x2);
    if floats || halves(pair) == Some(half) {
        return Ok(());
    }
    Err(format!(
        "{name} takes pairs f16x2 and bf16x2 of their halves or f32, u32 of u16, u64 of u32; not {pair} of {half}"
    ))
}

/// The bits of one type as another of the same width.
#[derive(Clone, PartialEq, Debug)]
pub struct Bitcast {
    /// Type of the operand.
    pub from: Type,
    /// Type of the result.
    pub to: Type,
    /// Result.
    pub dst: RegId,
    /// Operand.
    pub src: Operand,
}

impl Instr for Bitcast {
    const INFO: Info = Info {
        name: "bitcast",
        ptx: "mov.{b16,b32,b64}",
        doc: "the bits of one type as another of the same width",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("bitcast.{}.{}", self.to, self.from)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.arg(self.src, self.from);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (d, s) = (a.reg(self.dst), a.in_reg(self.src, self.from));
        a.emit(format!("mov.{} {d}, {s}", register_bits(self.from)));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        copy(m, self.from, self.dst, self.src);
        Ok(Step::Next)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        let (from, to) = (self.from, self.to);
        if from == Type::Pred || to == Type::Pred || from.bytes() != to.bytes() {
            return Err(format!(
                "bitcast takes types of one width, not {from} to {to}"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::fake::{Warp, arg, eval, ptx, reg};

    fn cvt(from: Type, to: Type) -> Cvt {
        Cvt {
            from,
            to,
            dst: reg(0),
            src: arg(1),
        }
    }

    /// Converts every number.
    fn convert<A: Lane, B: Lane>(from: Type, to: Type, xs: &[A]) -> Vec<B> {
        let rows: Vec<_> = xs.iter().map(|&x| [x]).collect();
        eval(&cvt(from, to), &rows)
    }

    #[test]
    fn integers_widen_by_their_sign_and_narrow_by_dropping() {
        use Type::{I32, I64, U8, U16, U32, U64};
        assert_eq!(convert::<_, u64>(I32, U64, &[-2i32]), [u64::MAX - 1]);
        assert_eq!(convert::<_, i64>(U32, I64, &[u32::MAX]), [0xffff_ffff]);
        assert_eq!(
            convert::<_, i64>(I32, I64, &[i32::MIN]),
            [i64::from(i32::MIN)]
        );
        assert_eq!(convert::<_, u32>(U8, U32, &[0x80u8]), [0x80]);
        assert_eq!(convert::<_, i32>(U16, I32, &[0xffffu16]), [0xffff]);
        assert_eq!(convert::<_, u8>(I32, U8, &[-1, 0x1234]), [0xff, 0x34]);
        assert_eq!(convert::<_, u16>(U64, U16, &[0x1_2345_6789u64]), [0x6789]);
        assert_eq!(convert::<_, i32>(U32, I32, &[u32::MAX]), [-1]);
    }

    #[test]
    fn integers_round_to_even_in_f32() {
        let tie = (1 << 24) + 1;
        let got = convert::<_, f32>(Type::U32, Type::F32, &[tie, tie + 2, u32::MAX]);
        assert_eq!(got, [16_777_216.0, 16_777_220.0, 4_294_967_296.0]);
        let got = convert::<_, f32>(Type::I32, Type::F32, &[-5, i32::MIN]);
        assert_eq!(got, [-5.0, -2_147_483_648.0]);
        // Above a tie by one in the last of 64 bits.
        let got = convert::<_, f32>(Type::U64, Type::F32, &[(1u64 << 63) + (1 << 39) + 1]);
        assert_eq!(got[0].to_bits(), 0x5f00_0001);
        assert_eq!(convert::<_, f32>(Type::U8, Type::F32, &[200u8]), [200.0]);
    }

    #[test]
    fn f32_is_cut_and_held_within_an_integer() {
        let xs = [
            2.9,
            -2.9,
            -0.5,
            3e9,
            -3e9,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
        ];
        let got = convert::<_, i32>(Type::F32, Type::I32, &xs);
        assert_eq!(got, [2, -2, 0, i32::MAX, i32::MIN, i32::MAX, i32::MIN, 0]);
        let got = convert::<_, u32>(Type::F32, Type::U32, &xs);
        assert_eq!(got, [2, 0, 0, 3_000_000_000, 0, u32::MAX, 0, 0]);
        let got = convert::<_, u8>(Type::F32, Type::U8, &[255.9f32, 256.0, -1.0]);
        assert_eq!(got, [255, 255, 0]);
        let got = convert::<_, i64>(Type::F32, Type::I64, &[1e19f32, -1e19, -1.5]);
        assert_eq!(got, [i64::MAX, i64::MIN, -1]);
        let got = convert::<_, u64>(Type::F32, Type::U64, &[1e19f32, -1.0, 2e19, f32::NAN]);
        assert_eq!(got, [9_999_999_980_506_447_872, 0, u64::MAX, 1 << 63]);
        assert_eq!(
            convert::<_, i64>(Type::F32, Type::I64, &[f32::NAN]),
            [i64::MIN]
        );
    }

    #[test]
    fn floats_round_to_even_and_widen_exactly() {
        let half = |x: u16| f16::from_bits(x).to_f32();
        let ties = [
            1.0 + 2f32.powi(-11),
            1.0 + 3.0 * 2f32.powi(-11),
            65520.0,
            2f32.powi(-25),
            f32::NAN,
        ];
        let got = convert::<_, u16>(Type::F32, Type::F16, &ties);
        assert_eq!(got, [0x3c00, 0x3c02, 0x7c00, 0x0000, 0x7fff]);
        let got = convert::<_, f32>(Type::F16, Type::F32, &[f16::from_bits(1), f16::MAX]);
        assert_eq!(got, [half(1), 65504.0]);
        assert_eq!(
            convert::<_, u32>(Type::F16, Type::F32, &[0xfc01u16]),
            [0x7fff_ffff]
        );
        assert_eq!(
            convert::<_, u32>(Type::Bf16, Type::F32, &[0xff81u16]),
            [0xff81_0000]
        );
        let ties = [
            1.0 + 2f32.powi(-8),
            1.0 + 3.0 * 2f32.powi(-8),
            f32::MAX,
            -f32::NAN,
        ];
        let got = convert::<_, u16>(Type::F32, Type::Bf16, &ties);
        assert_eq!(got, [0x3f80, 0x3f82, 0x7f80, 0x7fff]);
        assert_eq!(
            convert::<_, f32>(Type::Bf16, Type::F32, &[bf16::from_bits(0xc049)]),
            [-3.140625]
        );
        let got = convert::<_, u32>(Type::F32, Type::Tf32, &[1.0 + 2f32.powi(-11), 1.0]);
        assert_eq!(got, [0x3f80_2000, 0x3f80_0000]);
        assert_eq!(
            convert::<_, f32>(Type::Tf32, Type::F32, &[0x3f80_1fffu32]),
            [1.0]
        );
    }

    #[test]
    fn conversions_are_spelled_as_ptx_wants_them() {
        use Type::*;
        let print = |from, to| ptx(&cvt(from, to)).join("; ");
        assert_eq!(print(I32, U8), "cvt.u8.s32 %0, %1");
        assert_eq!(print(U32, U64), "cvt.u64.u32 %0, %1");
        assert_eq!(print(U64, F32), "cvt.rn.f32.u64 %0, %1");
        assert_eq!(print(F32, I32), "cvt.rzi.s32.f32 %0, %1");
        assert_eq!(print(F32, Bf16), "cvt.rn.bf16.f32 %0, %1");
        assert_eq!(print(Bf16, F32), "cvt.f32.bf16 %0, %1");
        assert_eq!(print(F32, Tf32), "cvt.rna.tf32.f32 %0, %1");
        assert_eq!(print(Tf32, F32), "and.b32 %0, %1, 0xffffe000");
        assert_eq!(print(U8, U8), "mov.b16 %0, %1");
        assert_eq!(cvt(F32, Bf16).name(), "cvt.bf16.f32");
    }

    #[test]
    fn what_has_no_conversion_is_refused() {
        use Type::*;
        let legal = |from, to| cvt(from, to).legal(&Target::SM_90A);
        for (from, to) in [
            (F16, Bf16),
            (U32, F16),
            (F16x2, F32),
            (Pred, U32),
            (U32, Pred),
            (Pred, Pred),
        ] {
            let why = legal(from, to).expect_err("refused");
            assert!(why.ends_with(&format!("not from {from} to {to}")), "{why}");
        }
        for (from, to) in [(F16, F16), (F16, F32), (U8, I64), (F32, Tf32), (I64, F32)] {
            assert_eq!(legal(from, to), Ok(()));
        }
    }

    #[test]
    fn pairs_pack_low_half_first_and_unpack_again() {
        let pack = |from, to| Pack {
            from,
            to,
            dst: reg(0),
            lo: arg(1),
            hi: arg(2),
        };
        let unpack = |from, to| Unpack {
            from,
            to,
            lo: reg(3),
            hi: reg(4),
            src: arg(0),
        };
        let warp = Warp::new().with(1, &[1.0f32]).with(2, &[-2.0f32]);
        let packed = warp.clone().run(&pack(Type::F32, Type::F16x2));
        assert_eq!(packed.read::<u32>(0)[0], 0xc000_3c00);
        let back = packed.clone().run(&unpack(Type::F16x2, Type::F32));
        assert_eq!(
            (back.read::<f32>(3)[0], back.read::<f32>(4)[0]),
            (1.0, -2.0)
        );
        let back = packed.run(&unpack(Type::F16x2, Type::F16));
        assert_eq!(
            (back.read::<u16>(3)[0], back.read::<u16>(4)[0]),
            (0x3c00, 0xc000)
        );

        let packed = warp.run(&pack(Type::F32, Type::Bf16x2));
        assert_eq!(packed.read::<u32>(0)[0], 0xc000_3f80);
        let back = packed.run(&unpack(Type::Bf16x2, Type::F32));
        assert_eq!(
            (back.read::<f32>(3)[0], back.read::<f32>(4)[0]),
            (1.0, -2.0)
        );

        let words = Warp::new()
            .with(1, &[0x1111_2222u32])
            .with(2, &[0x3333_4444u32]);
        let packed = words.clone().run(&pack(Type::U32, Type::U64));
        assert_eq!(packed.read::<u64>(0)[0], 0x3333_4444_1111_2222);
        let back = packed.run(&unpack(Type::U64, Type::U32));
        assert_eq!(
            (back.read::<u32>(3)[0], back.read::<u32>(4)[0]),
            (0x1111_2222, 0x3333_4444)
        );
        let packed = words.run(&pack(Type::U16, Type::U32));
        assert_eq!(packed.read::<u32>(0)[0], 0x4444_2222);

        let print = |lines: Vec<String>, want: &str| assert_eq!(lines.join("; "), want);
        print(
            ptx(&pack(Type::F32, Type::Bf16x2)),
            "cvt.rn.bf16x2.f32 %0, %2, %1",
        );
        print(ptx(&pack(Type::F16, Type::F16x2)), "mov.b32 %0, {%1, %2}");
        print(ptx(&pack(Type::U32, Type::U64)), "mov.b64 %0, {%1, %2}");
        print(ptx(&unpack(Type::U32, Type::U16)), "mov.b32 {%3, %4}, %0");
        print(
            ptx(&unpack(Type::Bf16x2, Type::F32)),
            "shl.b32 %3, %0, 16; and.b32 %4, %0, 0xffff0000",
        );
        print(
            ptx(&unpack(Type::F16x2, Type::F32)),
            "mov.b32 {%t0, %t1}, %0; cvt.f32.f16 %3, %t0; cvt.f32.f16 %4, %t1",
        );
        let refused = pack(Type::Bf16, Type::F16x2).legal(&Target::SM_90A);
        assert!(refused.is_err_and(|e| e.ends_with("not f16x2 of bf16")));
    }

    #[test]
    fn a_bitcast_keeps_every_bit() {
        let cast = |from, to| Bitcast {
            from,
            to,
            dst: reg(0),
            src: arg(1),
        };
        let nan = 0xff81_2345u32;
        assert_eq!(
            eval::<_, u32, 1>(&cast(Type::F32, Type::U32), &[[nan]]),
            [nan]
        );
        assert_eq!(ptx(&cast(Type::U16, Type::Bf16)), ["mov.b16 %0, %1"]);
        assert_eq!(cast(Type::F16x2, Type::U32).legal(&Target::SM_90A), Ok(()));
        assert!(cast(Type::F16, Type::U32).legal(&Target::SM_90A).is_err());
    }
}

//! Conversions between types, packing and bit casts.

mod pair;

pub use pair::{Pack, Unpack};

use super::arith::{copy, register_bits};
use super::{Exactness, Instr, OpInfo};
use crate::domain::Domain;
use crate::lanes::{FloatBits, HalfFloat, lane_types, map1};
use crate::machine::{Asm, Effects, Exec, ExecStatus, Machine};
use crate::target::Target;
use crate::types::{E4m3, E4m3x2, E5m2, E5m2x2, F16x2, Tf32, Type};
use crate::value::{Operand, RegId};
use half::{bf16, f16};

/// Converts a number to another type.
///
/// | conversion | result |
/// |---|---|
/// | integer to integer | extended by the sign of `from`, or truncated |
/// | integer to float | rounded to nearest even |
/// | `F32` to integer | rounded toward zero and saturated; a NaN becomes 0, or `1 << 63` for 64 bits (the hardware's result; the PTX ISA specifies 0) |
/// | `F32` to `F16`, `Bf16` | rounded to nearest even |
/// | `F32` to `Tf32` | rounded to nearest, ties away from zero |
/// | `F16` to `F32` | exact; a NaN becomes canonical |
/// | `F16x2` to `E4m3x2`, `E5m2x2` | rounded to nearest even, saturated to finite numbers |
/// | `E4m3x2`, `E5m2x2` to `F16x2` | exact |
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

/// `cvt.f32.f16`. Unlike `bf16` to `f32`, which is a shift, it makes a NaN canonical.
#[inline]
fn from_f16(x: f16) -> f32 {
    x.widen().canonical()
}

impl Instr for Cvt {
    const INFO: OpInfo = OpInfo {
        name: "cvt",
        ptx: "cvt{.rn,.rzi,.rna}.{u8,u16,u32,s32,u64,s64,f32,f16,bf16,tf32}.{u8,u16,u32,s32,u64,s64,f32,f16,bf16}, \
            cvt.rn.satfinite.{e4m3x2,e5m2x2}.f16x2, cvt.rn.f16x2.{e4m3x2,e5m2x2}",
        doc: "converts a number to another type: rounds, truncates or saturates as the PTX instruction does",
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
        use Type::{Bf16, E4m3x2, E5m2x2, F16, F16x2, F32};
        let (d, s) = (a.reg(self.dst), a.in_reg(self.src, self.from));
        let (to, from) = (self.to.ptx(), self.from.ptx());
        a.emit(match (self.from, self.to) {
            (x, y) if x == y => format!("mov.{} {d}, {s}", register_bits(x)),
            (Type::Tf32, F32) => format!("and.b32 {d}, {s}, {:#x}", !Tf32::UNUSED),
            (F32, Type::Tf32) => format!("cvt.rna.{to}.{from} {d}, {s}"),
            (F32, F16 | Bf16) | (E4m3x2 | E5m2x2, F16x2) => format!("cvt.rn.{to}.{from} {d}, {s}"),
            (F16x2, E4m3x2 | E5m2x2) => format!("cvt.rn.satfinite.{to}.{from} {d}, {s}"),
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
            (Type::F16x2, Type::E4m3x2) => map1(m, d, s, |x: F16x2| {
                let [lo, hi] = x.split().map(|h| E4m3::round(h.widen()));
                E4m3x2::new(lo, hi)
            }),
            (Type::F16x2, Type::E5m2x2) => map1(m, d, s, |x: F16x2| {
                let [lo, hi] = x.split().map(|h| E5m2::round(h.widen()));
                E5m2x2::new(lo, hi)
            }),
            (Type::E4m3x2, Type::F16x2) => map1(m, d, s, |x: E4m3x2| {
                let [lo, hi] = x.split().map(|c| f16::round(c.widen()));
                F16x2::new(lo, hi)
            }),
            (Type::E5m2x2, Type::F16x2) => map1(m, d, s, |x: E5m2x2| {
                let [lo, hi] = x.split().map(|c| f16::round(c.widen()));
                F16x2::new(lo, hi)
            }),
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
            // Rust's `as` equals PTX's cvt: wrap, round to nearest even, or truncate and saturate.
            (from, to) => lane_types!(from, [U8, U16, U32, I32, U64, I64, F32], A => {
                lane_types!(to, [U8, U16, U32, I32, U64, I64, F32], B => map1(m, d, s, |x: A| x as B))
            }),
        }
        Ok(ExecStatus::Completed)
    }
    fn transfer<D: Domain>(&self, d: &mut D) {
        let v = d.read(self.src, self.from);
        let v = match self.from.is_int() && self.to.is_int() {
            true => d.convert(self.from, self.to, v),
            false => d.function(&[v]),
        };
        d.write(self.dst, v);
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        use Type::{E4m3x2, E5m2x2, F16x2, F32, Pred};
        let is_small_float = |t| matches!(t, Type::F16 | Type::Bf16 | Type::Tf32);
        let is_int_or_f32 = |t: Type| t.is_int() || t == F32;
        match (self.from, self.to) {
            (Pred, _) | (_, Pred) => {}
            (x, y) if x == y || is_int_or_f32(x) && is_int_or_f32(y) => return Ok(()),
            (F32, y) if is_small_float(y) => return Ok(()),
            (x, F32) if is_small_float(x) => return Ok(()),
            (F16x2, E4m3x2 | E5m2x2) | (E4m3x2 | E5m2x2, F16x2) => return Ok(()),
            _ => {}
        }
        Err(format!(
            "cvt does not support {} to {}; supported: between integers and f32, between f32 and f16, bf16 or tf32, \
             and between f16x2 and e4m3x2 or e5m2x2",
            self.from, self.to
        ))
    }
}

/// Reinterprets the bits of a register as another type of the same width.
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
    const INFO: OpInfo = OpInfo {
        name: "bitcast",
        ptx: "mov.{b16,b32,b64}",
        doc: "reinterprets the bits as another type of the same width",
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
        Ok(ExecStatus::Completed)
    }
    fn transfer<D: Domain>(&self, d: &mut D) {
        let v = d.read(self.src, self.from);
        let v = match self.from.is_int() && self.to.is_int() {
            true => d.convert(self.from, self.to, v),
            false => d.function(&[v]),
        };
        d.write(self.dst, v);
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        let (from, to) = (self.from, self.to);
        if from == Type::Pred || to == Type::Pred || from.bytes() != to.bytes() {
            return Err(format!(
                "bitcast does not support {from} to {to}; both types must have the same width, and neither may be pred"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::fake::{arg, eval, ptx, reg};
    use crate::machine::Lane;

    fn cvt(from: Type, to: Type) -> Cvt {
        Cvt {
            from,
            to,
            dst: reg(0),
            src: arg(1),
        }
    }

    fn convert<A: Lane, B: Lane>(from: Type, to: Type, xs: &[A]) -> Vec<B> {
        let rows: Vec<_> = xs.iter().map(|&x| [x]).collect();
        eval(&cvt(from, to), &rows)
    }

    #[test]
    fn integers_extend_by_their_sign_and_truncate() {
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
        // A tie plus 1.
        let got = convert::<_, f32>(Type::U64, Type::F32, &[(1u64 << 63) + (1 << 39) + 1]);
        assert_eq!(got[0].to_bits(), 0x5f00_0001);
        assert_eq!(convert::<_, f32>(Type::U8, Type::F32, &[200u8]), [200.0]);
    }

    #[test]
    fn f32_to_integer_truncates_and_saturates() {
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
    fn f16_and_fp8_pairs_convert_elementwise() {
        use Type::{E4m3x2, E5m2x2, F16x2};
        // 1.0625 is a tie of both formats; 464 is a tie above e4m3's largest.
        let halves = [[0x3c40, 0x5f40], [0xbc00, 0x7c00], [0xfe01, 0x8001]];
        let pairs = halves.map(|[lo, hi]: [u32; 2]| hi << 16 | lo);
        let got = convert::<_, u16>(F16x2, E4m3x2, &pairs);
        assert_eq!(got, [0x7e38, 0x7eb8, 0x807f]);
        let got = convert::<_, u16>(F16x2, E5m2x2, &pairs);
        assert_eq!(got, [0x5f3c, 0x7bbc, 0x807f]);
        let got = convert::<_, u32>(E4m3x2, F16x2, &[0x7e38u16, 0x0181, 0xff7f]);
        assert_eq!(got, [0x5f00_3c00, 0x1800_9800, 0x7fff_7fff]);
        let got = convert::<_, u32>(E5m2x2, F16x2, &[0x7c3cu16, 0x0181, 0xfd7f]);
        assert_eq!(got, [0x7c00_3c00, 0x0100_8100, 0x7fff_7fff]);
    }

    #[test]
    fn every_fp8_pair_round_trips_through_f16() {
        for ty in [Type::E4m3x2, Type::E5m2x2] {
            let codes: Vec<u16> = (0..=u16::MAX).collect();
            let wide: Vec<u32> = convert(ty, Type::F16x2, &codes);
            let back: Vec<u16> = convert(Type::F16x2, ty, &wide);
            let expected = |code: u16| match (ty, code & 0x7f) {
                (Type::E4m3x2, 0x7f) | (Type::E5m2x2, 0x7d..) => 0x7f,
                (Type::E5m2x2, 0x7c) => code & 0x80 | 0x7b, // an infinity saturates
                _ => code & 0xff,
            };
            for (code, back) in codes.into_iter().zip(back) {
                assert_eq!(
                    back,
                    expected(code >> 8) << 8 | expected(code & 0xff),
                    "{code:#06x}"
                );
            }
        }
    }

    #[test]
    fn conversions_print_their_rounding() {
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
        assert_eq!(print(F16x2, E4m3x2), "cvt.rn.satfinite.e4m3x2.f16x2 %0, %1");
        assert_eq!(print(E5m2x2, F16x2), "cvt.rn.f16x2.e5m2x2 %0, %1");
        assert_eq!(print(U8, U8), "mov.b16 %0, %1");
        assert_eq!(cvt(F32, Bf16).name(), "cvt.bf16.f32");
    }

    #[test]
    fn unsupported_conversions_are_rejected() {
        use Type::*;
        let legal = |from, to| cvt(from, to).legal(&Target::SM_90A);
        for (from, to) in [
            (F16, Bf16),
            (U32, F16),
            (F16x2, F32),
            (E4m3x2, E5m2x2),
            (Bf16x2, E4m3x2),
            (F16x2, E4m3x4),
            (Pred, U32),
            (U32, Pred),
            (Pred, Pred),
        ] {
            let why = legal(from, to).expect_err("rejected");
            assert!(
                why.contains(&format!("does not support {from} to {to}")),
                "{why}"
            );
        }
        for (from, to) in [(F16, F16), (F16, F32), (U8, I64), (F32, Tf32), (I64, F32)] {
            assert_eq!(legal(from, to), Ok(()));
        }
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

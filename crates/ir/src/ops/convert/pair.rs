//! Packed pairs: two numbers in one register.

use super::from_f16;
use crate::lanes::{HalfFloat, map1, map2, unsupported_type};
use crate::machine::{Asm, Effects, Exec, ExecStatus, Lane, Machine};
use crate::ops::{Exactness, Instr, OpInfo};
use crate::target::Target;
use crate::types::{Bf16x2, E4m3, E4m3x2, E5m2, E5m2x2, F16x2, Type};
use crate::value::{Operand, RegId};
use half::{bf16, f16};

/// Packs two numbers into one register.
#[derive(Clone, PartialEq, Debug)]
pub struct Pack {
    /// Type of the numbers.
    pub from: Type,
    /// Type of the pair. From `F32`: `F16x2`, `Bf16x2`, `E4m3x2` or `E5m2x2`,
    /// rounded to nearest even (8-bit floats saturate to finite numbers). From
    /// its own halves: any pair except `E4m3x2` and `E5m2x2`.
    pub to: Type,
    /// Applies ReLU before rounding; from `F32` only.
    pub relu: bool,
    /// Result.
    pub dst: RegId,
    /// The low half.
    pub lo: Operand,
    /// The high half.
    pub hi: Operand,
}

impl Pack {
    fn suffix(&self) -> &'static str {
        if self.relu { ".relu" } else { "" }
    }

    fn pack_with<T: Lane, R: Lane, M: Machine>(&self, m: &mut M, f: impl Fn(T, T) -> R) {
        map2(m, self.dst, self.lo, self.hi, f);
    }

    fn pack_f32<R: Lane, M: Machine>(&self, m: &mut M, f: impl Fn(f32, f32) -> R) {
        if self.relu {
            self.pack_with(m, |lo, hi| f(rectify(lo), rectify(hi)));
        } else {
            self.pack_with(m, f);
        }
    }
}

/// ReLU: +0 for negative numbers and −0; a NaN is kept.
#[inline]
fn rectify(x: f32) -> f32 {
    if x.is_sign_negative() && !x.is_nan() {
        0.0
    } else {
        x
    }
}

impl Instr for Pack {
    const INFO: OpInfo = OpInfo {
        name: "pack",
        ptx: "cvt.rn{.satfinite}{.relu}.{f16x2,bf16x2,e4m3x2,e5m2x2}.f32, mov.{b32,b64}",
        doc: "packs two numbers into one register; f32 rounds to nearest even, 8-bit floats saturate to finite numbers",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("pack{}.{}.{}", self.suffix(), self.to, self.from)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.arg(self.lo, self.from);
        e.arg(self.hi, self.from);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let d = a.reg(self.dst);
        let (lo, hi) = (a.in_reg(self.lo, self.from), a.in_reg(self.hi, self.from));
        let saturate = if is_fp8(self.to) { ".satfinite" } else { "" };
        a.emit(match self.from {
            // The first operand of cvt is the high half.
            Type::F32 => {
                let (relu, to) = (self.suffix(), self.to.ptx());
                format!("cvt.rn{saturate}{relu}.{to}.f32 {d}, {hi}, {lo}")
            }
            _ => format!("mov.{} {d}, {{{lo}, {hi}}}", self.to.bits()),
        });
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        match (self.from, self.to) {
            (Type::F32, Type::F16x2) => {
                self.pack_f32(m, |lo, hi| F16x2::new(f16::round(lo), f16::round(hi)));
            }
            (Type::F32, Type::Bf16x2) => {
                self.pack_f32(m, |lo, hi| Bf16x2::new(bf16::round(lo), bf16::round(hi)));
            }
            (Type::F32, Type::E4m3x2) => {
                self.pack_f32(m, |lo, hi| E4m3x2::new(E4m3::round(lo), E4m3::round(hi)));
            }
            (Type::F32, Type::E5m2x2) => {
                self.pack_f32(m, |lo, hi| E5m2x2::new(E5m2::round(lo), E5m2::round(hi)));
            }
            (Type::U32, Type::U64) => {
                self.pack_with(m, |lo: u32, hi: u32| u64::from(hi) << 32 | u64::from(lo));
            }
            _ if halves(self.to) == Some(self.from) => {
                self.pack_with(m, |lo: u16, hi: u16| u32::from(hi) << 16 | u32::from(lo));
            }
            _ => return Err(unsupported_type(self.to)),
        }
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        if self.relu && self.from != Type::F32 {
            return Err(format!(
                "pack with relu requires f32 operands, not {}",
                self.from
            ));
        }
        legal_pair("pack", self.from, self.to)
    }
}

/// Unpacks the two numbers of a register.
#[derive(Clone, PartialEq, Debug)]
pub struct Unpack {
    /// Type of the pair.
    pub from: Type,
    /// Type of the numbers: `F32` from `F16x2`, `Bf16x2`, `E4m3x2` or `E5m2x2`
    /// (exact), or the halves of any pair except `E4m3x2` and `E5m2x2`.
    pub to: Type,
    /// The low half.
    pub lo: RegId,
    /// The high half.
    pub hi: RegId,
    /// The pair.
    pub src: Operand,
}

impl Unpack {
    fn unpack_with<T: Lane, R: Lane, M: Machine>(&self, m: &mut M, f: impl Fn(T) -> [R; 2]) {
        map1(m, self.lo, self.src, |x| f(x)[0]);
        map1(m, self.hi, self.src, |x| f(x)[1]);
    }
}

impl Instr for Unpack {
    const INFO: OpInfo = OpInfo {
        name: "unpack",
        ptx: "mov.{b32,b64}, cvt.f32.f16, shl.b32 with and.b32 for bf16x2 to f32, cvt.rn.f16x2.{e4m3x2,e5m2x2} with cvt.f32.f16",
        doc: "unpacks the two numbers of a register; exact in f32",
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
            // A bf16 is the upper half of an f32.
            (Type::Bf16x2, Type::F32) => {
                a.emit(format!("shl.b32 {lo}, {s}, 16"));
                a.emit(format!("and.b32 {hi}, {s}, 0xffff0000"));
            }
            (from, Type::F32) => {
                let halves = [a.temp(Type::F16), a.temp(Type::F16)];
                let pair = if is_fp8(from) {
                    let wide = a.temp(Type::F16x2);
                    a.emit(format!("cvt.rn.f16x2.{} {wide}, {s}", from.ptx()));
                    wide
                } else {
                    s
                };
                a.emit(format!("mov.b32 {{{}}}, {pair}", halves.join(", ")));
                a.emit(format!("cvt.f32.f16 {lo}, {}", halves[0]));
                a.emit(format!("cvt.f32.f16 {hi}, {}", halves[1]));
            }
            (from, _) => a.emit(format!("mov.{} {{{lo}, {hi}}}, {s}", from.bits())),
        }
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        match (self.from, self.to) {
            (Type::F16x2, Type::F32) => self.unpack_with(m, |x: F16x2| x.split().map(from_f16)),
            (Type::Bf16x2, Type::F32) => {
                self.unpack_with(m, |x: Bf16x2| x.split().map(bf16::widen))
            }
            (Type::E4m3x2, Type::F32) => {
                self.unpack_with(m, |x: E4m3x2| x.split().map(E4m3::widen))
            }
            (Type::E5m2x2, Type::F32) => {
                self.unpack_with(m, |x: E5m2x2| x.split().map(E5m2::widen))
            }
            (Type::U64, Type::U32) => self.unpack_with(m, |x: u64| [x as u32, (x >> 32) as u32]),
            _ if halves(self.from) == Some(self.to) => {
                self.unpack_with(m, |x: u32| [x as u16, (x >> 16) as u16]);
            }
            _ => return Err(unsupported_type(self.from)),
        }
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_pair("unpack", self.to, self.from)
    }
}

/// Returns the type of the halves of a pair.
fn halves(pair: Type) -> Option<Type> {
    match pair {
        Type::F16x2 => Some(Type::F16),
        Type::Bf16x2 => Some(Type::Bf16),
        Type::E4m3x4 => Some(Type::E4m3x2),
        Type::E5m2x4 => Some(Type::E5m2x2),
        Type::U32 => Some(Type::U16),
        Type::U64 => Some(Type::U32),
        _ => None,
    }
}

/// Returns whether the type is a pair of 8-bit floats.
fn is_fp8(pair: Type) -> bool {
    matches!(pair, Type::E4m3x2 | Type::E5m2x2)
}

/// Rejects a combination of pair and half that `pack` and `unpack` do not support.
fn legal_pair(name: &str, half: Type, pair: Type) -> Result<(), String> {
    let floats = is_fp8(pair) || matches!(pair, Type::F16x2 | Type::Bf16x2);
    if floats && half == Type::F32 || halves(pair) == Some(half) {
        return Ok(());
    }
    Err(format!(
        "{name} does not support {pair} with halves of {half}; supported: f16x2, bf16x2, e4m3x2 and e5m2x2 with f32, \
         f16x2 and bf16x2 with their 16-bit halves, e4m3x4 with e4m3x2, e5m2x4 with e5m2x2, u32 with u16, u64 with u32"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::fake::{Warp, arg, eval, ptx, reg};

    fn pack(from: Type, to: Type) -> Pack {
        Pack {
            from,
            to,
            relu: false,
            dst: reg(0),
            lo: arg(1),
            hi: arg(2),
        }
    }

    fn unpack(from: Type, to: Type) -> Unpack {
        Unpack {
            from,
            to,
            lo: reg(3),
            hi: reg(4),
            src: arg(0),
        }
    }

    #[test]
    fn pairs_pack_low_half_first_and_unpack_again() {
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

        let assert_ptx = |lines: Vec<String>, want: &str| assert_eq!(lines.join("; "), want);
        assert_ptx(
            ptx(&pack(Type::F32, Type::Bf16x2)),
            "cvt.rn.bf16x2.f32 %0, %2, %1",
        );
        assert_ptx(ptx(&pack(Type::F16, Type::F16x2)), "mov.b32 %0, {%1, %2}");
        assert_ptx(ptx(&pack(Type::U32, Type::U64)), "mov.b64 %0, {%1, %2}");
        assert_ptx(ptx(&unpack(Type::U32, Type::U16)), "mov.b32 {%3, %4}, %0");
        assert_ptx(
            ptx(&unpack(Type::Bf16x2, Type::F32)),
            "shl.b32 %3, %0, 16; and.b32 %4, %0, 0xffff0000",
        );
        assert_ptx(
            ptx(&unpack(Type::F16x2, Type::F32)),
            "mov.b32 {%t0, %t1}, %0; cvt.f32.f16 %3, %t0; cvt.f32.f16 %4, %t1",
        );
        let rejected = pack(Type::Bf16, Type::F16x2).legal(&Target::SM_90A);
        assert!(rejected.is_err_and(|e| e.contains("f16x2 with halves of bf16")));
    }

    #[test]
    fn fp8_pairs_saturate_and_widen_exactly() {
        let rows = [[1.0f32, -448.0], [1e9, f32::NEG_INFINITY], [f32::NAN, -0.0]];
        let e4m3: Vec<u16> = eval(&pack(Type::F32, Type::E4m3x2), &rows);
        assert_eq!(e4m3, [0xfe38, 0xfe7e, 0x807f]);
        let e5m2: Vec<u16> = eval(&pack(Type::F32, Type::E5m2x2), &rows);
        assert_eq!(e5m2, [0xdf3c, 0xfb7b, 0x807f]);

        let wide = |ty, pair: u16| {
            let warp = Warp::new().with(0, &[pair]).run(&unpack(ty, Type::F32));
            (warp.read::<u32>(3)[0], warp.read::<u32>(4)[0])
        };
        let bits = |lo: f32, hi: f32| (lo.to_bits(), hi.to_bits());
        assert_eq!(wide(Type::E4m3x2, 0xfe01), bits(2f32.powi(-9), -448.0));
        assert_eq!(
            wide(Type::E5m2x2, 0xfc01),
            bits(2f32.powi(-16), f32::NEG_INFINITY)
        );
        assert_eq!(wide(Type::E4m3x2, 0xff80), (1 << 31, 0x7fff_ffff));

        let words = Warp::new().with(1, &[0x3412u16]).with(2, &[0x7856u16]);
        let four = words.run(&pack(Type::E4m3x2, Type::E4m3x4));
        assert_eq!(four.read::<u32>(0)[0], 0x7856_3412);
        let two = four.run(&unpack(Type::E4m3x4, Type::E4m3x2));
        assert_eq!(
            (two.read::<u16>(3)[0], two.read::<u16>(4)[0]),
            (0x3412, 0x7856)
        );

        let print = |lines: Vec<String>| lines.join("; ");
        assert_eq!(
            print(ptx(&pack(Type::F32, Type::E4m3x2))),
            "cvt.rn.satfinite.e4m3x2.f32 %0, %2, %1"
        );
        assert_eq!(
            print(ptx(&pack(Type::E5m2x2, Type::E5m2x4))),
            "mov.b32 %0, {%1, %2}"
        );
        assert_eq!(
            print(ptx(&unpack(Type::E5m2x2, Type::F32))),
            "cvt.rn.f16x2.e5m2x2 %t2, %0; mov.b32 {%t0, %t1}, %t2; cvt.f32.f16 %3, %t0; cvt.f32.f16 %4, %t1"
        );
    }

    #[test]
    fn relu_replaces_negative_numbers_by_zero() {
        let relu = |to| Pack {
            relu: true,
            ..pack(Type::F32, to)
        };
        let rows = [
            [-1.5f32, 1.5],
            [-0.0, f32::NEG_INFINITY],
            [-f32::NAN, -1e-30],
        ];
        let pairs = |to| eval::<f32, u32, 2>(&relu(to), &rows);
        assert_eq!(pairs(Type::F16x2), [0x3e00_0000, 0, 0x7fff]);
        assert_eq!(pairs(Type::Bf16x2), [0x3fc0_0000, 0, 0x7fff]);
        let pairs = |to| eval::<f32, u16, 2>(&relu(to), &rows);
        assert_eq!(pairs(Type::E4m3x2), [0x3c00, 0, 0x7f]);
        assert_eq!(pairs(Type::E5m2x2), [0x3e00, 0, 0x7f]);
        assert_eq!(
            ptx(&relu(Type::E5m2x2)),
            ["cvt.rn.satfinite.relu.e5m2x2.f32 %0, %2, %1"]
        );
        assert_eq!(relu(Type::F16x2).name(), "pack.relu.f16x2.f32");
        let rejected = Pack {
            relu: true,
            ..pack(Type::U32, Type::U64)
        };
        assert_eq!(
            rejected.legal(&Target::SM_90A),
            Err("pack with relu requires f32 operands, not u32".into())
        );
    }
}

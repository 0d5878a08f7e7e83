//! What becomes of a number in memory when another arrives.

use crate::lanes::number::{Integer, Number};
use crate::types::DType;
use bytemuck::Pod;
use half::{bf16, f16};

/// How a number that arrives is combined with the one in memory.
///
/// Each element is combined in one step, in any order among elements and
/// among copies: integers give the same result in every order, sums of floats
/// may not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reduction {
    /// Sum; integers wrap, floats round to nearest even and keep subnormals.
    Add,
    /// The lesser; of a NaN and a number the number.
    Min,
    /// The greater; of a NaN and a number the number.
    Max,
    /// One more, or 0 if that is above the number that arrives.
    Inc,
    /// One less, or the number that arrives if there is none or it is smaller.
    Dec,
    /// Bits of both.
    And,
    /// Bits of either.
    Or,
    /// Bits of one of the two.
    Xor,
}

/// Where numbers are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ops) enum ReduceInto {
    /// In global memory, by runs of bytes.
    Global,
    /// In global memory, by boxes of a tensor map.
    Tensor,
    /// In the shared memory of the cluster.
    Shared,
}

impl Reduction {
    /// All of them.
    pub const ALL: [Reduction; 8] = [
        Reduction::Add,
        Reduction::Min,
        Reduction::Max,
        Reduction::Inc,
        Reduction::Dec,
        Reduction::And,
        Reduction::Or,
        Reduction::Xor,
    ];

    /// The name in PTX and in text.
    pub const fn name(self) -> &'static str {
        match self {
            Reduction::Add => "add",
            Reduction::Min => "min",
            Reduction::Max => "max",
            Reduction::Inc => "inc",
            Reduction::Dec => "dec",
            Reduction::And => "and",
            Reduction::Or => "or",
            Reduction::Xor => "xor",
        }
    }

    const fn is_bits(self) -> bool {
        matches!(self, Reduction::And | Reduction::Or | Reduction::Xor)
    }

    /// Refuses the type of elements that a bulk store does not combine like this.
    pub fn legal_in_global(self, dtype: DType) -> Result<(), String> {
        self.legal(dtype, ReduceInto::Global)
    }

    /// Refuses the type of a tensor whose elements are not combined like this.
    pub fn legal_in_tensor(self, dtype: DType) -> Result<(), String> {
        self.legal(dtype, ReduceInto::Tensor)
    }

    /// Refuses a type that is not combined like this there.
    pub(in crate::ops) fn legal(self, dtype: DType, into: ReduceInto) -> Result<(), String> {
        use DType::*;
        let types: &[DType] = match (self, into) {
            (Reduction::Inc | Reduction::Dec, _) => &[U32],
            (Reduction::Add, ReduceInto::Global) => &[U32, I32, U64, I64, F16, Bf16, F32],
            // The map says which integers they are, so signed ones are not taken for unsigned.
            (Reduction::Add, ReduceInto::Tensor) => &[U32, I32, U64, F16, Bf16, F32],
            (Reduction::Add, ReduceInto::Shared) => &[U32, I32, U64, I64],
            (_, ReduceInto::Shared) => &[U32, I32],
            (Reduction::Min | Reduction::Max, _) => &[U32, I32, U64, I64, F16, Bf16],
            (_, ReduceInto::Global) => &[U32, I32, U64, I64],
            (_, ReduceInto::Tensor) => &[U32, I32, U64],
        };
        if types.contains(&dtype) {
            return Ok(());
        }
        let names: Vec<_> = types.iter().map(|t| t.name()).collect();
        let place = match into {
            ReduceInto::Global => "global memory",
            ReduceInto::Tensor => "a tensor",
            ReduceInto::Shared => "shared memory",
        };
        Err(format!(
            "{} in {place} takes {}, not {dtype}",
            self.name(),
            names.join(", ")
        ))
    }

    /// What becomes of `old`; both have the bytes of one element.
    pub(crate) fn combine(self, dtype: DType, old: &[u8], new: &[u8], out: &mut [u8]) {
        match dtype {
            DType::U32 => word::<u32>(old, new, out, |a, b| self.count(a, b)),
            DType::I32 => word::<i32>(old, new, out, |a, b| self.whole(a, b)),
            DType::U64 => word::<u64>(old, new, out, |a, b| self.whole(a, b)),
            DType::I64 => word::<i64>(old, new, out, |a, b| self.whole(a, b)),
            DType::F32 => word::<f32>(old, new, out, |a, b| self.number(a, b)),
            DType::F16 => word::<f16>(old, new, out, |a, b| self.number(a, b)),
            DType::Bf16 => word::<bf16>(old, new, out, |a, b| self.number(a, b)),
            // No instruction combines the others.
            _ => out.copy_from_slice(old),
        }
    }

    /// Of numbers that count up and down.
    fn count(self, old: u32, new: u32) -> u32 {
        match self {
            Reduction::Inc if old >= new => 0,
            Reduction::Inc => old + 1,
            Reduction::Dec if old == 0 || old > new => new,
            Reduction::Dec => old - 1,
            _ => self.whole(old, new),
        }
    }

    /// Of integers.
    fn whole<T: Integer>(self, old: T, new: T) -> T {
        match self {
            Reduction::And => old.and(new),
            Reduction::Or => old.or(new),
            Reduction::Xor => old.xor(new),
            _ => self.number(old, new),
        }
    }

    /// Of all numbers.
    fn number<T: Number>(self, old: T, new: T) -> T {
        match self {
            Reduction::Add => old.add(new),
            Reduction::Min => old.min(new),
            Reduction::Max => old.max(new),
            _ => old,
        }
    }
}

/// A reduction of numbers of a type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Reduce {
    /// How they are combined.
    pub op: Reduction,
    /// What they are.
    pub dtype: DType,
}

impl Reduce {
    /// The suffix in PTX: `.add.noftz.bf16`.
    pub(in crate::ops) fn ptx(self) -> String {
        let ty = match (self.op, self.dtype) {
            (op, dtype) if op.is_bits() => ["b32", "b64"][dtype.bytes() / 8],
            // There is no signed 64-bit sum: it is the unsigned one.
            (Reduction::Add, DType::I64) => "u64",
            (Reduction::Add, DType::F16) => "noftz.f16",
            (Reduction::Add, DType::Bf16) => "noftz.bf16",
            (_, DType::I32) => "s32",
            (_, DType::I64) => "s64",
            (_, dtype) => dtype.name(),
        };
        format!(".{}.{ty}", self.op.name())
    }

    /// The name in text: `.add.bf16`.
    pub(in crate::ops) fn name(self) -> String {
        format!(".{}.{}", self.op.name(), self.dtype)
    }
}

fn word<T: Pod>(old: &[u8], new: &[u8], out: &mut [u8], f: impl FnOnce(T, T) -> T) {
    let [old, new] = [old, new].map(bytemuck::pod_read_unaligned);
    out.copy_from_slice(bytemuck::bytes_of(&f(old, new)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn combine<T: Pod>(op: Reduction, dtype: DType, old: T, new: T) -> T {
        let mut out = vec![0; dtype.bytes()];
        op.combine(
            dtype,
            bytemuck::bytes_of(&old),
            bytemuck::bytes_of(&new),
            &mut out,
        );
        bytemuck::pod_read_unaligned(&out)
    }

    #[test]
    fn integers_wrap_compare_by_sign_and_count() {
        use DType::*;
        use Reduction::*;
        assert_eq!(combine(Add, U32, u32::MAX, 3), 2);
        assert_eq!(combine(Add, I64, i64::MAX, 1), i64::MIN);
        assert_eq!(combine(Min, I32, -1, 1), -1);
        assert_eq!(combine(Min, U32, u32::MAX, 1), 1);
        assert_eq!(combine(Max, I64, -1i64, 1), 1);
        assert_eq!(combine(Max, U64, u64::MAX, 1), u64::MAX);
        assert_eq!([5, 6, 7].map(|x| combine(Inc, U32, x, 6u32)), [6, 0, 0]);
        assert_eq!(
            [0, 1, 6, 7].map(|x| combine(Dec, U32, x, 6u32)),
            [6, 0, 5, 6]
        );
        assert_eq!(combine(And, U64, 0b1100u64, 0b1010), 0b1000);
        assert_eq!(combine(Or, I32, 0b1100, 0b1010), 0b1110);
        assert_eq!(combine(Xor, U32, 0b1100u32, 0b1010), 0b0110);
    }

    #[test]
    fn narrow_sums_round_to_even_and_keep_subnormals() {
        let f = |a: f32, b: f32| {
            combine(
                Reduction::Add,
                DType::F16,
                f16::from_f32(a),
                f16::from_f32(b),
            )
        };
        // 2048 + 1 lies between 2048 and 2050; 2050 + 1 between 2050 and 2052.
        assert_eq!(f(2048., 1.), f16::from_f32(2048.));
        assert_eq!(f(2050., 1.), f16::from_f32(2052.));
        assert_eq!(f(65504., 16.), f16::INFINITY);
        let least = f16::from_bits(1);
        assert_eq!(
            combine(Reduction::Add, DType::F16, least, least),
            f16::from_bits(2)
        );
        let b = |a: f32, b: f32| {
            combine(
                Reduction::Add,
                DType::Bf16,
                bf16::from_f32(a),
                bf16::from_f32(b),
            )
        };
        assert_eq!(b(256., 1.), bf16::from_f32(256.));
        assert_eq!(b(258., 1.), bf16::from_f32(260.));
    }

    /// Unlike the atomics of the L2, as an H200 has it.
    #[test]
    fn a_sum_of_f32_keeps_subnormals() {
        let tiny = f32::from_bits(5);
        let add = |a: f32, b: f32| combine(Reduction::Add, DType::F32, a, b).to_bits();
        assert_eq!(add(tiny, tiny), 10);
        assert_eq!(
            add(1.5 * f32::MIN_POSITIVE, -f32::MIN_POSITIVE),
            0x0040_0000
        );
        assert_eq!(add(f32::NAN, 1.0), 0x7fff_ffff);
        assert_eq!(add(1.5, 2.0), 3.5f32.to_bits());
    }

    #[test]
    fn types_are_refused_by_place() {
        let bad = |op: Reduction, dtype, into| op.legal(dtype, into).unwrap_err();
        assert_eq!(
            bad(Reduction::Add, DType::F32, ReduceInto::Shared),
            "add in shared memory takes u32, i32, u64, i64, not f32"
        );
        assert_eq!(
            bad(Reduction::Max, DType::F32, ReduceInto::Global),
            "max in global memory takes u32, i32, u64, i64, f16, bf16, not f32"
        );
        assert_eq!(
            bad(Reduction::Inc, DType::I32, ReduceInto::Global),
            "inc in global memory takes u32, not i32"
        );
        assert_eq!(
            Reduction::Min.legal(DType::Bf16, ReduceInto::Global),
            Ok(())
        );
        assert_eq!(Reduction::Add.legal_in_global(DType::I64), Ok(()));
        assert_eq!(
            Reduction::Add.legal_in_tensor(DType::I64).unwrap_err(),
            "add in a tensor takes u32, i32, u64, f16, bf16, f32, not i64"
        );
        assert_eq!(Reduction::Max.legal_in_tensor(DType::I64), Ok(()));
        assert!(Reduction::Xor.legal_in_tensor(DType::I64).is_err());
        assert_eq!(Reduction::Xor.legal_in_tensor(DType::U64), Ok(()));
    }
}

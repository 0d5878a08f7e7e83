//! Reductions of bulk copies and of `red.async`.

use crate::lanes::number::{Integer, Number};
use crate::types::DType;
use bytemuck::Pod;
use half::{bf16, f16};

/// The operation of an asynchronous reduction into memory.
///
/// Each element is updated atomically. The order among elements and among
/// copies is unspecified: integer results do not depend on it, float sums may.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reduction {
    /// Addition; integers wrap, floats round to nearest even and keep subnormals.
    Add,
    /// Minimum; if one operand is a NaN, the other.
    Min,
    /// Maximum; if one operand is a NaN, the other.
    Max,
    /// Increment; wraps to 0 if the old value is at least the operand.
    Inc,
    /// Decrement; becomes the operand if the old value is 0 or above the operand.
    Dec,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

/// The destination of a reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ops) enum ReduceInto {
    /// Global memory, by a bulk copy.
    Global,
    /// Global memory, by a tensor copy.
    Tensor,
    /// Shared memory of the cluster.
    Shared,
}

impl Reduction {
    /// All operations.
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

    /// Returns the name in PTX and in the text form.
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

    /// Rejects an element type that a bulk store cannot reduce with this operation.
    pub fn legal_in_global(self, dtype: DType) -> Result<(), String> {
        self.legal(dtype, ReduceInto::Global)
    }

    /// Rejects an element type that a tensor store cannot reduce with this operation.
    pub fn legal_in_tensor(self, dtype: DType) -> Result<(), String> {
        self.legal(dtype, ReduceInto::Tensor)
    }

    /// Rejects an element type that this operation does not support for a destination.
    pub(in crate::ops) fn legal(self, dtype: DType, into: ReduceInto) -> Result<(), String> {
        use DType::*;
        let types: &[DType] = match (self, into) {
            (Reduction::Inc | Reduction::Dec, _) => &[U32],
            (Reduction::Add, ReduceInto::Global) => &[U32, I32, U64, I64, F16, Bf16, F32],
            // The tensor map has the element type, so I64 cannot be passed as U64.
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
        let destination = match into {
            ReduceInto::Global => "global memory",
            ReduceInto::Tensor => "a tensor",
            ReduceInto::Shared => "shared memory",
        };
        Err(format!(
            "does not support reduction {} of {dtype} in {destination}; supported types: {}",
            self.name(),
            names.join(", ")
        ))
    }

    /// Computes `out` from `old` and `new`; each has the bytes of one element.
    pub(crate) fn combine(self, dtype: DType, old: &[u8], new: &[u8], out: &mut [u8]) {
        match dtype {
            DType::U32 => combine_words::<u32>(old, new, out, |a, b| self.combine_u32(a, b)),
            DType::I32 => combine_words::<i32>(old, new, out, |a, b| self.combine_integers(a, b)),
            DType::U64 => combine_words::<u64>(old, new, out, |a, b| self.combine_integers(a, b)),
            DType::I64 => combine_words::<i64>(old, new, out, |a, b| self.combine_integers(a, b)),
            DType::F32 => combine_words::<f32>(old, new, out, |a, b| self.combine_numbers(a, b)),
            DType::F16 => combine_words::<f16>(old, new, out, |a, b| self.combine_numbers(a, b)),
            DType::Bf16 => combine_words::<bf16>(old, new, out, |a, b| self.combine_numbers(a, b)),
            // No instruction reduces other types.
            _ => out.copy_from_slice(old),
        }
    }

    /// Combines two `u32`. Only `u32` has increment and decrement.
    fn combine_u32(self, old: u32, new: u32) -> u32 {
        match self {
            Reduction::Inc if old >= new => 0,
            Reduction::Inc => old + 1,
            Reduction::Dec if old == 0 || old > new => new,
            Reduction::Dec => old - 1,
            _ => self.combine_integers(old, new),
        }
    }

    /// Combines two integers.
    fn combine_integers<T: Integer>(self, old: T, new: T) -> T {
        match self {
            Reduction::And => old.and(new),
            Reduction::Or => old.or(new),
            Reduction::Xor => old.xor(new),
            _ => self.combine_numbers(old, new),
        }
    }

    /// Combines two integers or floats.
    fn combine_numbers<T: Number>(self, old: T, new: T) -> T {
        match self {
            Reduction::Add => old.add(new),
            Reduction::Min => old.min(new),
            Reduction::Max => old.max(new),
            _ => old,
        }
    }
}

/// A reduction and its element type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BulkReduce {
    /// The operation.
    pub op: Reduction,
    /// The element type.
    pub dtype: DType,
}

impl BulkReduce {
    /// Returns the PTX suffix: `.add.noftz.bf16`.
    pub(in crate::ops) fn ptx(self) -> String {
        let ty = match (self.op, self.dtype) {
            (op, dtype) if op.is_bits() => ["b32", "b64"][dtype.bytes() / 8],
            // PTX has no signed 64-bit add; the unsigned one is equivalent.
            (Reduction::Add, DType::I64) => "u64",
            (Reduction::Add, DType::F16) => "noftz.f16",
            (Reduction::Add, DType::Bf16) => "noftz.bf16",
            (_, DType::I32) => "s32",
            (_, DType::I64) => "s64",
            (_, dtype) => dtype.name(),
        };
        format!(".{}.{ty}", self.op.name())
    }

    /// Returns the name in the text form: `.add.bf16`.
    pub(in crate::ops) fn name(self) -> String {
        format!(".{}.{}", self.op.name(), self.dtype)
    }
}

fn combine_words<T: Pod>(old: &[u8], new: &[u8], out: &mut [u8], f: impl FnOnce(T, T) -> T) {
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
    fn integer_reductions_wrap_compare_and_count() {
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
    fn sums_of_16_bit_floats_round_to_even_and_keep_subnormals() {
        let add_f16 = |a: f32, b: f32| {
            combine(
                Reduction::Add,
                DType::F16,
                f16::from_f32(a),
                f16::from_f32(b),
            )
        };
        // 2048 + 1 and 2050 + 1 are ties of neighboring f16 numbers.
        assert_eq!(add_f16(2048., 1.), f16::from_f32(2048.));
        assert_eq!(add_f16(2050., 1.), f16::from_f32(2052.));
        assert_eq!(add_f16(65504., 16.), f16::INFINITY);
        let smallest = f16::from_bits(1);
        assert_eq!(
            combine(Reduction::Add, DType::F16, smallest, smallest),
            f16::from_bits(2)
        );
        let add_bf16 = |a: f32, b: f32| {
            combine(
                Reduction::Add,
                DType::Bf16,
                bf16::from_f32(a),
                bf16::from_f32(b),
            )
        };
        assert_eq!(add_bf16(256., 1.), bf16::from_f32(256.));
        assert_eq!(add_bf16(258., 1.), bf16::from_f32(260.));
    }

    /// Unlike an atomic in the L2, a bulk reduction keeps subnormals; measured on an H200.
    #[test]
    fn a_bulk_sum_of_f32_keeps_subnormals() {
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
    fn supported_types_depend_on_the_destination() {
        let rejection = |op: Reduction, dtype, into| op.legal(dtype, into).unwrap_err();
        assert_eq!(
            rejection(Reduction::Add, DType::F32, ReduceInto::Shared),
            "does not support reduction add of f32 in shared memory; supported types: u32, i32, u64, i64"
        );
        assert_eq!(
            rejection(Reduction::Max, DType::F32, ReduceInto::Global),
            "does not support reduction max of f32 in global memory; supported types: u32, i32, u64, i64, f16, bf16"
        );
        assert_eq!(
            rejection(Reduction::Inc, DType::I32, ReduceInto::Global),
            "does not support reduction inc of i32 in global memory; supported types: u32"
        );
        assert_eq!(
            Reduction::Min.legal(DType::Bf16, ReduceInto::Global),
            Ok(())
        );
        assert_eq!(Reduction::Add.legal_in_global(DType::I64), Ok(()));
        assert_eq!(
            Reduction::Add.legal_in_tensor(DType::I64).unwrap_err(),
            "does not support reduction add of i64 in a tensor; supported types: u32, i32, u64, f16, bf16, f32"
        );
        assert_eq!(Reduction::Max.legal_in_tensor(DType::I64), Ok(()));
        assert!(Reduction::Xor.legal_in_tensor(DType::I64).is_err());
        assert_eq!(Reduction::Xor.legal_in_tensor(DType::U64), Ok(()));
    }
}

//! The types of registers and of elements in memory.

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};
use std::fmt;

/// The type of a virtual register.
///
/// The type of a register never changes. Packed types hold several narrow values in a
/// register of 16 or 32 bits, the first in the low bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Type {
    /// A predicate: one bit per lane.
    Pred,
    /// 8-bit unsigned integer (kept in a 16-bit register).
    U8,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 32-bit signed integer.
    I32,
    /// 64-bit unsigned integer, also an address.
    U64,
    /// 64-bit signed integer.
    I64,
    /// IEEE binary32.
    F32,
    /// IEEE binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// TensorFloat-32: an `f32` whose low 13 mantissa bits are ignored.
    Tf32,
    /// Two [`Type::F16`].
    F16x2,
    /// Two [`Type::Bf16`].
    Bf16x2,
    /// Two e4m3 numbers (16 bits).
    E4m3x2,
    /// Two e5m2 numbers (16 bits).
    E5m2x2,
    /// Four e4m3 numbers.
    E4m3x4,
    /// Four e5m2 numbers.
    E5m2x4,
}

impl Type {
    /// All register types.
    pub const ALL: [Type; 17] = [
        Type::Pred,
        Type::U8,
        Type::U16,
        Type::U32,
        Type::I32,
        Type::U64,
        Type::I64,
        Type::F32,
        Type::F16,
        Type::Bf16,
        Type::Tf32,
        Type::F16x2,
        Type::Bf16x2,
        Type::E4m3x2,
        Type::E5m2x2,
        Type::E4m3x4,
        Type::E5m2x4,
    ];

    /// Returns the bytes of one lane; 0 for a predicate.
    pub const fn bytes(self) -> usize {
        match self {
            Type::Pred => 0,
            Type::U8 => 1,
            Type::U16 | Type::F16 | Type::Bf16 | Type::E4m3x2 | Type::E5m2x2 => 2,
            Type::U64 | Type::I64 => 8,
            _ => 4,
        }
    }

    /// Returns the name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            Type::Pred => "pred",
            Type::U8 => "u8",
            Type::U16 => "u16",
            Type::U32 => "u32",
            Type::I32 => "i32",
            Type::U64 => "u64",
            Type::I64 => "i64",
            Type::F32 => "f32",
            Type::F16 => "f16",
            Type::Bf16 => "bf16",
            Type::Tf32 => "tf32",
            Type::F16x2 => "f16x2",
            Type::Bf16x2 => "bf16x2",
            Type::E4m3x2 => "e4m3x2",
            Type::E5m2x2 => "e5m2x2",
            Type::E4m3x4 => "e4m3x4",
            Type::E5m2x4 => "e5m2x4",
        }
    }

    /// Returns the PTX suffix of arithmetic instructions.
    pub const fn ptx(self) -> &'static str {
        match self {
            Type::I32 => "s32",
            Type::I64 => "s64",
            other => other.name(),
        }
    }

    /// Returns the untyped PTX suffix (`b16`, `b32`, `b64`).
    pub const fn bits(self) -> &'static str {
        match self.bytes() {
            0 => "pred",
            1 => "b8",
            2 => "b16",
            8 => "b64",
            _ => "b32",
        }
    }

    /// Returns whether this is an integer type.
    pub const fn is_int(self) -> bool {
        matches!(
            self,
            Type::U8 | Type::U16 | Type::U32 | Type::I32 | Type::U64 | Type::I64
        )
    }

    /// Returns whether this is a signed integer type.
    pub const fn is_signed(self) -> bool {
        matches!(self, Type::I32 | Type::I64)
    }

    /// Returns the minimum and the maximum of an integer type.
    pub const fn range(self) -> Option<(i128, i128)> {
        if !self.is_int() {
            return None;
        }
        let bits = 8 * self.bytes();
        Some(match self.is_signed() {
            true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            false => (0, (1 << bits) - 1),
        })
    }

    /// Returns the integer value of the bits of an argument, zero-extended or sign-extended to
    /// 64 bits. Bits beyond the type's width are kept, so a value that does not fit is outside
    /// of the [`range`](Self::range).
    pub const fn int_value(self, bits: u64) -> Option<i128> {
        match self {
            Type::I64 => Some(bits as i64 as i128),
            Type::I32 if bits <= u32::MAX as u64 => Some(bits as u32 as i32 as i128),
            Type::I32 => Some(bits as i64 as i128),
            other if other.is_int() => Some(bits as i128),
            _ => None,
        }
    }

    /// Returns whether this is a floating-point type with arithmetic, packed pairs included.
    pub const fn is_float(self) -> bool {
        matches!(
            self,
            Type::F32 | Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2
        )
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The element type of a tile, a tensor map or a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum DType {
    /// 8-bit unsigned integer.
    U8,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 32-bit signed integer.
    I32,
    /// 64-bit unsigned integer.
    U64,
    /// 64-bit signed integer.
    I64,
    /// IEEE binary32.
    F32,
    /// TensorFloat-32, stored as 32 bits.
    Tf32,
    /// IEEE binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// 8-bit float with 4 exponent bits (the `fn` variant: no infinities).
    E4m3,
    /// 8-bit float with 5 exponent bits.
    E5m2,
}

impl DType {
    /// Returns the bytes of one element.
    pub const fn bytes(self) -> usize {
        match self {
            DType::U8 | DType::E4m3 | DType::E5m2 => 1,
            DType::U16 | DType::F16 | DType::Bf16 => 2,
            DType::U32 | DType::I32 | DType::F32 | DType::Tf32 => 4,
            DType::U64 | DType::I64 => 8,
        }
    }

    /// All element types.
    pub const ALL: [DType; 12] = [
        DType::U8,
        DType::U16,
        DType::U32,
        DType::I32,
        DType::U64,
        DType::I64,
        DType::F32,
        DType::Tf32,
        DType::F16,
        DType::Bf16,
        DType::E4m3,
        DType::E5m2,
    ];

    /// Returns the type with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// Returns the name in texts, flags and errors.
    pub const fn name(self) -> &'static str {
        match self {
            DType::U8 => "u8",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::I32 => "i32",
            DType::U64 => "u64",
            DType::I64 => "i64",
            DType::F32 => "f32",
            DType::Tf32 => "tf32",
            DType::F16 => "f16",
            DType::Bf16 => "bf16",
            DType::E4m3 => "e4m3",
            DType::E5m2 => "e5m2",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

macro_rules! packed {
    ($(#[$doc:meta])* $name:ident, $int:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Pod, Zeroable)]
        #[repr(transparent)]
        pub struct $name(pub $int);
    };
}
packed!(
    /// TensorFloat-32 bits.
    Tf32, u32);
packed!(
    /// Two `f16`, the first in the low half.
    F16x2, u32);
packed!(
    /// Two `bf16`, the first in the low half.
    Bf16x2, u32);
packed!(
    /// One e4m3 code.
    E4m3, u8);
packed!(
    /// One e5m2 code.
    E5m2, u8);
packed!(
    /// Two e4m3 codes, the first in the low byte.
    E4m3x2, u16);
packed!(
    /// Two e5m2 codes, the first in the low byte.
    E5m2x2, u16);
packed!(
    /// Four e4m3 codes, the first in the low byte.
    E4m3x4, u32);
packed!(
    /// Four e5m2 codes, the first in the low byte.
    E5m2x4, u32);

macro_rules! halves {
    ($($pair:ident($bits:ty) of $half:ident($half_bits:ty), $from:expr, $to:expr;)*) => {$(
        impl $pair {
            /// Packs two halves.
            #[inline]
            pub fn new(lo: $half, hi: $half) -> Self {
                let bits = |half| <$bits>::from($to(half));
                Self(bits(lo) | bits(hi) << <$half_bits>::BITS)
            }
            /// Returns both halves, the low one first.
            #[inline]
            pub fn split(self) -> [$half; 2] {
                [
                    $from(self.0 as $half_bits),
                    $from((self.0 >> <$half_bits>::BITS) as $half_bits),
                ]
            }
        }
    )*};
}
halves! {
    F16x2(u32) of f16(u16), f16::from_bits, f16::to_bits;
    Bf16x2(u32) of bf16(u16), bf16::from_bits, bf16::to_bits;
    E4m3x2(u16) of E4m3(u8), E4m3, |x: E4m3| x.0;
    E5m2x2(u16) of E5m2(u8), E5m2, |x: E5m2| x.0;
    E4m3x4(u32) of E4m3x2(u16), E4m3x2, |x: E4m3x2| x.0;
    E5m2x4(u32) of E5m2x2(u16), E5m2x2, |x: E5m2x2| x.0;
}

/// A Rust type that a register can hold.
pub trait Scalar: Copy + 'static {
    /// The register type.
    const TYPE: Type;
    /// Returns the bits of a constant, zero-extended.
    fn to_bits(self) -> u64;
}

/// A Rust type that an element in memory can have.
///
/// Elements narrower than a register are loaded into [`Element::Reg`].
pub trait Element: Copy + 'static {
    /// The memory type.
    const DTYPE: DType;
    /// The register type of one element.
    type Reg: Scalar;
}

macro_rules! scalar {
    ($($t:ty => $ty:ident, |$x:ident| $bits:expr;)*) => {$(
        impl Scalar for $t {
            const TYPE: Type = Type::$ty;
            fn to_bits(self) -> u64 { let $x = self; $bits }
        }
    )*};
}
scalar! {
    bool => Pred, |x| u64::from(x);
    u8 => U8, |x| u64::from(x);
    u16 => U16, |x| u64::from(x);
    u32 => U32, |x| u64::from(x);
    i32 => I32, |x| u64::from(x as u32);
    u64 => U64, |x| x;
    i64 => I64, |x| x as u64;
    f32 => F32, |x| u64::from(x.to_bits());
    f16 => F16, |x| u64::from(x.to_bits());
    bf16 => Bf16, |x| u64::from(x.to_bits());
    Tf32 => Tf32, |x| u64::from(x.0);
    F16x2 => F16x2, |x| u64::from(x.0);
    Bf16x2 => Bf16x2, |x| u64::from(x.0);
    E4m3x2 => E4m3x2, |x| u64::from(x.0);
    E5m2x2 => E5m2x2, |x| u64::from(x.0);
    E4m3x4 => E4m3x4, |x| u64::from(x.0);
    E5m2x4 => E5m2x4, |x| u64::from(x.0);
}

macro_rules! element {
    ($($t:ty => $dt:ident, $reg:ty;)*) => {$(
        impl Element for $t {
            const DTYPE: DType = DType::$dt;
            type Reg = $reg;
        }
    )*};
}
element! {
    u8 => U8, u8;
    u16 => U16, u16;
    u32 => U32, u32;
    i32 => I32, i32;
    u64 => U64, u64;
    i64 => I64, i64;
    f32 => F32, f32;
    Tf32 => Tf32, Tf32;
    f16 => F16, f16;
    bf16 => Bf16, bf16;
    E4m3 => E4m3, u8;
    E5m2 => E5m2, u8;
}

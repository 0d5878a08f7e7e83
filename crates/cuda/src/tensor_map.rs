//! Tensor maps: what a bulk tensor copy knows of the tensor in global memory.

use std::ffi::c_int;
use std::fmt;
use std::ptr::without_provenance_mut;

use crate::context::Context;
use crate::driver::cu;
use crate::error::CudaError;
use crate::ffi::{self, CUtensorMap};

/// The type of a tensor map's elements. 8-bit floats are `U8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
#[non_exhaustive]
pub enum DataType {
    U8 = 0,
    U16 = 1,
    U32 = 2,
    I32 = 3,
    U64 = 4,
    I64 = 5,
    F16 = 6,
    F32 = 7,
    F64 = 8,
    Bf16 = 9,
    F32Ftz = 10,
    Tf32 = 11,
    Tf32Ftz = 12,
}

impl DataType {
    /// Bytes of one element.
    pub fn bytes(self) -> u32 {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 | Self::F32Ftz | Self::Tf32 | Self::Tf32Ftz => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    fn is_float(self) -> bool {
        self as c_int >= Self::F16 as c_int
    }
}

/// How 16-byte pieces of a box are permuted in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Swizzle {
    /// Rows follow each other as they are.
    #[default]
    None = 0,
    /// Within 32 bytes.
    B32 = 1,
    /// Within 64 bytes.
    B64 = 2,
    /// Within 128 bytes.
    B128 = 3,
}

impl Swizzle {
    /// The most bytes of the innermost dimension that a box can have.
    fn span(self) -> Option<u32> {
        match self {
            Self::None => None,
            Self::B32 => Some(32),
            Self::B64 => Some(64),
            Self::B128 => Some(128),
        }
    }
}

/// How much the L2 cache fetches when it misses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum L2Promotion {
    /// What was asked for.
    None = 0,
    /// 64 bytes.
    B64 = 1,
    /// 128 bytes.
    #[default]
    B128 = 2,
    /// 256 bytes.
    B256 = 3,
}

/// What a box reads outside of the tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OobFill {
    /// Zeros.
    #[default]
    Zero = 0,
    /// A NaN that fused multiply-add treats as zero; floats only.
    NanRequestZeroFma = 1,
}

/// A tensor and the boxes in which it is copied; dimension 0 is innermost.
#[derive(Debug, Clone, Copy)]
pub struct Tiled<'a> {
    /// The type of the elements.
    pub dtype: DataType,
    /// Where the tensor begins on the device.
    pub address: u64,
    /// Elements in each of the 1 to 5 dimensions.
    pub dims: &'a [u64],
    /// Bytes from one element to the next in dimensions 1 and up; those of
    /// dimension 0 touch each other.
    pub strides: &'a [u64],
    /// Elements of a box in each dimension.
    pub box_dims: &'a [u32],
    /// Every how many elements one is taken, in each dimension; empty for all.
    pub element_strides: &'a [u32],
    /// The permutation in shared memory.
    pub swizzle: Swizzle,
    /// The L2 fetch.
    pub l2_promotion: L2Promotion,
    /// What is read outside.
    pub oob_fill: OobFill,
}

impl<'a> Tiled<'a> {
    /// All elements, no swizzle, 128-byte L2 fetches, zeros outside.
    pub fn new(
        dtype: DataType,
        address: u64,
        dims: &'a [u64],
        strides: &'a [u64],
        box_dims: &'a [u32],
    ) -> Self {
        Self {
            dtype,
            address,
            dims,
            strides,
            box_dims,
            element_strides: &[],
            swizzle: Swizzle::None,
            l2_promotion: L2Promotion::default(),
            oob_fill: OobFill::Zero,
        }
    }

    /// The driver's rules, of which it names none when it refuses.
    fn check(&self) -> Result<(), String> {
        let rank = self.dims.len();
        if !(1..=5).contains(&rank) {
            return Err(format!("the rank must be 1 to 5, not {rank}"));
        }
        for (list, len, want) in [
            ("strides", self.strides.len(), rank - 1),
            ("box dimensions", self.box_dims.len(), rank),
        ] {
            if len != want {
                return Err(format!("rank {rank} takes {want} {list}, {len} were given"));
            }
        }
        if !matches!(self.element_strides.len(), n if n == 0 || n == rank) {
            return Err(format!(
                "rank {rank} takes {rank} element strides or none, {} were given",
                self.element_strides.len()
            ));
        }
        if self.address == 0 || !self.address.is_multiple_of(16) {
            return Err(format!(
                "the address must be a multiple of 16 and not null, not {:#x}",
                self.address
            ));
        }
        if let Some(dim) = self.dims.iter().find(|&&dim| !(1..=1 << 32).contains(&dim)) {
            return Err(format!("a dimension must be 1 to 2^32, not {dim}"));
        }
        let bad = |stride: &&u64| !stride.is_multiple_of(16) || **stride >= 1 << 40;
        if let Some(stride) = self.strides.iter().find(bad) {
            return Err(format!(
                "a stride must be a multiple of 16 bytes below 2^40, not {stride}"
            ));
        }
        if let Some(dim) = self.box_dims.iter().find(|dim| !(1..=256).contains(*dim)) {
            return Err(format!("a box dimension must be 1 to 256, not {dim}"));
        }
        if let Some(step) = self.element_strides.iter().find(|s| !(1..=8).contains(*s)) {
            return Err(format!("an element stride must be 1 to 8, not {step}"));
        }
        let inner = self.box_dims[0] * self.dtype.bytes();
        if !inner.is_multiple_of(16) {
            return Err(format!(
                "the innermost box dimension must be a multiple of 16 bytes, not {inner}"
            ));
        }
        if let Some(span) = self.swizzle.span().filter(|&span| inner > span) {
            return Err(format!(
                "with a {span}-byte swizzle the innermost box dimension is at most {span} bytes, not {inner}"
            ));
        }
        if self.oob_fill == OobFill::NanRequestZeroFma && !self.dtype.is_float() {
            return Err(format!(
                "a NaN fill needs a floating-point type, not {:?}",
                self.dtype
            ));
        }
        Ok(())
    }
}

/// An encoded tensor map: 128 bytes, passed to a kernel by value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TensorMap(CUtensorMap);

impl fmt::Debug for TensorMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TensorMap").field(&self.0.0).finish()
    }
}

impl TensorMap {
    /// Checks the rules, so that a refusal names one, and has the driver
    /// encode the map.
    pub fn tiled(context: &Context, tiled: &Tiled<'_>) -> Result<Self, CudaError> {
        tiled
            .check()
            .map_err(|why| CudaError::bad_argument("tensor map", why))?;
        let rank = tiled.dims.len();
        let mut element_strides = [1; 5];
        element_strides[..tiled.element_strides.len()].copy_from_slice(tiled.element_strides);
        // The driver may read as many strides as there are dimensions.
        let mut strides = [0; 5];
        strides[..tiled.strides.len()].copy_from_slice(tiled.strides);

        let mut map = CUtensorMap([0; 16]);
        let _current = context.enter()?;
        // SAFETY: writes 128 bytes aligned to 64; the lists have at least
        // `rank` entries; the address is a number for the device.
        unsafe {
            cu!(
                context.driver(),
                cuTensorMapEncodeTiled(
                    &mut map,
                    tiled.dtype as c_int,
                    rank as u32,
                    without_provenance_mut(tiled.address as usize),
                    tiled.dims.as_ptr(),
                    strides.as_ptr(),
                    tiled.box_dims.as_ptr(),
                    element_strides.as_ptr(),
                    ffi::CU_TENSOR_MAP_INTERLEAVE_NONE,
                    tiled.swizzle as c_int,
                    tiled.l2_promotion as c_int,
                    tiled.oob_fill as c_int,
                )
            )
        }?;
        Ok(Self(map))
    }

    /// The 128 bytes.
    pub fn to_bytes(&self) -> [u8; 128] {
        let mut bytes = [0; 128];
        for (place, word) in bytes.chunks_exact_mut(8).zip(self.0.0) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    #[cfg(test)]
    pub(crate) fn from_words(words: [u64; 16]) -> Self {
        Self(CUtensorMap(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: impl FnOnce(&mut Tiled<'_>)) -> String {
        let mut tiled = Tiled::new(DataType::Bf16, 0x1000, &[4096, 100], &[8192], &[64, 128]);
        tiled.swizzle = Swizzle::B128;
        assert_eq!(tiled.check(), Ok(()));
        change(&mut tiled);
        tiled.check().unwrap_err()
    }

    #[test]
    fn each_broken_rule_is_named_with_the_value() {
        let cases = [
            (refusal(|t| t.dims = &[]), "1 to 5, not 0"),
            (refusal(|t| t.strides = &[]), "takes 1 strides, 0"),
            (refusal(|t| t.box_dims = &[64]), "takes 2 box dimensions, 1"),
            (
                refusal(|t| t.element_strides = &[1]),
                "element strides or none, 1",
            ),
            (refusal(|t| t.address = 0x1008), "not 0x1008"),
            (refusal(|t| t.address = 0), "not null"),
            (refusal(|t| t.dims = &[4096, 0]), "1 to 2^32, not 0"),
            (
                refusal(|t| t.strides = &[8200]),
                "multiple of 16 bytes below 2^40, not 8200",
            ),
            (refusal(|t| t.strides = &[1 << 40]), "below 2^40"),
            (refusal(|t| t.box_dims = &[64, 257]), "1 to 256, not 257"),
            (refusal(|t| t.box_dims = &[0, 1]), "1 to 256, not 0"),
            (refusal(|t| t.element_strides = &[1, 9]), "1 to 8, not 9"),
            (
                refusal(|t| t.box_dims = &[60, 1]),
                "multiple of 16 bytes, not 120",
            ),
            (
                refusal(|t| t.box_dims = &[128, 1]),
                "at most 128 bytes, not 256",
            ),
            (
                refusal(|t| {
                    t.dtype = DataType::U16;
                    t.oob_fill = OobFill::NanRequestZeroFma;
                }),
                "floating-point type, not U16",
            ),
        ];
        for (sentence, part) in cases {
            assert!(sentence.contains(part), "{sentence:?} should name {part:?}");
        }
    }
}

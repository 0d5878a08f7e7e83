//! Tensor maps: the descriptors of global tensors for TMA copies.

use std::ffi::c_int;
use std::fmt;
use std::ptr::without_provenance_mut;

use crate::context::Context;
use crate::driver::cu;
use crate::error::CudaError;
use crate::ffi::{self, CUtensorMap};

/// The element type of a tensor map. 8-bit floats use `U8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
#[non_exhaustive]
pub enum TensorMapType {
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

impl TensorMapType {
    /// Returns the bytes of one element.
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

/// The permutation of 16-byte units of a box in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TensorMapSwizzle {
    /// No permutation.
    #[default]
    None = 0,
    /// Within 32 bytes.
    B32 = 1,
    /// Within 64 bytes.
    B64 = 2,
    /// Within 128 bytes.
    B128 = 3,
}

impl TensorMapSwizzle {
    /// Returns the maximum bytes of a box's innermost dimension.
    fn span(self) -> Option<u32> {
        match self {
            Self::None => None,
            Self::B32 => Some(32),
            Self::B64 => Some(64),
            Self::B128 => Some(128),
        }
    }
}

/// The granularity of L2 fetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum L2Promotion {
    /// The accessed bytes only.
    None = 0,
    /// 64 bytes.
    B64 = 1,
    /// 128 bytes.
    #[default]
    B128 = 2,
    /// 256 bytes.
    B256 = 3,
}

/// The fill value of a box's out-of-bounds elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OobFill {
    /// Zeros.
    #[default]
    Zero = 0,
    /// A NaN that fused multiply-add treats as zero; floats only.
    NanRequestZeroFma = 1,
}

/// A tensor in global memory, common to all kinds of maps; dimension 0 is innermost.
#[derive(Debug, Clone, Copy)]
pub struct GlobalTensor<'a> {
    /// The type of the elements.
    pub dtype: TensorMapType,
    /// The device address of the first element.
    pub address: u64,
    /// Elements in each of the 1 to 5 dimensions.
    pub dims: &'a [u64],
    /// Strides in bytes of dimensions 1 and up; dimension 0 is contiguous.
    pub strides: &'a [u64],
    /// The swizzle in shared memory.
    pub swizzle: TensorMapSwizzle,
    /// The granularity of L2 fetches.
    pub l2_promotion: L2Promotion,
    /// The fill value of out-of-bounds elements.
    pub oob_fill: OobFill,
}

impl<'a> GlobalTensor<'a> {
    /// Creates a tensor without swizzle, with 128-byte L2 fetches and zero fill.
    pub fn new(dtype: TensorMapType, address: u64, dims: &'a [u64], strides: &'a [u64]) -> Self {
        Self {
            dtype,
            address,
            dims,
            strides,
            swizzle: TensorMapSwizzle::None,
            l2_promotion: L2Promotion::default(),
            oob_fill: OobFill::Zero,
        }
    }
}

/// A tiled tensor map: copies of boxes of a tensor.
#[derive(Debug, Clone, Copy)]
pub struct TiledMap<'a> {
    /// The tensor.
    pub tensor: GlobalTensor<'a>,
    /// Elements of a box in each dimension.
    pub box_dims: &'a [u32],
    /// Element strides of a copy in each dimension; empty for 1.
    pub element_strides: &'a [u32],
}

impl<'a> TiledMap<'a> {
    /// Creates a map with element strides of 1.
    pub fn new(tensor: GlobalTensor<'a>, box_dims: &'a [u32]) -> Self {
        Self {
            tensor,
            box_dims,
            element_strides: &[],
        }
    }

    /// Checks the driver's rules; the driver's own error does not name the broken rule.
    fn check(&self) -> Result<(), String> {
        self.tensor.check()?;
        let rank = self.tensor.dims.len();
        if self.box_dims.len() != rank {
            return Err(format!(
                "rank {rank} takes {rank} box dimensions, got {}",
                self.box_dims.len()
            ));
        }
        if !matches!(self.element_strides.len(), n if n == 0 || n == rank) {
            return Err(format!(
                "rank {rank} takes {rank} element strides or none, got {}",
                self.element_strides.len()
            ));
        }
        if let Some(dim) = self.box_dims.iter().find(|dim| !(1..=256).contains(*dim)) {
            return Err(format!("a box dimension must be 1 to 256, not {dim}"));
        }
        check_element_strides(self.element_strides)?;
        self.tensor.check_inner("box dimension", self.box_dims[0])
    }
}

/// An im2col tensor map: copies of pixel columns for a convolution. Dimension 0 is the channels
/// and the last dimension the images; rank 3 to 5.
#[derive(Debug, Clone, Copy)]
pub struct Im2colMap<'a> {
    /// The tensor.
    pub tensor: GlobalTensor<'a>,
    /// The first position of the window in each spatial dimension.
    pub lower: &'a [i32],
    /// The last position of the window, relative to the tensor's last element.
    pub upper: &'a [i32],
    /// Channels of a copy.
    pub channels: u32,
    /// Pixels of a copy.
    pub pixels: u32,
    /// The stride between positions in each spatial dimension.
    pub element_strides: &'a [u32],
}

impl Im2colMap<'_> {
    /// Checks the driver's rules; the driver's own error does not name the broken rule.
    fn check(&self) -> Result<(), String> {
        self.tensor.check()?;
        let rank = self.tensor.dims.len();
        if rank < 3 {
            return Err(format!("an im2col map has rank 3 to 5, not {rank}"));
        }
        for (list, len) in [
            ("lower corners", self.lower.len()),
            ("upper corners", self.upper.len()),
            ("element strides", self.element_strides.len()),
        ] {
            if len != rank - 2 {
                return Err(format!(
                    "an im2col map of rank {rank} takes {} {list}, got {len}",
                    rank - 2
                ));
            }
        }
        let limit = [1 << 15, 1 << 7, 1 << 4][rank - 3];
        let is_invalid = |c: &&i32| !(-limit..limit).contains(*c);
        if let Some(corner) = self.lower.iter().chain(self.upper).find(is_invalid) {
            return Err(format!(
                "a corner of an im2col map of rank {rank} must be {} to {}, not {corner}",
                -limit,
                limit - 1
            ));
        }
        if !(1..=256).contains(&self.channels) {
            return Err(format!(
                "the channels of an im2col copy must be 1 to 256, not {}",
                self.channels
            ));
        }
        if !(1..=1024).contains(&self.pixels) {
            return Err(format!(
                "the pixels of an im2col copy must be 1 to 1024, not {}",
                self.pixels
            ));
        }
        check_element_strides(self.element_strides)?;
        self.tensor.check_inner("channels", self.channels)
    }
}

impl GlobalTensor<'_> {
    fn check(&self) -> Result<(), String> {
        let rank = self.dims.len();
        if !(1..=5).contains(&rank) {
            return Err(format!("the rank must be 1 to 5, not {rank}"));
        }
        if self.strides.len() != rank - 1 {
            return Err(format!(
                "rank {rank} takes {} strides, got {}",
                rank - 1,
                self.strides.len()
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
        let is_invalid = |stride: &&u64| !stride.is_multiple_of(16) || **stride >= 1 << 40;
        if let Some(stride) = self.strides.iter().find(is_invalid) {
            return Err(format!(
                "a stride must be a multiple of 16 bytes below 2^40, not {stride}"
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

    /// Checks the rules of the innermost dimension of a copy.
    fn check_inner(&self, what: &str, elements: u32) -> Result<(), String> {
        let inner = elements * self.dtype.bytes();
        if !inner.is_multiple_of(16) {
            return Err(format!(
                "the innermost {what} must be a multiple of 16 bytes, not {inner}"
            ));
        }
        match self.swizzle.span().filter(|&span| inner > span) {
            Some(span) => Err(format!(
                "with a {span}-byte swizzle the innermost {what} is at most {span} bytes, not {inner}"
            )),
            None => Ok(()),
        }
    }
}

fn check_element_strides(strides: &[u32]) -> Result<(), String> {
    match strides.iter().find(|s| !(1..=8).contains(*s)) {
        Some(stride) => Err(format!("an element stride must be 1 to 8, not {stride}")),
        None => Ok(()),
    }
}

/// Pads a list to 5 entries; the driver may read as many strides as dimensions.
fn padded<T: Copy>(list: &[T], fill: T) -> [T; 5] {
    std::array::from_fn(|i| list.get(i).copied().unwrap_or(fill))
}

/// An encoded tensor map: 128 bytes, passed to a kernel by value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct EncodedTensorMap(CUtensorMap);

impl fmt::Debug for EncodedTensorMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EncodedTensorMap").field(&self.0.0).finish()
    }
}

impl EncodedTensorMap {
    /// Encodes a tiled map. Checks the driver's rules first, so that an error names the rule.
    pub fn tiled(context: &Context, tiled: &TiledMap<'_>) -> Result<Self, CudaError> {
        tiled
            .check()
            .map_err(|why| CudaError::bad_argument("tensor map", why))?;
        let rank = tiled.tensor.dims.len();
        let element_strides = padded(tiled.element_strides, 1);
        let strides = padded(tiled.tensor.strides, 0);
        let mut map = CUtensorMap([0; 16]);
        let _current = context.enter()?;
        // SAFETY: writes 128 bytes aligned to 64; the lists have at least
        // `rank` entries; the address is a number for the device.
        unsafe {
            cu!(
                context.driver(),
                cuTensorMapEncodeTiled(
                    &mut map,
                    tiled.tensor.dtype as c_int,
                    rank as u32,
                    without_provenance_mut(tiled.tensor.address as usize),
                    tiled.tensor.dims.as_ptr(),
                    strides.as_ptr(),
                    tiled.box_dims.as_ptr(),
                    element_strides.as_ptr(),
                    ffi::CU_TENSOR_MAP_INTERLEAVE_NONE,
                    tiled.tensor.swizzle as c_int,
                    tiled.tensor.l2_promotion as c_int,
                    tiled.tensor.oob_fill as c_int,
                )
            )
        }?;
        Ok(Self(map))
    }

    /// Encodes an im2col map; checks the rules like [`tiled`](Self::tiled).
    pub fn im2col(context: &Context, im2col: &Im2colMap<'_>) -> Result<Self, CudaError> {
        im2col
            .check()
            .map_err(|why| CudaError::bad_argument("tensor map", why))?;
        let rank = im2col.tensor.dims.len();
        let strides = padded(im2col.tensor.strides, 0);
        // The driver takes one stride per dimension; channels and images have 1.
        let mut element_strides = [1; 5];
        element_strides[1..rank - 1].copy_from_slice(im2col.element_strides);

        let mut map = CUtensorMap([0; 16]);
        let _current = context.enter()?;
        // SAFETY: writes 128 bytes aligned to 64; the lists have at least
        // `rank` entries, the corners `rank - 2`; the address is a number for
        // the device.
        unsafe {
            cu!(
                context.driver(),
                cuTensorMapEncodeIm2col(
                    &mut map,
                    im2col.tensor.dtype as c_int,
                    rank as u32,
                    without_provenance_mut(im2col.tensor.address as usize),
                    im2col.tensor.dims.as_ptr(),
                    strides.as_ptr(),
                    im2col.lower.as_ptr(),
                    im2col.upper.as_ptr(),
                    im2col.channels,
                    im2col.pixels,
                    element_strides.as_ptr(),
                    ffi::CU_TENSOR_MAP_INTERLEAVE_NONE,
                    im2col.tensor.swizzle as c_int,
                    im2col.tensor.l2_promotion as c_int,
                    im2col.tensor.oob_fill as c_int,
                )
            )
        }?;
        Ok(Self(map))
    }

    /// Returns the 128 bytes of the map.
    pub fn to_bytes(&self) -> [u8; 128] {
        let mut bytes = [0; 128];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(self.0.0) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    #[cfg(test)]
    pub(crate) fn from_words(words: [u64; 16]) -> Self {
        Self(CUtensorMap(words))
    }
}

#[cfg(test)]
mod tests;

//! Tensor maps: descriptors of tensors in global memory for TMA.
//!
//! The *declaration* (dtype, rank, box, swizzle) is part of the class and
//! compiled in; the launch passes base address, extents and strides.

use crate::layout::Swizzle;
use crate::machine::{Fault, FaultKind};
use crate::types::DType;

/// The compiled-in part of a tensor map.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorMapDecl {
    /// The element type.
    pub dtype: DType,
    /// The box of one copy in elements, innermost dimension first.
    pub tile: Vec<u32>,
    /// The swizzle in shared memory.
    pub swizzle: Swizzle,
    /// The mode: tiled boxes or im2col windows.
    pub mode: TensorMapMode,
}

/// The mode of a tensor map.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum TensorMapMode {
    /// A dense box.
    Tiled,
    /// A box with element strides.
    Strided {
        /// The element strides, innermost dimension first; the first is 1.
        element_strides: Vec<u32>,
    },
    /// Pixels of a convolution window (rank 3 to 5): `channels` × `pixels`.
    Im2col {
        /// The offset of the window's first corner, per spatial dimension.
        lower: Vec<i32>,
        /// The offset of the window's last corner, per spatial dimension.
        upper: Vec<i32>,
        /// The channels of one copy.
        channels: u32,
        /// The pixels of one copy.
        pixels: u32,
        /// The convolution strides, per spatial dimension.
        element_strides: Vec<u32>,
    },
}

/// A tensor map as a launch argument.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorMapValue {
    /// The declaration.
    pub decl: TensorMapDecl,
    /// The address of the first element.
    pub base: u64,
    /// The extents in elements, innermost first.
    pub extents: Vec<u64>,
    /// The byte strides of dimensions 1, 2, …; the innermost dimension is dense.
    pub strides: Vec<u64>,
}

impl TensorMapDecl {
    /// Rejects an im2col store with a negative lower corner; an H200 stops such a kernel with an
    /// illegal instruction.
    pub fn check_store(&self) -> Result<(), String> {
        match &self.mode {
            TensorMapMode::Im2col { lower, .. } if lower.iter().any(|&c| c < 0) => Err(format!(
                "the lower corner of an im2col store is {lower:?}; it must not be negative"
            )),
            _ => Ok(()),
        }
    }

    /// Returns a tiled declaration, innermost dimension first. The swizzle span equals the box
    /// row if such a swizzle exists; otherwise there is no swizzle.
    ///
    /// ```
    /// use warpline_ir::{DType, Swizzle, TensorMapDecl};
    /// let rows = TensorMapDecl::tiled(DType::Bf16, [64, 128]);
    /// assert_eq!((rows.swizzle, rows.bytes()), (Swizzle::B128, 128 * 128));
    /// assert_eq!(TensorMapDecl::tiled(DType::F32, [256]).swizzle, Swizzle::None);
    /// ```
    pub fn tiled(dtype: DType, tile: impl Into<Vec<u32>>) -> Self {
        let tile = tile.into();
        let row = tile
            .first()
            .map(|&n| n.saturating_mul(dtype.bytes() as u32));
        let swizzle = [Swizzle::B128, Swizzle::B64, Swizzle::B32]
            .into_iter()
            .find(|s| s.span() == row)
            .unwrap_or_default();
        Self {
            dtype,
            tile,
            swizzle,
            mode: TensorMapMode::Tiled,
        }
    }

    /// Returns the number of dimensions.
    pub fn rank(&self) -> usize {
        match &self.mode {
            TensorMapMode::Tiled | TensorMapMode::Strided { .. } => self.tile.len(),
            TensorMapMode::Im2col { lower, .. } => lower.len() + 2,
        }
    }

    /// Returns the elements of one copy along the innermost dimension.
    pub fn inner(&self) -> u32 {
        match &self.mode {
            TensorMapMode::Tiled | TensorMapMode::Strided { .. } => self.tile[0],
            TensorMapMode::Im2col { channels, .. } => *channels,
        }
    }

    /// Returns the element stride of a dimension.
    pub fn element_stride(&self, dimension: usize) -> u32 {
        let stride = match &self.mode {
            TensorMapMode::Tiled => None,
            TensorMapMode::Strided { element_strides } => element_strides.get(dimension),
            TensorMapMode::Im2col {
                element_strides, ..
            } => dimension
                .checked_sub(1)
                .and_then(|i| element_strides.get(i)),
        };
        stride.copied().unwrap_or(1)
    }

    /// Returns the box size that the driver expects, including the skipped elements.
    pub fn box_extent(&self, dimension: usize) -> u32 {
        self.tile[dimension].saturating_mul(self.element_stride(dimension))
    }

    /// Returns the bytes that one copy writes to shared memory.
    pub fn bytes(&self) -> u32 {
        let elements: u32 = match &self.mode {
            TensorMapMode::Tiled | TensorMapMode::Strided { .. } => self
                .tile
                .iter()
                .fold(1, |n: u32, &len| n.saturating_mul(len)),
            TensorMapMode::Im2col {
                channels, pixels, ..
            } => channels.saturating_mul(*pixels),
        };
        elements.saturating_mul(self.dtype.bytes() as u32)
    }

    /// Returns the first hardware rule that the declaration violates, as a message.
    pub fn violated_rule(&self) -> Option<String> {
        let rank = self.rank();
        if !(1..=5).contains(&rank) {
            return Some(format!(
                "the rank is {rank}; a tensor map has 1 to 5 dimensions"
            ));
        }
        let violated = match &self.mode {
            TensorMapMode::Tiled | TensorMapMode::Strided { .. } => self.violated_box_rule(),
            TensorMapMode::Im2col { .. } => self.violated_window_rule(),
        };
        if violated.is_some() {
            return violated;
        }
        let inner = self.inner();
        let inner_bytes = inner * self.dtype.bytes() as u32;
        if !inner_bytes.is_multiple_of(16) {
            return Some(format!(
                "the inner box dimension is {inner_bytes} bytes; TMA needs a multiple of 16"
            ));
        }
        match self.swizzle.span() {
            Some(span) if inner_bytes > span => Some(format!(
                "the inner box dimension is {inner_bytes} bytes; the swizzle span of {span} bytes is the maximum"
            )),
            _ => None,
        }
    }

    /// Returns the first rule of tiled boxes that the declaration violates.
    fn violated_box_rule(&self) -> Option<String> {
        let rank = self.rank();
        if let TensorMapMode::Strided { element_strides } = &self.mode {
            if element_strides.len() != rank {
                return Some(format!(
                    "a tensor map of rank {rank} needs {rank} element strides; it has {}",
                    element_strides.len()
                ));
            }
            if element_strides[0] != 1 {
                return Some(format!(
                    "the element stride of the innermost dimension is {}; it must be 1",
                    element_strides[0]
                ));
            }
        }
        (0..rank).find_map(|i| {
            let (len, stride) = (self.tile[i], self.element_stride(i));
            if !(1..=8).contains(&stride) {
                return Some(element_stride_message(i, stride));
            }
            (!(1..=256).contains(&self.box_extent(i))).then(|| match stride {
                1 => format!("box dimension {i} has {len} elements; it must have 1 to 256"),
                _ => format!(
                    "box dimension {i} has {len} elements with stride {stride}; it must span 1 to 256"
                ),
            })
        })
    }

    /// Returns the first rule of im2col windows that the declaration violates.
    fn violated_window_rule(&self) -> Option<String> {
        let TensorMapMode::Im2col {
            lower,
            upper,
            channels,
            pixels,
            element_strides,
        } = &self.mode
        else {
            return None;
        };
        let rank = self.rank();
        if rank < 3 {
            return Some(format!(
                "the rank is {rank}; an im2col map has 3 to 5 dimensions"
            ));
        }
        if lower.len() != upper.len() {
            return Some(format!(
                "an im2col map has {} lower and {} upper corner coordinates; the counts must be equal",
                lower.len(),
                upper.len()
            ));
        }
        if element_strides.len() != lower.len() {
            return Some(format!(
                "an im2col map needs {} element strides, one for each spatial dimension; it has {}",
                lower.len(),
                element_strides.len()
            ));
        }
        if let Some(i) = element_strides.iter().position(|s| !(1..=8).contains(s)) {
            return Some(element_stride_message(i + 1, element_strides[i]));
        }
        if !(1..=256).contains(channels) || !(1..=1024).contains(pixels) {
            return Some(format!(
                "an im2col copy has {channels} channels and {pixels} pixels; the limits are 1 to 256 and 1 to 1024"
            ));
        }
        let limit = match rank {
            3 => 1 << 15,
            4 => 1 << 7,
            _ => 1 << 4,
        };
        let corner = lower
            .iter()
            .chain(upper)
            .find(|&&c| c < -limit || c >= limit)?;
        Some(format!(
            "an im2col corner is {corner}; for rank {rank} it must be {} to {}",
            -limit,
            limit - 1
        ))
    }
}

fn element_stride_message(dimension: usize, stride: u32) -> String {
    format!("the element stride of dimension {dimension} is {stride}; it must be 1 to 8")
}

impl TensorMapValue {
    /// Returns the map of a dense row-major tensor; `extents` are innermost first.
    pub fn dense(decl: TensorMapDecl, base: u64, extents: &[u64]) -> Self {
        let mut strides = Vec::new();
        let mut bytes = decl.dtype.bytes() as u64;
        for &e in &extents[..extents.len().saturating_sub(1)] {
            bytes *= e;
            strides.push(bytes);
        }
        Self {
            decl,
            base,
            extents: extents.to_vec(),
            strides,
        }
    }

    /// Returns the number of window positions along a spatial dimension from position `from` to
    /// the last element plus the upper corner; 0 for a tiled map.
    pub(crate) fn positions(&self, spatial: usize, from: i32) -> i64 {
        let TensorMapMode::Im2col { upper, .. } = &self.decl.mode else {
            return 0;
        };
        let last = self.extents[spatial + 1] as i64 - 1 + i64::from(upper[spatial]);
        let stride = i64::from(self.decl.element_stride(spatial + 1));
        (last - i64::from(from)).div_euclid(stride) + 1
    }

    /// Checks the hardware rules; the fault states the value and the rule.
    pub fn check(&self) -> Result<(), Fault> {
        let reject = |text: String| Err(Fault::new(FaultKind::TensorMap, text));
        if let Some(rule) = self.decl.violated_rule() {
            return reject(rule);
        }
        let rank = self.decl.rank();
        if self.extents.len() != rank || self.strides.len() != rank - 1 {
            return reject(format!(
                "a tensor map of rank {rank} needs {rank} extents and {} strides; it has {} and {}",
                rank - 1,
                self.extents.len(),
                self.strides.len()
            ));
        }
        if self.base == 0 {
            return reject("the tensor address is 0".into());
        }
        if !self.base.is_multiple_of(16) {
            return reject(format!(
                "the tensor address {:#x} is misaligned; TMA needs a multiple of 16 bytes",
                self.base
            ));
        }
        if let Some(&e) = self.extents.iter().find(|&&e| e == 0 || e > 1 << 32) {
            return reject(format!("an extent is {e}; TMA allows 1 to 2^32"));
        }
        if let Some(&s) = self
            .strides
            .iter()
            .find(|&&s| !s.is_multiple_of(16) || s >= 1 << 40)
        {
            return reject(format!(
                "a stride is {s} bytes; TMA needs a multiple of 16 below 2^40"
            ));
        }
        Ok(())
    }
}

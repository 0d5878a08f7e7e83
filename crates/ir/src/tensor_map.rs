//! Tensor maps: what a bulk tensor copy knows of a tensor in global memory.
//!
//! The *declaration* (dtype, rank, box, swizzle) belongs to the class and is
//! compiled in; base, extents and strides come with the launch.

use crate::layout::Swizzle;
use crate::machine::{Fault, FaultKind};
use crate::types::DType;

/// The compiled-in part of a tensor map.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorMapDecl {
    /// Element type.
    pub dtype: DType,
    /// The box one copy moves, in elements, innermost dimension first.
    pub tile: Vec<u32>,
    /// The swizzle of the shared side.
    pub swizzle: Swizzle,
    /// Tiled boxes, or im2col windows.
    pub mode: MapMode,
}

/// Tiled or im2col.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum MapMode {
    /// A box of every dimension.
    Tiled,
    /// A box that takes every so many elements of each dimension.
    Stepped {
        /// The element strides, innermost dimension first; that one is 1.
        steps: Vec<u32>,
    },
    /// Pixels of a convolution window (rank 3 to 5): `channels` × `pixels`.
    Im2col {
        /// Offset of the window's first corner, per spatial dimension.
        lower: Vec<i32>,
        /// Offset of its last corner.
        upper: Vec<i32>,
        /// Channels of one copy.
        channels: u32,
        /// Pixels of one copy.
        pixels: u32,
        /// From one position to the next, per spatial dimension: the convolution's strides.
        steps: Vec<u32>,
    },
}

/// A tensor map as passed to a launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorMapValue {
    /// The declaration it fills in.
    pub decl: TensorMapDecl,
    /// Address of the first element.
    pub base: u64,
    /// Extents in elements, innermost first.
    pub extents: Vec<u64>,
    /// Bytes from one element to the next along dimensions 1, 2, … (the innermost is dense).
    pub strides: Vec<u64>,
}

impl TensorMapDecl {
    /// Refuses a map through which nothing is stored: an im2col window that starts before the
    /// tensor, at which an H200 ends the kernel with an illegal instruction.
    pub fn legal_store(&self) -> Result<(), String> {
        match &self.mode {
            MapMode::Im2col { lower, .. } if lower.iter().any(|&c| c < 0) => Err(format!(
                "a store goes to a window that starts inside the tensor; its lower corner is {lower:?}"
            )),
            _ => Ok(()),
        }
    }

    /// Boxes of a tiled map, innermost dimension first, with the swizzle that
    /// fits a row of them: as wide as the row where one is, none otherwise.
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
            mode: MapMode::Tiled,
        }
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        match &self.mode {
            MapMode::Tiled | MapMode::Stepped { .. } => self.tile.len(),
            MapMode::Im2col { lower, .. } => lower.len() + 2,
        }
    }

    /// Elements of one copy along the innermost dimension.
    pub fn inner(&self) -> u32 {
        match &self.mode {
            MapMode::Tiled | MapMode::Stepped { .. } => self.tile[0],
            MapMode::Im2col { channels, .. } => *channels,
        }
    }

    /// The element stride of a dimension.
    pub fn step(&self, dimension: usize) -> u32 {
        let step = match &self.mode {
            MapMode::Tiled => None,
            MapMode::Stepped { steps } => steps.get(dimension),
            MapMode::Im2col { steps, .. } => dimension.checked_sub(1).and_then(|i| steps.get(i)),
        };
        step.copied().unwrap_or(1)
    }

    /// The side of a box as the driver counts it, with the elements that are left out.
    pub fn box_side(&self, dimension: usize) -> u32 {
        self.tile[dimension].saturating_mul(self.step(dimension))
    }

    /// Bytes that one copy puts into shared memory.
    pub fn bytes(&self) -> u32 {
        let elements: u32 = match &self.mode {
            MapMode::Tiled | MapMode::Stepped { .. } => self
                .tile
                .iter()
                .fold(1, |n: u32, &side| n.saturating_mul(side)),
            MapMode::Im2col {
                channels, pixels, ..
            } => channels.saturating_mul(*pixels),
        };
        elements.saturating_mul(self.dtype.bytes() as u32)
    }

    /// The first rule of the hardware that the declaration breaks, as a sentence.
    pub fn broken_rule(&self) -> Option<String> {
        let rank = self.rank();
        if !(1..=5).contains(&rank) {
            return Some(format!("a tensor map has 1 to 5 dimensions, not {rank}"));
        }
        let broken = match &self.mode {
            MapMode::Tiled | MapMode::Stepped { .. } => self.broken_box(),
            MapMode::Im2col { .. } => self.broken_window(),
        };
        if broken.is_some() {
            return broken;
        }
        let inner = self.inner();
        let inner_bytes = inner * self.dtype.bytes() as u32;
        if !inner_bytes.is_multiple_of(16) {
            return Some(format!(
                "the inner side of a box is a multiple of 16 bytes, not {inner_bytes}"
            ));
        }
        match self.swizzle.span() {
            Some(span) if inner_bytes > span => Some(format!(
                "the inner side of a box is at most the swizzle span of {span} bytes, not {inner_bytes}"
            )),
            _ => None,
        }
    }

    /// The rule of tiled boxes that is broken.
    fn broken_box(&self) -> Option<String> {
        let rank = self.rank();
        if let MapMode::Stepped { steps } = &self.mode {
            if steps.len() != rank {
                return Some(format!(
                    "a tensor map of rank {rank} has {rank} element strides, not {}",
                    steps.len()
                ));
            }
            if steps[0] != 1 {
                return Some(format!(
                    "the innermost dimension has an element stride of 1, not {}",
                    steps[0]
                ));
            }
        }
        (0..rank).find_map(|i| {
            let (side, step) = (self.tile[i], self.step(i));
            if !(1..=8).contains(&step) {
                return Some(bad_step(i, step));
            }
            (!(1..=256).contains(&self.box_side(i))).then(|| match step {
                1 => format!("each side of a box is 1 to 256 elements; dimension {i} has {side}"),
                _ => format!(
                    "each side of a box spans 1 to 256 elements; dimension {i} has {side}, {step} apart"
                ),
            })
        })
    }

    /// The rule of im2col windows that is broken.
    fn broken_window(&self) -> Option<String> {
        let MapMode::Im2col {
            lower,
            upper,
            channels,
            pixels,
            steps,
        } = &self.mode
        else {
            return None;
        };
        let rank = self.rank();
        if rank < 3 {
            return Some(format!("an im2col map has 3 to 5 dimensions, not {rank}"));
        }
        if lower.len() != upper.len() {
            return Some("an im2col map needs as many upper as lower corners".into());
        }
        if steps.len() != lower.len() {
            return Some(format!(
                "an im2col map has an element stride for each of its {} spatial dimensions, not {}",
                lower.len(),
                steps.len()
            ));
        }
        if let Some(i) = steps.iter().position(|s| !(1..=8).contains(s)) {
            return Some(bad_step(i + 1, steps[i]));
        }
        if !(1..=256).contains(channels) || !(1..=1024).contains(pixels) {
            return Some(format!(
                "an im2col copy has 1 to 256 channels and 1 to 1024 pixels, not {channels} and {pixels}"
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
            "an im2col corner of a rank-{rank} map is {} to {}, not {corner}",
            -limit,
            limit - 1
        ))
    }
}

fn bad_step(dimension: usize, step: u32) -> String {
    format!("an element stride is 1 to 8, not {step} (dimension {dimension})")
}

impl TensorMapValue {
    /// A dense row-major tensor: `extents` innermost first.
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

    /// Positions of an im2col window along a spatial dimension from one of
    /// them on, as far as the last element plus the upper corner; none of a tiled map.
    pub(crate) fn positions(&self, spatial: usize, from: i32) -> i64 {
        let MapMode::Im2col { upper, .. } = &self.decl.mode else {
            return 0;
        };
        let last = self.extents[spatial + 1] as i64 - 1 + i64::from(upper[spatial]);
        let step = i64::from(self.decl.step(spatial + 1));
        (last - i64::from(from)).div_euclid(step) + 1
    }

    /// Checks the rules of the hardware; the fault names the rule and the value.
    pub fn check(&self) -> Result<(), Fault> {
        let bad = |text: String| Err(Fault::new(FaultKind::TensorMap, text));
        if let Some(rule) = self.decl.broken_rule() {
            return bad(rule);
        }
        let rank = self.decl.rank();
        if self.extents.len() != rank || self.strides.len() != rank - 1 {
            return bad(format!(
                "a tensor map of rank {rank} needs {rank} extents and {} strides, not {} and {}",
                rank - 1,
                self.extents.len(),
                self.strides.len()
            ));
        }
        if self.base == 0 {
            return bad("a tensor has an address, not 0".into());
        }
        if !self.base.is_multiple_of(16) {
            return bad(format!(
                "a tensor starts at a multiple of 16 bytes, not at {:#x}",
                self.base
            ));
        }
        if let Some(&e) = self.extents.iter().find(|&&e| e == 0 || e > 1 << 32) {
            return bad(format!("an extent is 1 to 2^32, not {e}"));
        }
        if let Some(&s) = self
            .strides
            .iter()
            .find(|&&s| !s.is_multiple_of(16) || s >= 1 << 40)
        {
            return bad(format!(
                "a stride is a multiple of 16 bytes below 2^40, not {s}"
            ));
        }
        Ok(())
    }
}

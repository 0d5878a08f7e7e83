//! Tensor specifications and tensors in host memory.

use crate::numbers::Random;
use half::{bf16, f16};
use warpline_ir::DType;

/// The name, element type and shape of a tensor.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorSpec {
    /// The name, used in messages.
    pub name: &'static str,
    /// The element type.
    pub dtype: DType,
    /// The extents, outermost first.
    pub shape: Vec<usize>,
}

impl TensorSpec {
    /// Returns a specification; `shape` has the outermost extent first.
    pub fn new<N: Copy + Into<u64>>(name: &'static str, dtype: DType, shape: &[N]) -> Self {
        let extent = |&n: &N| n.into() as usize;
        Self {
            name,
            dtype,
            shape: shape.iter().map(extent).collect(),
        }
    }

    /// Returns the number of elements.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> usize {
        self.elements() * self.dtype.bytes()
    }
}

/// A dense tensor in host memory.
#[derive(Clone, PartialEq, Debug)]
pub struct HostTensor {
    /// The name, element type and shape.
    pub spec: TensorSpec,
    /// The elements, little-endian.
    pub data: Vec<u8>,
}

impl HostTensor {
    /// Draws normally distributed values and rounds them to the element type.
    pub fn normal(spec: TensorSpec, random: &mut Random) -> Self {
        let len = spec.elements();
        Self::round(spec, (0..len).map(|_| random.normal()))
    }

    /// Draws normally distributed values for several tensors, in order, from one seed.
    pub fn draw_normal(specs: Vec<TensorSpec>, seed: u64) -> Vec<Self> {
        let mut random = Random::new(seed);
        let draw = |spec| Self::normal(spec, &mut random);
        specs.into_iter().map(draw).collect()
    }

    /// Rounds `values` to the element type of `spec`.
    pub fn round(spec: TensorSpec, values: impl IntoIterator<Item = f64>) -> Self {
        let mut data = Vec::with_capacity(spec.bytes());
        for x in values {
            match spec.dtype {
                DType::F32 | DType::Tf32 => data.extend((x as f32).to_le_bytes()),
                DType::F16 => data.extend(f16::from_f64(x).to_le_bytes()),
                DType::Bf16 => data.extend(bf16::from_f64(x).to_le_bytes()),
                DType::U8 => data.push(x as u8),
                DType::U16 => data.extend((x as u16).to_le_bytes()),
                DType::U32 => data.extend((x as u32).to_le_bytes()),
                DType::I32 => data.extend((x as i32).to_le_bytes()),
                DType::U64 => data.extend((x as u64).to_le_bytes()),
                DType::I64 => data.extend((x as i64).to_le_bytes()),
                DType::E4m3 | DType::E5m2 => data.push(crate::numbers::to_fp8(spec.dtype, x)),
            }
        }
        Self { spec, data }
    }

    /// Extends a partially filled tensor to full size by repeating its elements.
    pub fn cycled(mut self) -> Self {
        let (full, period) = (self.spec.bytes(), self.data.len());
        while period > 0 && self.data.len() < full {
            let more = period.min(full - self.data.len());
            self.data.extend_from_within(..more);
        }
        self
    }

    /// Iterates over the elements as `f64`; exact for every type except 64-bit integers.
    pub fn values(&self) -> impl Iterator<Item = f64> + '_ {
        let size = self.spec.dtype.bytes();
        let dtype = self.spec.dtype;
        self.data
            .chunks_exact(size)
            .map(move |b| crate::numbers::element_value(dtype, b))
    }
}

/// The reference value and tolerance of an element that the kernel must not write.
pub const UNTOUCHED: (f64, f64) = (f64::NAN, f64::INFINITY);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_tensor_is_repeated_to_full_size() {
        let spec = |elements| TensorSpec {
            name: "a",
            dtype: DType::U16,
            shape: vec![elements],
        };
        let cycled = |drawn: usize, full: usize| {
            let partial = HostTensor::round(spec(full), (0..drawn).map(|i| i as f64));
            partial.cycled().values().collect::<Vec<f64>>()
        };
        assert_eq!(cycled(3, 8), [0., 1., 2., 0., 1., 2., 0., 1.]);
        assert_eq!(cycled(3, 3), [0., 1., 2.]);
        assert_eq!(cycled(2, 3), [0., 1., 0.]);
        assert_eq!(cycled(0, 0), [0.; 0]);
    }
}

//! DLPack tensors.

use std::ffi::{c_int, c_void};
use warpline::DType;
use warpline::ops::TensorView;

/// DLPack's device type of the CPU.
const CPU: c_int = 1;
/// DLPack's device type of NVIDIA GPUs.
const CUDA: c_int = 2;

/// `DLTensor`.
#[repr(C)]
pub(crate) struct DlTensor {
    data: *const c_void,
    device: c_int,
    ordinal: c_int,
    rank: c_int,
    dtype: DlDataType,
    shape: *const i64,
    strides: *const i64,
    offset: u64,
}

/// `DLDataType`.
#[repr(C)]
#[derive(Clone, Copy)]
struct DlDataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

impl DlTensor {
    /// Returns an empty tensor for a C function to fill.
    pub(crate) fn empty() -> Self {
        Self {
            data: std::ptr::null(),
            device: 0,
            ordinal: 0,
            rank: 0,
            dtype: DlDataType {
                code: 0,
                bits: 0,
                lanes: 0,
            },
            shape: std::ptr::null(),
            strides: std::ptr::null(),
            offset: 0,
        }
    }

    /// Returns the element type and the GPU of a tensor on a GPU; `None` if no kernel supports it.
    pub(crate) fn on_gpu(&self) -> Option<(DType, u32)> {
        let ordinal = u32::try_from(self.ordinal).ok()?;
        (self.device == CUDA).then_some((self.dtype.to_dtype()?, ordinal))
    }

    /// Returns the address of the first element.
    pub(crate) fn address(&self) -> u64 {
        self.data as u64 + self.offset
    }

    /// Returns the shape and the strides; `None` if the strides are missing or the rank is invalid.
    ///
    /// # Safety
    /// `shape`, and `strides` unless null, must point to `rank` numbers.
    pub(crate) unsafe fn layout(&self) -> Option<(&[i64], &[i64])> {
        let rank = usize::try_from(self.rank).ok()?;
        match rank {
            0 => Some((&[], &[])),
            _ if self.shape.is_null() || self.strides.is_null() => None,
            // SAFETY: guaranteed by the caller.
            _ => Some(unsafe {
                (
                    std::slice::from_raw_parts(self.shape, rank),
                    std::slice::from_raw_parts(self.strides, rank),
                )
            }),
        }
    }

    /// Returns the tensor as a `TensorView` and its device index (-1 is the CPU), or the reason that
    /// no kernel supports it.
    ///
    /// # Safety
    /// `shape`, and `strides` unless null, must point to `rank` numbers.
    pub(crate) unsafe fn view(&self) -> Result<(TensorView, i64), String> {
        let DlDataType { code, bits, lanes } = self.dtype;
        let Some(dtype) = self.dtype.to_dtype() else {
            return Err(format!(
                "the unsupported DLPack element type code {code}, {bits} bits, {lanes} lanes"
            ));
        };
        let device = match self.device {
            CPU => -1,
            CUDA => i64::from(self.ordinal),
            other => {
                return Err(format!(
                    "memory of DLPack's device type {other}, not {CUDA}"
                ));
            }
        };
        let rank = usize::try_from(self.rank).unwrap_or(0);
        let numbers = |from: *const i64| match rank {
            0 => Some(&[][..]),
            _ if from.is_null() => None,
            // SAFETY: guaranteed by the caller.
            _ => Some(unsafe { std::slice::from_raw_parts(from, rank) }),
        };
        let shape = numbers(self.shape).unwrap_or_default();
        let shape: Vec<u64> = shape.iter().map(|&n| n.max(0) as u64).collect();
        let address = self.data as u64 + self.offset;
        let view = match numbers(self.strides) {
            None => TensorView::dense(dtype, &shape, address),
            Some(strides) => TensorView {
                dtype,
                strides: strides.to_vec(),
                shape,
                address,
            },
        };
        Ok((view, device))
    }
}

impl DlDataType {
    fn to_dtype(self) -> Option<DType> {
        Some(match (self.code, self.bits, self.lanes) {
            (0, 32, 1) => DType::I32,
            (0, 64, 1) => DType::I64,
            (1, 8, 1) => DType::U8,
            (2, 32, 1) => DType::F32,
            (2, 16, 1) => DType::F16,
            (4, 16, 1) => DType::Bf16,
            (10, 8, 1) => DType::E4m3,
            (12, 8, 1) => DType::E5m2,
            _ => return None,
        })
    }
}

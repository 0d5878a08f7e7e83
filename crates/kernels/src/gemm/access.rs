//! Access to the operands in global memory.
//!
//! TMA loads an operand whose rows start on 16 bytes. The producer gathers any other operand with
//! ordinary loads, into the same slots of the same ring.

use super::problem::{Matrix, OperandType};

/// How a kernel reads an operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct OperandAccess {
    /// Whether K is innermost in shared memory. Only 16-bit types may have M or N innermost there.
    pub(super) k_major: bool,
    /// The loads of a gather; `None`: TMA.
    pub(super) gather: Option<GatherUnit>,
    /// Whether all GEMMs of a batch share the operand.
    pub(super) is_shared: bool,
}

/// The elements that one load of a gather takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum GatherUnit {
    /// One element; those of a row are not consecutive.
    Strided,
    /// One element of a dense row.
    Element,
    /// 4 bytes.
    Bytes4,
    /// 8 bytes.
    Bytes8,
    /// 16 bytes.
    Bytes16,
}

impl GatherUnit {
    /// Returns the bytes of a load, for elements of `size` bytes.
    pub(super) fn bytes(self, size: u32) -> u32 {
        match self {
            GatherUnit::Strided | GatherUnit::Element => size,
            GatherUnit::Bytes4 => 4,
            GatherUnit::Bytes8 => 8,
            GatherUnit::Bytes16 => 16,
        }
    }
}

impl OperandAccess {
    /// Returns the access to an operand. `matrices` are its tensors: one, or gate and up.
    pub(super) fn of(dtype: OperandType, k_innermost: bool, matrices: &[Matrix]) -> Self {
        let is_shared = matrices.iter().all(Matrix::is_shared);
        let is_half = dtype.a_dtype().bytes() == 2;
        // A row that is not dense is gathered with K innermost, which every type supports.
        let k_major = k_innermost || !is_half || matrices.iter().any(|m| !m.has_dense_rows());
        let gather = match (
            k_major == k_innermost,
            matrices.iter().all(Matrix::fits_tma),
        ) {
            (true, true) => None,
            (true, false) => matrices.iter().map(Matrix::gather_unit).min(),
            (false, _) => Some(GatherUnit::Strided),
        };
        Self {
            k_major,
            gather,
            is_shared,
        }
    }

    /// Returns the access by single elements, which needs no alignment.
    pub(super) fn by_element(self) -> Self {
        Self {
            gather: Some(GatherUnit::Element),
            ..self
        }
    }
}

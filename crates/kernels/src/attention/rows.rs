//! The tensors of rows: Q, K, V and O.

use super::problem::PITCH_BYTES;
use serde_json::Value;
use warpline_family::field::{FieldKind, FieldValue};
use warpline_family::plan::{Address, TensorArg};
use warpline_ir::DType;

/// The strides of rows, heads and batches of a tensor, in elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Strides {
    /// From one query or key to the next.
    pub row: u64,
    /// From one head to the next.
    pub head: u64,
    /// From one batch to the next.
    pub batch: u64,
}

impl FieldValue for Strides {
    fn kind() -> FieldKind {
        FieldKind::Number {
            unit: "ROW,HEAD,BATCH",
        }
    }
    fn read(text: &str) -> Result<Self, String> {
        let numbers: Option<Vec<u64>> = text.split(',').map(|x| x.trim().parse().ok()).collect();
        match numbers.as_deref() {
            Some(&[row, head, batch]) => Ok(Self { row, head, batch }),
            _ => Err("three whole numbers with commas: row, head and batch".to_owned()),
        }
    }
    fn json(&self) -> Value {
        format!("{},{},{}", self.row, self.head, self.batch).into()
    }
}

/// One of the four tensors of rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    pub(super) name: &'static str,
    /// Elements of a row.
    pub(super) dim: u32,
    /// Rows, heads and batches.
    pub(super) extents: [u64; 3],
    pub(super) strides: Strides,
}

impl Rows {
    /// Returns the elements from the first to the last one.
    pub(super) fn elements(&self) -> u64 {
        let Strides { row, head, batch } = self.strides;
        let reach = |extent: u64, stride: u64| (extent - 1).saturating_mul(stride);
        let [rows, heads, batches] = self.extents;
        match self.extents.contains(&0) {
            true => 0,
            false => reach(rows, row)
                .saturating_add(reach(heads, head))
                .saturating_add(reach(batches, batch))
                .saturating_add(self.dim.into()),
        }
    }

    /// Returns the rows of all heads and batches.
    pub(super) fn rows(&self) -> u64 {
        self.extents.iter().product()
    }

    /// Returns whether no two rows share an element; interleaved dimensions count as shared.
    pub(super) fn is_disjoint(&self) -> bool {
        if self.extents.contains(&0) {
            return true;
        }
        let Strides { row, head, batch } = self.strides;
        let mut dims: Vec<_> = self.extents.into_iter().zip([row, head, batch]).collect();
        dims.retain(|&(extent, _)| extent > 1);
        dims.sort_by_key(|&(_, stride)| stride);
        let mut reach = u64::from(self.dim);
        dims.into_iter().all(|(extent, stride)| {
            let is_disjoint = stride >= reach;
            reach = reach.saturating_add((extent - 1).saturating_mul(stride));
            is_disjoint
        })
    }

    /// Returns the index of the first element of a row.
    pub(super) fn index(&self, [row, head, batch]: [usize; 3]) -> usize {
        let s = self.strides;
        row * s.row as usize + head * s.head as usize + batch * s.batch as usize
    }

    /// Returns the tensor map's run-time part. A tensor without elements has one row of 16 bytes at `empty`.
    pub(super) fn tensor(&self, at: Address, empty: Address, dtype: DType) -> TensorArg {
        let size = dtype.bytes() as u64;
        if self.extents.contains(&0) {
            return TensorArg::strided(
                empty,
                vec![PITCH_BYTES / size, 1, 1, 1],
                vec![PITCH_BYTES; 3],
            );
        }
        let Strides { row, head, batch } = self.strides;
        let mut extents = vec![self.dim.into()];
        extents.extend(self.extents);
        // The stride of a single row, head or batch does not matter, but must be legal.
        let strides = self.extents.iter().zip([row, head, batch]);
        let strides = strides.map(|(&extent, stride)| match extent {
            1 => u64::from(self.dim) * size,
            _ => stride * size,
        });
        TensorArg::strided(at, extents, strides.collect())
    }
}

//! Checks and operand evaluation of tensor copies before issue.

use super::TensorJob;
use super::job::CopyDirection;
use crate::job::JobCompletion;
use crate::layout::{Swizzle, TileLayout};
use crate::machine::{Asm, Fault, FaultKind, Machine, PerLane, ResolvedAddress};
use crate::ops::bulk::check_aligned;
use crate::tensor_map::{TensorMapMode, TensorMapValue};
use crate::types::{DType, Type};
use crate::value::{Operand, ParamId, View};

/// The evaluated and checked operands of a tensor copy.
pub(super) struct PreparedCopy {
    pub(super) map: TensorMapValue,
    coords: Vec<PerLane<i32>>,
    offsets: Vec<PerLane<u16>>,
}

impl PreparedCopy {
    /// Prepares a copy to or from a view.
    pub(super) fn new<M: Machine>(
        m: &mut M,
        map: ParamId,
        view: &View,
        coords: &[Operand],
        offsets: &[Operand],
    ) -> Result<Self, Fault> {
        let copy = Self::without_view(m, map, coords, offsets)?;
        check_view(&copy.map, &m.layout(view), view)?;
        Ok(copy)
    }

    /// Prepares a prefetch, which has no view.
    pub(super) fn without_view<M: Machine>(
        m: &mut M,
        map: ParamId,
        coords: &[Operand],
        offsets: &[Operand],
    ) -> Result<Self, Fault> {
        let map = m.tensor_map(map)?;
        check_map(&map, coords.len(), offsets.len())?;
        Ok(Self {
            map,
            coords: coords.iter().map(|&o| m.get(o)).collect(),
            offsets: offsets.iter().map(|&o| m.get(o)).collect(),
        })
    }

    /// Returns the coordinates and im2col offsets of one lane, after checking them.
    pub(super) fn start(&self, lane: usize) -> Result<(Vec<i32>, Vec<u16>), Fault> {
        let coords: Vec<_> = self.coords.iter().map(|v| v[lane]).collect();
        let offsets: Vec<_> = self.offsets.iter().map(|v| v[lane]).collect();
        legal_first_element(coords[0], self.map.decl.dtype)
            .map_err(|why| Fault::new(FaultKind::Operand, why))?;
        check_start(&self.map, &coords)?;
        check_offsets(&offsets)?;
        Ok((coords, offsets))
    }

    /// Returns the job of one lane's copy.
    pub(super) fn job(
        &self,
        lane: usize,
        direction: CopyDirection,
        shared: ResolvedAddress,
        completion: JobCompletion,
    ) -> Result<TensorJob, Fault> {
        check_aligned("shared address", shared.byte.into(), 128)?;
        let (coords, offsets) = self.start(lane)?;
        if let CopyDirection::Store(_) = direction {
            legal_store_start(coords.iter().copied())
                .and_then(|()| self.map.decl.check_store())
                .map_err(|why| Fault::new(FaultKind::Operand, why))?;
        }
        Ok(TensorJob {
            completion,
            direction,
            map: self.map.clone(),
            coords,
            offsets,
            shared,
        })
    }
}

/// Checks the numbers of coordinates and im2col offsets against the rank and mode of the map.
fn check_map(map: &TensorMapValue, coords: usize, offsets: usize) -> Result<(), Fault> {
    let map_fault = |text: String| Err(Fault::new(FaultKind::TensorMap, text));
    let rank = map.decl.rank();
    if coords != rank {
        return map_fault(format!(
            "has {coords} coordinates; its tensor map has rank {rank}"
        ));
    }
    let expected = match &map.decl.mode {
        TensorMapMode::Im2col { .. } => rank - 2,
        _ => 0,
    };
    if offsets != expected {
        let mode = if expected == 0 { "tiled" } else { "im2col" };
        return map_fault(format!(
            "has {offsets} im2col offsets; its {mode} tensor map of rank {rank} needs {expected}"
        ));
    }
    Ok(())
}

/// Checks that the view is contiguous and has the size of the box and the swizzle of the map.
fn check_view(map: &TensorMapValue, layout: &TileLayout, view: &View) -> Result<(), Fault> {
    let map_fault = |text: String| Err(Fault::new(FaultKind::TensorMap, text));
    let decl = &map.decl;
    if decl.swizzle != layout.swizzle {
        return map_fault(format!(
            "uses a tensor map with layout {} and a tile with {}; both must have the same swizzle",
            decl.swizzle, layout.swizzle
        ));
    }
    let bytes = view.rows * view.cols * layout.element_bytes;
    if decl.bytes() != bytes {
        return map_fault(format!(
            "uses a box of {} bytes and a view of {bytes}; both must have the same size",
            decl.bytes()
        ));
    }
    let panel = layout.panel_cols();
    let whole_panels = view.col.is_multiple_of(panel) && view.cols.is_multiple_of(panel);
    let consecutive = view.cols == panel || view.rows == layout.rows;
    let single_row = layout.swizzle == Swizzle::None && view.rows == 1;
    if !(whole_panels && consecutive || single_row) {
        return map_fault(format!(
            "uses a view of rows {}..{} of {} and columns {}..{}, which is not contiguous; a box must fill whole rows of \
             one panel of {panel} columns, or all rows of several panels",
            view.row,
            view.row + view.rows,
            layout.rows,
            view.col,
            view.col + view.cols
        ));
    }
    let inner = decl.inner() * decl.dtype.bytes() as u32;
    match layout.swizzle.span() {
        Some(span) if inner != span => map_fault(format!(
            "uses a box with {inner} bytes along the innermost dimension; it must equal the swizzle span of {span} bytes"
        )),
        _ => Ok(()),
    }
}

/// Checks that an im2col copy starts at a position of the bounding box.
fn check_start(map: &TensorMapValue, coords: &[i32]) -> Result<(), Fault> {
    let TensorMapMode::Im2col { lower, upper, .. } = &map.decl.mode else {
        return Ok(());
    };
    for (i, (&lo, &hi)) in lower.iter().zip(upper).enumerate() {
        let (at, extent) = (coords[i + 1], map.extents[i + 1]);
        if map.positions(i, lo) < 1 {
            return Err(Fault::new(
                FaultKind::TensorMap,
                format!(
                    "uses an empty im2col bounding box: corners {lo} and {hi} leave no position in an extent of {extent}"
                ),
            ));
        }
        if at < lo || map.positions(i, at) < 1 {
            return Err(Fault::new(
                FaultKind::Operand,
                format!(
                    "has im2col coordinate {} = {at}, outside the bounding box; it must be {lo} to {}",
                    i + 1,
                    extent as i64 - 1 + i64::from(hi)
                ),
            ));
        }
    }
    Ok(())
}

/// Checks the range of im2col offsets: 16, 8 or 5 bits for 1, 2 or 3 spatial dimensions.
fn check_offsets(offsets: &[u16]) -> Result<(), Fault> {
    let max = match offsets.len() {
        0 | 1 => u16::MAX,
        2 => 255,
        _ => 31,
    };
    match offsets.iter().find(|&&o| o > max) {
        None => Ok(()),
        Some(o) => Err(Fault::new(
            FaultKind::Operand,
            format!(
                "has im2col offset {o}; with {} spatial dimensions it must be 0 to {max}",
                offsets.len()
            ),
        )),
    }
}

/// Prints a list of operands of one type: `{a, b}`.
pub(super) fn operand_list(a: &mut dyn Asm, operands: &[Operand], ty: Type) -> String {
    let printed: Vec<_> = operands.iter().map(|&o| a.operand(o, ty)).collect();
    format!("{{{}}}", printed.join(", "))
}

/// Prints the im2col offsets after a comma.
pub(super) fn im2col_offsets(a: &mut dyn Asm, offsets: &[Operand]) -> String {
    match offsets {
        [] => String::new(),
        some => format!(", {}", operand_list(a, some, Type::U16)),
    }
}

/// Rejects a rank out of range.
pub(super) fn legal_rank(name: &str, rank: usize) -> Result<(), String> {
    if (1..=5).contains(&rank) {
        return Ok(());
    }
    Err(format!(
        "{name} has {rank} coordinates; the rank must be 1 to 5"
    ))
}

/// Rejects a store that starts before the tensor: an H200 raises an illegal-instruction
/// error. A load may start there, and both may extend past the end.
pub(super) fn legal_store_start(coords: impl IntoIterator<Item = i32>) -> Result<(), String> {
    match coords.into_iter().enumerate().find(|&(_, c)| c < 0) {
        None => Ok(()),
        Some((i, c)) => Err(format!(
            "has coordinate {i} = {c}; a store must not start before the tensor"
        )),
    }
}

/// Rejects a box whose start is not a multiple of 16 bytes along the innermost dimension: an
/// H200 raises an illegal-instruction error for loads, stores and prefetches.
fn legal_first_element(first: i32, dtype: DType) -> Result<(), String> {
    let byte = i64::from(first) * dtype.bytes() as i64;
    if byte % 16 == 0 {
        return Ok(());
    }
    Err(format!(
        "starts at element {first} of {dtype}, byte {byte}, along the innermost dimension; it must start at a multiple of 16 bytes"
    ))
}

/// Rejects a constant innermost coordinate that is not a multiple of 16 bytes.
pub fn legal_first_coord(coords: &[Operand], dtype: DType) -> Result<(), String> {
    match coords.first() {
        Some(Operand::Imm(first)) => legal_first_element(*first as i32, dtype),
        _ => Ok(()),
    }
}

/// Rejects a number of im2col offsets that does not match the rank.
pub(super) fn legal_offsets(coords: usize, offsets: usize) -> Result<(), String> {
    if offsets == 0 || offsets + 2 == coords {
        return Ok(());
    }
    Err(format!(
        "im2col copy has {offsets} offsets for {coords} coordinates; it needs two fewer offsets than coordinates"
    ))
}

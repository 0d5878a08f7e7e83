//! What tensor copies check and compute before they are issued.

use super::TensorJob;
use super::job::Way;
use crate::job::Done;
use crate::layout::{Swizzle, TileLayout};
use crate::machine::{Asm, Fault, FaultKind, Lanes, Machine, SharedAt};
use crate::ops::bulk::aligned;
use crate::tensor_map::{MapMode, TensorMapValue};
use crate::types::{DType, Type};
use crate::value::{Operand, ParamId, View};

/// What both directions check and compute before they issue.
pub(super) struct Issue {
    pub(super) map: TensorMapValue,
    coords: Vec<Lanes<i32>>,
    offsets: Vec<Lanes<u16>>,
}

impl Issue {
    /// Of a copy to or from a view.
    pub(super) fn new<M: Machine>(
        m: &mut M,
        map: ParamId,
        view: &View,
        coords: &[Operand],
        offsets: &[Operand],
    ) -> Result<Self, Fault> {
        let issue = Self::of_box(m, map, coords, offsets)?;
        check_view(&issue.map, &m.layout(view), view)?;
        Ok(issue)
    }

    /// Of a box that goes nowhere.
    pub(super) fn of_box<M: Machine>(
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

    /// The coordinates and offsets of one lane, which start inside the window of an im2col map.
    pub(super) fn start(&self, lane: usize) -> Result<(Vec<i32>, Vec<u16>), Fault> {
        let coords: Vec<_> = self.coords.iter().map(|v| v[lane]).collect();
        let offsets: Vec<_> = self.offsets.iter().map(|v| v[lane]).collect();
        legal_step(coords[0], self.map.decl.dtype)
            .map_err(|why| Fault::new(FaultKind::Operand, why))?;
        check_start(&self.map, &coords)?;
        check_offsets(&offsets)?;
        Ok((coords, offsets))
    }

    /// One lane's copy.
    pub(super) fn job(
        &self,
        lane: usize,
        way: Way,
        shared: SharedAt,
        done: Done,
    ) -> Result<TensorJob, Fault> {
        aligned(
            "the shared address of a tensor copy",
            shared.byte.into(),
            128,
        )?;
        let (coords, offsets) = self.start(lane)?;
        if let Way::Store(_) = way {
            legal_corner(coords.iter().copied())
                .and_then(|()| self.map.decl.legal_store())
                .map_err(|why| Fault::new(FaultKind::Operand, why))?;
        }
        Ok(TensorJob {
            done,
            way,
            map: self.map.clone(),
            coords,
            offsets,
            shared,
        })
    }
}

/// Coordinates and offsets are as many as the map's dimensions and mode ask for.
fn check_map(map: &TensorMapValue, coords: usize, offsets: usize) -> Result<(), Fault> {
    let bad = |text: String| Err(Fault::new(FaultKind::TensorMap, text));
    let rank = map.decl.rank();
    if coords != rank {
        return bad(format!(
            "a tensor map of rank {rank} takes {rank} coordinates, not {coords}"
        ));
    }
    let taps = match &map.decl.mode {
        MapMode::Im2col { .. } => rank - 2,
        _ => 0,
    };
    if offsets != taps {
        let mode = if taps == 0 { "tiled" } else { "im2col" };
        return bad(format!(
            "a copy by a {mode} map of rank {rank} takes {taps} filter offsets, not {offsets}"
        ));
    }
    Ok(())
}

/// The view is one run of bytes, as long as the box, with the map's swizzle.
fn check_view(map: &TensorMapValue, layout: &TileLayout, view: &View) -> Result<(), Fault> {
    let bad = |text: String| Err(Fault::new(FaultKind::TensorMap, text));
    let decl = &map.decl;
    if decl.swizzle != layout.swizzle {
        return bad(format!(
            "the map and the tile have one layout, not {} and {}",
            decl.swizzle, layout.swizzle
        ));
    }
    let bytes = view.rows * view.cols * layout.element;
    if decl.bytes() != bytes {
        return bad(format!(
            "a box is as large as the view it is copied to or from; it has {} bytes, the view {bytes}",
            decl.bytes()
        ));
    }
    let panel = layout.panel_cols();
    let panels = view.col.is_multiple_of(panel) && view.cols.is_multiple_of(panel);
    let one = view.cols == panel || view.rows == layout.rows;
    let line = layout.swizzle == Swizzle::None && view.rows == 1;
    if !(panels && one || line) {
        return bad(format!(
            "a box fills whole rows of one panel, or all rows of several ({panel} columns each); \
             this view has rows {}..{} of {} and columns {}..{}",
            view.row,
            view.row + view.rows,
            layout.rows,
            view.col,
            view.col + view.cols
        ));
    }
    let inner = decl.inner() * decl.dtype.bytes() as u32;
    match layout.swizzle.span() {
        Some(span) if inner != span => bad(format!(
            "the inner side of a swizzled box fills the span of {span} bytes, not {inner} of them"
        )),
        _ => Ok(()),
    }
}

/// An im2col copy starts at a position of the window.
fn check_start(map: &TensorMapValue, coords: &[i32]) -> Result<(), Fault> {
    let MapMode::Im2col { lower, upper, .. } = &map.decl.mode else {
        return Ok(());
    };
    for (i, (&lo, &hi)) in lower.iter().zip(upper).enumerate() {
        let (at, extent) = (coords[i + 1], map.extents[i + 1]);
        if map.positions(i, lo) < 1 {
            return Err(Fault::new(
                FaultKind::TensorMap,
                format!(
                    "an im2col window has a position in an extent of {extent}; corners {lo} and {hi} leave none"
                ),
            ));
        }
        if at < lo || map.positions(i, at) < 1 {
            return Err(Fault::new(
                FaultKind::Operand,
                format!(
                    "an im2col copy starts at a position of its window: coordinate {} is {lo} to {}, not {at}",
                    i + 1,
                    extent as i64 - 1 + i64::from(hi)
                ),
            ));
        }
    }
    Ok(())
}

/// The offsets of a filter tap have 16, 8 or 5 bits, by the dimensions of the window.
fn check_offsets(offsets: &[u16]) -> Result<(), Fault> {
    let most = match offsets.len() {
        0 | 1 => u16::MAX,
        2 => 255,
        _ => 31,
    };
    match offsets.iter().find(|&&o| o > most) {
        None => Ok(()),
        Some(o) => Err(Fault::new(
            FaultKind::Operand,
            format!(
                "a filter offset of a window of {} dimensions is 0 to {most}, not {o}",
                offsets.len()
            ),
        )),
    }
}

/// `{a, b}`, each of a type.
pub(super) fn list(a: &mut dyn Asm, operands: &[Operand], ty: Type) -> String {
    let all: Vec<_> = operands.iter().map(|&o| a.operand(o, ty)).collect();
    format!("{{{}}}", all.join(", "))
}

/// The filter offsets as PTX has them, after a comma.
pub(super) fn taps(a: &mut dyn Asm, offsets: &[Operand]) -> String {
    match offsets {
        [] => String::new(),
        some => format!(", {}", list(a, some, Type::U16)),
    }
}

/// Refuses a rank that no tensor map has.
pub(super) fn legal_rank(name: &str, rank: usize) -> Result<(), String> {
    if (1..=5).contains(&rank) {
        return Ok(());
    }
    Err(format!("{name} takes 1 to 5 coordinates, not {rank}"))
}

/// Refuses a store that starts before a tensor: an H200 ends the kernel with an illegal
/// instruction. A load may start there, and both may go past the end.
pub(super) fn legal_corner(coords: impl IntoIterator<Item = i32>) -> Result<(), String> {
    match coords.into_iter().enumerate().find(|&(_, c)| c < 0) {
        None => Ok(()),
        Some((i, c)) => Err(format!(
            "a tensor store starts at coordinates of 0 or more: coordinate {i} is {c}"
        )),
    }
}

/// Refuses a box that starts inside 16 bytes of a row, as an H200 does by an illegal
/// instruction, be it loaded, stored or prefetched.
fn legal_step(first: i32, dtype: DType) -> Result<(), String> {
    let byte = i64::from(first) * dtype.bytes() as i64;
    if byte % 16 == 0 {
        return Ok(());
    }
    Err(format!(
        "a box of a tensor starts at a multiple of 16 bytes along the innermost dimension: element {first} of {dtype} is byte {byte}"
    ))
}

/// Refuses a first element, where it is a constant, at which no box of a tensor of that type starts.
pub fn legal_start(coords: &[Operand], dtype: DType) -> Result<(), String> {
    match coords.first() {
        Some(Operand::Imm(first)) => legal_step(*first as i32, dtype),
        _ => Ok(()),
    }
}

/// Refuses offsets that no window has.
pub(super) fn legal_offsets(coords: usize, offsets: usize) -> Result<(), String> {
    if offsets == 0 || offsets + 2 == coords {
        return Ok(());
    }
    Err(format!(
        "an im2col copy takes two offsets fewer than coordinates, not {offsets} and {coords}"
    ))
}

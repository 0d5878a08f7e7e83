//! R13, tensor maps: the declaration, and the view that a box is copied to or from.

use super::{OpSite, RuleContext};
use crate::codes;
use crate::diagnostic::{Findings, Rule};
use warpline_ir::ops::tensor::legal_first_coord;
use warpline_ir::{
    MemoryRegion, Op, Param, ParamKind, Swizzle, TensorMapDecl, TensorMapMode, TileInfo, View,
};

/// The rules of this group.
pub const RULES: &[Rule] = &[MAP, MODE, COORDS, REDUCE, BYTES, SWIZZLE, VIEW];

const MAP: Rule = codes::R13_MAP;
const MODE: Rule = codes::R13_MODE;
const COORDS: Rule = codes::R13_COORDS;
const REDUCE: Rule = codes::R13_REDUCE;
const BYTES: Rule = codes::R13_BYTES;
const SWIZZLE: Rule = codes::R13_SWIZZLE;
const VIEW: Rule = codes::R13_VIEW;

pub(crate) fn check<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    for p in &cx.kernel.params {
        if let ParamKind::TensorMap(decl) = &p.kind
            && let Some(rule) = decl.violated_rule()
        {
            let text = format!("tensor map `{}`: {rule}", p.name);
            found.report(&MAP, p.loc, None, text);
        }
    }
    for op in &cx.ops {
        let map = op.facts.touches.iter().find_map(|t| match t.memory {
            MemoryRegion::Tensor(p) => Some(cx.kernel.param(p)),
            _ => None,
        });
        let Some((param, decl)) = map.and_then(legal_map) else {
            continue;
        };
        let mut report =
            |rule: &Rule, text: String| found.report(rule, op.loc(), op.site.role, text);
        if let Op::TensorStore(store) = op.op {
            let is_im2col = matches!(decl.mode, TensorMapMode::Im2col { .. });
            if store.im2col != is_im2col {
                let (copied, mode) = match is_im2col {
                    true => ("a box", "im2col"),
                    false => ("pixels", "tiled"),
                };
                report(
                    &MODE,
                    format!(
                        "the store of {copied} uses tensor map `{}`, which is {mode}",
                        param.name
                    ),
                );
            }
            if let Err(why) = decl.check_store() {
                report(&MODE, format!("tensor map `{}`: {why}", param.name));
            }
            if let Some(how) = store.reduce
                && let Err(why) = how.legal_in_tensor(decl.dtype)
            {
                report(&REDUCE, format!("tensor map `{}`: {why}", param.name));
            }
        }
        if let Some(text) = bad_coords(op, &param.name, decl) {
            report(&COORDS, text);
        }
        for v in op.facts.views().filter(|v| cx.is_sound(v)) {
            check_copy(&param.name, decl, cx.kernel.tile(v.tile), v, &mut report);
        }
    }
}

/// Returns the tensor map of a parameter, if its declaration is legal. The rules for copies require
/// a legal map.
fn legal_map(p: &Param) -> Option<(&Param, &TensorMapDecl)> {
    match &p.kind {
        ParamKind::TensorMap(decl) if decl.violated_rule().is_none() => Some((p, decl)),
        _ => None,
    }
}

fn bad_coords(op: &OpSite, name: &str, decl: &TensorMapDecl) -> Option<String> {
    let (coords, offsets) = match op.op {
        Op::TensorLoad(o) => (&o.coords, o.offsets.len()),
        Op::TensorPrefetchBox(o) => (&o.coords, o.offsets.len()),
        Op::TensorStore(o) => (&o.coords, 0),
        _ => return None,
    };
    if let Err(why) = legal_first_coord(coords, decl.dtype) {
        return Some(format!("tensor map `{name}`: {why}"));
    }
    let coords = coords.len();
    let rank = decl.rank();
    let expected_offsets = match (&decl.mode, op.op) {
        (_, Op::TensorStore(_)) => 0,
        (TensorMapMode::Im2col { .. }, _) => rank - 2,
        _ => 0,
    };
    (coords != rank || offsets != expected_offsets).then(|| {
        format!(
            "tensor map `{name}` of rank {rank} takes {rank} coordinates and {expected_offsets} im2col offsets; the copy passes {coords} and {offsets}"
        )
    })
}

fn check_copy(
    name: &str,
    decl: &TensorMapDecl,
    tile: &TileInfo,
    v: &View,
    report: &mut dyn FnMut(&Rule, String),
) {
    let layout = &tile.layout;
    if decl.swizzle != layout.swizzle || decl.dtype.bytes() != layout.element_bytes as usize {
        let text = format!(
            "tensor map `{name}` is {} with elements of {} bytes; tile `{}` is {} with elements of {} bytes",
            decl.swizzle,
            decl.dtype.bytes(),
            tile.name,
            layout.swizzle,
            layout.element_bytes
        );
        return report(&SWIZZLE, text);
    }
    let view_bytes = u64::from(v.rows) * u64::from(v.cols) * u64::from(layout.element_bytes);
    if u64::from(decl.bytes()) != view_bytes {
        let text = format!(
            "a box of tensor map `{name}` has {} bytes; the view of tile `{}` has {view_bytes}",
            decl.bytes(),
            tile.name
        );
        return report(&BYTES, text);
    }
    let inner = decl.inner();
    let panel = layout.panel_cols();
    let whole_panels = v.col.is_multiple_of(panel) && v.cols.is_multiple_of(panel);
    // TMA writes a box row after row without gaps: one panel, or all rows of several panels.
    let is_one_run = match layout.swizzle {
        Swizzle::None => v.rows == 1 || v.cols == layout.cols,
        _ => whole_panels && inner == panel && (v.cols == panel || v.rows == layout.rows),
    };
    let start = layout.unswizzled_offset(v.row, v.col);
    if !is_one_run
        || !layout.is_atom_aligned(v.row, v.rows, v.col, v.cols)
        || !start.is_multiple_of(128)
    {
        let text = format!(
            "a box {inner} elements wide is not one aligned run of the view {}×{} at row {}, column {} of tile `{}` ({}×{}, {})",
            v.rows, v.cols, v.row, v.col, tile.name, layout.rows, layout.cols, layout.swizzle
        );
        report(&VIEW, text);
    }
}

//! R13, tensor maps: the declaration, and the view that a box fills or empties.

use super::{Case, OpSite};
use crate::refusal::{Findings, Rule};
use warpline_ir::ops::tensor::legal_start;
use warpline_ir::{MapMode, Memory, Op, Param, ParamKind, Swizzle, TensorMapDecl, Tile, View};

/// The rules of this group.
pub const RULES: &[Rule] = &[MAP, MODE, COORDS, REDUCE, BYTES, SWIZZLE, VIEW];

const MAP: Rule = Rule {
    code: "R13.map",
    holds: "rank, box and inner bytes of a tensor map are what the hardware takes",
};
const MODE: Rule = Rule {
    code: "R13.mode",
    holds: "a store to a box goes through a tiled map, one to pixels through an im2col map",
};
const COORDS: Rule = Rule {
    code: "R13.coords",
    holds: "a tensor copy names one coordinate per dimension, and one offset per window dimension, and starts on 16 bytes",
};
const REDUCE: Rule = Rule {
    code: "R13.reduce",
    holds: "a reducing store combines elements of a type that the hardware combines so",
};
const BYTES: Rule = Rule {
    code: "R13.bytes",
    holds: "a box has as many bytes as the view it is copied to or from",
};
const SWIZZLE: Rule = Rule {
    code: "R13.swizzle",
    holds: "a tensor map and the tile it is copied to or from have the same swizzle and element size",
};
const VIEW: Rule = Rule {
    code: "R13.view",
    holds: "the view of a tensor copy is one run of shared memory on swizzle-atom boundaries",
};

pub(crate) fn judge<'k>(case: &Case<'k>, found: &mut Findings<'k>) {
    for p in &case.kernel.params {
        if let ParamKind::TensorMap(decl) = &p.kind
            && let Some(rule) = decl.broken_rule()
        {
            let text = format!("tensor map {}: {rule}", p.name);
            found.refuse(&MAP, p.loc, None, text);
        }
    }
    for op in &case.ops {
        let map = op.facts.touches.iter().find_map(|t| match t.memory {
            Memory::Tensor(p) => Some(case.kernel.param(p)),
            _ => None,
        });
        let Some((param, decl)) = map.and_then(sound_map) else {
            continue;
        };
        let mut refuse =
            |rule: &Rule, text: String| found.refuse(rule, op.loc(), op.site.role, text);
        if let Op::TensorStore(store) = op.op {
            let is_im2col = matches!(decl.mode, MapMode::Im2col { .. });
            if store.im2col != is_im2col {
                let (goes, is) = match is_im2col {
                    true => ("a box goes through a tiled map", "im2col"),
                    false => ("pixels goes through an im2col map", "tiled"),
                };
                refuse(&MODE, format!("a store to {goes}; {} is {is}", param.name));
            }
            if let Err(why) = decl.legal_store() {
                refuse(&MODE, format!("tensor map {}: {why}", param.name));
            }
            if let Some(how) = store.reduce
                && let Err(why) = how.legal_in_tensor(decl.dtype)
            {
                refuse(&REDUCE, format!("tensor map {}: {why}", param.name));
            }
        }
        if let Some(text) = bad_coords(op, &param.name, decl) {
            refuse(&COORDS, text);
        }
        for v in op.facts.views().filter(|v| case.is_sound(v)) {
            copy(&param.name, decl, case.kernel.tile(v.tile), v, &mut refuse);
        }
    }
}

/// A tensor map whose declaration is sound: only of those can more be said.
fn sound_map(p: &Param) -> Option<(&Param, &TensorMapDecl)> {
    match &p.kind {
        ParamKind::TensorMap(decl) if decl.broken_rule().is_none() => Some((p, decl)),
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
    if let Err(why) = legal_start(coords, decl.dtype) {
        return Some(format!("tensor map {name}: {why}"));
    }
    let coords = coords.len();
    let rank = decl.rank();
    let windows = match (&decl.mode, op.op) {
        (_, Op::TensorStore(_)) => 0,
        (MapMode::Im2col { .. }, _) => rank - 2,
        _ => 0,
    };
    (coords != rank || offsets != windows).then(|| {
        format!(
            "tensor map {name} of rank {rank} takes {rank} coordinates and {windows} offsets, not {coords} and {offsets}"
        )
    })
}

fn copy(
    name: &str,
    decl: &TensorMapDecl,
    tile: &Tile,
    v: &View,
    refuse: &mut dyn FnMut(&Rule, String),
) {
    let layout = &tile.layout;
    if decl.swizzle != layout.swizzle || decl.dtype.bytes() != layout.element as usize {
        let text = format!(
            "tensor map {name} has {} and elements of {} bytes; tile {} has {} and {}",
            decl.swizzle,
            decl.dtype.bytes(),
            tile.name,
            layout.swizzle,
            layout.element
        );
        return refuse(&SWIZZLE, text);
    }
    let view_bytes = u64::from(v.rows) * u64::from(v.cols) * u64::from(layout.element);
    if u64::from(decl.bytes()) != view_bytes {
        let text = format!(
            "a box of tensor map {name} has {} bytes; the view of tile {} has {view_bytes}",
            decl.bytes(),
            tile.name
        );
        return refuse(&BYTES, text);
    }
    let inner = decl.inner();
    let wide = layout.panel_cols();
    let whole_panels = v.col.is_multiple_of(wide) && v.cols.is_multiple_of(wide);
    // A box is written row after row without gaps: one panel, or all rows of several.
    let one_run = match layout.swizzle {
        Swizzle::None => v.rows == 1 || v.cols == layout.cols,
        _ => whole_panels && inner == wide && (v.cols == wide || v.rows == layout.rows),
    };
    let start = layout.linear(v.row, v.col);
    if !one_run || !layout.is_atomic(v.row, v.rows, v.col, v.cols) || !start.is_multiple_of(128) {
        let text = format!(
            "a tensor copy fills or empties one run of shared memory on swizzle-atom boundaries; boxes {inner} wide in the view {}×{} at row {}, column {} of tile {} ({}×{}, {}) do not",
            v.rows, v.cols, v.row, v.col, tile.name, layout.rows, layout.cols, layout.swizzle
        );
        refuse(&VIEW, text);
    }
}

//! Constant indices are in range: stages, views, places, mbarriers.

use super::{Case, OpSite};
use crate::facts::Facts;
use crate::refusal::{Findings, Rule};
use warpline_ir::{Kernel, Operand, Place, StmtKind, View};

/// The rules of this group.
pub const RULES: &[Rule] = &[STAGE, VIEW, PLACE, BARRIER];

const STAGE: Rule = Rule {
    code: "S.stage",
    holds: "a constant stage is one of the tile's",
};
const VIEW: Rule = Rule {
    code: "S.view",
    holds: "a view is a rectangle of its tile and is not empty",
};
const PLACE: Rule = Rule {
    code: "S.place",
    holds: "a constant place and the bytes accessed there are in one stage of the tile",
};
const BARRIER: Rule = Rule {
    code: "S.barrier",
    holds: "a constant barrier index is one of the array's",
};

pub(crate) fn judge<'k>(case: &Case<'k>, found: &mut Findings<'k>) {
    for op in &case.ops {
        let mut refuse =
            |rule: &Rule, text: String| found.refuse(rule, op.loc(), op.site.role, text);
        for v in op.facts.views() {
            stage(case.kernel, v.tile, v.stage, &mut refuse);
            if let Some(text) = bad_view(case.kernel, v) {
                refuse(&VIEW, text);
            }
        }
        for (p, bytes) in op.facts.places() {
            stage(case.kernel, p.tile, p.stage, &mut refuse);
            place(case.kernel, p, bytes, &mut refuse);
        }
        barriers(case.kernel, op, &mut refuse);
    }
}

type Refuse<'a> = &'a mut dyn FnMut(&Rule, String);

fn stage(kernel: &Kernel, tile: warpline_ir::TileId, stage: Operand, refuse: Refuse) {
    let tile = kernel.tile(tile);
    if let Some(s) = stage.as_imm()
        && s >= u64::from(tile.stages)
    {
        let text = format!(
            "tile {} has {} stages; there is no stage {s}",
            tile.name, tile.stages
        );
        refuse(&STAGE, text);
    }
}

/// Why a view is not a rectangle of its tile.
pub(super) fn bad_view(kernel: &Kernel, v: &View) -> Option<String> {
    let tile = kernel.tile(v.tile);
    let (rows, cols) = (tile.layout.rows, tile.layout.cols);
    let ends = |at: u32, len: u32| u64::from(at) + u64::from(len);
    let inside = ends(v.row, v.rows) <= rows.into() && ends(v.col, v.cols) <= cols.into();
    if v.rows > 0 && v.cols > 0 && inside {
        return None;
    }
    Some(format!(
        "tile {} is {rows}×{cols}; a view of {}×{} at row {}, column {} is not in it",
        tile.name, v.rows, v.cols, v.row, v.col
    ))
}

/// Judges the views of a kernel alone.
pub(crate) fn judge_views(kernel: &Kernel, found: &mut Findings) {
    kernel.each_stmt(&mut |role, s| {
        if let StmtKind::Op(op) = &s.kind {
            for text in Facts::of(op).views().filter_map(|v| bad_view(kernel, v)) {
                found.refuse(&VIEW, s.loc, role, text);
            }
        }
    });
}

fn place(kernel: &Kernel, p: &Place, bytes: u64, refuse: Refuse) {
    let tile = kernel.tile(p.tile);
    // A register may hold any byte; what is constant is the least it can be.
    let end = p
        .byte
        .as_imm()
        .unwrap_or(0)
        .saturating_add(u64::from(p.offset))
        .saturating_add(bytes);
    let l = &tile.layout;
    let stage = u64::from(l.rows)
        .saturating_mul(l.cols.into())
        .saturating_mul(l.element.into());
    if end > stage {
        let text = format!(
            "a stage of tile {} has {stage} bytes; the access ends at {end}",
            tile.name
        );
        refuse(&PLACE, text);
    }
}

fn barriers(kernel: &Kernel, op: &OpSite, refuse: Refuse) {
    for b in op.facts.barriers() {
        let array = kernel.barrier(b.bar);
        if let Some(i) = b.index.as_imm()
            && i >= u64::from(array.len)
        {
            let text = format!(
                "{} has {} mbarriers; there is no index {i}",
                array.name, array.len
            );
            refuse(&BARRIER, text);
        }
    }
}

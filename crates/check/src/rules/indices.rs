//! Constant indices are in range: stages, views, addresses, mbarriers.

use super::{OpSite, RuleContext};
use crate::codes;
use crate::diagnostic::{Findings, Rule};
use crate::facts::Facts;
use warpline_ir::{Kernel, Operand, SharedAddress, StmtKind, View};

/// The rules of this group.
pub const RULES: &[Rule] = &[STAGE, VIEW, PLACE, BARRIER];

const STAGE: Rule = codes::S_STAGE;
const VIEW: Rule = codes::S_VIEW;
const PLACE: Rule = codes::S_PLACE;
const BARRIER: Rule = codes::S_BARRIER;

pub(crate) fn check<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    for op in &cx.ops {
        let mut report =
            |rule: &Rule, text: String| found.report(rule, op.loc(), op.site.role, text);
        for v in op.facts.views() {
            check_stage(cx.kernel, v.tile, v.stage, &mut report);
            if let Some(text) = bad_view(cx.kernel, v) {
                report(&VIEW, text);
            }
        }
        for (p, bytes) in op.facts.places() {
            check_stage(cx.kernel, p.tile, p.stage, &mut report);
            check_address(cx.kernel, p, bytes, &mut report);
        }
        check_barriers(cx.kernel, op, &mut report);
    }
}

type Report<'a> = &'a mut dyn FnMut(&Rule, String);

fn check_stage(kernel: &Kernel, tile: warpline_ir::TileId, stage: Operand, report: Report) {
    let tile = kernel.tile(tile);
    if let Some(s) = stage.as_imm()
        && s >= u64::from(tile.stages)
    {
        let text = format!(
            "tile `{}` has {} stages, and the access names stage {s}",
            tile.name, tile.stages
        );
        report(&STAGE, text);
    }
}

/// Returns an error message if a view is not a rectangle of its tile.
pub(super) fn bad_view(kernel: &Kernel, v: &View) -> Option<String> {
    let tile = kernel.tile(v.tile);
    let (rows, cols) = (tile.layout.rows, tile.layout.cols);
    let end = |start: u32, len: u32| u64::from(start) + u64::from(len);
    let is_inside = end(v.row, v.rows) <= rows.into() && end(v.col, v.cols) <= cols.into();
    if v.rows > 0 && v.cols > 0 && is_inside {
        return None;
    }
    Some(format!(
        "the view {}×{} at row {}, column {} is not inside tile `{}`, which is {rows}×{cols}",
        v.rows, v.cols, v.row, v.col, tile.name
    ))
}

/// Checks only the views of a kernel.
pub(crate) fn check_views(kernel: &Kernel, found: &mut Findings) {
    kernel.each_stmt(&mut |role, s| {
        if let StmtKind::Op(op) = &s.kind {
            for text in Facts::of(op).views().filter_map(|v| bad_view(kernel, v)) {
                found.report(&VIEW, s.loc, role, text);
            }
        }
    });
}

fn check_address(kernel: &Kernel, p: &SharedAddress, bytes: u64, report: Report) {
    let tile = kernel.tile(p.tile);
    // The value of a register is unknown here, so it counts as 0: the check finds the least end.
    let end = p
        .byte
        .as_imm()
        .unwrap_or(0)
        .saturating_add(u64::from(p.offset))
        .saturating_add(bytes);
    let l = &tile.layout;
    let stage_bytes = u64::from(l.rows)
        .saturating_mul(l.cols.into())
        .saturating_mul(l.element_bytes.into());
    if end > stage_bytes {
        let text = format!(
            "the access ends at byte {end}, and a stage of tile `{}` has {stage_bytes} bytes",
            tile.name
        );
        report(&PLACE, text);
    }
}

fn check_barriers(kernel: &Kernel, op: &OpSite, report: Report) {
    for b in op.facts.barriers() {
        let array = kernel.barrier(b.bar);
        if let Some(i) = b.index.as_imm()
            && i >= u64::from(array.len)
        {
            let text = format!(
                "`{}[{i}]` does not exist; the array has {} mbarriers",
                array.name, array.len
            );
            report(&BARRIER, text);
        }
    }
}

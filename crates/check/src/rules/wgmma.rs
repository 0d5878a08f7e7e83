//! R14, wgmma: shapes, operands in shared memory, and issuing warps.

use super::{OpSite, RuleContext};
use crate::codes;
use crate::diagnostic::{Findings, Rule};
use crate::facts::Convergence;
use warpline_ir::ops::wgmma::{MatrixA, Wgmma};
use warpline_ir::{DType, Major, Op, Swizzle, SyncOp, Uniform, View};

/// The rules of this group.
pub const RULES: &[Rule] = &[SHAPE, OPERAND, WARPGROUP];

pub(super) const SHAPE: Rule = codes::R14_SHAPE;
const OPERAND: Rule = codes::R14_OPERAND;
const WARPGROUP: Rule = codes::R14_WARPGROUP;

pub(crate) fn check<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    for op in &cx.ops {
        let mut report =
            |rule: &Rule, text: String| found.report(rule, op.loc(), op.site.role, text);
        if let Op::Wgmma(o) = op.op
            && op.op.legal(cx.target).is_ok()
        {
            check_operands(cx, o, &mut report);
        }
        let is_setmaxnreg = |s: &SyncOp| matches!(s, SyncOp::SetMaxRegs { .. });
        if op.facts.convergence == Convergence::Warpgroup
            && !op.facts.syncs.iter().any(is_setmaxnreg)
            && let Some(text) = bad_issuer(cx, op)
        {
            report(&WARPGROUP, text);
            super::convergence::label_split(&op.site, found);
        }
    }
}

/// Returns an error message if not all warps of the warpgroup issue an op together.
fn bad_issuer(cx: &RuleContext, op: &OpSite) -> Option<String> {
    let name = op.op.name();
    let roles = &cx.kernel.roles;
    let issuers = match op.site.role {
        Some(r) => &roles[r.index()..=r.index()],
        None => &roles[..],
    };
    let has_partial_warpgroup =
        |r: &&warpline_ir::Role| !(r.first_warp.is_multiple_of(4) && r.warps.is_multiple_of(4));
    if let Some(role) = issuers.iter().find(has_partial_warpgroup) {
        return Some(format!(
            "`{name}` needs whole warpgroups, and role `{}` has {} warps from warp {} on",
            role.name, role.warps, role.first_warp
        ));
    }
    if op.site.reach >= Uniform::Warpgroup {
        return None;
    }
    Some(format!(
        "`{name}` needs all four warps of the warpgroup, but not all reach it together"
    ))
}

fn check_operands(cx: &RuleContext, o: &Wgmma, report: &mut dyn FnMut(&Rule, String)) {
    let a = match &o.a {
        MatrixA::Shared(v, major) => Some((v, *major, o.a_ty)),
        MatrixA::Regs(_) => None,
    };
    for (v, major, ty) in a.into_iter().chain([(&o.b, o.b_major, o.b_ty)]) {
        if cx.is_sound(v)
            && let Some(text) = bad_operand(cx, v, major, ty.dtype())
        {
            report(&OPERAND, text);
        }
    }
}

fn bad_operand(cx: &RuleContext, v: &View, major: Major, dtype: DType) -> Option<String> {
    let tile = cx.kernel.tile(v.tile);
    let l = &tile.layout;
    let name = &tile.name;
    if tile.dtype != dtype {
        return Some(format!(
            "wgmma reads {dtype}, and tile `{name}` has {}",
            tile.dtype
        ));
    }
    if l.swizzle == Swizzle::None {
        return Some(format!("tile `{name}` has no swizzle"));
    }
    if !l.is_atom_aligned(v.row, v.rows, v.col, v.cols) {
        return Some(format!(
            "the view {}×{} at row {}, column {} of tile `{name}` ({}) is not on swizzle-atom boundaries",
            v.rows, v.cols, v.row, v.col, l.swizzle
        ));
    }
    // The leading offset of a descriptor has 14 bits and counts units of 16 bytes.
    let leading = u64::from(l.rows) * u64::from(l.span());
    if major == Major::Mn && leading >> 4 > 0x3fff {
        return Some(format!(
            "the panels of tile `{name}` are {leading} bytes apart; an MN-major operand allows at most {}",
            0x3fff << 4
        ));
    }
    None
}

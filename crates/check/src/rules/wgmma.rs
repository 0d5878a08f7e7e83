//! R14, wgmma: shapes, operands in shared memory, and who issues it.

use super::{Case, OpSite};
use crate::facts::Whole;
use crate::refusal::{Findings, Rule};
use warpline_ir::ops::wgmma::{MatrixA, Wgmma};
use warpline_ir::{DType, Major, Op, Swizzle, Sync, Uniform, View};

/// The rules of this group.
pub const RULES: &[Rule] = &[SHAPE, OPERAND, WARPGROUP];

pub(super) const SHAPE: Rule = Rule {
    code: "R14.shape",
    holds: "a wgmma has a shape, registers and views that the hardware takes",
};
const OPERAND: Rule = Rule {
    code: "R14.operand",
    holds: "a wgmma operand in shared memory is a swizzled view of its type on atom boundaries",
};
const WARPGROUP: Rule = Rule {
    code: "R14.warpgroup",
    holds: "wgmma ops are reached by all four warps of aligned warpgroups together",
};

pub(crate) fn judge<'k>(case: &Case<'k>, found: &mut Findings<'k>) {
    for op in &case.ops {
        let mut refuse =
            |rule: &Rule, text: String| found.refuse(rule, op.loc(), op.site.role, text);
        if let Op::Wgmma(o) = op.op
            && op.op.legal(case.target).is_ok()
        {
            operands(case, o, &mut refuse);
        }
        let registers = |s: &Sync| matches!(s, Sync::SetMaxRegs { .. });
        if op.facts.whole == Whole::Warpgroup
            && !op.facts.syncs.iter().any(registers)
            && let Some(text) = issuer(case, op)
        {
            refuse(&WARPGROUP, text);
        }
    }
}

fn issuer(case: &Case, op: &OpSite) -> Option<String> {
    let name = op.op.name();
    let roles = &case.kernel.roles;
    let issuers = match op.site.role {
        Some(r) => &roles[r.index()..=r.index()],
        None => &roles[..],
    };
    let broken =
        |r: &&warpline_ir::Role| !(r.first_warp.is_multiple_of(4) && r.warps.is_multiple_of(4));
    if let Some(role) = issuers.iter().find(broken) {
        return Some(format!(
            "{name} is issued by whole warpgroups; role {} is {} warps from warp {} on",
            role.name, role.warps, role.first_warp
        ));
    }
    if op.site.reach >= Uniform::Warpgroup {
        return None;
    }
    let split = op.site.split.map_or(String::new(), |s| {
        format!(
            "; the {} at {} parts them",
            s.what,
            case.kernel.locs.show(s.loc)
        )
    });
    Some(format!(
        "{name} is reached by all four warps of a warpgroup together{split}"
    ))
}

fn operands(case: &Case, o: &Wgmma, refuse: &mut dyn FnMut(&Rule, String)) {
    let a = match &o.a {
        MatrixA::Shared(v, major) => Some((v, *major, o.a_ty)),
        MatrixA::Regs(_) => None,
    };
    for (v, major, ty) in a.into_iter().chain([(&o.b, o.b_major, o.b_ty)]) {
        if case.is_sound(v)
            && let Some(text) = bad_operand(case, v, major, ty.dtype())
        {
            refuse(&OPERAND, text);
        }
    }
}

fn bad_operand(case: &Case, v: &View, major: Major, dtype: DType) -> Option<String> {
    let tile = case.kernel.tile(v.tile);
    let l = &tile.layout;
    let name = &tile.name;
    if tile.dtype != dtype {
        return Some(format!(
            "wgmma reads {dtype} here; tile {name} is {}",
            tile.dtype
        ));
    }
    if l.swizzle == Swizzle::None {
        return Some(format!("wgmma reads swizzled tiles; tile {name} is plain"));
    }
    if !l.is_atomic(v.row, v.rows, v.col, v.cols) {
        return Some(format!(
            "wgmma reads on swizzle-atom boundaries; the view {}×{} at row {}, column {} of tile {name} ({}) is not on them",
            v.rows, v.cols, v.row, v.col, l.swizzle
        ));
    }
    // The leading offset has 14 bits of 16 bytes each.
    let leading = u64::from(l.rows) * u64::from(l.span());
    if major == Major::Mn && leading >> 4 > 0x3fff {
        return Some(format!(
            "the panels of an MN-major operand are at most {} bytes apart; those of tile {name} are {leading}",
            0x3fff << 4
        ));
    }
    None
}

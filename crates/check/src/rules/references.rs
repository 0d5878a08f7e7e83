//! Every id names something the kernel declares, and parameters are used as what they are.

use crate::facts::Facts;
use crate::refusal::{Findings, Rule};
use warpline_ir::{
    Kernel, Memory, Op, Operand, Param, ParamId, ParamKind, Stmt, StmtKind, Sync, Type,
};

/// The rules of this group.
pub const RULES: &[Rule] = &[REFERENCE, PARAM, PARAM_NAME];

const REFERENCE: Rule = Rule {
    code: "S.reference",
    holds: "every register, tile, barrier, parameter and role that is named is declared",
};
const PARAM: Rule = Rule {
    code: "S.param",
    holds: "a parameter is read as what it was declared",
};
const PARAM_NAME: Rule = Rule {
    code: "S.param-name",
    holds: "parameters have different names",
};

/// Does every id of the kernel name something? Its text and its hashes follow the ids.
pub(crate) fn are_declared(kernel: &Kernel) -> bool {
    let mut found = Findings::new(kernel);
    judge(kernel, &mut found);
    found.is_empty()
}

pub(crate) fn judge(kernel: &Kernel, found: &mut Findings) {
    for (i, p) in kernel.params.iter().enumerate() {
        if kernel.params[..i].iter().any(|q| q.name == p.name) {
            let text = format!("parameters have different names; {} is there twice", p.name);
            found.refuse(&PARAM_NAME, p.loc, None, text);
        }
    }
    let extents = kernel.params.iter();
    let extents = extents.filter_map(|p| Some((p.bounds.elements.as_ref()?, p.loc)));
    let limits = kernel.limits.iter().map(|limit| (&limit.sum, limit.loc));
    for (sum, loc) in extents.chain(limits) {
        for id in sum.terms().iter().flat_map(|term| &term.params) {
            let counts = |q: &Param| matches!(q.kind, ParamKind::Scalar(ty) if ty.is_int());
            let (rule, what) = match kernel.params.get(id.index()) {
                None => (&REFERENCE, "is not declared"),
                Some(q) if !counts(q) => (&PARAM, "is no integer"),
                Some(_) => continue,
            };
            let text = format!("a declared bound counts with {id}, which {what}");
            found.refuse(rule, loc, None, text);
        }
    }
    for tile in &kernel.tiles {
        if let Some(alias) = tile.alias
            && alias.index() >= kernel.tiles.len()
        {
            let text = format!(
                "tile {} shares bytes with {alias}, which is not declared",
                tile.name
            );
            found.refuse(&REFERENCE, tile.loc, None, text);
        }
    }
    for reg in &kernel.regs {
        if let Some(role) = reg.role
            && role.index() >= kernel.roles.len()
        {
            let text = format!("a register belongs to {role}, which is not declared");
            found.refuse(&REFERENCE, reg.loc, None, text);
        }
    }
    kernel.each_stmt(&mut |role, stmt| {
        let mut missing = Vec::new();
        ids(kernel, stmt, &mut missing);
        for name in missing {
            let text = format!("{name} is used and not declared");
            found.refuse(&REFERENCE, stmt.loc, role, text);
        }
        if let StmtKind::Op(op) = &stmt.kind
            && let Some(text) = param_misuse(kernel, op)
        {
            found.refuse(&PARAM, stmt.loc, role, text);
        }
    });
}

/// Ids of a statement that name nothing.
fn ids(kernel: &Kernel, stmt: &Stmt, missing: &mut Vec<String>) {
    let mut need = |there: bool, name: String| {
        if !there && !missing.contains(&name) {
            missing.push(name);
        }
    };
    let mut reg = |o: Operand| {
        if let Some(r) = o.as_reg() {
            need(r.index() < kernel.regs.len(), r.to_string());
        }
    };
    let op = match &stmt.kind {
        StmtKind::Op(op) => op,
        StmtKind::If { cond, .. } | StmtKind::While { cond, .. } => return reg((*cond).into()),
        StmtKind::For {
            var,
            from,
            to,
            step,
            ..
        } => {
            return [(*var).into(), *from, *to, *step].into_iter().for_each(reg);
        }
        StmtKind::Elect { .. } => return,
    };
    let facts = Facts::of(op);
    facts.defs.iter().for_each(|&r| reg(r.into()));
    facts.reads.iter().for_each(|&(o, _)| reg(o));
    let tiles = facts.views().map(|v| v.tile);
    for tile in tiles.chain(facts.places().map(|(p, _)| p.tile)) {
        need(tile.index() < kernel.tiles.len(), tile.to_string());
    }
    for b in facts.barriers() {
        need(b.bar.index() < kernel.barriers.len(), b.bar.to_string());
    }
    for s in &facts.syncs {
        if let Sync::NamedSync { bar, .. }
        | Sync::NamedArrive { bar, .. }
        | Sync::NamedTally { bar, .. } = s
        {
            need(bar.index() < kernel.named.len(), bar.to_string());
        }
    }
    for (p, _) in params(op, &facts) {
        need(p.index() < kernel.params.len(), p.to_string());
    }
}

/// The parameters of an op; the type it is read as, `None` for a tensor map.
fn params(op: &Op, facts: &Facts) -> Vec<(ParamId, Option<Type>)> {
    let mut all: Vec<_> = facts
        .touches
        .iter()
        .filter_map(|t| match t.memory {
            Memory::Tensor(p) => Some((p, None)),
            _ => None,
        })
        .collect();
    match op {
        Op::ReadParam(o) => all.push((o.param, Some(o.ty))),
        Op::TensorPrefetch(o) => all.push((o.map, None)),
        _ => {}
    }
    all
}

fn param_misuse(kernel: &Kernel, op: &Op) -> Option<String> {
    params(op, &Facts::of(op))
        .into_iter()
        .find_map(|(p, want)| {
            let param = kernel.params.get(p.index())?;
            let declared = match &param.kind {
                ParamKind::Scalar(ty) => Some(*ty),
                ParamKind::Pointer(_) => Some(Type::U64),
                ParamKind::TensorMap(_) => None,
            };
            let word = |t: Option<Type>| t.map_or("a tensor map".to_owned(), |t| t.to_string());
            (declared != want).then(|| {
                format!(
                    "parameter {} was declared as {}, and {} reads it as {}",
                    param.name,
                    word(declared),
                    op.name(),
                    word(want)
                )
            })
        })
}

//! Every id is declared, and parameters are read as declared.

use crate::codes;
use crate::diagnostic::{Findings, Rule};
use crate::facts::Facts;
use warpline_ir::{
    Kernel, MemoryRegion, Op, Operand, Param, ParamId, ParamKind, Stmt, StmtKind, SyncOp, Type,
};

/// The rules of this group.
pub const RULES: &[Rule] = &[REFERENCE, PARAM, PARAM_NAME];

const REFERENCE: Rule = codes::S_REFERENCE;
const PARAM: Rule = codes::S_PARAM;
const PARAM_NAME: Rule = codes::S_PARAM_NAME;

/// Are all ids of the kernel declared? The text and the hashes of a kernel require that.
pub(crate) fn are_declared(kernel: &Kernel) -> bool {
    let mut found = Findings::new(kernel);
    check(kernel, &mut found);
    found.is_empty()
}

pub(crate) fn check(kernel: &Kernel, found: &mut Findings) {
    for (i, p) in kernel.params.iter().enumerate() {
        if kernel.params[..i].iter().any(|q| q.name == p.name) {
            let text = format!("two parameters have the name `{}`", p.name);
            found.report(&PARAM_NAME, p.loc, None, text);
        }
    }
    let extents = kernel.params.iter();
    let extents = extents.filter_map(|p| Some((p.bounds.elements.as_ref()?, p.loc)));
    let limits = kernel.limits.iter().map(|limit| (&limit.sum, limit.loc));
    for (sum, loc) in extents.chain(limits) {
        for id in sum.terms().iter().flat_map(|term| &term.params) {
            let is_integer = |q: &Param| matches!(q.kind, ParamKind::Scalar(ty) if ty.is_int());
            let (rule, fault) = match kernel.params.get(id.index()) {
                None => (&REFERENCE, "is not declared"),
                Some(q) if !is_integer(q) => (&PARAM, "is not an integer"),
                Some(_) => continue,
            };
            let text = format!("a declared bound uses {id}, which {fault}");
            found.report(rule, loc, None, text);
        }
    }
    for tile in &kernel.tiles {
        if let Some(alias) = tile.alias
            && alias.index() >= kernel.tiles.len()
        {
            let text = format!(
                "tile `{}` is an alias of {alias}, which is not declared",
                tile.name
            );
            found.report(&REFERENCE, tile.loc, None, text);
        }
    }
    for reg in &kernel.regs {
        if let Some(role) = reg.role
            && role.index() >= kernel.roles.len()
        {
            let text = format!("a register belongs to {role}, which is not declared");
            found.report(&REFERENCE, reg.loc, None, text);
        }
    }
    kernel.each_stmt(&mut |role, stmt| {
        let mut missing = Vec::new();
        undeclared_ids(kernel, stmt, &mut missing);
        for name in missing {
            let text = format!("{name} is used and not declared");
            found.report(&REFERENCE, stmt.loc, role, text);
        }
        if let StmtKind::Op(op) = &stmt.kind
            && let Some(text) = param_misuse(kernel, op)
        {
            found.report(&PARAM, stmt.loc, role, text);
        }
    });
}

/// Collects the undeclared ids of a statement.
fn undeclared_ids(kernel: &Kernel, stmt: &Stmt, missing: &mut Vec<String>) {
    let mut require = |is_declared: bool, name: String| {
        if !is_declared && !missing.contains(&name) {
            missing.push(name);
        }
    };
    let mut reg = |o: Operand| {
        if let Some(r) = o.as_reg() {
            require(r.index() < kernel.regs.len(), r.to_string());
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
        require(tile.index() < kernel.tiles.len(), tile.to_string());
    }
    for b in facts.barriers() {
        require(b.bar.index() < kernel.barriers.len(), b.bar.to_string());
    }
    for s in &facts.syncs {
        if let SyncOp::NamedSync { bar, .. }
        | SyncOp::NamedArrive { bar, .. }
        | SyncOp::NamedReduce { bar, .. } = s
        {
            require(bar.index() < kernel.named.len(), bar.to_string());
        }
    }
    for (p, _) in params(op, &facts) {
        require(p.index() < kernel.params.len(), p.to_string());
    }
}

/// Returns the parameters of an op, each with the type that the op reads; `None` for a tensor map.
fn params(op: &Op, facts: &Facts) -> Vec<(ParamId, Option<Type>)> {
    let mut all: Vec<_> = facts
        .touches
        .iter()
        .filter_map(|t| match t.memory {
            MemoryRegion::Tensor(p) => Some((p, None)),
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
            let type_name =
                |t: Option<Type>| t.map_or("a tensor map".to_owned(), |t| t.to_string());
            (declared != want).then(|| {
                format!(
                    "parameter `{}` is declared as {}, and `{}` reads it as {}",
                    param.name,
                    type_name(declared),
                    op.name(),
                    type_name(want)
                )
            })
        })
}

//! One op: the group that knows it, or arithmetic.

use super::flow::set;
use super::terms::Terms;
use super::{copies, memory, products, synchronise};
use crate::act::Act;
use crate::value::Value;
use warpline_ir::{Axis, Effects, Op, Operand, RegId, Special, Sync, Touch, Type};

/// The acts of an op.
pub(super) fn acts_of<'a>(t: Terms<'a>, op: &'a Op) -> Vec<Act<'a>> {
    synchronise::acts(t, op)
        .or_else(|| copies::act(t, op).map(|act| vec![act]))
        .or_else(|| products::act(t, op).map(|act| vec![act]))
        .or_else(|| memory::act(t, op).map(|act| vec![act]))
        .unwrap_or_else(|| arithmetic(t, op))
}

/// Registers that an op works out, and what from.
fn arithmetic<'a>(t: Terms<'a>, op: &Op) -> Vec<Act<'a>> {
    let mut operands = Operands {
        terms: t,
        results: Vec::new(),
        sources: Vec::new(),
    };
    op.effects(&mut operands);
    let Operands {
        results,
        mut sources,
        ..
    } = operands;
    match op {
        Op::ReadSpecial(read) => sources.push(Value::Name(special(read.which))),
        // PTX names the predicate last,
        Op::Select(_) => sources.rotate_left(1),
        // and the high half first.
        Op::Pack(pack) if pack.from == Type::F32 => sources.reverse(),
        _ => {}
    }
    let act = |r| set(t.reg(r), sources.clone());
    results.into_iter().map(act).collect()
}

/// The operands of an op that works something out.
struct Operands<'a> {
    terms: Terms<'a>,
    results: Vec<RegId>,
    sources: Vec<Value<'a>>,
}

impl Effects for Operands<'_> {
    fn def(&mut self, r: RegId) {
        self.results.push(r);
    }
    fn arg(&mut self, o: Operand, ty: Type) {
        self.sources.push(self.terms.operand(o, ty));
    }
    // What touches memory or synchronises has a group of its own.
    fn touch(&mut self, _: &Touch) {}
    fn sync(&mut self, _: &Sync) {}
    fn whole_warp(&mut self) {}
}

/// The register of a special value.
fn special(which: Special) -> &'static str {
    let by = |axis: Axis, names: [&'static str; 3]| names[axis.index()];
    match which {
        Special::Tid | Special::WarpId => "%tid.x",
        Special::LaneId => "%laneid",
        Special::CtaId(a) => by(a, ["%ctaid.x", "%ctaid.y", "%ctaid.z"]),
        Special::GridDim(a) => by(a, ["%nctaid.x", "%nctaid.y", "%nctaid.z"]),
        Special::ClusterRank => "%cluster_ctarank",
        Special::ClusterSize => "%cluster_nctarank",
        Special::ClusterCtaId(a) => by(
            a,
            ["%cluster_ctaid.x", "%cluster_ctaid.y", "%cluster_ctaid.z"],
        ),
        Special::ClusterDim(a) => by(
            a,
            [
                "%cluster_nctaid.x",
                "%cluster_nctaid.y",
                "%cluster_nctaid.z",
            ],
        ),
        Special::ClusterId(a) => by(a, ["%clusterid.x", "%clusterid.y", "%clusterid.z"]),
        Special::GridClusters(a) => by(a, ["%nclusterid.x", "%nclusterid.y", "%nclusterid.z"]),
        Special::SmId => "%smid",
        Special::SmCount => "%nsmid",
        Special::Clock => "%clock",
        Special::GlobalTimer => "%globaltimer",
    }
}

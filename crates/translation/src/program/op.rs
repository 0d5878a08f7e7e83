//! Actions of one op.

use super::flow::set;
use super::operand_converter::OperandConverter;
use super::{copies, memory, mma, synchronization};
use crate::action::Action;
use crate::value::OperandValue;
use warpline_ir::{Axis, Effects, MemoryAccess, Op, Operand, RegId, Special, SyncOp, Type};

/// Returns the actions of an op.
pub(super) fn actions_of<'a>(t: OperandConverter<'a>, op: &'a Op) -> Vec<Action<'a>> {
    synchronization::actions(t, op)
        .or_else(|| copies::action(t, op).map(|action| vec![action]))
        .or_else(|| mma::action(t, op).map(|action| vec![action]))
        .or_else(|| memory::action(t, op).map(|action| vec![action]))
        .unwrap_or_else(|| arithmetic(t, op))
}

/// Returns the register writes of an arithmetic op.
fn arithmetic<'a>(t: OperandConverter<'a>, op: &Op) -> Vec<Action<'a>> {
    let mut operands = Operands {
        converter: t,
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
        Op::ReadSpecial(read) => sources.push(OperandValue::Name(special(read.which))),
        // In PTX the predicate is the last operand.
        Op::Select(_) => sources.rotate_left(1),
        // In PTX the high half is the first operand.
        Op::Pack(pack) if pack.from == Type::F32 => sources.reverse(),
        _ => {}
    }
    let action = |r| set(t.reg(r), sources.clone());
    results.into_iter().map(action).collect()
}

/// Collects results and operands of an arithmetic op.
struct Operands<'a> {
    converter: OperandConverter<'a>,
    results: Vec<RegId>,
    sources: Vec<OperandValue<'a>>,
}

impl Effects for Operands<'_> {
    fn def(&mut self, r: RegId) {
        self.results.push(r);
    }
    fn arg(&mut self, o: Operand, ty: Type) {
        self.sources.push(self.converter.operand(o, ty));
    }
    // Ops that access memory or synchronize are handled by other modules.
    fn access(&mut self, _: &MemoryAccess) {}
    fn sync(&mut self, _: &SyncOp) {}
    fn whole_warp(&mut self) {}
}

/// Returns the PTX name of a special register.
fn special(which: Special) -> &'static str {
    let for_axis = |axis: Axis, names: [&'static str; 3]| names[axis.index()];
    match which {
        Special::Tid | Special::WarpId => "%tid.x",
        Special::LaneId => "%laneid",
        Special::CtaId(a) => for_axis(a, ["%ctaid.x", "%ctaid.y", "%ctaid.z"]),
        Special::GridDim(a) => for_axis(a, ["%nctaid.x", "%nctaid.y", "%nctaid.z"]),
        Special::ClusterRank => "%cluster_ctarank",
        Special::ClusterSize => "%cluster_nctarank",
        Special::ClusterCtaId(a) => for_axis(
            a,
            ["%cluster_ctaid.x", "%cluster_ctaid.y", "%cluster_ctaid.z"],
        ),
        Special::ClusterDim(a) => for_axis(
            a,
            [
                "%cluster_nctaid.x",
                "%cluster_nctaid.y",
                "%cluster_nctaid.z",
            ],
        ),
        Special::ClusterId(a) => for_axis(a, ["%clusterid.x", "%clusterid.y", "%clusterid.z"]),
        Special::GridClusters(a) => {
            for_axis(a, ["%nclusterid.x", "%nclusterid.y", "%nclusterid.z"])
        }
        Special::SmId => "%smid",
        Special::SmCount => "%nsmid",
        Special::Clock => "%clock",
        Special::GlobalTimer => "%globaltimer",
    }
}

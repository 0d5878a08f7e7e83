//! The context of a role during projection: inputs, enclosing loops and variables.

use super::{GROUP_WORDS, MAX_GROUPS};
use crate::plan::{CommStep, FuzzPlan, NumberSource};
use warpline_ir::builder::*;

/// The maximum of `small` and `other`: sums and small multiples fit into 32 bits.
const SMALL: u32 = 1 << 20;

/// The tables in shared memory.
#[derive(Clone, Copy)]
pub(super) struct SharedTables {
    pub(super) u8s: Tile<u8>,
    pub(super) u16s: Tile<u16>,
    pub(super) u32s: Tile<u32>,
    pub(super) i32s: Tile<i32>,
}

/// The parameters and tables.
#[derive(Clone, Copy)]
pub(super) struct Inputs {
    pub(super) small: Reg<u32>,
    pub(super) other: Reg<u32>,
    pub(super) wide: Reg<u32>,
    pub(super) signed: Reg<i32>,
    pub(super) long: Reg<u64>,
    pub(super) u8s: Global<u8>,
    pub(super) u16s: Global<u16>,
    pub(super) u32s: Global<u32>,
    pub(super) i32s: Global<i32>,
    pub(super) data: Global<u32>,
    pub(super) out: Global<u32>,
    pub(super) flags: Global<u32>,
    pub(super) scratch: Global<u32>,
    /// The scratch words of a step, for all CTAs of the largest launch.
    pitch: u32,
    pub(super) shared: Option<SharedTables>,
}

impl Inputs {
    /// Declares all parameters, and the shared-memory tables if the plan reads one.
    pub(super) fn declare(k: Builder, plan: &FuzzPlan) -> Self {
        let shared =
            plan.any_source(&mut |s| matches!(s, NumberSource::Table { shared: true, .. }));
        let columns = super::value::TABLE_ENTRIES;
        Self {
            small: k.param("small").at_most(SMALL),
            other: k.param("other").at_most(SMALL),
            wide: k.param("wide"),
            signed: k.param("signed"),
            long: k.param("long"),
            u8s: k.pointer("u8s"),
            u16s: k.pointer("u16s"),
            u32s: k.pointer("u32s"),
            i32s: k.pointer("i32s"),
            data: k.pointer("data"),
            out: k.pointer("out"),
            flags: k.pointer("flags"),
            scratch: k.pointer("scratch"),
            pitch: plan.scratch_pitch(),
            shared: shared.then(|| SharedTables {
                u8s: k.tile("u8s", 1, columns).unswizzled().declare(),
                u16s: k.tile("u16s", 1, columns).unswizzled().declare(),
                u32s: k.tile("u32s", 1, columns).unswizzled().declare(),
                i32s: k.tile("i32s", 1, columns).unswizzled().declare(),
            }),
        }
    }

    /// Copies the tables to shared memory, followed by a CTA barrier.
    pub(super) fn load_tables(&self, role: usize) {
        let Some(tables) = self.shared else { return };
        if role == 0 {
            let first = warp_in_role().eq(0u32);
            if_(first, || {
                let lane = lane_id();
                tables.u8s.whole().store(0u32, lane, self.u8s.load(lane));
                tables.u16s.whole().store(0u32, lane, self.u16s.load(lane));
                tables.u32s.whole().store(0u32, lane, self.u32s.load(lane));
                tables.i32s.whole().store(0u32, lane, self.i32s.load(lane));
            });
        }
        cta_sync();
    }
}

/// The context of a role.
pub(super) struct RoleEnv<'p> {
    pub(super) plan: &'p FuzzPlan,
    pub(super) inputs: Inputs,
    pub(super) role: usize,
    /// The counter of the innermost loop of the plan.
    pub(super) round: Option<Reg<u32>>,
    /// The counter of the current transfer.
    pub(super) item: Option<Reg<u32>>,
    /// A hash of all values that the role has read.
    pub(super) sum: Var<u32>,
    /// True in the lanes that a table selects.
    pub(super) selected: Reg<bool>,
    /// The variables of each step, by step number.
    pub(super) vars: Vec<Vec<Var<u32>>>,
}

impl RoleEnv<'_> {
    /// Returns the number of warps of a role.
    pub(super) fn warps(&self, role: usize) -> u32 {
        self.plan.warps[role]
    }

    /// Returns the scratch address of this warp for a group of a step.
    pub(super) fn scratch(&self, step: usize, group: u32) -> Reg<u64> {
        let warps: u32 = self.plan.warps.iter().sum();
        let groups = (cta_id() * warps + warp_id()) * MAX_GROUPS + group;
        let at = groups * GROUP_WORDS + step as u32 * self.inputs.pitch;
        self.inputs.scratch.address(at)
    }

    /// Returns the scratch memory of the first warp of a CTA for a step.
    pub(super) fn scratch_of_cta(&self, step: usize, cta: Reg<u32>) -> Global<u32> {
        let warps: u32 = self.plan.warps.iter().sum();
        let at = cta * (warps * MAX_GROUPS * GROUP_WORDS) + step as u32 * self.inputs.pitch;
        self.inputs.scratch.offset(at)
    }

    /// Adds a read value to the hash.
    pub(super) fn accumulate(&self, x: Reg<u32>) {
        self.sum.set(self.sum.get() * 3 + x);
    }
}

impl FuzzPlan {
    /// Calls `f` for every step, outer ones first.
    pub fn each_step<'a>(&'a self, f: &mut dyn FnMut(&'a CommStep)) {
        fn visit<'a>(steps: &'a [CommStep], f: &mut dyn FnMut(&'a CommStep)) {
            for step in steps {
                f(step);
                if let CommStep::Loop { body, .. } = step {
                    visit(body, f);
                }
            }
        }
        visit(&self.steps, f);
    }

    /// Returns whether a source of any count, condition or length satisfies `f`.
    pub fn any_source(&self, f: &mut dyn FnMut(NumberSource) -> bool) -> bool {
        let mut found = false;
        self.each_step(&mut |step| {
            for count in step.counts() {
                found |= f(count.source);
            }
            match step {
                CommStep::Transfer(t) => found |= t.guard.iter().any(|g| f(g.source)),
                CommStep::VariableLoad(l) => found |= f(l.source),
                _ => {}
            }
        });
        found
    }

    /// Returns the number of CTAs of the largest launch.
    pub(crate) fn max_ctas(&self) -> u32 {
        2 * self.cluster
    }

    /// Returns the scratch words of one step.
    pub(crate) fn scratch_pitch(&self) -> u32 {
        self.max_ctas() * self.warps.iter().sum::<u32>() * MAX_GROUPS * GROUP_WORDS
    }

    /// Returns whether CTAs of the plan wait for each other.
    pub fn has_flags(&self) -> bool {
        let mut found = false;
        self.each_step(&mut |s| found |= matches!(s, CommStep::FlagHandshake(_)));
        found
    }
}

impl CommStep {
    /// Returns the counts of the step, without those of inner steps.
    pub fn counts(&self) -> Vec<&crate::plan::TripCount> {
        match self {
            CommStep::Loop { count, .. } => vec![count],
            CommStep::Transfer(t) => vec![&t.count],
            CommStep::SharedWord(w) => vec![&w.count],
            CommStep::SyncFreeLoop(q) => vec![&q.count],
            CommStep::Turns(t) => vec![&t.count],
            _ => Vec::new(),
        }
    }
}

/// Returns a predicate that is true in the lanes whose table word is odd.
pub(super) fn selected_lanes(inputs: &Inputs) -> Reg<bool> {
    (inputs.u32s.load(lane_id()) & 1).ne(0u32)
}

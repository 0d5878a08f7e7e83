//! Projects a plan onto its roles and builds the kernel.

mod between_ctas;
mod between_roles;
mod env;
mod loops;
mod transfer;
mod value;
mod within_role;

pub(crate) use transfer::DATA_WORDS;
pub(crate) use value::TABLE_ENTRIES;

use crate::plan::{CommStep, FuzzPlan};
use env::{Inputs, RoleEnv};
use warpline_ir::builder::*;
use warpline_ir::{BuildErrors, Kernel, Target};

/// The output words of each warp.
pub(crate) const OUT_WORDS: u32 = 32;
/// The scratch words of one group of a warp.
pub(crate) const GROUP_WORDS: u32 = 32;
/// The maximum number of groups of a step.
pub(crate) const MAX_GROUPS: u32 = 3;

/// The tiles and barriers that a step declares.
#[derive(Clone, Default)]
pub(crate) struct StepResources {
    tile: Option<Tile<u32>>,
    bars: Vec<MbarrierArray>,
    named: Vec<warpline_ir::builder::NamedBarrierHandle>,
    flags: Option<warpline_ir::builder::Flags>,
    ring: Option<Ring<Tile<u32>>>,
    turn: Option<Turn>,
}

/// Builds the kernel of a plan.
pub fn kernel(plan: &FuzzPlan) -> Result<Kernel, BuildErrors> {
    Kernel::build("fuzzed", &Target::default(), |k| {
        k.cluster(plan.cluster, 1, 1);
        let inputs = Inputs::declare(k, plan);
        let mut resources = Vec::new();
        plan.each_step(&mut |step| {
            let name = format!("s{}", resources.len());
            resources.push(step.declare(k, &name, plan));
        });
        for (role, &warps) in plan.warps.iter().enumerate() {
            k.role(&role_name(role)).warps(warps).body(|| {
                let selected = env::selected_lanes(&inputs);
                let mut vars = Vec::new();
                plan.each_step(&mut |step| {
                    let initial = step.vars(role);
                    vars.push(initial.into_iter().map(Var::new).collect());
                });
                let mut env = RoleEnv {
                    plan,
                    inputs,
                    role,
                    round: None,
                    item: None,
                    sum: Var::new(0u32),
                    selected,
                    vars,
                };
                inputs.load_tables(role);
                let mut id = 0;
                emit_steps(&plan.steps, &mut env, &resources, &mut id);
                let warp = cta_id() * plan.warps.iter().sum::<u32>() + warp_id();
                inputs
                    .out
                    .store(warp * OUT_WORDS + lane_id(), env.sum.get());
            });
        }
    })
}

/// Returns the name of a role.
pub(crate) fn role_name(role: usize) -> String {
    format!("r{role}")
}

/// Emits steps for a role.
fn emit_steps(
    steps: &[CommStep],
    env: &mut RoleEnv<'_>,
    resources: &[StepResources],
    id: &mut usize,
) {
    for step in steps {
        let index = *id;
        *id += 1;
        if let CommStep::Loop { count, body } = step {
            let n = env.count(count);
            let outer = env.round;
            warpline_ir::builder::steps(n).each(|i| {
                env.round = Some(i);
                emit_steps(body, env, resources, id);
            });
            env.round = outer;
            continue;
        }
        step.emit(env, &resources[index], index);
    }
}

impl CommStep {
    fn declare(&self, k: Builder, name: &str, plan: &FuzzPlan) -> StepResources {
        let warps = &plan.warps;
        match self {
            CommStep::Transfer(s) => s.declare(k, name, warps),
            CommStep::SharedWord(s) => s.declare(k, name, warps),
            CommStep::SyncFreeLoop(s) => s.declare(k, name, warps),
            CommStep::BulkExport(s) => s.declare(k, name, warps),
            CommStep::RegisterTransfer(s) => s.declare(k, name, warps),
            CommStep::Gather(s) => s.declare(k, name, warps),
            CommStep::Reread(s) => s.declare(k, name, warps),
            CommStep::LaneCopies(s) => s.declare(k, name, warps),
            CommStep::RemoteStore(s) => s.declare(k, name, plan),
            CommStep::VariableLoad(s) => s.declare(k, name, warps),
            CommStep::NamedHandshake(s) => s.declare(k, name, warps),
            CommStep::Reinit(s) => s.declare(k, name, warps),
            CommStep::Turns(s) => s.declare(k, name),
            CommStep::FlagHandshake(s) => s.declare(k, name),
            CommStep::Loop { .. }
            | CommStep::CtaBarrier
            | CommStep::StridedLoop(_)
            | CommStep::Locks(_) => StepResources::default(),
        }
    }

    /// Returns the initial values of the variables of a role.
    fn vars(&self, role: usize) -> Vec<u32> {
        match self {
            CommStep::Transfer(s) => s.vars(role),
            CommStep::SharedWord(s) => s.vars(role),
            CommStep::SyncFreeLoop(s) => s.vars(role),
            CommStep::RegisterTransfer(_) => vec![0],
            CommStep::Reread(s) => s.vars(role),
            CommStep::VariableLoad(s) => s.vars(role),
            CommStep::RemoteStore(s) if s.role == role => vec![0],
            _ => Vec::new(),
        }
    }

    fn emit(&self, env: &mut RoleEnv<'_>, resources: &StepResources, id: usize) {
        match self {
            CommStep::Transfer(s) => s.emit(env, resources, id),
            CommStep::SharedWord(s) => s.emit(env, resources, id),
            CommStep::SyncFreeLoop(s) => s.emit(env, resources, id),
            CommStep::BulkExport(s) => s.emit(env, resources, id),
            CommStep::RegisterTransfer(s) => s.emit(env, resources, id),
            CommStep::Gather(s) => s.emit(env, resources),
            CommStep::Reread(s) => s.emit(env, resources, id),
            CommStep::LaneCopies(s) => s.emit(env, resources),
            CommStep::RemoteStore(s) => s.emit(env, resources, id),
            CommStep::VariableLoad(s) => s.emit(env, resources, id),
            CommStep::NamedHandshake(s) => s.emit(env, resources),
            CommStep::Reinit(s) => s.emit(env, resources),
            CommStep::Turns(s) => s.emit(env, resources),
            CommStep::FlagHandshake(s) => s.emit(env, resources, id),
            CommStep::Locks(s) => s.emit(env),
            CommStep::StridedLoop(s) => s.emit(env),
            CommStep::CtaBarrier => cta_sync(),
            CommStep::Loop { .. } => {}
        }
    }
}

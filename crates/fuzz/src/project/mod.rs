//! Projects a plan onto its roles and builds the kernel.

mod between_ctas;
mod between_roles;
mod env;
mod loops;
mod transfer;
mod value;
mod within_role;

pub(crate) use transfer::DATA;
pub(crate) use value::ENTRIES;

use crate::plan::{CommStep, FuzzPlan};
use env::{Env, Inputs};
use warpline_ir::builder::*;
use warpline_ir::{BuildErrors, Kernel, Target};

/// The output words of each warp.
pub(crate) const OUT: u32 = 32;
/// The scratch words of one group of a warp.
pub(crate) const GROUP: u32 = 32;
/// The maximum number of groups of a step.
pub(crate) const GROUPS: u32 = 3;

/// The tiles and barriers that a step declares.
#[derive(Clone, Default)]
pub(crate) struct StepResources {
    tile: Option<Tile<u32>>,
    bars: Vec<MbarrierArray>,
    named: Vec<warpline_ir::builder::NamedBarrierHandle>,
    flags: Option<warpline_ir::builder::Flags>,
    safe: Option<Ring<Tile<u32>>>,
    turn: Option<Turn>,
}

/// Builds the kernel of a plan.
pub fn kernel(plan: &FuzzPlan) -> Result<Kernel, BuildErrors> {
    Kernel::build("fuzzed", &Target::default(), |k| {
        k.cluster(plan.cluster, 1, 1);
        let inputs = Inputs::declare(k, plan);
        let mut parts = Vec::new();
        plan.each_step(&mut |step| {
            let name = format!("s{}", parts.len());
            parts.push(step.declare(k, &name, plan));
        });
        for (role, &warps) in plan.warps.iter().enumerate() {
            k.role(&name(role)).warps(warps).body(|| {
                let selected = env::selected(&inputs);
                let mut vars = Vec::new();
                plan.each_step(&mut |step| {
                    let first = step.vars(role);
                    vars.push(first.into_iter().map(Var::new).collect());
                });
                let mut env = Env {
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
                run(&plan.steps, &mut env, &parts, &mut id);
                let warp = cta_id() * plan.warps.iter().sum::<u32>() + warp_id();
                inputs.out.store(warp * OUT + lane_id(), env.sum.get());
            });
        }
    })
}

/// Returns the name of a role.
pub(crate) fn name(role: usize) -> String {
    format!("r{role}")
}

/// Emits steps for a role.
fn run(steps: &[CommStep], env: &mut Env<'_>, parts: &[StepResources], id: &mut usize) {
    for step in steps {
        let at = *id;
        *id += 1;
        if let CommStep::Loop { count, body } = step {
            let n = env.count(count);
            let outer = env.round;
            warpline_ir::builder::steps(n).each(|i| {
                env.round = Some(i);
                run(body, env, parts, id);
            });
            env.round = outer;
            continue;
        }
        step.emit(env, &parts[at], at);
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

    fn emit(&self, env: &mut Env<'_>, parts: &StepResources, id: usize) {
        match self {
            CommStep::Transfer(s) => s.emit(env, parts, id),
            CommStep::SharedWord(s) => s.emit(env, parts, id),
            CommStep::SyncFreeLoop(s) => s.emit(env, parts, id),
            CommStep::BulkExport(s) => s.emit(env, parts, id),
            CommStep::RegisterTransfer(s) => s.emit(env, parts, id),
            CommStep::Gather(s) => s.emit(env, parts),
            CommStep::Reread(s) => s.emit(env, parts, id),
            CommStep::LaneCopies(s) => s.emit(env, parts),
            CommStep::RemoteStore(s) => s.emit(env, parts, id),
            CommStep::VariableLoad(s) => s.emit(env, parts, id),
            CommStep::NamedHandshake(s) => s.emit(env, parts),
            CommStep::Reinit(s) => s.emit(env, parts),
            CommStep::Turns(s) => s.emit(env, parts),
            CommStep::FlagHandshake(s) => s.emit(env, parts, id),
            CommStep::Locks(s) => s.emit(env),
            CommStep::StridedLoop(s) => s.emit(env),
            CommStep::CtaBarrier => cta_sync(),
            CommStep::Loop { .. } => {}
        }
    }
}

//! Projects a plan onto its roles and writes the kernel.

mod across;
mod env;
mod local;
mod loops;
mod pairs;
mod transfer;
mod value;

pub(crate) use transfer::DATA;
pub(crate) use value::ENTRIES;

use crate::plan::{Plan, Step};
use env::{Env, Inputs};
use warpline_ir::builder::*;
use warpline_ir::{BuildErrors, Kernel, Target};

/// Words of the output for each warp.
pub(crate) const OUT: u32 = 32;
/// Words that a warp stores to directly in one group of a step.
pub(crate) const GROUP: u32 = 32;
/// Groups of a step.
pub(crate) const GROUPS: u32 = 3;

/// What a step declares.
#[derive(Clone, Default)]
pub(crate) struct Parts {
    tile: Option<Tile<u32>>,
    bars: Vec<MbarrierArray>,
    named: Vec<warpline_ir::builder::NamedBarrierHandle>,
    flags: Option<warpline_ir::builder::Flags>,
    safe: Option<Ring<Tile<u32>>>,
    turn: Option<Turn>,
}

/// Builds the kernel of a plan.
pub fn kernel(plan: &Plan) -> Result<Kernel, BuildErrors> {
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
                inputs.bring_tables(role);
                let mut id = 0;
                run(&plan.steps, &mut env, &parts, &mut id);
                let warp = cta_id() * plan.warps.iter().sum::<u32>() + warp_id();
                inputs.out.store(warp * OUT + lane_id(), env.sum.get());
            });
        }
    })
}

/// The name of a role.
pub(crate) fn name(role: usize) -> String {
    format!("r{role}")
}

/// Writes steps for a role.
fn run(steps: &[Step], env: &mut Env<'_>, parts: &[Parts], id: &mut usize) {
    for step in steps {
        let at = *id;
        *id += 1;
        if let Step::Loop { count, body } = step {
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

impl Step {
    fn declare(&self, k: Builder, name: &str, plan: &Plan) -> Parts {
        let warps = &plan.warps;
        match self {
            Step::Transfer(s) => s.declare(k, name, warps),
            Step::Word(s) => s.declare(k, name, warps),
            Step::Quiet(s) => s.declare(k, name, warps),
            Step::Export(s) => s.declare(k, name, warps),
            Step::Registers(s) => s.declare(k, name, warps),
            Step::Gather(s) => s.declare(k, name, warps),
            Step::Reread(s) => s.declare(k, name, warps),
            Step::LaneCopies(s) => s.declare(k, name, warps),
            Step::Remote(s) => s.declare(k, name, plan),
            Step::Length(s) => s.declare(k, name, warps),
            Step::Named(s) => s.declare(k, name, warps),
            Step::Reinit(s) => s.declare(k, name, warps),
            Step::Turns(s) => s.declare(k, name),
            Step::Flags(s) => s.declare(k, name),
            Step::Loop { .. } | Step::Meet | Step::Stride(_) | Step::Locks(_) => Parts::default(),
        }
    }

    /// First values of a role's variables.
    fn vars(&self, role: usize) -> Vec<u32> {
        match self {
            Step::Transfer(s) => s.vars(role),
            Step::Word(s) => s.vars(role),
            Step::Quiet(s) => s.vars(role),
            Step::Registers(_) => vec![0],
            Step::Reread(s) => s.vars(role),
            Step::Length(s) => s.vars(role),
            Step::Remote(s) if s.role == role => vec![0],
            _ => Vec::new(),
        }
    }

    fn emit(&self, env: &mut Env<'_>, parts: &Parts, id: usize) {
        match self {
            Step::Transfer(s) => s.emit(env, parts, id),
            Step::Word(s) => s.emit(env, parts, id),
            Step::Quiet(s) => s.emit(env, parts, id),
            Step::Export(s) => s.emit(env, parts, id),
            Step::Registers(s) => s.emit(env, parts, id),
            Step::Gather(s) => s.emit(env, parts),
            Step::Reread(s) => s.emit(env, parts, id),
            Step::LaneCopies(s) => s.emit(env, parts),
            Step::Remote(s) => s.emit(env, parts, id),
            Step::Length(s) => s.emit(env, parts, id),
            Step::Named(s) => s.emit(env, parts),
            Step::Reinit(s) => s.emit(env, parts),
            Step::Turns(s) => s.emit(env, parts),
            Step::Flags(s) => s.emit(env, parts, id),
            Step::Locks(s) => s.emit(env),
            Step::Stride(s) => s.emit(env),
            Step::Meet => cta_sync(),
            Step::Loop { .. } => {}
        }
    }
}

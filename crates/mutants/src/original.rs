//! The kernels to mutate: every schedule of the shipped families, the probes, and part of the corpus.

use crate::sites::KernelSites;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;
use warpline_check::Facts;
use warpline_ir::{BuildErrors, Completion, Kernel, MemoryAccess, Target};
use warpline_kernels::shipped::candidates;
use warpline_kernels::{AnyWorkload, DeviceKind, FamilyError, LaunchStep, registry};

/// A kernel to mutate.
#[derive(Clone, Debug)]
pub struct OriginalKernel {
    /// Family or probe, and config: the name in the list of equivalent mutants.
    pub name: String,
    /// The kernel without a mutation.
    pub kernel: Kernel,
    /// Whether the kernel gets only the kinds of mutation that no shipped kernel has.
    pub is_fallback: bool,
}

/// A step of the plan of a workload.
pub(crate) struct PlanStep {
    /// Family or probe, and config.
    pub(crate) name: String,
    pub(crate) workload: Arc<dyn AnyWorkload>,
    /// The index of the step in its plan.
    index: usize,
    pub(crate) step: LaunchStep,
    pub(crate) workspace: u64,
}

impl PlanStep {
    fn into_original(self) -> OriginalKernel {
        OriginalKernel {
            name: self.name,
            kernel: self.step.into_kernel(),
            is_fallback: false,
        }
    }
}

/// Returns one kernel for each synchronization protocol of each family and probe. Families contribute
/// their candidates and their test cases.
pub fn shipped(target: &Target) -> Result<Vec<OriginalKernel>, FamilyError> {
    let mut all = PlanSteps::default();
    for family in registry() {
        let mut workloads = candidates(family, DeviceKind::Gpu, target)?;
        workloads.extend(largest_first(family.cases(target))?);
        all.add(family.name(), workloads, target)?;
    }
    all.add_probes(target)?;
    Ok(all.list.into_iter().map(PlanStep::into_original).collect())
}

/// Returns one step for each synchronization protocol, from small problems, with its workload. All are
/// first steps of their plans: later steps need the results of earlier ones.
pub(crate) fn small_steps(target: &Target) -> Result<Vec<PlanStep>, FamilyError> {
    let mut all = PlanSteps::default();
    for family in registry() {
        all.add(family.name(), largest_first(family.cases(target))?, target)?;
    }
    all.add_probes(target)?;
    all.list.retain(|plan_step| plan_step.index == 0);
    Ok(all.list)
}

/// Returns the repaired kernels of the corpus as fallbacks.
pub fn repaired() -> Result<Vec<OriginalKernel>, BuildErrors> {
    let original = |bug: &warpline_corpus::Bug| {
        let case = bug.repaired()?;
        Ok(OriginalKernel {
            name: format!("corpus {}", bug.name),
            kernel: case.kernel,
            is_fallback: true,
        })
    };
    warpline_corpus::all().iter().map(original).collect()
}

/// Sorts the workloads by bytes, largest first.
fn largest_first(
    workloads: Vec<Result<Box<dyn AnyWorkload>, FamilyError>>,
) -> Result<Vec<Box<dyn AnyWorkload>>, FamilyError> {
    let mut workloads = workloads.into_iter().collect::<Result<Vec<_>, _>>()?;
    workloads.sort_by(|a, b| b.cost().bytes.total_cmp(&a.cost().bytes));
    Ok(workloads)
}

/// Steps with distinct protocols.
#[derive(Default)]
struct PlanSteps {
    list: Vec<PlanStep>,
    /// The family or probe, and the protocol, of each step.
    seen: HashSet<(String, String)>,
}

impl PlanSteps {
    /// Adds every step with a new protocol.
    fn add(
        &mut self,
        owner: &str,
        workloads: Vec<Box<dyn AnyWorkload>>,
        target: &Target,
    ) -> Result<(), FamilyError> {
        for workload in workloads {
            let plan = workload.plan(target)?;
            let workload: Arc<dyn AnyWorkload> = workload.into();
            for (index, step) in plan.steps.into_iter().enumerate() {
                let protocol = protocol(&step.kernel);
                if !protocol.is_empty() && self.seen.insert((owner.to_owned(), protocol)) {
                    self.list.push(PlanStep {
                        name: format!("{owner}: {}", config_text(workload.as_ref())),
                        workload: workload.clone(),
                        index,
                        step,
                        workspace: plan.workspace,
                    });
                }
            }
        }
        Ok(())
    }

    fn add_probes(&mut self, target: &Target) -> Result<(), FamilyError> {
        for probe in warpline_probes::all() {
            let workloads = largest_first(probe.cases.into_iter().map(Ok).collect())?;
            self.add(&format!("probe {}", probe.name), workloads, target)?;
        }
        Ok(())
    }
}

/// Returns the config as text, or the problem if the config is empty.
fn config_text(workload: &dyn AnyWorkload) -> String {
    let fields = |value: serde_json::Value| match value {
        serde_json::Value::Object(fields) => fields,
        _ => serde_json::Map::new(),
    };
    let config = fields(workload.config());
    let shown = if config.is_empty() {
        fields(workload.problem())
    } else {
        config
    };
    let words = shown.iter().map(|(name, value)| match value {
        serde_json::Value::String(s) => format!("{name} {s}"),
        other => format!("{name} {other}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Lists the synchronizing and asynchronous ops of all roles, each with its role and nesting depth but
/// without operands. Kernels that differ only in sizes, types and stages have the same protocol.
fn protocol(kernel: &Kernel) -> String {
    let mut text = match kernel.cluster_size() {
        1 => String::new(),
        _ => "cluster\n".to_owned(),
    };
    let mut previous = String::new();
    for (site, op) in KernelSites::new(kernel).ops() {
        let facts = Facts::of(op);
        let is_async = |t: &MemoryAccess| t.completion != Completion::Now;
        if facts.syncs.is_empty() && !facts.touches.iter().any(is_async) {
            continue;
        }
        let role = site.role.map_or(String::new(), |r| r.to_string());
        let line = format!("{role} {} {}", site.enclosing.len(), op.info().name);
        if line != previous {
            let _ = writeln!(text, "{line}");
        }
        previous = line;
    }
    text
}

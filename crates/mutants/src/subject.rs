//! The kernels that are broken: every schedule of the shipped families, the probes, and some of the corpus.

use crate::case::Case;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;
use warpline_check::Facts;
use warpline_ir::{BuildErrors, Completion, Kernel, Target, MemoryAccess};
use warpline_kernels::shipped::candidates;
use warpline_kernels::{AnyWorkload, FamilyError, DeviceKind, LaunchStep, registry};

/// A kernel to break.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Family or probe, and config: its name in the list of survivors.
    pub name: String,
    /// The kernel as it is.
    pub kernel: Kernel,
    /// Is it there only for kinds of mutation that nothing that ships has a place for?
    pub spare: bool,
}

/// A step of a work's plan.
pub(crate) struct Part {
    /// Family or probe, and config.
    pub(crate) name: String,
    pub(crate) work: Arc<dyn AnyWorkload>,
    /// Which step.
    index: usize,
    pub(crate) step: LaunchStep,
    pub(crate) workspace: u64,
}

impl Part {
    fn subject(self) -> Subject {
        Subject {
            name: self.name,
            kernel: self.step.into_kernel(),
            spare: false,
        }
    }
}

/// A kernel for each protocol of each family, in its candidates and its table, and of each probe.
pub fn shipped(target: &Target) -> Result<Vec<Subject>, FamilyError> {
    let mut all = Parts::default();
    for family in registry() {
        let mut works = candidates(family, DeviceKind::Gpu, target)?;
        works.extend(table(family.cases(target))?);
        all.add(family.name(), works, target)?;
    }
    all.add_probes(target)?;
    Ok(all.list.into_iter().map(Part::subject).collect())
}

/// The same for small problems alone, with what it takes to run them: the
/// first steps of plans, as later ones need what those leave.
pub(crate) fn small(target: &Target) -> Result<Vec<Part>, FamilyError> {
    let mut all = Parts::default();
    for family in registry() {
        all.add(family.name(), table(family.cases(target))?, target)?;
    }
    all.add_probes(target)?;
    all.list.retain(|part| part.index == 0);
    Ok(all.list)
}

/// The repaired kernels of the corpus, to spare.
pub fn repaired() -> Result<Vec<Subject>, BuildErrors> {
    let subject = |bug: &warpline_corpus::Bug| {
        let case = bug.repaired()?;
        Ok(Subject {
            name: format!("corpus {}", bug.name),
            kernel: case.kernel,
            spare: true,
        })
    };
    warpline_corpus::all().iter().map(subject).collect()
}

/// The works of a table, those with the most work first.
fn table(
    works: Vec<Result<Box<dyn AnyWorkload>, FamilyError>>,
) -> Result<Vec<Box<dyn AnyWorkload>>, FamilyError> {
    let mut works = works.into_iter().collect::<Result<Vec<_>, _>>()?;
    works.sort_by(|a, b| b.cost().bytes.total_cmp(&a.cost().bytes));
    Ok(works)
}

/// Steps whose protocols differ.
#[derive(Default)]
struct Parts {
    list: Vec<Part>,
    /// Whose, and what.
    known: HashSet<(String, String)>,
}

impl Parts {
    /// Adds each step that is the first of its protocol.
    fn add(
        &mut self,
        of: &str,
        works: Vec<Box<dyn AnyWorkload>>,
        target: &Target,
    ) -> Result<(), FamilyError> {
        for work in works {
            let plan = work.plan(target)?;
            let work: Arc<dyn AnyWorkload> = work.into();
            for (index, step) in plan.steps.into_iter().enumerate() {
                let protocol = protocol(&step.kernel);
                if !protocol.is_empty() && self.known.insert((of.to_owned(), protocol)) {
                    self.list.push(Part {
                        name: format!("{of}: {}", settings(work.as_ref())),
                        work: work.clone(),
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
            let works = table(probe.cases.into_iter().map(Ok).collect())?;
            self.add(&format!("probe {}", probe.name), works, target)?;
        }
        Ok(())
    }
}

/// The config in words, or the problem where there is no config.
fn settings(work: &dyn AnyWorkload) -> String {
    let fields = |value: serde_json::Value| match value {
        serde_json::Value::Object(fields) => fields,
        _ => serde_json::Map::new(),
    };
    let config = fields(work.config());
    let shown = if config.is_empty() {
        fields(work.problem())
    } else {
        config
    };
    let words = shown.iter().map(|(name, value)| match value {
        serde_json::Value::String(s) => format!("{name} {s}"),
        other => format!("{name} {other}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// What roles do to meet each other, without numbers: kernels that differ only
/// in sizes, types and stages have the same.
fn protocol(kernel: &Kernel) -> String {
    let mut text = match kernel.cluster_size() {
        1 => String::new(),
        _ => "cluster\n".to_owned(),
    };
    let mut last = String::new();
    for (spot, op) in Case::new(kernel).ops() {
        let facts = Facts::of(op);
        let apart = |t: &MemoryAccess| t.completion != Completion::Now;
        if facts.syncs.is_empty() && !facts.touches.iter().any(apart) {
            continue;
        }
        let role = spot.role.map_or(String::new(), |r| r.to_string());
        let line = format!("{role} {} {}", spot.around.len(), op.info().name);
        if line != last {
            let _ = writeln!(text, "{line}");
        }
        last = line;
    }
    text
}

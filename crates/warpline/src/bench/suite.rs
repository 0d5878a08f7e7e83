//! Benchmark groups, by suite or by family.
//!
//! Each family declares its benchmark problems
//! ([`Family::bench`](crate::kernels::Family::bench)); no suite names a family.

use crate::error::Error;
use warpline_ir::Target;
use warpline_kernels::{AnyFamily, AnyWorkload};

/// The suite that contains all others, except surveys.
pub const ALL: &str = "all";
/// The suite of memory-bound workloads.
pub const MEMORY: &str = "memory";
/// The suite of GEMM probes.
pub const GEMM_PROBES: &str = "gemm-probes";
/// The suite of the ladder: one GEMM in steps, each a change of the previous one.
pub const LADDER: &str = "ladder";

/// Work that is measured together: one problem, one or more configs.
///
/// All use the same inputs. The first is timed twice per round, to estimate the noise.
pub struct BenchGroup {
    workloads: Vec<Box<dyn AnyWorkload>>,
    steps: bool,
}

impl BenchGroup {
    /// Returns a group of workloads with the same problem, the heuristic's config first; `None` if
    /// there are none.
    pub fn new(works: Vec<Box<dyn AnyWorkload>>) -> Option<Self> {
        let steps = false;
        (!works.is_empty()).then_some(Self {
            workloads: works,
            steps,
        })
    }

    /// Groups consecutive workloads of one family that have the same cost and output tensors.
    pub fn group(works: impl IntoIterator<Item = Box<dyn AnyWorkload>>) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for work in works {
            match groups.last_mut().map(|group| &mut group.workloads) {
                Some(same) if is_same_problem(same[0].as_ref(), work.as_ref()) => same.push(work),
                _ => groups.extend(Self::new(vec![work])),
            }
        }
        groups
    }

    /// Makes each workload a step that changes the previous one. The report keeps the order and states
    /// the speedup of each step.
    pub fn as_steps(mut self) -> Self {
        self.steps = true;
        self
    }

    /// Returns whether each workload is a change of the previous one.
    pub fn has_steps(&self) -> bool {
        self.steps
    }

    /// Keeps the first workload of each schedule.
    pub fn one_per_schedule(mut self) -> Self {
        let mut seen = Vec::new();
        self.workloads.retain(|work| {
            let schedule = work.config().get("schedule").cloned();
            let new = !seen.contains(&schedule);
            seen.push(schedule);
            new
        });
        self
    }

    /// Keeps the first `max` workloads, but at least one.
    pub fn truncate(mut self, max: usize) -> Self {
        self.workloads.truncate(max.max(1));
        self
    }

    /// Returns the name of the family.
    pub fn family(&self) -> &'static str {
        self.workloads[0].family()
    }

    /// Returns the workloads.
    pub fn workloads(&self) -> &[Box<dyn AnyWorkload>] {
        &self.workloads
    }
}

fn is_same_problem(a: &dyn AnyWorkload, b: &dyn AnyWorkload) -> bool {
    (a.family(), a.cost(), a.outputs()) == (b.family(), b.cost(), b.outputs())
}

/// Returns the names of the suites, [`ALL`] last.
///
/// ```
/// let names = warpline::bench::suite::names(&warpline::kernels::registry());
/// assert!(names.contains(&"memory"));
/// assert_eq!(names.last(), Some(&"all"));
/// ```
pub fn names(families: &[&dyn AnyFamily]) -> Vec<&'static str> {
    let mut names: Vec<_> = families.iter().flat_map(|f| f.suites()).collect();
    names.extend([LADDER, GEMM_PROBES]);
    names.sort_unstable();
    names.dedup();
    names.extend(surveys(families));
    names.push(ALL);
    names
}

/// Returns the names of the surveys: suites of many shapes, which [`ALL`] does not contain.
pub fn surveys(families: &[&dyn AnyFamily]) -> Vec<&'static str> {
    families.iter().flat_map(|f| f.surveys()).collect()
}

/// Returns a one-line description of a suite.
pub fn about(name: &str) -> String {
    match name {
        MEMORY => "Memory-bound workloads, compared with a device copy".into(),
        GEMM_PROBES => "GEMM probes, compared with a large GEMM".into(),
        LADDER => "One GEMM in steps, each compared with the previous one".into(),
        ALL => "All suites; the default".into(),
        other => format!("Problems of the suite {other}"),
    }
}

/// Returns the groups of a suite: the problems that families declare for it, and its `probes`.
pub fn groups(
    suite: &str,
    families: &[&dyn AnyFamily],
    probes: impl Fn(&str) -> Vec<Box<dyn AnyWorkload>>,
    target: &Target,
) -> Result<Vec<BenchGroup>, Error> {
    let mut groups = Vec::new();
    let surveys = surveys(families);
    for name in names(families) {
        let is_selected = name == suite || (suite == ALL && !surveys.contains(&name));
        if name == ALL || !is_selected {
            continue;
        }
        for family in families {
            groups.extend(BenchGroup::group(family.bench(name, target)?));
        }
        let probes = BenchGroup::group(probes(name)).into_iter();
        match name {
            LADDER => groups.extend(probes.map(BenchGroup::as_steps)),
            _ => groups.extend(probes),
        }
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_kernels::Workload;
    use warpline_kernels::vector_add::{Choice, FloatType, Problem, Schedule, VectorAdd};

    fn work(n: u64, schedule: Schedule, stages: u32) -> Box<dyn AnyWorkload> {
        let dtype = FloatType::F32;
        let choice = Choice {
            schedule: Some(schedule),
            stages: Some(stages),
            ..Choice::default()
        };
        let problem = Problem { n, dtype };
        Box::new(Workload::<VectorAdd>::new(problem, &choice, &Target::SM_90A).unwrap())
    }

    fn sizes(groups: &[BenchGroup]) -> Vec<usize> {
        groups.iter().map(|group| group.workloads().len()).collect()
    }

    #[test]
    fn workloads_of_the_same_problem_form_a_group() {
        let specialized = |n, stages| work(n, Schedule::Specialized, stages);
        let works = vec![
            specialized(5000, 2),
            specialized(5000, 3),
            specialized(6000, 3),
            specialized(5000, 2),
        ];
        assert_eq!(sizes(&BenchGroup::group(works)), [2, 1, 1]);
        assert!(BenchGroup::new(vec![]).is_none());
    }

    #[test]
    fn one_per_schedule_keeps_the_first_of_each() {
        let works = vec![
            work(5000, Schedule::Specialized, 2),
            work(5000, Schedule::Specialized, 3),
            work(5000, Schedule::DoubleBuffer, 2),
        ];
        let schedules = BenchGroup::new(works).unwrap().one_per_schedule();
        let configs: Vec<_> = schedules.workloads().iter().map(|w| w.config()).collect();
        assert_eq!(configs.len(), 2);
        assert_eq!(configs[0]["stages"], 2);
        assert_eq!(configs[1]["schedule"], "double-buffer");
        assert_eq!(schedules.truncate(0).workloads().len(), 1);
    }

    #[test]
    fn a_suite_contains_family_problems_and_its_probes() {
        let families: [&dyn AnyFamily; 1] = [&VectorAdd];
        let probes = |suite: &str| match suite {
            GEMM_PROBES => vec![work(7000, Schedule::Specialized, 2)],
            LADDER => vec![
                work(8000, Schedule::Specialized, 2),
                work(8000, Schedule::Specialized, 3),
            ],
            _ => vec![],
        };
        let suite_groups = |suite| groups(suite, &families, probes, &Target::SM_90A).unwrap();
        let [memory, gemm, ladder, all] =
            ["memory", "gemm-probes", "ladder", "all"].map(suite_groups);
        assert_eq!(sizes(&memory), [1]);
        assert_eq!(memory[0].workloads()[0].problem()["n"], 1 << 28);
        assert_eq!(gemm[0].workloads()[0].problem()["n"], 7000);
        assert!(ladder[0].has_steps() && !gemm[0].has_steps());
        assert_eq!(sizes(&all), [1, 2, 1]);
        assert!(suite_groups("nothing").is_empty());
        assert!(about("nothing").ends_with("nothing"));
    }
}

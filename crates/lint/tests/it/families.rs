//! The findings for the default workloads of all families, and the workload that a lint runs.

use std::sync::LazyLock;
use warpline_kernels::vector_add::{Choice, FloatType, Problem, Schedule, VectorAdd};
use warpline_kernels::{AnyFamily, AnyWorkload, DeviceKind, Workload, registry};
use warpline_lint::checks::{self, ALL, COALESCING, SPILLS};
use warpline_lint::{LintFinding, LintStatus, Options, lint};
use warpline_testkit::kernel::TARGET;

fn linted(work: &dyn AnyWorkload, options: &Options<'_>) -> Vec<LintFinding> {
    lint(work, options).unwrap_or_else(|e| panic!("{}: {e}", work.family()))
}

/// The findings for the default workload of every family, by name.
static DEFAULTS: LazyLock<Vec<(&str, Vec<LintFinding>)>> = LazyLock::new(|| {
    let default = |family: &'static dyn AnyFamily| {
        let work = family.default_workload(DeviceKind::Cpu, &TARGET);
        let work = work.unwrap_or_else(|e| panic!("{}: {e}", family.name()));
        (family.name(), linted(work.as_ref(), &Options::default()))
    };
    registry().into_iter().map(default).collect()
});

#[test]
fn every_check_has_a_result_for_every_family() {
    for (family, found) in DEFAULTS.iter() {
        let mut checks_with_result: Vec<&str> = found.iter().map(|f| f.check).collect();
        checks_with_result.dedup();
        // Every check has a result for each kernel of the plan.
        for kernel in checks_with_result.chunks(ALL.len()) {
            assert_eq!(kernel, ALL, "{family}");
        }
        let spills = found.iter().find(|f| f.check == SPILLS).unwrap();
        assert_eq!(spills.status, LintStatus::Skipped, "{spills}");
    }
}

/// Accepted warnings: the family, a part of the text, and the reason.
const KNOWN: [(&str, &str, &str); 4] = [
    (
        "nvfp4-dual-gemm",
        "bank-conflicts: warps.rs",
        "accumulators pass between roles once per tile; words of plain scales are 32 bytes apart",
    ),
    (
        "nvfp4-dual-gemm",
        "idle-roles: warps.rs",
        "one thread loads; its role is a whole warpgroup, so that the next role starts at a warpgroup",
    ),
    (
        "nvfp4-linear",
        "bank-conflicts: warps.rs",
        "as in nvfp4-dual-gemm",
    ),
    (
        "nvfp4-linear",
        "idle-roles: warps.rs",
        "as in nvfp4-dual-gemm",
    ),
];

#[test]
fn default_workloads_have_only_accepted_warnings() {
    let counted = [
        checks::BANK_CONFLICTS,
        checks::COALESCING,
        checks::DIVERGENCE,
        checks::IDLE_ROLES,
        checks::UNUSED_STAGES,
    ];
    for (family, found) in DEFAULTS.iter() {
        for f in found {
            let warned = f.status == LintStatus::Warn && counted.contains(&f.check);
            let known = KNOWN
                .iter()
                .any(|(of, text, _)| of == family && f.to_string().contains(text));
            assert!(!warned || known, "{family}: {f}");
        }
    }
}

/// Returns a workload with the config of a test case of the family, and `n` elements.
fn work(n: u64) -> Workload<VectorAdd> {
    let problem = Problem {
        n,
        dtype: FloatType::Bf16,
    };
    let choice = Choice {
        schedule: Some(Schedule::Specialized),
        stages: Some(3),
        tile: Some(2048),
        warps: Some(1),
        ctas: Some(3),
    };
    Workload::new(problem, &choice, &TARGET).unwrap()
}

#[test]
fn a_large_problem_is_linted_with_a_smaller_one_of_the_same_program() {
    let large = work(1 << 28);
    let mut options = Options::default();
    // The estimated duration of the problem, and of one of its periods, is longer.
    options.seconds = 0.1;
    let without_family = linted(&large, &options);
    let not_run = without_family
        .iter()
        .find(|f| f.check == COALESCING)
        .unwrap();
    assert_eq!(not_run.status, LintStatus::Skipped);
    assert!(not_run.text.contains("no smaller problem"), "{not_run}");

    options.family = Some(&VectorAdd);
    let found = linted(&large, &options);
    let run = found.iter().find(|f| f.check == COALESCING).unwrap();
    assert_eq!(run.status, LintStatus::Pass, "{run}");
}

//! The checklist of what ships, and which run it is made from.

use warpline_ir::Target;
use warpline_kernels::vector_add::{Choice, Float, Form, Problem, VectorAdd};
use warpline_kernels::{AnyWork, Place, Work, registry};
use warpline_lint::checks::{self, ALL, COALESCING, SPILLS};
use warpline_lint::{Finding, Options, Verdict, lint};

fn linted(work: &dyn AnyWork, options: &Options<'_>) -> Vec<Finding> {
    lint(work, options).unwrap_or_else(|e| panic!("{}: {e}", work.family()))
}

#[test]
fn every_check_has_an_answer_for_every_family() {
    for family in registry() {
        let work = family.default_work(Place::Cpu, &Target::SM_90A).unwrap();
        let found = linted(work.as_ref(), &Options::default());
        let mut answered: Vec<&str> = found.iter().map(|f| f.check).collect();
        answered.dedup();
        assert_eq!(answered, ALL, "{}", family.name());
        let spills = found.iter().find(|f| f.check == SPILLS).unwrap();
        assert_eq!(spills.verdict, Verdict::NotLooked, "{spills}");
    }
}

#[test]
fn what_ships_wastes_nothing_in_its_default_run() {
    let counted = [
        checks::BANK_CONFLICTS,
        checks::COALESCING,
        checks::DIVERGENCE,
        checks::IDLE_ROLES,
        checks::UNUSED_STAGES,
    ];
    for family in registry() {
        let work = family.default_work(Place::Cpu, &Target::SM_90A).unwrap();
        for f in linted(work.as_ref(), &Options::default()) {
            let warned = f.verdict == Verdict::Warn && counted.contains(&f.check);
            assert!(!warned, "{}: {f}", family.name());
        }
    }
}

/// The config of the family's table, at an extent of our own.
fn work(n: u64) -> Work<VectorAdd> {
    let problem = Problem {
        n,
        dtype: Float::Bf16,
    };
    let choice = Choice {
        form: Some(Form::Specialized),
        stages: Some(3),
        tile: Some(2048),
        warps: Some(1),
        ctas: Some(3),
    };
    Work::new(problem, &choice, &Target::SM_90A).unwrap()
}

#[test]
fn a_large_problem_is_seen_through_a_small_one_of_the_same_program() {
    let large = work(1 << 28);
    let mut options = Options::default();
    // Less than the problem that it repeats would take.
    options.seconds = 0.1;
    let alone = linted(&large, &options);
    let not_run = alone.iter().find(|f| f.check == COALESCING).unwrap();
    assert_eq!(not_run.verdict, Verdict::NotLooked);
    assert!(not_run.text.contains("no smaller problem"), "{not_run}");

    options.family = Some(&VectorAdd);
    let found = linted(&large, &options);
    let run = found.iter().find(|f| f.check == COALESCING).unwrap();
    assert_eq!(run.verdict, Verdict::Pass, "{run}");
}

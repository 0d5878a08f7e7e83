//! Every family's test table: checked, printed, and assembled by ptxas. It is
//! run by the crate `warpline`, on the simulator and on a GPU.

use std::collections::{HashMap, HashSet};
use warpline_ir::Target;
use warpline_kernels::{Place, Step, registry};
use warpline_ptx::ptxas::Ptxas;

const TARGET: Target = Target::SM_90A;

/// Is all of it asked for (`cargo xtask test --full`)?
fn full() -> bool {
    std::env::var_os("WARPLINE_FULL").is_some()
}

#[test]
fn one_module_serves_every_extent() {
    for family in registry() {
        let mut modules: HashMap<String, String> = HashMap::new();
        for work in family.cases(&TARGET).into_iter().flatten() {
            // The same class and config, apart from the grid: the same program.
            let class = work.tunable().expect("a family's").class();
            let mut config = work.config();
            if let Some(c) = config.as_object_mut() {
                c.remove("ctas");
            }
            let key = format!("{class} {config}");
            for (i, step) in work.plan(&TARGET).expect("legal").steps.iter().enumerate() {
                let (hash, key) = (step.kernel.text_hash(), format!("step {i} of {key}"));
                let known = modules.entry(key.clone()).or_insert_with(|| hash.clone());
                assert_eq!(*known, hash, "{key}");
            }
        }
    }
}

#[test]
fn every_case_and_what_is_measured_is_accepted_by_the_checker_and_ptxas() {
    let ptxas = Ptxas::find().unwrap_or_else(|e| panic!("{e}"));
    let (mut seen, mut kernels) = (HashSet::new(), Vec::new());
    for family in registry() {
        let measured = family
            .suites()
            .into_iter()
            .flat_map(|suite| family.bench(suite, &TARGET).expect("legal"));
        let cases = family.cases(&TARGET);
        // Of a long table every fourth case, without all of it.
        let step = if full() || cases.len() < 60 { 1 } else { 4 };
        let cases = cases.into_iter().step_by(step).flatten();
        for work in cases.chain(measured) {
            let at = format!("{} {} {}", work.family(), work.problem(), work.config());
            for step in work.plan(&TARGET).expect("legal").steps {
                if seen.insert(step.kernel.text_hash()) {
                    kernels.push((at.clone(), step));
                }
            }
        }
    }
    // Half of the time is ptxas', a process of its own: two at once.
    let half = kernels.len() / 2;
    let rest = kernels.split_off(half);
    std::thread::scope(|scope| {
        for part in [kernels, rest] {
            let ptxas = &ptxas;
            scope.spawn(move || part.into_iter().for_each(|k| accepted(k, ptxas)));
        }
    });
}

fn accepted((at, step): (String, Step), ptxas: &Ptxas) {
    let checked =
        warpline_check::check(step.into_kernel(), &TARGET).unwrap_or_else(|e| panic!("{at}: {e}"));
    let ptx = warpline_ptx::print(&checked, &TARGET).unwrap_or_else(|e| panic!("{at}: {e}"));
    let out = ptxas
        .assemble(&ptx.text, TARGET.name)
        .unwrap_or_else(|e| panic!("{at}: {e}\n{}", ptx.text));
    let errors: Vec<_> = out.report.errors().collect();
    assert!(errors.is_empty(), "{at}: {errors:?}");
    for e in &out.report.entries {
        assert_eq!(e.spill_store_bytes + e.spill_load_bytes, 0, "{at}: {e:?}");
    }
}

#[test]
fn every_candidate_is_accepted_by_the_checker() {
    for family in registry() {
        for place in [Place::Cpu, Place::Gpu] {
            let command = family.flags(clap::Command::new("none"), place);
            let none = command.get_matches_from(["none"]);
            let all = family.candidates(&none, place, &TARGET).expect("legal");
            // Without all of it, every fifth.
            let step = if full() { 1 } else { 5 };
            for work in all.into_iter().step_by(step) {
                let at = format!("{} {} {}", work.family(), work.problem(), work.config());
                for step in work.plan(&TARGET).expect("legal").steps {
                    let checked = warpline_check::check(step.into_kernel(), &TARGET);
                    checked.unwrap_or_else(|e| panic!("{at}: {e}"));
                }
            }
        }
    }
}

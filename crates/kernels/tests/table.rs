//! Every family's test table: checked, run on the CPU under every timing
//! against the float64 reference, printed, and assembled by ptxas.

use std::collections::{HashMap, HashSet};
use warpline_cpu::{Memory, Options, Timing};
use warpline_ir::Target;
use warpline_kernels::numbers::value;
use warpline_kernels::{AnyWork, Bound, registry};

const TARGET: Target = Target::SM_90A;

/// Runs a piece of work on the CPU and compares every output with the reference.
fn run(work: &dyn AnyWork, options: &Options) -> Result<(), String> {
    let plan = work.plan(&TARGET).map_err(|e| e.to_string())?;
    let inputs = work.inputs(options.seed ^ 17);
    let mut memory = Memory::new();
    let bound = Bound {
        inputs: inputs
            .iter()
            .map(|t| memory.alloc_from(&t.data, t.spec.name))
            .collect(),
        outputs: work
            .outputs()
            .iter()
            .map(|t| memory.alloc(t.bytes(), t.name))
            .collect(),
        workspace: memory.alloc_from(&vec![0; plan.workspace as usize], "workspace"),
    };
    for step in &plan.steps {
        warpline_cpu::run(&step.kernel, &step.launch(&bound), &memory, options)
            .map_err(|e| e.to_string())?;
    }
    let reference = work.reference(&inputs);
    for ((spec, &at), want) in work.outputs().iter().zip(&bound.outputs).zip(&reference) {
        let bytes = memory.read(at, spec.bytes()).map_err(|e| e.text)?;
        let got = bytes
            .chunks_exact(spec.dtype.bytes())
            .map(|b| value(spec.dtype, b));
        for (i, (got, &(want, bound))) in got.zip(want).enumerate() {
            let err = (got - want).abs();
            if err.is_nan() || err > bound {
                return Err(format!("{}[{i}] is {got}, not {want} ± {bound}", spec.name));
            }
        }
    }
    Ok(())
}

#[test]
fn every_case_matches_the_reference_on_the_cpu() {
    let full = std::env::var_os("WARPLINE_FULL").is_some();
    let seeds = if full { 50 } else { 3 };
    for family in registry() {
        for work in family.cases(&TARGET) {
            let work = work.expect("a case of the table is legal");
            let at = format!("{} {} {}", work.family(), work.problem(), work.config());
            let mut runs = vec![(Timing::Eager, 0), (Timing::Late, 0)];
            runs.extend((0..seeds).map(|s| (Timing::Random, s)));
            for (timing, seed) in runs {
                let options = Options {
                    timing,
                    seed,
                    threads: 1,
                    ..Options::default()
                };
                if let Err(e) = run(&*work, &options) {
                    panic!("{at}\nunder {timing}, seed {seed}: {e}");
                }
            }
        }
    }
}

#[test]
fn one_module_serves_every_extent() {
    for family in registry() {
        let mut modules: HashMap<String, String> = HashMap::new();
        for work in family.cases(&TARGET).into_iter().flatten() {
            // The same class and config, apart from the grid: the same program.
            let class = work.problem().get("dtype").map(ToString::to_string);
            let mut config = work.config();
            if let Some(c) = config.as_object_mut() {
                c.remove("ctas");
            }
            let key = format!("{class:?} {config}");
            for step in work.plan(&TARGET).expect("legal").steps {
                let hash = step.kernel.hash();
                let known = modules.entry(key.clone()).or_insert_with(|| hash.clone());
                assert_eq!(*known, hash, "{key}");
            }
        }
    }
}

#[test]
fn every_case_is_accepted_by_the_checker_and_ptxas() {
    let ptxas = warpline_ptx::ptxas::Ptxas::find().unwrap_or_else(|e| panic!("{e}"));
    let mut seen = HashSet::new();
    for family in registry() {
        for work in family.cases(&TARGET).into_iter().flatten() {
            let at = format!("{} {} {}", work.family(), work.problem(), work.config());
            for step in work.plan(&TARGET).expect("legal").steps {
                if !seen.insert(step.kernel.hash()) {
                    continue;
                }
                let checked = warpline_check::check(step.kernel, &TARGET)
                    .unwrap_or_else(|e| panic!("{at}: {e}"));
                let ptx =
                    warpline_ptx::print(&checked, &TARGET).unwrap_or_else(|e| panic!("{at}: {e}"));
                let out = ptxas
                    .assemble(&ptx.text, TARGET.name)
                    .unwrap_or_else(|e| panic!("{at}: {e}\n{}", ptx.text));
                let errors: Vec<_> = out.report.errors().collect();
                assert!(errors.is_empty(), "{at}: {errors:?}");
                for e in &out.report.entries {
                    assert_eq!(e.spill_store_bytes + e.spill_load_bytes, 0, "{at}: {e:?}");
                }
            }
        }
    }
}

//! Every kind of mutation occurs, and the checker refutes a mutant of every kind.

use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;
use warpline_check::rules::global_memory;
use warpline_check::{Verdict, examine};
use warpline_ir::Kernel;
use warpline_mutants::{
    EquivalentMutants, KINDS, Mutation, OriginalKernel, deadlocks, find_deadlock, mutations,
    repaired, shipped,
};
use warpline_testkit::full::few_or;
use warpline_testkit::kernel::TARGET;
use warpline_testkit::sample::sample;

/// The shipped kernels, then the fallbacks.
static ORIGINALS: LazyLock<Vec<OriginalKernel>> = LazyLock::new(|| {
    let mut all = shipped(&TARGET).expect("kernels");
    all.extend(repaired().expect("kernels"));
    all
});

/// Returns the first mutant of each kind that is not listed as equivalent.
fn mutant_of_each_kind() -> BTreeMap<&'static str, (&'static OriginalKernel, Mutation)> {
    let equivalent = EquivalentMutants::committed().expect("a list");
    let mut mutants = BTreeMap::new();
    for original in ORIGINALS.iter() {
        if mutants.len() == KINDS.len() {
            break;
        }
        for m in mutations(&original.kernel) {
            if equivalent.reason(&original.name, &m.id()).is_none() {
                mutants.entry(m.kind.name).or_insert((original, m));
            }
        }
    }
    mutants
}

#[test]
fn a_mutant_of_each_kind_is_killed() {
    let mutants = mutant_of_each_kind();
    let missing: Vec<_> = (KINDS.iter())
        .filter(|k| !mutants.contains_key(k.name))
        .collect();
    assert!(missing.is_empty(), "no kernel allows {missing:?}");
    let mut unrefuted = Vec::new();
    for (original, mutation) in mutants.values() {
        let verdict = examine(&mutation.apply(&original.kernel), &TARGET).verdict();
        if verdict != Verdict::Refuted {
            unrefuted.push(format!(
                "{}: {}, {}",
                verdict.name(),
                original.name,
                mutation.id()
            ));
        }
    }
    assert!(unrefuted.is_empty(), "{unrefuted:#?}");
}

/// Returns the number of diagnostics about global memory.
fn global_memory_diagnostics(kernel: &Kernel) -> usize {
    global_memory(kernel, &TARGET).len()
}

#[test]
fn every_weakened_access_between_ctas_is_refuted() {
    const OPS: [&str; 4] = ["atomic.", "reduce.", "strong_load", "strong_store"];
    let weakened =
        |m: &&Mutation| m.kind.name.starts_with("weaken") && OPS.iter().any(|w| m.text.contains(w));
    let mut tried = 0;
    for original in ORIGINALS.iter() {
        let name = &original.name;
        assert_eq!(global_memory_diagnostics(&original.kernel), 0, "{name}");
        // Skip kernels without such an access.
        let text = original.kernel.to_string();
        if !OPS.iter().any(|word| text.contains(word)) {
            continue;
        }
        for m in mutations(&original.kernel).iter().filter(weakened) {
            tried += 1;
            let weak = m.apply(&original.kernel);
            assert_ne!(global_memory_diagnostics(&weak), 0, "{name}: {}", m.id());
        }
    }
    assert!(tried > 20, "{tried}");
}

#[test]
fn every_mutation_changes_its_kernel_and_has_a_unique_name() {
    let originals = ORIGINALS.iter().step_by(few_or(4, 1));
    let all = originals.map(|s| (s, mutations(&s.kernel)));
    // The sample contains every kind of mutation.
    let kinds = |(_, all): &(&OriginalKernel, Vec<Mutation>)| {
        let pair = |m: &Mutation| (m.kind.name.to_owned(), String::new());
        all.iter().map(pair).collect()
    };
    let seconds = |(_, all): &(&OriginalKernel, Vec<Mutation>)| 1.0 + all.len() as f64;
    let sampled = sample(all.collect(), kinds, seconds);
    for (original, mutations) in sampled {
        let unchanged = original.kernel.text_hash();
        let mut ids = HashSet::new();
        for m in mutations {
            let (name, id) = (&original.name, m.id());
            assert_ne!(
                m.apply(&original.kernel).text_hash(),
                unchanged,
                "{name}: {id}"
            );
            assert!(ids.insert(id.clone()), "{name}: {id} twice");
        }
    }
}

#[test]
fn the_same_kernel_has_the_same_mutations() {
    let [one, two] = [(); 2].map(|()| {
        let corpus = repaired().expect("kernels");
        let ids = |s: &OriginalKernel| mutations(&s.kernel).iter().map(Mutation::id).collect();
        corpus.iter().map(ids).collect::<Vec<Vec<String>>>()
    });
    assert_eq!(one, two);
}

#[test]
fn every_equivalent_mutant_is_listed_once_with_a_reason() {
    let equivalent = EquivalentMutants::committed().expect("a list").0;
    let names: HashSet<_> = equivalent.iter().map(|s| (&s.kernel, &s.mutant)).collect();
    assert_eq!(names.len(), equivalent.len());
    for s in &equivalent {
        assert!(s.reason.len() > 20, "{} needs a reason", s.mutant);
    }
}

#[test]
fn checker_and_executor_agree_on_deadlocks() {
    let found = deadlocks(2, &TARGET).expect("kernels");
    assert_eq!(found.len(), 2);
    assert_ne!(found[0].name, found[1].name);
    let again = find_deadlock(&found[1].name, &TARGET).expect("kernels");
    assert_eq!(again.expect("the same").diagnostic, found[1].diagnostic);
}

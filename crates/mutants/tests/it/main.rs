//! Each kind of mutation has a place, breaks what it is done to, and is seen by the checker.

use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;
use warpline_check::rules::global_memory;
use warpline_check::{Verdict, examine};
use warpline_ir::Kernel;
use warpline_mutants::{
    KINDS, Mutation, Subject, Survivors, deadlock, deadlocks, mutations, repaired, shipped,
};
use warpline_testkit::kernel::TARGET;
use warpline_testkit::sample::sample;

/// What ships first, then what is to spare.
static SUBJECTS: LazyLock<Vec<Subject>> = LazyLock::new(|| {
    let mut all = shipped(&TARGET).expect("kernels");
    all.extend(repaired().expect("kernels"));
    all
});

/// The first mutant of each kind, none that may survive.
fn covering() -> BTreeMap<&'static str, (&'static Subject, Mutation)> {
    let survivors = Survivors::committed().expect("a list");
    let mut covering = BTreeMap::new();
    for subject in SUBJECTS.iter() {
        if covering.len() == KINDS.len() {
            break;
        }
        for m in mutations(&subject.kernel) {
            if survivors.why(&subject.name, &m.id()).is_none() {
                covering.entry(m.kind.name).or_insert((subject, m));
            }
        }
    }
    covering
}

#[test]
fn a_mutant_of_each_kind_is_killed() {
    let covering = covering();
    let missing: Vec<_> = (KINDS.iter())
        .filter(|k| !covering.contains_key(k.name))
        .collect();
    assert!(missing.is_empty(), "nothing has a place for {missing:?}");
    let mut alive = Vec::new();
    for (subject, mutation) in covering.values() {
        let outcome = examine(&mutation.of(&subject.kernel), &TARGET).verdict();
        if outcome != Verdict::Refuted {
            alive.push(format!(
                "{}: {}, {}",
                outcome.name(),
                subject.name,
                mutation.id()
            ));
        }
    }
    assert!(alive.is_empty(), "{alive:#?}");
}

/// How often a kernel breaks a rule of global memory.
fn between_ctas(kernel: &Kernel) -> usize {
    global_memory(kernel, &TARGET).len()
}

#[test]
fn every_weakened_word_between_ctas_is_refused() {
    const WORDS: [&str; 4] = ["atomic.", "reduce.", "strong_load", "strong_store"];
    let weakened = |m: &&Mutation| {
        m.kind.name.starts_with("weaken") && WORDS.iter().any(|w| m.text.contains(w))
    };
    let mut tried = 0;
    for subject in SUBJECTS.iter() {
        let name = &subject.name;
        assert_eq!(between_ctas(&subject.kernel), 0, "{name}");
        // What has no such word has none to weaken.
        let text = subject.kernel.to_string();
        if !WORDS.iter().any(|word| text.contains(word)) {
            continue;
        }
        for m in mutations(&subject.kernel).iter().filter(weakened) {
            tried += 1;
            let weak = m.of(&subject.kernel);
            assert_ne!(between_ctas(&weak), 0, "{name}: {}", m.id());
        }
    }
    assert!(tried > 20, "{tried}");
}

#[test]
fn every_mutation_changes_its_kernel_and_has_a_name_of_its_own() {
    let all = SUBJECTS.iter().map(|s| (s, mutations(&s.kernel)));
    // Every kind of mutation in some kernel.
    let kinds = |(_, all): &(&Subject, Vec<Mutation>)| {
        let pair = |m: &Mutation| (m.kind.name.to_owned(), String::new());
        all.iter().map(pair).collect()
    };
    let seconds = |(_, all): &(&Subject, Vec<Mutation>)| 1.0 + all.len() as f64;
    let sampled = sample(all.collect(), kinds, seconds);
    for (subject, mutations) in sampled {
        let own = subject.kernel.text_hash();
        let mut ids = HashSet::new();
        for m in mutations {
            let (name, id) = (&subject.name, m.id());
            assert_ne!(m.of(&subject.kernel).text_hash(), own, "{name}: {id}");
            assert!(ids.insert(id.clone()), "{name}: {id} twice");
        }
    }
}

#[test]
fn the_same_kernel_has_the_same_mutations() {
    let [one, two] = [(); 2].map(|()| {
        let corpus = repaired().expect("kernels");
        let ids = |s: &Subject| mutations(&s.kernel).iter().map(Mutation::id).collect();
        corpus.iter().map(ids).collect::<Vec<Vec<String>>>()
    });
    assert_eq!(one, two);
}

#[test]
fn who_may_survive_is_told_once_and_with_a_reason() {
    let survivors = Survivors::committed().expect("a list").0;
    let names: HashSet<_> = survivors.iter().map(|s| (&s.subject, &s.mutant)).collect();
    assert_eq!(names.len(), survivors.len());
    for s in &survivors {
        assert!(s.why.len() > 20, "{} needs a reason", s.mutant);
    }
}

#[test]
fn deadlocks_stop_checker_and_executor() {
    let found = deadlocks(2, &TARGET).expect("kernels");
    assert_eq!(found.len(), 2);
    assert_ne!(found[0].name, found[1].name);
    let again = deadlock(&found[1].name, &TARGET).expect("kernels");
    assert_eq!(again.expect("the same").diagnostic, found[1].diagnostic);
}

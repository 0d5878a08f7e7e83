//! PTX with one thing wrong is refused, with a sentence that says which.

mod edit;
mod everywhere;
mod printed;
mod table;

use edit::Edit;
use printed::Printed;
use std::collections::HashMap;
use table::TABLE;
use warpline_translation::verify;

/// One thing that a printer could get wrong.
struct Mutation {
    /// The kernel.
    of: &'static str,
    /// What the line holds, of which the first that does is meant.
    line: &'static str,
    /// What becomes of it.
    edit: Edit,
    /// What is said about it.
    says: &'static str,
}

#[test]
fn each_mutation_is_refused_by_its_own_sentence() {
    let mut kernels: HashMap<&str, Printed> = HashMap::new();
    let mut missed = Vec::new();
    for m in TABLE {
        let printed = kernels.entry(m.of).or_insert_with(|| Printed::of(m.of));
        let what = format!("{} `{}` {:?}", m.of, m.line, m.edit);
        let (text, at) = m.edit.apply(&printed.text, m.line).expect(&what);
        let Err(refused) = verify(&printed.kernel, &text) else {
            missed.push(format!("{what}: passed"));
            continue;
        };
        let first = refused.list[0].to_string();
        if !first.contains(m.says) {
            missed.push(format!("{what}:\n  said   {first}\n  wanted {}", m.says));
        }
        // The line that is told is the one that was changed, the use of what it
        // works out, or the head of the entry that it was lost from.
        let line = refused.list[0].line.as_ref();
        if let Some(line) = line.filter(|l| l.number.abs_diff(at) > 10) {
            missed.push(format!("{what}: told of line {}, not {at}", line.number));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    assert!(TABLE.len() >= 25);
}

#[test]
fn a_sentence_names_both_lines() {
    let printed = Printed::of("vector-add");
    let (text, at) = Edit::Put(", 1;", ", 2;")
        .apply(&printed.text, "mbarrier.init")
        .expect("an init");
    let refused = verify(&printed.kernel, &text).unwrap_err();
    assert_eq!(refused.list.len(), 1);
    let shown = refused.list[0].to_string();
    let line = format!(", PTX line {at}: `mbarrier.init.shared::cta.b64 [%smem+");
    assert!(shown.starts_with("vector_add.rs:"), "{shown}");
    assert!(shown.contains(&line), "{shown}");
    let says = "the init of an mbarrier: arrivals of a phase is 1 in the program and 2 in the PTX";
    assert!(shown.ends_with(says), "{shown}");
}

//! Mutated PTX is rejected with a message that names the change.

mod edit;
mod everywhere;
mod printed;
mod table;

use edit::Edit;
use printed::Printed;
use std::collections::HashMap;
use table::TABLE;
use warpline_translation::verify;

/// One mutation of the PTX of a kernel.
struct Mutation {
    /// The kernel.
    kernel: &'static str,
    /// A text; the first line that contains it is edited.
    line: &'static str,
    /// The edit.
    edit: Edit,
    /// The expected message.
    expected: &'static str,
}

#[test]
fn each_mutation_is_rejected_with_its_message() {
    let mut kernels: HashMap<&str, Printed> = HashMap::new();
    let mut missed = Vec::new();
    for m in TABLE {
        let printed = kernels
            .entry(m.kernel)
            .or_insert_with(|| Printed::new(m.kernel));
        let mutation = format!("{} `{}` {:?}", m.kernel, m.line, m.edit);
        let (text, at) = m.edit.apply(&printed.text, m.line).expect(&mutation);
        let Err(mismatches) = verify(&printed.kernel, &text) else {
            missed.push(format!("{mutation}: passed"));
            continue;
        };
        let first = mismatches.list[0].to_string();
        if !first.contains(m.expected) {
            missed.push(format!(
                "{mutation}:\n  got      {first}\n  expected {}",
                m.expected
            ));
        }
        // The reported line is the edited one, a use of its result, or the entry.
        let line = mismatches.list[0].line.as_ref();
        if let Some(line) = line.filter(|l| l.number.abs_diff(at) > 10) {
            missed.push(format!(
                "{mutation}: reported line {}, not {at}",
                line.number
            ));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    assert!(TABLE.len() >= 25);
}

#[test]
fn a_message_names_both_lines() {
    let printed = Printed::new("vector-add");
    let (text, at) = Edit::Replace(", 1;", ", 2;")
        .apply(&printed.text, "mbarrier.init")
        .expect("an init");
    let mismatches = verify(&printed.kernel, &text).unwrap_err();
    assert_eq!(mismatches.list.len(), 1);
    let shown = mismatches.list[0].to_string();
    let line = format!(", PTX line {at}: `mbarrier.init.shared::cta.b64 [%smem+");
    assert!(shown.starts_with("vector_add.rs:"), "{shown}");
    assert!(shown.contains(&line), "{shown}");
    let expected = "mbarrier.init: arrival count is 1 in the program but 2 in the PTX";
    assert!(shown.ends_with(expected), "{shown}");
}

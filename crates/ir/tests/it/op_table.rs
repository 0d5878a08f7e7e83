//! `docs/ops.md` is generated from the op table.
//!
//! After adding an op: `WARPLINE_BLESS=1 cargo test -p warpline-ir --test it op_table`.

use std::collections::HashSet;
use std::fmt::Write;
use warpline_ir::ops::{STATEMENT_INSTRUCTIONS, TABLE};

fn table() -> String {
    let mut s = String::from(
        "# Ops\n\nAll instructions that a kernel can use, by group. Generated from the code: each op is one struct in\n`crates/ir/src/ops/<group>.rs` that declares its PTX, CPU semantics, effects and legality. Braces list alternatives and\noptional parts. The last column is the accuracy of the CPU executor relative to the hardware.\n",
    );
    let mut group = "";
    for (g, info) in TABLE.iter().chain(STATEMENT_INSTRUCTIONS) {
        if *g != group {
            group = g;
            let _ = write!(
                s,
                "\n## {g}\n\n| op | PTX | description | CPU accuracy |\n|---|---|---|---|\n"
            );
        }
        let cell = |s: &str| s.replace('|', "\\|");
        let _ = writeln!(
            s,
            "| `{}` | `{}` | {} | {} |",
            info.name,
            cell(info.ptx),
            cell(info.doc),
            cell(&info.exactness.to_string())
        );
    }
    s
}

#[test]
fn docs_ops_md_matches_the_op_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ops.md");
    let want = table();
    if std::env::var_os("WARPLINE_BLESS").is_some() {
        std::fs::write(path, &want).expect("docs/ops.md can be written");
    }
    let have = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        have == want,
        "docs/ops.md does not match the op table\nhelp: run this test with WARPLINE_BLESS=1"
    );
}

#[test]
fn op_names_are_unique() {
    let mut seen = HashSet::new();
    for (_, info) in TABLE {
        assert!(seen.insert(info.name), "two ops are named {}", info.name);
        assert!(!info.doc.is_empty() && !info.ptx.is_empty());
    }
}

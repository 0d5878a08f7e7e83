//! `docs/ops.md` is the op table as the code has it.
//!
//! After adding an op: `WARPLINE_BLESS=1 cargo test -p warpline-ir --test it op_table`.

use std::collections::HashSet;
use std::fmt::Write;
use warpline_ir::ops::{IMPLIED, TABLE};

fn table() -> String {
    let mut s = String::from(
        "# Ops\n\nEvery instruction a kernel can use, by group. Made from the code: each op is one struct in\n`crates/ir/src/ops/<group>.rs`, with its PTX, its meaning on the CPU, what it touches and where it is legal.\n",
    );
    let mut group = "";
    for (g, info) in TABLE.iter().chain(IMPLIED) {
        if *g != group {
            group = g;
            let _ = write!(
                s,
                "\n## {g}\n\n| op | PTX | what it does | CPU |\n|---|---|---|---|\n"
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
fn the_documented_table_is_the_codes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ops.md");
    let want = table();
    if std::env::var_os("WARPLINE_BLESS").is_some() {
        std::fs::write(path, &want).expect("docs/ops.md can be written");
    }
    let have = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        have == want,
        "docs/ops.md is not the op table: run this test with WARPLINE_BLESS=1"
    );
}

#[test]
fn names_are_unique() {
    let mut seen = HashSet::new();
    for (_, info) in TABLE {
        assert!(seen.insert(info.name), "two ops are named {}", info.name);
        assert!(!info.doc.is_empty() && !info.ptx.is_empty());
    }
}

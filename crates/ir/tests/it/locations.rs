//! Every statement records the author's line, through helpers, closures and function pointers.

use warpline_ir::builder::*;
use warpline_ir::{Frame, Kernel, StmtKind, Target};

/// Returns the author's frame of every op whose name starts with `name`.
fn frames(kernel: &Kernel, name: &str) -> Vec<Frame> {
    let mut found = Vec::new();
    kernel.each_stmt(&mut |_, s| {
        if let StmtKind::Op(op) = &s.kind
            && op.name().starts_with(name)
        {
            found.extend(kernel.locs.author(s.loc));
        }
    });
    found
}

fn build(body: impl FnOnce()) -> Kernel {
    Kernel::build("k", &Target::SM_90A, |k| {
        k.role("math").warpgroups(1).body(body)
    })
    .expect("a valid kernel")
}

#[test]
fn operator_records_its_line() {
    let mut line = 0;
    let k = build(|| {
        let x = thread_id();
        line = line!() + 1;
        let _ = x * 3;
    });
    let f = frames(&k, "mul");
    assert_eq!(f.len(), 1);
    assert_eq!(f[0].line, line);
    assert!(f[0].file.ends_with("locations.rs"));
}

#[test]
fn library_function_records_the_calling_line() {
    let mut line = 0;
    let k = build(|| {
        let x = 1.0f32.reg();
        line = line!() + 1;
        let _ = silu(x);
    });
    for op in ["ex2", "rcp", "add", "mul"] {
        let f = frames(&k, op);
        assert!(
            !f.is_empty() && f.iter().all(|f| f.line == line),
            "{op}: {f:?}"
        );
    }
}

#[test]
fn function_passed_by_name_records_the_line_of_map() {
    let mut line = 0;
    let k = build(|| {
        let acc = Acc::new(64, 8).into_frag();
        line = line!() + 1;
        let _ = acc.map(silu);
    });
    let f = frames(&k, "ex2");
    assert_eq!(f.len(), 4);
    assert!(
        f.iter()
            .all(|f| f.line == line && f.file.ends_with("locations.rs")),
        "{f:?}"
    );
}

/// An author's helper without `#[track_caller]`: its own line is the innermost frame.
fn plus_one(x: Reg<u32>) -> Reg<u32> {
    x + 1
}

#[test]
fn stack_contains_the_authors_helper_and_its_callers() {
    let mut line = 0;
    let k = build(|| {
        let f: fn(Reg<u32>) -> Reg<u32> = plus_one;
        line = line!() + 1;
        steps(3).each(|i| {
            f(i);
        });
    });
    let mut stacks = Vec::new();
    k.each_stmt(&mut |_, s| {
        if let StmtKind::Op(op) = &s.kind
            && op.name() == "add.u32"
        {
            stacks.push(k.locs.stack(s.loc).to_vec());
        }
    });
    assert_eq!(stacks.len(), 1);
    let lines: Vec<_> = stacks[0]
        .iter()
        .filter(|f| !f.is_internal())
        .map(|f| f.line)
        .collect();
    assert!(lines.contains(&line), "the loop is in the stack: {lines:?}");
    assert!(
        lines[0] < line,
        "the helper's own line comes first: {lines:?}"
    );
}

#[test]
fn ring_ops_record_the_authors_lines() {
    let (mut acquire, mut wait) = (0, 0);
    let k = Kernel::build("k", &Target::SM_90A, |k| {
        let ring = k.ring("tiles", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| {
            elect(|| {
                acquire = line!() + 1;
                let slot = ring.acquire();
                slot.commit();
            });
        });
        k.role("math").body(|| {
            wait = line!() + 1;
            let slot = ring.wait();
            slot.release();
        });
    })
    .expect("a valid kernel");
    let lines: Vec<_> = frames(&k, "mbarrier_wait").iter().map(|f| f.line).collect();
    assert_eq!(lines, [acquire, wait]);
}

#[test]
fn text_hash_is_independent_of_lines() {
    let one = build(|| {
        let _ = thread_id() + 1;
    });
    let two = build(|| {
        let _ = thread_id() + 1;
    });
    let other = build(|| {
        let _ = thread_id() + 2;
    });
    assert_eq!(one.text_hash(), two.text_hash());
    assert_ne!(one.text_hash(), other.text_hash());
}

//! What the builder refuses, and the lines it names.

use warpline_ir::build::*;
use warpline_ir::{BuildErrors, Kernel};

/// The one error of a kernel: its code, its text, its line and the other line.
#[track_caller]
fn refused(body: impl FnOnce(Builder)) -> (&'static str, String, u32, Option<u32>) {
    let errors: BuildErrors = Kernel::build("k", body).expect_err("must be refused");
    assert_eq!(errors.errors.len(), 1, "one error, not: {errors}");
    let e = &errors.errors[0];
    let at = e.at.expect("an error has a line");
    assert!(
        at.file.ends_with("build_errors.rs"),
        "{at:?} is not the author's file"
    );
    (
        e.code,
        e.text.clone(),
        at.line,
        e.other.map(|(f, _)| f.line),
    )
}

#[test]
fn a_slot_that_is_never_committed() {
    let mut line = 0;
    let (code, text, at, _) = refused(|k| {
        let ring = k.ring("tiles", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| {
            elect(|| {
                line = line!() + 1;
                let _slot = ring.acquire();
            });
        });
        k.role("math").body(|| ring.wait().release());
    });
    assert_eq!((code, at), ("slot-left", line));
    assert!(
        text.contains("ring tiles") && text.contains("never committed"),
        "{text}"
    );
}

#[test]
fn a_slot_that_is_never_released() {
    let mut line = 0;
    let (code, text, at, _) = refused(|k| {
        let ring = k.ring("tiles", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| elect(|| ring.acquire().commit()));
        k.role("math").body(|| {
            line = line!() + 1;
            let _ = ring.wait();
        });
    });
    assert_eq!((code, at), ("slot-left", line));
    assert!(text.contains("never released"), "{text}");
}

#[test]
fn a_register_used_in_another_role_names_both_lines() {
    let (mut made, mut used, mut leaked) = (0, 0, None);
    let (code, text, at, other) = refused(|k| {
        k.role("one").body(|| {
            made = line!() + 1;
            leaked = Some(thread_id());
        });
        k.role("two").body(|| {
            let x = leaked.expect("role one ran");
            used = line!() + 1;
            let _ = x + 1;
        });
    });
    assert_eq!(
        (code, at, other),
        ("register-of-another-role", used, Some(made))
    );
    assert!(text.contains("role one") && text.contains("two"), "{text}");
}

#[test]
fn a_register_used_after_its_block() {
    let mut leaked = None;
    let (code, ..) = refused(|k| {
        k.role("all").body(|| {
            steps(4).each(|i| leaked = Some(i + 1));
            let _ = leaked.expect("the loop was written") + 1;
        });
    });
    assert_eq!(code, "register-out-of-scope");
}

#[test]
fn a_register_of_another_kernel() {
    let mut leaked = None;
    Kernel::build("first", |k| {
        k.role("all").body(|| leaked = Some(thread_id()));
    })
    .expect("a fine kernel");
    let (code, ..) = refused(|k| {
        k.role("all").body(|| {
            let _ = leaked.expect("kernel one was built") + 1;
        });
    });
    assert_eq!(code, "register-of-another-kernel");
}

#[test]
fn a_ring_without_a_consumer() {
    let mut line = 0;
    let (code, text, at, _) = refused(|k| {
        line = line!() + 1;
        let ring = k.ring("tiles", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| elect(|| ring.acquire().commit()));
    });
    assert_eq!((code, at), ("ring-end", line));
    assert!(text.contains("no consumer"), "{text}");
}

#[test]
fn two_consumers_without_a_discipline() {
    let (code, text, ..) = refused(|k| {
        let ring = k.ring("tiles", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| elect(|| ring.acquire().commit()));
        k.role("one").body(|| ring.wait().release());
        k.role("two").body(|| ring.wait().release());
    });
    assert_eq!(code, "ring-discipline");
    assert!(text.contains("shared() or dealt()"), "{text}");
}

#[test]
fn a_bulk_copy_by_a_whole_role() {
    let (code, ..) = refused(|k| {
        let x = k.pointer::<f32>("x");
        let ring = k.ring("tiles", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| {
            let slot = ring.acquire();
            slot.load_bytes(slot.tiles(), x.address(0), 128);
            slot.commit();
        });
        k.role("math").body(|| ring.wait().release());
    });
    assert_eq!(code, "copy-by-many");
}

#[test]
fn a_view_that_cuts_a_swizzle_atom() {
    let (code, ..) = refused(|k| {
        let t = k.tile::<f32>("t", 16, 32).declare();
        k.role("all").body(|| {
            let _ = t.whole().slice(4..8, 0..32);
        });
    });
    assert_eq!(code, "view-atoms");
}

#[test]
fn declarations_that_cannot_be() {
    let code = |body: fn(Builder)| refused(body).0;
    assert_eq!(
        code(|k| {
            k.param::<u32>("n");
            k.param::<u32>("n");
            k.role("all").body(|| {});
        }),
        "parameter-name"
    );
    assert_eq!(
        code(|k| {
            k.param::<u32>("2n");
            k.role("all").body(|| {});
        }),
        "parameter-name"
    );
    assert_eq!(
        code(|k| {
            k.role("all").body(|| {});
            k.role("all").body(|| {});
        }),
        "role-name"
    );
    assert_eq!(
        code(|k| {
            k.role("all").warps(0).body(|| {});
        }),
        "role-warps"
    );
    assert_eq!(
        code(|k| {
            k.tile::<f32>("t", 0, 4).declare();
            k.role("all").body(|| {});
        }),
        "tile-shape"
    );
    assert_eq!(
        code(|k| {
            k.role("all").body(|| elect(|| elect(|| {})));
        }),
        "elect-inside-elect"
    );
    assert_eq!(
        code(|k| {
            k.cluster(0, 1, 1);
            k.role("all").body(|| {});
        }),
        "cluster-size"
    );
}

#[test]
fn all_errors_are_returned_at_once() {
    let errors = Kernel::build("k", |k| {
        k.param::<u32>("n");
        k.param::<u32>("n");
        k.role("all").warps(0).body(|| {});
    })
    .expect_err("two errors");
    let codes: Vec<_> = errors.errors.iter().map(|e| e.code).collect();
    assert_eq!(codes, ["parameter-name", "role-warps"]);
}

#[test]
fn a_kernel_without_roles() {
    let e = Kernel::build("k", |_| {}).expect_err("nothing to run");
    assert_eq!(e.errors[0].code, "no-role");
}

#[test]
fn a_panic_in_the_body_leaves_no_builder_behind() {
    let r = std::panic::catch_unwind(|| Kernel::build("k", |_| panic!("author's bug")));
    assert!(r.is_err());
    Kernel::build("next", |k| k.role("all").body(|| {})).expect("a fresh builder");
}

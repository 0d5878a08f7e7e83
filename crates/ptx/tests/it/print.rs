//! Printer tests on small kernels: control flow, source lines, parameters, roles, registers.

use half::bf16;
use warpline_check::Checked;
use warpline_ir::Target;
use warpline_ir::builder::*;
use warpline_ir::*;
use warpline_ptx::ptxas::Assembled;
use warpline_ptx::{Ptx, PtxError, ResourceEstimate, print};
use warpline_testkit::assemble::assembles;
use warpline_testkit::kernel::{TARGET, build};

#[track_caller]
fn checked(name: &str, body: impl FnOnce(Builder)) -> Checked {
    warpline_testkit::verdict::checked(build(name, body))
}

#[track_caller]
fn printed(name: &str, body: impl FnOnce(Builder)) -> Ptx {
    print(&checked(name, body), &TARGET).unwrap()
}

/// Returns the text without `.loc` and `.file`.
fn without_lines(ptx: &Ptx) -> String {
    let lines = ptx.text.lines().filter(|l| {
        let l = l.trim_start();
        !l.starts_with(".loc ") && !l.starts_with(".file ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Assembles a kernel. Requires that ptxas reports no advisory and no spill.
#[track_caller]
fn assembled(ptx: &Ptx) -> Assembled {
    let made = assembles(ptx).unwrap_or_else(|e| panic!("{e}"));
    let advisories = &made.report.advisories;
    assert!(advisories.is_empty(), "{}: {advisories:#?}", ptx.entry);
    made
}

/// A kernel with every kind of statement.
fn flow(k: Builder) {
    let (n, x) = (k.param::<u32>("n"), k.pointer::<f32>("x"));
    k.role("count").warps(1).body(|| {
        let sum = Var::new(0u32);
        steps(n).each(|i| {
            if_else(
                i.lt(7u32),
                || sum.set(sum.get() + i),
                || sum.set(sum.get() * 3u32),
            );
        });
        range(lane_id(), n)
            .step_by(32u32)
            .unroll(1)
            .each(|i| x.store(i, 1.0f32));
        elect(|| x.store(sum.get(), 2.0f32));
    });
    k.role("wait a while").warps(2).body(|| {
        let left = Var::new(n);
        while_(|| left.get().gt(0u32), || left.set(left.get() - 1u32));
        if_(lane_id().eq(3u32), || x.store(left.get(), 3.0f32));
    });
}

#[test]
fn statements_become_labels_and_branches() {
    let ptx = printed("flow", flow);
    insta::with_settings!({ snapshot_path => "../snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("flow", without_lines(&ptx));
    });
    assembled(&ptx);
}

#[test]
fn the_same_kernel_prints_the_same_bytes() {
    assert_eq!(printed("flow", flow).text, printed("flow", flow).text);
}

#[test]
fn source_lines_reach_the_cubin() {
    let line = line!() + 3;
    let ptx = printed("lines", |k| {
        let x = k.pointer::<f32>("x");
        k.role("all").warps(1).body(|| x.store(thread_id(), 1.0f32));
    });
    let file = ptx
        .text
        .lines()
        .find(|l| l.starts_with(".file 1 "))
        .unwrap();
    assert!(file.ends_with("ptx/tests/it/print.rs\""), "{file}");
    let stores: Vec<_> = ptx.text.split(&format!(".loc 1 {line} ")).collect();
    assert!(
        stores[1..].iter().any(|s| s.contains("st.global.b32")),
        "{}",
        ptx.text
    );
    let made = assembled(&ptx);
    let name = b"print.rs";
    assert!(made.cubin.windows(name.len()).any(|w| w == name));
}

#[test]
fn names_become_ptx_identifiers() {
    let ptx = printed("vector-add.bf16", |k| {
        let _ = (k.param::<u32>("add"), k.pointer::<bf16>("x"));
        k.role("größe 1").warps(1).body(|| {});
        k.role("größe_1").warps(1).body(|| {});
        k.role("größe.1").warps(1).body(|| {});
    });
    assert_eq!(ptx.entry, "vector_add_bf16");
    assert!(
        ptx.text
            .contains(".param .u64 .ptr .global .align 2 param_x")
    );
    // The first role needs no label.
    assert!(ptx.text.contains("$role_gr__e_1_2:") && ptx.text.contains("$role_gr__e_1_3:"));
    assembled(&ptx);
}

#[test]
fn a_kernel_named_smem_is_renamed() {
    let ptx = printed("smem", |k| {
        let bar = k.barrier("full", 1).arrivals(1);
        k.role("all")
            .warps(1)
            .body(|| elect(|| bar.at(0u32).arrive()));
    });
    assert_eq!(ptx.entry, "smem_2");
    assembled(&ptx);
}

#[test]
fn clusters_and_launch_bounds_are_declared() {
    let ptx = printed("cluster", |k| {
        k.cluster(2, 2, 1);
        k.role("a").warps(2).body(cluster_sync);
        k.role("b").warps(3).body(cluster_sync);
    });
    assert!(ptx.text.contains(
        ".maxntid 160, 1, 1\n.minnctapersm 1\n.explicitcluster\n.reqnctapercluster 2, 2, 1\n"
    ));
    assert_eq!(
        (ptx.threads, ptx.cluster, ptx.version),
        (160, [2, 2, 1], (8, 0))
    );
    assembled(&ptx);
}

#[test]
fn the_text_of_an_unproved_kernel_has_a_comment() {
    let kernel = checked("k", |k| k.role("all").warps(1).body(|| {})).into_inner();
    let ptx = print(&Checked::unproved(kernel, "a mutant\nof a kernel"), &TARGET).unwrap();
    assert!(
        ptx.text
            .starts_with("// kernel k, unproved: a mutant of a kernel\n"),
        "{}",
        ptx.text
    );
    assembled(&ptx);
}

#[test]
fn an_unproved_kernel_with_invalid_references_is_rejected() {
    let mut kernel = checked("k", |k| k.role("all").warps(1).body(|| {})).into_inner();
    let op = ops::arith::Mov {
        ty: Type::U32,
        dst: RegId(99),
        src: Operand::Imm(0),
    };
    let kind = StmtKind::Op(op.into());
    kernel.prologue.0.push(Stmt { kind, loc: Loc(0) });
    let error = print(&Checked::unproved(kernel, "a mutant"), &TARGET).unwrap_err();
    assert!(matches!(error, PtxError::InvalidReferences(_)), "{error}");
    assert_eq!(error.code(), "ptx-invalid-references");
}

#[test]
fn printing_for_another_target_is_rejected() {
    let kernel = checked("k", |k| k.role("all").warps(1).body(|| {}));
    let other = Target {
        name: "sm_100a",
        ..TARGET
    };
    let error = print(&kernel, &other).unwrap_err();
    assert_eq!(error.code(), "ptx-target");
    assert_eq!(
        error.to_string(),
        "kernel k was checked for sm_90a and cannot be printed for sm_100a"
    );
}

/// A GEMM mainloop: one producer and two consumers on a broadcast ring.
fn gemm(k: Builder) {
    let map = |rows| TensorMapDecl {
        dtype: DType::Bf16,
        tile: vec![64, rows],
        swizzle: Swizzle::B128,
        mode: TensorMapMode::Tiled,
    };
    let (tiles, k_tiles) = (k.param::<u32>("tiles"), k.param::<u32>("k_tiles"));
    let (a, b) = (k.tensor_map("a", map(256)), k.tensor_map("b", map(192)));
    let c = k.pointer::<f32>("c");
    let ab = k
        .ring("ab", 4, |s| {
            (s.tile::<bf16>(256, 64), s.tile::<bf16>(192, 64))
        })
        .broadcast();
    k.role("load").warpgroups(1).registers(24).body(|| {
        elect(|| {
            range(cta_id(), tiles).step_by(grid_ctas()).each(|tile| {
                steps(k_tiles).each(|ks| {
                    let slot = ab.acquire();
                    let (ta, tb) = slot.tiles();
                    slot.load(a, ta, [ks * 64, tile * 256]);
                    slot.load(b, tb, [ks * 64, tile * 192]);
                    slot.commit();
                });
            });
        });
    });
    for (half, role) in ["upper", "lower"].into_iter().enumerate() {
        let first = 128 * half as u32;
        k.role(role).warpgroups(1).registers(240).body(|| {
            range(cta_id(), tiles).step_by(grid_ctas()).each(|tile| {
                let acc = Acc::new(128, 192);
                steps(k_tiles).each(|_| {
                    let slot = ab.wait();
                    let (ta, tb) = slot.tiles();
                    acc.mma(&ta.slice(first..first + 128, 0..64), &tb);
                    slot.release_after(&acc);
                });
                let y = acc.into_frag();
                y.each_pair(|at, v| c.store_vec((tile * 256 + first + at.row) * 192 + at.col, v));
            });
        });
    }
}

#[test]
fn a_gemm_assembles_without_advisories_within_its_budget() {
    let ptx = printed("gemm", gemm);
    let made = assembled(&ptx);
    assert_eq!(made.report.kernel("gemm").unwrap().registers, 168);
}

#[test]
fn the_estimate_counts_live_registers() {
    let kernel = checked("gemm", gemm);
    let estimate = ResourceEstimate::of(&kernel, &TARGET);
    assert_eq!((estimate.threads, estimate.mbarriers), (384, 8));
    let roles: Vec<_> = estimate
        .roles
        .iter()
        .map(|r| (r.name.as_str(), r.budget))
        .collect();
    assert_eq!(roles, [("load", 24), ("upper", 240), ("lower", 240)]);
    // A consumer has 192 accumulators and few other registers; the producer has no accumulators.
    assert!(estimate.roles[0].registers <= 24, "{estimate}");
    assert!(
        (192..=240).contains(&estimate.roles[1].registers),
        "{estimate}"
    );
    assert!(
        estimate
            .to_string()
            .starts_with("estimate (without ptxas): 384 threads, ")
    );
}

#[test]
fn ptxas_entry_registers_match_the_target() {
    for (warpgroups, extra) in [
        (2, 0),
        (2, 1),
        (2, 3),
        (3, 0),
        (3, 2),
        (4, 0),
        (5, 1),
        (7, 0),
    ] {
        let ptx = Kernel::build("enter", &Target::SM_90A, |k| {
            k.role("less").warpgroups(1).registers(24).body(|| {});
            k.role("more")
                .warpgroups(warpgroups - 1)
                .registers(256)
                .body(|| {});
            if extra > 0 {
                k.role("rest").warps(extra).body(|| {});
            }
        });
        let kernel = Checked::unproved(ptx.unwrap(), "exceeds the register file");
        let ptx = print(&kernel, &TARGET).unwrap();
        let reported = assembled(&ptx).report.kernel("enter").unwrap().registers;
        let entry = TARGET.entry_registers(ptx.threads);
        // The registers suffice for 256 per thread, but a thread can address only 255.
        let expected = if entry == 248 { 255 } else { entry };
        assert_eq!(reported, expected, "{} threads", ptx.threads);
    }
}

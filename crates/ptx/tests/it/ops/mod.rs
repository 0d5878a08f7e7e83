//! Every op in every variant: snapshot of the text, and a ptxas run.

mod clusters;
mod engines;
mod matrices;
mod memory;
mod numbers;
mod op_kernel;
mod threads;

use op_kernel::OpKernel;
use std::collections::BTreeSet;
use warpline_ir::ops::TABLE;
use warpline_ir::{Op, StmtKind};
use warpline_ptx::ptxas::Ptxas;

/// One kernel per group of ops.
const OP_KERNELS: &[fn() -> OpKernel] = &[
    numbers::arith,
    numbers::bits,
    numbers::compare,
    numbers::convert,
    numbers::math,
    threads::warp,
    threads::special,
    threads::control,
    threads::cluster,
    memory::memory,
    memory::atomic,
    memory::policy,
    memory::copy,
    matrices::matrix,
    matrices::mma,
    engines::mbarrier,
    engines::bulk,
    engines::tensor,
    clusters::reduce,
    clusters::remote,
    clusters::fences,
    matrices::wgmma,
    matrices::wgmma_types,
    matrices::wgmma_transposed,
];

fn ops(kernel: &OpKernel) -> Vec<Op> {
    let mut all = vec![];
    kernel.raw.0.each_stmt(&mut |_, s| {
        if let StmtKind::Op(op) = &s.kind {
            all.push(op.clone());
        }
    });
    all
}

#[test]
fn every_op_is_in_an_op_kernel() {
    let shown: BTreeSet<_> = OP_KERNELS
        .iter()
        .flat_map(|kernel| ops(&kernel()))
        .map(|op| op.info().name)
        .collect();
    let all: BTreeSet<_> = TABLE.iter().map(|(_, info)| info.name).collect();
    assert_eq!(shown, all);
}

#[test]
fn every_op_kernel_matches_its_snapshot() {
    for kernel in OP_KERNELS {
        let ptx = kernel().print();
        let lines = ptx.text.lines().filter(|l| {
            let l = l.trim_start();
            !l.starts_with(".loc ") && !l.starts_with(".file ")
        });
        let text: Vec<_> = lines.collect();
        insta::with_settings!({ snapshot_path => "../../snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(ptx.entry, text.join("\n"));
        });
    }
}

#[test]
fn ptxas_assembles_every_op_kernel_without_advisories() {
    let ptxas = Ptxas::find().unwrap_or_else(|e| panic!("{e}"));
    let mut failures = vec![];
    for kernel in OP_KERNELS {
        let ptx = kernel().print();
        match ptxas.assemble(&ptx.text, ptx.target) {
            Err(e) => failures.push(format!("{}: {e}", ptx.entry)),
            Ok(made) => {
                let advisories = made.report.advisories.iter();
                failures.extend(advisories.map(|a| format!("{}: {}", ptx.entry, a.text)));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

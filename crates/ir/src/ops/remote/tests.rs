use super::*;
use crate::job::fake::{Cta, bar, shared_address};
use crate::lanes::fake::{arg, ptx};
use crate::layout::{Swizzle, TileLayout};
use crate::machine::ResolvedBarrier;
use crate::types::Scalar;

/// Returns a cluster of four with a tile of 2048 bytes at byte 512.
///
/// Lane `i` has rank `i mod 4` in register 1, tile byte `16 i` in register 2 and values in registers 3 and 4.
fn cta() -> Cta {
    let layout = TileLayout {
        element_bytes: 4,
        rows: 1,
        cols: 512,
        swizzle: Swizzle::None,
    };
    let mut cta = Cta::new(4, 0).tile(512, layout);
    let lanes = |f: fn(u32) -> u32| (0..32).map(f).collect::<Vec<_>>();
    cta.warp = cta
        .warp
        .clone()
        .with(1, &lanes(|l| l % 4))
        .with(2, &lanes(|l| 16 * l))
        .with(3, &lanes(|l| 1000 + l))
        .with(4, &lanes(|l| 2000 + l));
    cta
}

fn destination(rank: Operand) -> (SharedAddress, BarRef) {
    let peer = Some(rank);
    (
        SharedAddress {
            peer,
            ..shared_address(0, arg(2))
        },
        BarRef { peer, ..bar(5) },
    )
}

fn store(ty: Type, src: &[Operand], rank: Operand) -> StoreAsync {
    let (dst, bar) = destination(rank);
    StoreAsync {
        ty,
        src: src.to_vec(),
        dst,
        bar,
    }
}

fn reduce(op: Reduction, ty: Type) -> ReduceAsync {
    let (dst, bar) = destination(Operand::Imm(1));
    ReduceAsync {
        op,
        ty,
        src: arg(3),
        dst,
        bar,
    }
}

fn word(cta: &Cta, rank: usize, at: usize) -> u32 {
    bytemuck::pod_read_unaligned(&cta.shared[rank][512 + at..512 + at + 4])
}

#[test]
fn values_are_read_at_issue_and_written_at_completion() {
    let mut cta = cta();
    cta.run(&store(Type::U32, &[arg(3), arg(4)], arg(1)));
    let completions: Vec<_> = cta.jobs.iter().map(Job::completion).collect();
    assert_eq!(
        completions,
        [0, 1, 2, 3].map(|cta| JobCompletion::Bytes(ResolvedBarrier { cta, slot: 5 }))
    );
    cta.warp = cta.warp.clone().with(3, &[0u32; 32]);
    assert_eq!(cta.complete(), [8 * 8; 4]);
    for lane in 0..32 {
        let got = [0, 4].map(|at| word(&cta, lane % 4, 16 * lane + at));
        assert_eq!(got, [1000, 2000].map(|x| x + lane as u32), "{lane}");
    }
}

#[test]
fn inactive_lanes_store_nothing() {
    let mut cta = cta();
    let before = cta.shared.clone();
    cta.warp.active = 1 << 6;
    cta.run(&store(Type::F32, &[arg(3)], Operand::Imm(3)));
    assert_eq!(cta.complete(), [4]);
    assert_eq!(word(&cta, 3, 96), 1006);
    assert_eq!(cta.shared[..3], before[..3]);
}

#[test]
fn words_are_reduced_into_the_peer() {
    let mut cta = cta();
    let old: Vec<_> = (0..32).map(|l| word(&cta, 1, 16 * l)).collect();
    cta.run(&reduce(Reduction::Add, Type::U32));
    assert!(cta.jobs[0].is_reduction() && !cta.jobs[0].is_async_proxy());
    assert_eq!(cta.complete(), [128]);
    for (l, old) in old.iter().enumerate() {
        assert_eq!(word(&cta, 1, 16 * l), old.wrapping_add(1000 + l as u32));
    }
}

#[test]
fn lanes_of_one_instruction_may_add_to_one_word() {
    let mut cta = cta();
    cta.warp = cta.warp.clone().with(2, &[0u32; 32]).with(3, &[1u32; 32]);
    let old = word(&cta, 1, 0);
    cta.run(&reduce(Reduction::Add, Type::U32));
    cta.complete();
    assert_eq!(word(&cta, 1, 0), old.wrapping_add(32));
}

#[test]
fn faults_name_the_rule_and_the_value() {
    let mut cta = cta();
    cta.warp = cta.warp.clone().with(2, &[4u32; 32]);
    let f = cta.fault(&store(Type::U64, &[arg(3)], Operand::Imm(1)));
    assert_eq!(f.kind, FaultKind::Misaligned);
    assert!(
        f.text
            .contains("has address 0x204; it must be a multiple of 8 bytes"),
        "{}",
        f.text
    );
    let mut local_barrier = store(Type::U32, &[arg(3)], Operand::Imm(1));
    local_barrier.bar.peer = None;
    let f = cta.fault(&local_barrier);
    assert_eq!(f.kind, FaultKind::Operand);
    assert!(
        f.text
            .contains("in the CTA of rank 1 but its mbarrier in the CTA of rank 0"),
        "{}",
        f.text
    );
    let f = cta.fault(&reduce(Reduction::Add, Type::F32));
    assert_eq!(f.kind, FaultKind::Illegal);
}

#[test]
fn remote_ops_print_their_width_and_operation() {
    let one = store(Type::F32, &[Operand::imm(1.5f32)], arg(1));
    assert_eq!(
        ptx(&one),
        [
            "mov.b32 %t0, 0x3fc00000",
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [address], %t0, [barrier]"
        ]
    );
    assert_eq!(
        ptx(&store(Type::U64, &[arg(3), arg(4)], arg(1))),
        [
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [address], {%3, %4}, [barrier]"
        ]
    );
    let red = |op, ty| ptx(&reduce(op, ty)).join("; ");
    let expected = |operation: &str| {
        format!(
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{operation} [address], %3, [barrier]"
        )
    };
    assert_eq!(red(Reduction::Add, Type::I64), expected("add.u64"));
    assert_eq!(red(Reduction::Min, Type::I32), expected("min.s32"));
    assert_eq!(red(Reduction::Or, Type::U32), expected("or.b32"));
}

#[test]
fn unsupported_widths_types_and_targets_are_rejected() {
    let mut t = Target::SM_90A;
    let vector_store = |ty, n| store(ty, &vec![arg(3); n], arg(1)).legal(&Target::SM_90A);
    assert_eq!(vector_store(Type::U32, 4), Ok(()));
    assert_eq!(vector_store(f32::TYPE, 2), Ok(()));
    assert!(
        vector_store(Type::U64, 4)
            .unwrap_err()
            .contains("4 registers of u64")
    );
    assert!(
        vector_store(Type::U32, 3)
            .unwrap_err()
            .contains("3 registers of u32")
    );
    assert!(
        vector_store(Type::F16, 1)
            .unwrap_err()
            .contains("does not support f16")
    );
    let red = |op, ty| reduce(op, ty).legal(&Target::SM_90A);
    assert_eq!(red(Reduction::Add, Type::U64), Ok(()));
    assert!(red(Reduction::Min, Type::U64).is_err());
    assert!(
        red(Reduction::Add, Type::F32)
            .unwrap_err()
            .contains("does not support f32")
    );
    t.features.clusters = false;
    let one_register = store(Type::U32, &[arg(3)], arg(1));
    assert!(
        one_register
            .legal(&t)
            .unwrap_err()
            .contains("does not support thread block clusters")
    );
}

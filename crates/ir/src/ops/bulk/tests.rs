use super::*;
use crate::job::fake::{Cta, GLOBAL, Rng, bar, shared_address};
use crate::job::{Job, JobCompletion};
use crate::lanes::fake::{arg, ptx};
use crate::layout::{Swizzle, TileLayout};
use crate::ops::Instr;
use crate::sync::SyncOp;
use crate::types::DType;
use crate::value::{BarRef, SharedAddress};

/// A tile of 2048 bytes at byte 512, in a cluster of four; global memory is random.
fn cta() -> Cta {
    let layout = TileLayout {
        element_bytes: 4,
        rows: 1,
        cols: 512,
        swizzle: Swizzle::None,
    };
    let mut cta = Cta::new(4, 4096).tile(512, layout);
    cta.global = Rng(2).bytes(4096);
    cta.warp.active = 1;
    cta
}

fn load(byte: u64, src: u64, bytes: u64) -> BulkLoad {
    BulkLoad {
        dst: shared_address(0, Operand::Imm(byte)),
        src: Operand::Imm(GLOBAL + src),
        bytes: Operand::Imm(bytes),
        bar: bar(3),
        multicast: None,
        hint: None,
    }
}

fn store(byte: u64, dst: u64, bytes: u64) -> BulkStore {
    BulkStore {
        src: shared_address(0, Operand::Imm(byte)),
        dst: Operand::Imm(GLOBAL + dst),
        bytes: Operand::Imm(bytes),
        reduce: None,
        hint: None,
    }
}

/// A copy from the tile of this CTA to the tile of a peer.
fn send(byte: u64, to: u64, bytes: u64, rank: u64) -> BulkSend {
    let peer = Some(Operand::Imm(rank));
    BulkSend {
        src: shared_address(0, Operand::Imm(byte)),
        dst: SharedAddress {
            peer,
            ..shared_address(0, Operand::Imm(to))
        },
        bytes: Operand::Imm(bytes),
        bar: BarRef { peer, ..bar(3) },
        reduce: None,
    }
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks_exact(4)
        .map(bytemuck::pod_read_unaligned)
        .collect()
}

#[test]
fn a_load_copies_and_completes_its_transaction_bytes() {
    for bytes in [0, 16, 48, 80, 1040, 2032] {
        let mut cta = cta();
        let before = cta.shared[0].clone();
        cta.run(&load(16, 32, bytes));
        assert_eq!(
            cta.jobs[0].completion(),
            JobCompletion::Bytes(ResolvedBarrier { cta: 0, slot: 3 })
        );
        assert_eq!(cta.complete(), [bytes as u32]);
        let n = bytes as usize;
        assert_eq!(cta.shared[0][528..528 + n], cta.global[32..32 + n]);
        assert_eq!(cta.shared[0][..528], before[..528]);
        assert_eq!(cta.shared[0][528 + n..], before[528 + n..]);
    }
}

#[test]
fn a_store_copies_in_the_bulk_group_of_the_lane() {
    let mut cta = cta();
    cta.warp.active = 1 << 4;
    cta.run(&store(32, 64, 1008));
    assert_eq!(
        cta.jobs[0].completion(),
        JobCompletion::BulkGroup { lane: 4 }
    );
    cta.complete();
    assert_eq!(cta.global[64..64 + 1008], cta.shared[0][544..544 + 1008]);
}

#[test]
fn bytes_are_read_when_the_job_completes() {
    let mut cta = cta();
    cta.run(&load(0, 0, 64));
    cta.global.fill(9);
    cta.complete();
    assert_eq!(cta.shared[0][512..576], [9; 64]);
}

#[test]
fn every_active_lane_issues_a_copy() {
    let mut cta = cta();
    cta.warp = cta
        .warp
        .clone()
        .with(1, &[0u32, 64, 128])
        .with_active(0b111);
    cta.run(&BulkLoad {
        dst: shared_address(0, arg(1)),
        ..load(0, 256, 64)
    });
    assert_eq!(cta.complete(), [64; 3]);
    for lane in 0..3 {
        let at = 512 + 64 * lane;
        assert_eq!(cta.shared[0][at..at + 64], cta.global[256..256 + 64]);
    }
}

#[test]
fn a_multicast_writes_each_receiver_and_signals_its_barrier() {
    let mut cta = cta();
    let before = cta.shared.clone();
    cta.run(&BulkLoad {
        multicast: Some(Operand::Imm(0b1010)),
        ..load(0, 0, 256)
    });
    let completions: Vec<_> = cta.jobs.iter().map(Job::completion).collect();
    assert_eq!(
        completions,
        [1, 3].map(|cta| JobCompletion::Bytes(ResolvedBarrier { cta, slot: 3 }))
    );
    assert_eq!(cta.complete(), [256, 256]);
    for (rank, before) in before.iter().enumerate() {
        let got = &cta.shared[rank][512..512 + 256];
        match rank % 2 {
            1 => assert_eq!(got, &cta.global[..256]),
            _ => assert_eq!(got, &before[512..512 + 256]),
        }
    }
}

#[test]
fn a_load_may_write_a_peer_and_signal_its_barrier() {
    let mut cta = cta();
    let (mut dst, mut bar) = (shared_address(0, Operand::Imm(0)), bar(3));
    dst.peer = Some(Operand::Imm(2));
    bar.peer = Some(Operand::Imm(2));
    cta.run(&BulkLoad {
        dst,
        bar,
        ..load(0, 0, 32)
    });
    cta.complete();
    assert_eq!(cta.shared[2][512..544], cta.global[..32]);
}

#[test]
fn bulk_send_writes_a_peer_and_signals_its_barrier() {
    let mut cta = cta();
    let before = cta.shared.clone();
    cta.run(&send(32, 96, 1008, 2));
    assert_eq!(
        cta.jobs[0].completion(),
        JobCompletion::Bytes(ResolvedBarrier { cta: 2, slot: 3 })
    );
    assert_eq!(cta.complete(), [1008]);
    assert_eq!(
        cta.shared[2][512 + 96..512 + 96 + 1008],
        before[0][544..544 + 1008]
    );
    assert_eq!(cta.shared[0], before[0]);
    assert_eq!(cta.shared[2][..512 + 96], before[2][..512 + 96]);
}

#[test]
fn a_reducing_store_updates_each_element() {
    let mut cta = cta();
    let (old, new) = (words(&cta.global), words(&cta.shared[0][544..544 + 80]));
    let reduce = |op| BulkStore {
        reduce: Some(BulkReduce {
            op,
            dtype: DType::U32,
        }),
        ..store(32, 64, 80)
    };
    cta.run(&reduce(Reduction::Add));
    assert!(cta.jobs[0].is_reduction());
    cta.complete();
    cta.run(&reduce(Reduction::Max));
    cta.complete();
    let got = words(&cta.global);
    for (i, &got) in got.iter().enumerate() {
        let want = match i.checked_sub(16).and_then(|i| new.get(i)) {
            Some(new) => old[i].wrapping_add(*new).max(*new),
            None => old[i],
        };
        assert_eq!(got, want, "{i}");
    }
}

#[test]
fn integer_sums_at_a_peer_do_not_depend_on_the_order() {
    let run = |order: [u64; 3]| {
        let mut cta = cta();
        for byte in order {
            cta.run(&BulkSend {
                reduce: Some(BulkReduce {
                    op: Reduction::Add,
                    dtype: DType::U64,
                }),
                ..send(byte, 0, 64, 1)
            });
        }
        cta.complete();
        cta.shared[1][512..576].to_vec()
    };
    assert_eq!(run([0, 64, 128]), run([128, 0, 64]));
}

#[test]
fn a_prefetch_checks_its_operands_and_issues_no_job() {
    let mut cta = cta();
    let prefetch = |src, bytes| BulkPrefetch {
        src: Operand::Imm(src),
        bytes: Operand::Imm(bytes),
        hint: None,
    };
    cta.run(&prefetch(GLOBAL, 64));
    assert!(cta.jobs.is_empty());
    let f = cta.fault(&prefetch(GLOBAL + 8, 64));
    assert_eq!(f.kind, FaultKind::Misaligned);
    let f = cta.fault(&prefetch(GLOBAL, 24));
    assert!(f.text.contains("has length 0x18"), "{}", f.text);
}

#[test]
fn faults_name_the_rule_and_the_value() {
    let assert_fault = |f: Fault, kind, text: &str| {
        assert_eq!(f.kind, kind, "{}", f.text);
        assert!(f.text.contains(text), "{}", f.text);
    };
    let misaligned = FaultKind::Misaligned;
    assert_fault(
        cta().fault(&load(8, 0, 16)),
        misaligned,
        "has shared address 0x208; it must be a multiple of 16 bytes",
    );
    assert_fault(
        cta().fault(&load(0, 4, 16)),
        misaligned,
        "has global address 0x1004; it must be a multiple of 16 bytes",
    );
    assert_fault(
        cta().fault(&store(0, 0, 20)),
        misaligned,
        "has length 0x14; it must be a multiple of 16 bytes",
    );
    assert_fault(
        cta().fault(&load(2032, 0, 32)),
        FaultKind::OutOfBounds,
        "byte 2032",
    );
    let multicast_load = |mask| BulkLoad {
        multicast: Some(Operand::Imm(mask)),
        ..load(0, 0, 16)
    };
    assert_fault(
        cta().fault(&multicast_load(0)),
        FaultKind::Operand,
        "has multicast mask 0x0;",
    );
    assert_fault(
        cta().fault(&multicast_load(0x11)),
        FaultKind::Operand,
        "has multicast mask 0x11; it must name at least one CTA, and only ranks below the cluster size 4",
    );
    let mut other_cta = send(0, 0, 16, 1);
    other_cta.bar.peer = None;
    assert_fault(
        cta().fault(&other_cta),
        FaultKind::Operand,
        "in the CTA of rank 1 but its mbarrier in the CTA of rank 0",
    );
    assert_fault(
        cta().fault(&send(0, 8, 16, 1)),
        misaligned,
        "has shared address 0x208; it must be a multiple of 16 bytes",
    );
    let mut peer_barrier = load(0, 0, 16);
    peer_barrier.bar.peer = Some(Operand::Imm(1));
    assert_fault(
        cta().fault(&peer_barrier),
        FaultKind::Operand,
        "in the CTA of rank 0 but its mbarrier in the CTA of rank 1",
    );
}

#[test]
fn group_ops_are_sync_ops() {
    let mut cta = cta();
    cta.run(&BulkCommit);
    let wait = BulkWait {
        pending: 1,
        read: true,
    };
    cta.run(&wait);
    let waited = SyncOp::BulkWait {
        pending: 1,
        read: true,
    };
    assert_eq!(cta.warp.syncs, [SyncOp::BulkCommit, waited]);
}

#[test]
fn copies_print_their_modifiers_and_operands() {
    let all_options = BulkLoad {
        src: arg(1),
        bytes: arg(2),
        multicast: Some(arg(3)),
        hint: Some(CacheHint::EvictLast),
        ..load(0, 0, 0)
    };
    assert_eq!(
        ptx(&all_options),
        [
            "cvt.u16.u32 %t0, %3",
            "mov.b64 %t1, 0x14f0000000000000",
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint \
             [address], [%1], %2, [barrier], %t0, %t1",
        ]
    );
    let no_options = BulkLoad {
        src: arg(1),
        ..load(0, 0, 64)
    };
    assert_eq!(
        ptx(&no_options),
        [
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [address], [%1], 64, [barrier]"
        ]
    );
    let hinted_store = BulkStore {
        dst: arg(1),
        hint: Some(CacheHint::EvictFirst),
        ..store(0, 0, 64)
    };
    assert_eq!(
        ptx(&hinted_store),
        [
            "mov.b64 %t0, 0x12f0000000000000",
            "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%1], [address], 64, %t0",
        ]
    );
    let reduction = |op, dtype| Some(BulkReduce { op, dtype });
    let reducing_store = BulkStore {
        dst: arg(1),
        reduce: reduction(Reduction::Add, DType::Bf16),
        ..store(0, 0, 64)
    };
    assert_eq!(
        ptx(&reducing_store),
        ["cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [%1], [address], 64"]
    );
    let suffix = |op, dtype| BulkReduce { op, dtype }.ptx();
    assert_eq!(suffix(Reduction::Add, DType::I64), ".add.u64");
    assert_eq!(suffix(Reduction::Min, DType::I64), ".min.s64");
    assert_eq!(suffix(Reduction::Max, DType::F16), ".max.f16");
    assert_eq!(suffix(Reduction::Xor, DType::I64), ".xor.b64");
    assert_eq!(suffix(Reduction::And, DType::U32), ".and.b32");
    assert_eq!(
        ptx(&send(0, 0, 64, 1)),
        [
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [address], [address], 64, [barrier]"
        ]
    );
    let increment = BulkSend {
        reduce: reduction(Reduction::Inc, DType::U32),
        ..send(0, 0, 64, 1)
    };
    assert_eq!(
        ptx(&increment),
        [
            "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.inc.u32 [address], [address], 64, [barrier]"
        ]
    );
    let prefetch = BulkPrefetch {
        src: arg(1),
        bytes: arg(2),
        hint: None,
    };
    assert_eq!(
        ptx(&prefetch),
        ["cp.async.bulk.prefetch.L2.global [%1], %2"]
    );
    assert_eq!(ptx(&BulkCommit), ["cp.async.bulk.commit_group"]);
    let wait = |pending, read| ptx(&BulkWait { pending, read });
    assert_eq!(wait(2, false), ["cp.async.bulk.wait_group 2"]);
    assert_eq!(wait(0, true), ["cp.async.bulk.wait_group.read 0"]);
}

#[test]
fn peer_sources_unsupported_reductions_and_targets_are_rejected() {
    let mut t = Target::SM_90A;
    assert_eq!(load(0, 0, 16).legal(&t), Ok(()));
    let mut peer_source = store(0, 0, 16);
    peer_source.src.peer = Some(Operand::Imm(1));
    assert!(
        peer_source
            .legal(&t)
            .unwrap_err()
            .contains("from a tile of a peer")
    );
    let f16_add = Some(BulkReduce {
        op: Reduction::Add,
        dtype: DType::F16,
    });
    let f16_send = BulkSend {
        reduce: f16_add,
        ..send(0, 0, 16, 1)
    };
    assert!(f16_send.legal(&t).unwrap_err().contains("in shared memory"));
    let f16_store = BulkStore {
        reduce: f16_add,
        ..store(0, 0, 16)
    };
    assert_eq!(f16_store.legal(&t), Ok(()));
    assert_eq!(send(0, 0, 16, 1).legal(&t), Ok(()));
    t.features.clusters = false;
    let multicast_load = BulkLoad {
        multicast: Some(Operand::Imm(1)),
        ..load(0, 0, 16)
    };
    assert!(
        multicast_load
            .legal(&t)
            .unwrap_err()
            .contains("does not support thread block clusters")
    );
    t.features.tma = false;
    assert!(
        load(0, 0, 16)
            .legal(&t)
            .unwrap_err()
            .contains("does not support bulk copies")
    );
}

//! `cp.async` and its groups.

use super::*;
use crate::job::JobCompletion;
use crate::job::fake::{Cta, GLOBAL, Rng, bar, shared_address};
use crate::lanes::fake::{arg, ptx};
use crate::layout::{Swizzle, TileLayout};
use crate::machine::WARP;
use crate::sync::SyncOp;

const TILE: TileLayout = TileLayout {
    element_bytes: 4,
    rows: 32,
    cols: 8,
    swizzle: Swizzle::None,
};

/// Returns a CTA in which lane `i` has global byte `48 i` in register 1 and tile byte `32 i` in register 2.
fn cta() -> Cta {
    let mut cta = Cta::new(1, 48 * WARP).tile(256, TILE);
    cta.global = Rng(3).bytes(48 * WARP);
    let sources: [u64; WARP] = std::array::from_fn(|i| GLOBAL + 48 * i as u64);
    let offsets: [u32; WARP] = std::array::from_fn(|i| 32 * i as u32);
    cta.warp = cta.warp.clone().with(1, &sources).with(2, &offsets);
    cta
}

fn copy(bytes: u32, src_size: Option<Operand>) -> CopyAsync {
    CopyAsync {
        dst: shared_address(0, arg(2)),
        src: arg(1),
        bytes,
        src_size,
        bypass_l1: false,
        l2_prefetch: None,
        hint: None,
    }
}

#[test]
fn the_copies_of_a_warp_are_one_job_that_reads_at_completion() {
    for bytes in [4, 8, 16] {
        let mut cta = cta();
        let (before, odd_lanes) = (cta.shared[0].clone(), 0xaaaa_aaaa);
        cta.warp.active = odd_lanes;
        cta.run(&copy(bytes, None));
        let [job] = &cta.jobs[..] else {
            panic!("{:?}", cta.jobs)
        };
        assert_eq!(
            job.completion(),
            JobCompletion::CopyGroup { lanes: odd_lanes }
        );
        cta.global = Rng(4).bytes(48 * WARP);
        assert_eq!(cta.complete(), [16 * bytes]);
        for lane in 0..WARP {
            let (from, to, n) = (48 * lane, 256 + 32 * lane, bytes as usize);
            let moved = if odd_lanes >> lane & 1 == 1 { n } else { 0 };
            let got = &cta.shared[0][to..to + 32];
            assert_eq!(got[..moved], cta.global[from..from + moved]);
            assert_eq!(got[moved..], before[to + moved..to + 32]);
        }
    }
}

#[test]
fn unread_bytes_are_zero_and_a_source_of_no_bytes_may_be_invalid() {
    let mut cta = cta();
    let src_size: [u32; WARP] = std::array::from_fn(|i| i as u32 % 17);
    let mut sources = cta.warp.read::<u64>(1);
    (sources[0], sources[17]) = (0, u64::MAX - 15);
    cta.warp = cta.warp.clone().with(1, &sources).with(3, &src_size);
    cta.run(&copy(16, Some(arg(3))));
    assert_eq!(cta.complete(), [512]);
    for (lane, &src_size) in src_size.iter().enumerate() {
        let (got, n) = (&cta.shared[0][256 + 32 * lane..][..16], src_size as usize);
        assert_eq!(got[..n], cta.global[48 * lane..48 * lane + n]);
        assert!(got[n..].iter().all(|&b| b == 0));
    }
}

#[test]
fn faults_name_the_rule_and_the_value() {
    let assert_fault = |op: CopyAsync, kind, text: &str| {
        let f = cta().fault(&op);
        assert_eq!(f.kind, kind, "{}", f.text);
        assert!(f.text.contains(text), "{}", f.text);
    };
    let mut misaligned = copy(8, None);
    misaligned.dst.offset = 4;
    assert_fault(misaligned, FaultKind::Misaligned, "has shared address");
    let misaligned = CopyAsync {
        src: Operand::Imm(GLOBAL + 8),
        ..copy(16, None)
    };
    assert_fault(
        misaligned,
        FaultKind::Misaligned,
        "has global address 0x1008; it must be a multiple of 16",
    );
    let oversized = copy(4, Some(Operand::Imm(5)));
    assert_fault(
        oversized,
        FaultKind::Operand,
        "reads 5 bytes but writes only 4",
    );
}

#[test]
fn group_ops_are_sync_ops() {
    let mut cta = cta();
    cta.run(&CopyCommit);
    for pending in [Some(2), None] {
        cta.run(&CopyWait { pending });
    }
    let (bar, noinc) = (bar(1), true);
    cta.run(&CopyArrive { bar, noinc });
    assert_eq!(
        cta.warp.syncs,
        [
            SyncOp::CopyCommit,
            SyncOp::CopyWait { pending: Some(2) },
            SyncOp::CopyWait { pending: None },
            SyncOp::CopyArrive { bar, noinc },
        ]
    );
}

#[test]
fn copies_print_their_modifiers_and_operands() {
    assert_eq!(
        ptx(&copy(4, None)),
        ["cp.async.ca.shared.global [address], [%1], 4"]
    );
    let all_options = CopyAsync {
        bypass_l1: true,
        l2_prefetch: Some(L2Prefetch::B128),
        hint: Some(CacheHint::Policy(arg(5))),
        ..copy(16, Some(arg(3)))
    };
    assert_eq!(
        ptx(&all_options),
        ["cp.async.cg.shared.global.L2::cache_hint.L2::128B [address], [%1], 16, %3, %5"]
    );
    assert_eq!(ptx(&CopyCommit), ["cp.async.commit_group"]);
    assert_eq!(
        ptx(&CopyWait { pending: Some(3) }),
        ["cp.async.wait_group 3"]
    );
    assert_eq!(ptx(&CopyWait { pending: None }), ["cp.async.wait_all"]);
    let arrive = |noinc| ptx(&CopyArrive { bar: bar(0), noinc });
    assert_eq!(
        arrive(true),
        ["cp.async.mbarrier.arrive.noinc.shared.b64 [barrier]"]
    );
    assert_eq!(
        arrive(false),
        ["cp.async.mbarrier.arrive.shared.b64 [barrier]"]
    );
}

#[test]
fn unsupported_sizes_and_peers_are_rejected() {
    let t = Target::SM_90A;
    let assert_rejected = |op: CopyAsync, text: &str| {
        let why = op.legal(&t).unwrap_err();
        assert!(why.contains(text), "{why}");
    };
    assert_eq!(copy(8, None).legal(&t), Ok(()));
    assert_rejected(
        copy(12, None),
        "of 12 bytes per lane; the size must be 4, 8 or 16",
    );
    assert_rejected(copy(8, Some(Operand::Imm(9))), "reads 9 bytes");
    let bypass_8_bytes = CopyAsync {
        bypass_l1: true,
        ..copy(8, None)
    };
    assert_rejected(bypass_8_bytes, "of 8 bytes cannot bypass the L1");
    let mut to_peer = copy(16, None);
    to_peer.dst.peer = Some(Operand::Imm(1));
    assert_rejected(to_peer, "to a tile of a peer");
    let mut bar = bar(0);
    bar.peer = Some(Operand::Imm(1));
    let noinc = true;
    assert!(CopyArrive { bar, noinc }.legal(&t).is_err());
}

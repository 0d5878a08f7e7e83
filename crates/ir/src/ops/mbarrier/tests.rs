use super::*;
use crate::job::fake::{Cta, bar};
use crate::lanes::fake::{arg, ptx, reg};
use crate::machine::FaultKind;

fn peer() -> BarRef {
    BarRef {
        peer: Some(arg(9)),
        ..bar(2)
    }
}

fn arrive(bar: BarRef, count: u32, tx: Option<Operand>, scope: Scope) -> MbarrierArrive {
    MbarrierArrive {
        bar,
        count: Operand::imm(count),
        tx,
        scope,
        drop: false,
    }
}

fn wait(bar: BarRef, scope: Scope) -> MbarrierWait {
    MbarrierWait {
        bar,
        parity: arg(1),
        scope,
    }
}

fn test(bar: BarRef) -> MbarrierTest {
    MbarrierTest {
        dst: reg(0),
        bar,
        parity: arg(1),
        scope: Scope::Cta,
        may_suspend: false,
    }
}

#[test]
fn each_op_is_one_sync_op() {
    let mut cta = Cta::new(1, 0);
    let (bar, tx) = (bar(2), Operand::Imm(64));
    cta.run(&MbarrierInit { bar, count: 3 });
    cta.run(&arrive(bar, 2, Some(tx), Scope::Cluster));
    cta.run(&MbarrierExpectTx { bar, tx });
    cta.run(&wait(bar, Scope::Cta));
    cta.run(&MbarrierInval { bar });
    assert_eq!(
        cta.warp.syncs,
        [
            SyncOp::Init { bar, count: 3 },
            SyncOp::Arrive {
                bar,
                count: Operand::Imm(2),
                tx: Some(tx),
                scope: Scope::Cluster,
                drop: false,
            },
            SyncOp::ExpectTx { bar, tx },
            SyncOp::Wait {
                bar,
                parity: arg(1),
                scope: Scope::Cta
            },
            SyncOp::Inval { bar },
        ]
    );
}

#[test]
fn a_wait_blocks_and_a_test_returns_a_predicate() {
    let mut cta = Cta::new(1, 0);
    cta.run(&test(bar(0)));
    assert_eq!(cta.warp.read_pred(0), Mask::MAX);
    cta.sync_result = ExecStatus::Blocked;
    assert_eq!(
        wait(bar(0), Scope::Cta).exec(&mut cta),
        Ok(ExecStatus::Blocked)
    );
    cta.run(&test(bar(0)));
    assert_eq!(cta.warp.read_pred(0), 0);
}

#[test]
fn the_lanes_of_a_test_must_name_one_barrier() {
    let mut cta = Cta::new(1, 0);
    cta.warp = cta.warp.clone().with(3, &[1u32, 2]);
    let f = cta.fault(&test(BarRef {
        index: arg(3),
        ..bar(0)
    }));
    assert_eq!(f.kind, FaultKind::Convergence);
    assert!(
        f.text.contains("differs between lanes: 1 and 2"),
        "{}",
        f.text
    );
}

#[test]
fn mbarrier_ops_print_their_scope_and_space() {
    let (local, remote) = (bar(2), peer());
    let init = MbarrierInit {
        bar: local,
        count: 3,
    };
    assert_eq!(ptx(&init), ["mbarrier.init.shared::cta.b64 [barrier], 3"]);
    assert_eq!(
        ptx(&MbarrierInval { bar: local }),
        ["mbarrier.inval.shared::cta.b64 [barrier]"]
    );
    let text = |bar, count, tx, scope| ptx(&arrive(bar, count, tx, scope)).join("; ");
    assert_eq!(
        text(local, 1, None, Scope::Cta),
        "mbarrier.arrive.shared::cta.b64 _, [barrier]"
    );
    assert_eq!(
        text(local, 1, Some(arg(4)), Scope::Cta),
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [barrier], %4"
    );
    assert_eq!(
        text(local, 2, Some(arg(4)), Scope::Cta),
        "mbarrier.expect_tx.shared::cta.b64 [barrier], %4; mbarrier.arrive.shared::cta.b64 _, [barrier], 2"
    );
    // CTA scope for a remote arrival: `.release.cta` is much cheaper than `.release.cluster`.
    assert_eq!(
        text(remote, 1, None, Scope::Cta),
        "mbarrier.arrive.shared::cluster.b64 _, [barrier]"
    );
    assert_eq!(
        text(remote, 1, Some(Operand::Imm(8)), Scope::Cluster),
        "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [barrier], 8"
    );
    let drop_count = MbarrierArrive {
        count: arg(5),
        drop: true,
        ..arrive(local, 1, None, Scope::Cta)
    };
    assert_eq!(
        ptx(&drop_count),
        ["mbarrier.arrive_drop.shared::cta.b64 _, [barrier], %5"]
    );
    let drop_expect_tx = MbarrierArrive {
        drop: true,
        ..arrive(remote, 1, Some(arg(4)), Scope::Cta)
    };
    assert_eq!(
        ptx(&drop_expect_tx),
        ["mbarrier.arrive_drop.expect_tx.shared::cluster.b64 _, [barrier], %4"]
    );
    let expect = MbarrierExpectTx {
        bar: remote,
        tx: arg(4),
    };
    assert_eq!(
        ptx(&expect),
        ["mbarrier.expect_tx.shared::cluster.b64 [barrier], %4"]
    );
    assert_eq!(
        ptx(&wait(local, Scope::Cluster)),
        [
            "label: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %t0, [barrier], %1",
            "@!%t0 bra label"
        ]
    );
    assert_eq!(
        ptx(&test(local)),
        ["mbarrier.test_wait.parity.shared::cta.b64 %0, [barrier], %1"]
    );
    let suspending = MbarrierTest {
        may_suspend: true,
        scope: Scope::Cluster,
        ..test(local)
    };
    assert_eq!(
        ptx(&suspending),
        ["mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %0, [barrier], %1"]
    );
}

#[test]
fn peer_waits_and_counts_out_of_range_are_rejected() {
    let t = Target::SM_90A;
    assert_eq!(arrive(peer(), 1, None, Scope::Cluster).legal(&t), Ok(()));
    assert!(arrive(bar(0), 0, None, Scope::Cta).legal(&t).is_err());
    let gpu_scope = arrive(bar(0), 1, None, Scope::Gpu).legal(&t);
    assert!(gpu_scope.unwrap_err().contains("at scope gpu"));
    assert!(
        MbarrierInit {
            bar: peer(),
            count: 1
        }
        .legal(&t)
        .is_err()
    );
    assert!(
        MbarrierInit {
            bar: bar(0),
            count: 1 << 20
        }
        .legal(&t)
        .is_err()
    );
    assert!(wait(peer(), Scope::Cta).legal(&t).is_err());
    assert!(test(peer()).legal(&t).is_err());
    assert!(MbarrierInval { bar: peer() }.legal(&t).is_err());
}

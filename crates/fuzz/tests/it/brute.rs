//! The brute-force machine on small kernels: a correct and an incorrect version of each.

use warpline_fuzz::brute::{Exploration, explore};
use warpline_fuzz::launch::small_launch_values;
use warpline_fuzz::plan::*;
use warpline_fuzz::project;

/// Explores a plan of two roles of one warp each.
fn explored(cluster: u32, step: CommStep) -> Exploration {
    let plan = FuzzPlan {
        cluster,
        warps: vec![1, 1],
        steps: vec![step],
    };
    let kernel = project::kernel(&plan).expect("a kernel");
    let values = small_launch_values(&plan, 1).remove(0);
    explore(&plan, &kernel, &values, 20_000)
}

/// Expects no fault in the correct version and this fault in the incorrect one.
fn expect_fault(cluster: u32, kind: &str, step: impl Fn(bool) -> CommStep) {
    let correct = explored(cluster, step(false));
    assert!(matches!(correct, Exploration::NoFault(_)), "{correct:?}");
    let incorrect = explored(cluster, step(true));
    assert!(
        matches!(&incorrect, Exploration::Fault(k, _) if k == kind),
        "{incorrect:?}"
    );
}

fn small() -> TripCount {
    TripCount {
        source: NumberSource::Small,
        conversion: Conversion::Keep,
        formula: CountFormula::Plain,
        forms: vec![0],
        bug: None,
    }
}

fn transfer(fill: SlotFill) -> Transfer {
    Transfer {
        producer: 0,
        consumers: vec![1],
        stages: 1,
        fill,
        count: small(),
        guard: None,
        loops: [LoopForm::Up; 2],
        position: [RingPosition::Cursor; 2],
        wait: WaitForm::Wait,
        tail: false,
        safe: false,
    }
}

#[test]
fn a_ring_has_no_fault_in_any_interleaving() {
    for fill in [SlotFill::Bulk, SlotFill::Stores, SlotFill::Lanes] {
        let correct = explored(1, CommStep::Transfer(transfer(fill)));
        assert!(
            matches!(correct, Exploration::NoFault(n) if n > 20),
            "{correct:?}"
        );
    }
}

#[test]
fn different_counts_deadlock() {
    expect_fault(1, "Deadlock", |incorrect| {
        let mut t = transfer(SlotFill::Stores);
        t.count.bug = incorrect.then_some((1, CountBug::More));
        CommStep::Transfer(t)
    });
}

#[test]
fn a_fence_of_some_lanes_is_insufficient() {
    expect_fault(1, "MissingProxyFence", |fence_in_branch| {
        CommStep::BulkExport(BulkExport {
            role: 0,
            groups: 1,
            fence_in_branch,
        })
    });
}

#[test]
fn lanes_without_a_warp_barrier_race() {
    expect_fault(1, "Race", |unsynced| {
        CommStep::Gather(Gather {
            role: 0,
            unknown: false,
            scatter: false,
            unsynced,
        })
    });
    expect_fault(1, "Race", |unsynced| {
        CommStep::Reread(Reread {
            writer: 0,
            reader: 1,
            unsynced,
        })
    });
}

#[test]
fn an_early_invalidation_races() {
    expect_fault(1, "Race", |early| {
        CommStep::Reinit(Reinit {
            arriver: 0,
            waiter: 1,
            early,
        })
    });
}

#[test]
fn copies_of_lanes_without_a_wait_race() {
    expect_fault(1, "Race", |incorrect| {
        CommStep::LaneCopies(LaneCopies {
            role: 0,
            groups: 1,
            partial: incorrect.then_some(PartialGroup::Wait),
            unknown: false,
        })
    });
}

#[test]
fn a_release_at_cta_scope_does_not_reach_a_peer() {
    expect_fault(2, "Race", |incorrect| {
        CommStep::RemoteStore(RemoteStore {
            role: 0,
            lanes: false,
            unknown: false,
            sender: 1,
            arrivals: true,
            bug: incorrect.then_some(RemoteBug::CtaScope),
        })
    });
}

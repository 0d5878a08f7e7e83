//! The brute-force machine on small kernels: each wrong one beside its repaired twin.

use warpline_fuzz::brute::{Explored, explore};
use warpline_fuzz::launch::small_values;
use warpline_fuzz::plan::*;
use warpline_fuzz::project;

/// What comes of a plan of two roles of one warp each.
fn explored(cluster: u32, step: Step) -> Explored {
    let plan = Plan {
        cluster,
        warps: vec![1, 1],
        steps: vec![step],
    };
    let kernel = project::kernel(&plan).expect("a kernel");
    let values = small_values(&plan, 1).remove(0);
    explore(&plan, &kernel, &values, 20_000)
}

/// The twin is right, and the broken form ends in a fault.
fn twins(cluster: u32, kind: &str, step: impl Fn(bool) -> Step) {
    let right = explored(cluster, step(false));
    assert!(matches!(right, Explored::Right(_)), "{right:?}");
    let wrong = explored(cluster, step(true));
    assert!(
        matches!(&wrong, Explored::Wrong(k, _) if k == kind),
        "{wrong:?}"
    );
}

fn small() -> Count {
    Count {
        source: Source::Small,
        narrow: Narrow::Keep,
        shape: Shape::Plain,
        forms: vec![0],
        twist: None,
    }
}

fn transfer(fill: Fill) -> Transfer {
    Transfer {
        producer: 0,
        consumers: vec![1],
        stages: 1,
        fill,
        count: small(),
        guard: None,
        loops: [LoopForm::Up; 2],
        position: [Position::Cursor; 2],
        wait: WaitForm::Wait,
        tail: false,
        safe: false,
    }
}

#[test]
fn a_ring_passes_in_every_order() {
    for fill in [Fill::Bulk, Fill::Stores, Fill::Lanes] {
        let right = explored(1, Step::Transfer(transfer(fill)));
        assert!(matches!(right, Explored::Right(n) if n > 20), "{right:?}");
    }
}

#[test]
fn counts_that_differ_hang() {
    twins(1, "Deadlock", |wrong| {
        let mut t = transfer(Fill::Stores);
        t.count.twist = wrong.then_some((1, CountTwist::More));
        Step::Transfer(t)
    });
}

#[test]
fn a_fence_of_some_lanes_is_not_enough() {
    twins(1, "MissingProxyFence", |fence_in_branch| {
        Step::Export(Export {
            role: 0,
            groups: 1,
            fence_in_branch,
        })
    });
}

#[test]
fn lanes_that_did_not_meet_race() {
    twins(1, "Race", |unsynced| {
        Step::Gather(Gather {
            role: 0,
            unknown: false,
            scatter: false,
            unsynced,
        })
    });
    twins(1, "Race", |unsynced| {
        Step::Reread(Reread {
            writer: 0,
            reader: 1,
            unsynced,
        })
    });
}

#[test]
fn a_barrier_ends_after_its_last_use() {
    twins(1, "Race", |early| {
        Step::Reinit(Reinit {
            arriver: 0,
            waiter: 1,
            early,
        })
    });
}

#[test]
fn copies_of_lanes_that_did_not_wait_race() {
    twins(1, "Race", |wrong| {
        Step::LaneCopies(LaneCopies {
            role: 0,
            groups: 1,
            partial: wrong.then_some(Partial::Wait),
            unknown: false,
        })
    });
}

#[test]
fn a_release_to_the_cta_does_not_reach_a_peer() {
    twins(2, "Race", |wrong| {
        Step::Remote(Remote {
            role: 0,
            lanes: false,
            unknown: false,
            sender: 1,
            arrivals: true,
            twist: wrong.then_some(RemoteTwist::CtaScope),
        })
    });
}

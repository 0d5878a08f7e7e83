//! R8: CTAs of a cluster access each other only while both run, and agree on barriers.

use crate::bug::{Bug, Built, ExpectedRun, Version};
use crate::case::CorpusCase;
use crate::mark::{Source, this_file};
use crate::ring::{BYTES, Cursor, WORDS};
use crate::template::LaunchTemplate;
use warpline_ir::builder::*;
use warpline_ir::{FaultKind, Kernel, Op, Operand, StmtKind, Target};

const SOURCE: Source = this_file!("clusters.rs");

pub(crate) const BUGS: &[Bug] = &[
    Bug {
        name: "cutlass-3324",
        reference: "NVIDIA/cutlass#3324",
        title: "a CTA arrives at a peer's mbarrier before the first cluster barrier",
        rule: "R8.start",
        executor: ExpectedRun::Faults(&[FaultKind::Barrier, FaultKind::Race]),
        build: no_cluster_barrier,
    },
    Bug {
        name: "tlx-2292",
        reference: "facebookexperimental/triton#2292",
        title: "a CTA writes to a peer's shared memory before the peer has started",
        rule: "R8.start",
        executor: ExpectedRun::Clean("the executor starts all CTAs of a cluster together"),
        build: store_before_peer_starts,
    },
    Bug {
        name: "tlx-1105",
        reference: "facebookexperimental/triton#1105",
        title: "a CTA reads a peer's shared memory when the peer may have exited",
        rule: "R8.exit",
        executor: ExpectedRun::Faults(&[FaultKind::PeerExited]),
        build: load_after_peer_exits,
    },
    Bug {
        name: "cutlass-3643",
        reference: "NVIDIA/cutlass#3643",
        title: "data for a peer is released at CTA scope",
        rule: "R8.scope",
        executor: ExpectedRun::Clean("in the executor every arrival releases at cluster scope"),
        build: release_at_cta_scope,
    },
    Bug {
        name: "deepgemm-429",
        reference: "deepseek-ai/DeepGEMM#429",
        title: "two CTAs that multicast to each other run different numbers of iterations",
        rule: "R4.trips",
        executor: ExpectedRun::Faults(&[FaultKind::Deadlock]),
        build: unequal_trip_counts_in_cluster,
    },
];

/// Removes the cluster barriers that the builder adds to a kernel with peer accesses. In these kernels
/// the author writes them, or forgets them.
fn without_cluster_barriers(mut kernel: Kernel) -> Kernel {
    for block in [&mut kernel.prologue, &mut kernel.epilogue] {
        block.0.retain(|stmt| {
            let is_cluster_barrier =
                |op: &Op| matches!(op, Op::ClusterArrive(_) | Op::ClusterWait(_));
            !matches!(&stmt.kind, StmtKind::Op(op) if is_cluster_barrier(op))
        });
    }
    kernel
}

/// Returns the rank of the other CTA of a pair.
#[track_caller]
fn peer_rank() -> Reg<u32> {
    cluster_rank() ^ 1
}

/// A reconstruction after rule R8, without the code of the report. Each CTA has initialized its own
/// mbarrier and synchronized its own threads, but not the peer.
fn no_cluster_barrier(version: Version) -> Built {
    let kernel = Kernel::build("no_cluster_barrier", &Target::default(), |k| {
        k.cluster(2, 1, 1);
        let ready = k.barrier("ready", 1).at(0u32);
        k.role("all").body(|| {
            elect(|| {
                ready.init(1);
                fence_mbarrier_init();
            });
            match version {
                Version::Broken => cta_sync(),
                Version::Repaired => cluster_sync(),
            }
            elect(|| ready.peer(peer_rank()).arrive()); // BUG: may not be initialized yet
            ready.wait(0u32);
            cluster_sync();
        });
    })?;
    Ok(CorpusCase {
        kernel: without_cluster_barriers(kernel),
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(2),
    })
}

/// The barrier after the stores orders them before the loads, but not after the start of the peer.
fn store_before_peer_starts(version: Version) -> Built {
    let kernel = Kernel::build("store_before_peer_starts", &Target::default(), |k| {
        k.cluster(2, 1, 1);
        let inbox = k
            .tile::<f32>("inbox", 1, WORDS)
            .unswizzled()
            .declare()
            .whole();
        k.role("all").body(|| {
            if version.is_repaired() {
                cluster_sync();
            }
            inbox.peer(peer_rank()).store(0u32, lane_id(), 1.0); // BUG: the peer may not have started
            cluster_sync();
            inbox.load(0u32, lane_id());
        });
    })?;
    Ok(CorpusCase {
        kernel: without_cluster_barriers(kernel),
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(2),
    })
}

/// A CTA exits, and its shared memory goes to another CTA.
fn load_after_peer_exits(version: Version) -> Built {
    let kernel = Kernel::build("load_after_peer_exits", &Target::default(), |k| {
        k.cluster(2, 1, 1);
        let inbox = k
            .tile::<f32>("inbox", 1, WORDS)
            .unswizzled()
            .declare()
            .whole();
        k.role("all").body(|| {
            inbox.store(0u32, lane_id(), 1.0);
            cluster_sync();
            inbox.peer(peer_rank()).load(0u32, lane_id()); // BUG: the peer may have exited
            if version.is_repaired() {
                cluster_sync();
            }
        });
    })?;
    Ok(CorpusCase {
        kernel: without_cluster_barriers(kernel),
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(2),
    })
}

/// The arrival reaches the peer's mbarrier, but it releases the writes before it only to the writer's
/// own CTA.
fn release_at_cta_scope(version: Version) -> Built {
    let kernel = Kernel::build("release_at_cta_scope", &Target::default(), |k| {
        k.cluster(2, 1, 1);
        let inbox = k
            .tile::<f32>("inbox", 1, WORDS)
            .unswizzled()
            .declare()
            .whole();
        let ready = k.barrier("ready", 1).arrivals(1).at(0u32);
        k.role("all").body(|| {
            inbox.peer(peer_rank()).store(0u32, lane_id(), 1.0);
            warp_sync();
            elect(|| match version {
                Version::Broken => ready.peer(peer_rank()).arrive(), // BUG: `.release.cta`
                Version::Repaired => ready.peer(peer_rank()).arrive_cluster(),
            });
            ready.wait_cluster(0u32);
            inbox.load(0u32, lane_id());
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(2),
    })
}

/// Each CTA loads half of a slot for both CTAs, after both have released the slot. A pair at the border
/// of two groups has two trip counts: the longer loop waits for a peer that has ended, first for its
/// half of a slot and then for a release.
fn unequal_trip_counts_in_cluster(version: Version) -> Built {
    const HALF: u32 = WORDS / 2;
    let kernel = Kernel::build("unequal_trip_counts_in_cluster", &Target::default(), |k| {
        k.cluster(2, 1, 1);
        let (short, long) = (k.param::<u32>("short"), k.param::<u32>("long"));
        let x = k.pointer::<f32>("x");
        let slots = k
            .tile::<f32>("slots", 2, HALF)
            .unswizzled()
            .stages(2)
            .declare();
        let (full, empty) = (
            k.barrier("full", 2).arrivals(1),
            k.barrier("empty", 2).arrivals(2),
        );
        let trip_count = || match version {
            Version::Broken => select(cluster_rank().eq(0u32), short, long),
            Version::Repaired => long.max(short),
        };
        k.role("load").body(|| {
            let cursor = Cursor::new(2, 1);
            let n = trip_count();
            elect(|| {
                steps(n).each(|i| {
                    let (stage, full) = (cursor.stage(), full.at(cursor.stage()));
                    empty.at(stage).wait_cluster(cursor.parity());
                    let load_half = |half: u32| {
                        let to = slots.stage(stage).slice(half..half + 1, 0..HALF);
                        let from = x.address(i * WORDS + half * HALF);
                        let cta_mask = Some(Operand::imm(0b11u16));
                        bulk_load_with(to, from, BYTES / 2, full, cta_mask, None);
                    };
                    if_else(cluster_rank().eq(0u32), || load_half(0), || load_half(1));
                    full.arrive_expect(BYTES);
                    cursor.advance();
                });
            });
        });
        k.role("math").body(|| {
            let cursor = Cursor::new(2, 0);
            steps(trip_count()).each(|_| {
                full.at(cursor.stage()).wait(cursor.parity()); // BUG: the peer that loads half has ended
                slots
                    .stage(cursor.stage())
                    .load(lane_id() / HALF, lane_id() % HALF);
                fence_async();
                warp_sync();
                elect_lane(|| {
                    empty.at(cursor.stage()).arrive();
                    empty.at(cursor.stage()).peer(peer_rank()).arrive_cluster();
                });
                cursor.advance();
            });
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(2)
            .number(2)
            .number(5)
            .buffer(5 * BYTES),
    })
}

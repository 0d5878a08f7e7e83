//! R8: CTAs of a cluster access each other only while both run, and agree on barriers.

use crate::bug::{Bug, Built, ExpectedRun, Version};
use crate::case::CorpusCase;
use crate::kit::{BYTES, Cursor, WORDS};
use crate::mark::{Source, this_file};
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
        build: early_store,
    },
    Bug {
        name: "tlx-1105",
        reference: "facebookexperimental/triton#1105",
        title: "a CTA reads a peer's shared memory when the peer may have exited",
        rule: "R8.exit",
        executor: ExpectedRun::Faults(&[FaultKind::PeerExited]),
        build: late_load,
    },
    Bug {
        name: "cutlass-3643",
        reference: "NVIDIA/cutlass#3643",
        title: "data for a peer is released at CTA scope",
        rule: "R8.scope",
        executor: ExpectedRun::Clean("in the executor every arrival releases at cluster scope"),
        build: narrow_release,
    },
    Bug {
        name: "deepgemm-429",
        reference: "deepseek-ai/DeepGEMM#429",
        title: "two CTAs that multicast to each other run different numbers of iterations",
        rule: "R4.trips",
        executor: ExpectedRun::Faults(&[FaultKind::Deadlock]),
        build: uneven_pair,
    },
];

/// Removes the cluster barriers that the builder adds to a kernel with peer accesses: here the author
/// writes them, or forgets to.
fn without_cluster_barriers(mut kernel: Kernel) -> Kernel {
    for block in [&mut kernel.prologue, &mut kernel.epilogue] {
        block.0.retain(|stmt| {
            let meets = |op: &Op| matches!(op, Op::ClusterArrive(_) | Op::ClusterWait(_));
            !matches!(&stmt.kind, StmtKind::Op(op) if meets(op))
        });
    }
    kernel
}

/// Returns the rank of the other CTA of a pair.
#[track_caller]
fn other() -> Reg<u32> {
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
            elect(|| ready.peer(other()).arrive()); // BUG: may not be initialized yet
            ready.wait(0u32);
            cluster_sync();
        });
    })?;
    Ok(CorpusCase {
        kernel: without_cluster_barriers(kernel),
        line: SOURCE.marked(),
        launch: LaunchTemplate::of(2),
    })
}

/// The barrier after the stores orders them before the loads, but not after the start of the peer.
fn early_store(version: Version) -> Built {
    let kernel = Kernel::build("early_store", &Target::default(), |k| {
        k.cluster(2, 1, 1);
        let box_ = k
            .tile::<f32>("box", 1, WORDS)
            .unswizzled()
            .declare()
            .whole();
        k.role("all").body(|| {
            if version.is_repaired() {
                cluster_sync();
            }
            box_.peer(other()).store(0u32, lane_id(), 1.0); // BUG: the peer may not have started
            cluster_sync();
            box_.load(0u32, lane_id());
        });
    })?;
    Ok(CorpusCase {
        kernel: without_cluster_barriers(kernel),
        line: SOURCE.marked(),
        launch: LaunchTemplate::of(2),
    })
}

/// A CTA exits, and its shared memory goes to another CTA.
fn late_load(version: Version) -> Built {
    let kernel = Kernel::build("late_load", &Target::default(), |k| {
        k.cluster(2, 1, 1);
        let box_ = k
            .tile::<f32>("box", 1, WORDS)
            .unswizzled()
            .declare()
            .whole();
        k.role("all").body(|| {
            box_.store(0u32, lane_id(), 1.0);
            cluster_sync();
            box_.peer(other()).load(0u32, lane_id()); // BUG: the peer may have exited
            if version.is_repaired() {
                cluster_sync();
            }
        });
    })?;
    Ok(CorpusCase {
        kernel: without_cluster_barriers(kernel),
        line: SOURCE.marked(),
        launch: LaunchTemplate::of(2),
    })
}

/// The arrival reaches the peer's mbarrier, but it releases the writes before it only to the writer's
/// own CTA.
fn narrow_release(version: Version) -> Built {
    let kernel = Kernel::build("narrow_release", &Target::default(), |k| {
        k.cluster(2, 1, 1);
        let box_ = k
            .tile::<f32>("box", 1, WORDS)
            .unswizzled()
            .declare()
            .whole();
        let ready = k.barrier("ready", 1).arrivals(1).at(0u32);
        k.role("all").body(|| {
            box_.peer(other()).store(0u32, lane_id(), 1.0);
            warp_sync();
            elect(|| match version {
                Version::Broken => ready.peer(other()).arrive(), // BUG: `.release.cta`
                Version::Repaired => ready.peer(other()).arrive_cluster(),
            });
            ready.wait_cluster(0u32);
            box_.load(0u32, lane_id());
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::of(2),
    })
}

/// Each CTA loads half of a slot for both, once both have released theirs. A pair at the border of two
/// groups has two trip counts: the longer loop waits for a peer that has ended, first for its half of
/// a slot and then for a release.
fn uneven_pair(version: Version) -> Built {
    const HALF: u32 = WORDS / 2;
    let kernel = Kernel::build("uneven_pair", &Target::default(), |k| {
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
        let mine = || match version {
            Version::Broken => select(cluster_rank().eq(0u32), short, long),
            Version::Repaired => long.max(short),
        };
        k.role("load").body(|| {
            let at = Cursor::new(2, 1);
            let n = mine();
            elect(|| {
                steps(n).each(|i| {
                    let (stage, full) = (at.stage(), full.at(at.stage()));
                    empty.at(stage).wait_cluster(at.parity());
                    let bring = |half: u32| {
                        let to = slots.stage(stage).slice(half..half + 1, 0..HALF);
                        let from = x.address(i * WORDS + half * HALF);
                        let both = Some(Operand::imm(0b11u16));
                        bulk_load_with(to, from, BYTES / 2, full, both, None);
                    };
                    if_else(cluster_rank().eq(0u32), || bring(0), || bring(1));
                    full.arrive_expect(BYTES);
                    at.advance();
                });
            });
        });
        k.role("math").body(|| {
            let at = Cursor::new(2, 0);
            steps(mine()).each(|_| {
                full.at(at.stage()).wait(at.parity()); // BUG: the peer that loads half has ended
                slots
                    .stage(at.stage())
                    .load(lane_id() / HALF, lane_id() % HALF);
                fence_async();
                warp_sync();
                elect_lane(|| {
                    empty.at(at.stage()).arrive();
                    empty.at(at.stage()).peer(other()).arrive_cluster();
                });
                at.advance();
            });
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::of(2).number(2).number(5).buffer(5 * BYTES),
    })
}

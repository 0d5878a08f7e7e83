//! R8: CTAs of a cluster use each other only while both are there, and agree.

use crate::bug::{Bug, Built, Executor, Form};
use crate::case::Case;
use crate::kit::{BYTES, Cursor, WORDS};
use crate::mark::{Source, this_file};
use crate::trial::Trial;
use warpline_ir::build::*;
use warpline_ir::{FaultKind, Kernel, Op, Operand, StmtKind, Target};

const SOURCE: Source = this_file!("clusters.rs");

pub(crate) const BUGS: &[Bug] = &[
    Bug {
        name: "cutlass-3324",
        reference: "NVIDIA/cutlass#3324",
        title: "a peer's barrier is arrived at before the cluster has met",
        rule: "R8.start",
        executor: Executor::Faults(&[FaultKind::Barrier, FaultKind::Race]),
        build: no_rendezvous,
    },
    Bug {
        name: "tlx-2292",
        reference: "facebookexperimental/triton#2292",
        title: "a peer's memory is written before the peer is known to have started",
        rule: "R8.start",
        executor: Executor::Blind("all CTAs of a cluster start together here"),
        build: early_store,
    },
    Bug {
        name: "tlx-1105",
        reference: "facebookexperimental/triton#1105",
        title: "a peer's memory is read when the peer may have left",
        rule: "R8.exit",
        executor: Executor::Faults(&[FaultKind::PeerExited]),
        build: late_load,
    },
    Bug {
        name: "cutlass-3643",
        reference: "NVIDIA/cutlass#3643",
        title: "data for a peer is released to the CTA alone",
        rule: "R8.scope",
        executor: Executor::Blind("an arrival is taken to release to the cluster"),
        build: narrow_release,
    },
    Bug {
        name: "deepgemm-429",
        reference: "deepseek-ai/DeepGEMM#429",
        title: "the CTAs of a pair that fills both with multicast have loops of different length",
        rule: "R4.trips",
        executor: Executor::Faults(&[FaultKind::Deadlock]),
        build: uneven_pair,
    },
];

/// Takes out the meetings of the cluster that the builder puts around a kernel
/// which reaches for peers: here the author writes them, or forgets to.
fn without_meetings(mut kernel: Kernel) -> Kernel {
    for block in [&mut kernel.prologue, &mut kernel.epilogue] {
        block.0.retain(|stmt| {
            let meets = |op: &Op| matches!(op, Op::ClusterArrive(_) | Op::ClusterWait(_));
            !matches!(&stmt.kind, StmtKind::Op(op) if meets(op))
        });
    }
    kernel
}

/// The rank of the other CTA of a pair.
#[track_caller]
fn other() -> Reg<u32> {
    cluster_rank() ^ 1
}

/// The report was not found; this is what rule R8 says of the start. Each CTA
/// has made its own barrier and met its own threads, not the peer's.
fn no_rendezvous(form: Form) -> Built {
    let kernel = Kernel::build("no_rendezvous", &Target::default(), |k| {
        k.cluster(2, 1, 1);
        let ready = k.barrier("ready", 1).at(0u32);
        k.role("all").body(|| {
            elect(|| {
                ready.init(1);
                fence_mbarrier_init();
            });
            match form {
                Form::Broken => cta_sync(),
                Form::Repaired => cluster_sync(),
            }
            elect(|| ready.peer(other()).arrive()); // BUG: it may not be a barrier yet
            ready.wait(0u32);
            cluster_sync();
        });
    })?;
    Ok(Case {
        kernel: without_meetings(kernel),
        line: SOURCE.marked(),
        trial: Trial::of(2),
    })
}

/// The barrier behind the stores orders them before the loads, and says
/// nothing of the start.
fn early_store(form: Form) -> Built {
    let kernel = Kernel::build("early_store", &Target::default(), |k| {
        k.cluster(2, 1, 1);
        let box_ = k.tile::<f32>("box", 1, WORDS).plain().declare().whole();
        k.role("all").body(|| {
            if form.is_repaired() {
                cluster_sync();
            }
            box_.peer(other()).store(0u32, lane_id(), 1.0); // BUG: the peer may not be there
            cluster_sync();
            box_.load(0u32, lane_id());
        });
    })?;
    Ok(Case {
        kernel: without_meetings(kernel),
        line: SOURCE.marked(),
        trial: Trial::of(2),
    })
}

/// A CTA that is done leaves, and its shared memory goes to another.
fn late_load(form: Form) -> Built {
    let kernel = Kernel::build("late_load", &Target::default(), |k| {
        k.cluster(2, 1, 1);
        let box_ = k.tile::<f32>("box", 1, WORDS).plain().declare().whole();
        k.role("all").body(|| {
            box_.store(0u32, lane_id(), 1.0);
            cluster_sync();
            box_.peer(other()).load(0u32, lane_id()); // BUG: the peer may have left
            if form.is_repaired() {
                cluster_sync();
            }
        });
    })?;
    Ok(Case {
        kernel: without_meetings(kernel),
        line: SOURCE.marked(),
        trial: Trial::of(2),
    })
}

/// The arrival reaches the peer's barrier; the writes before it are released
/// to the threads of the writer's own CTA.
fn narrow_release(form: Form) -> Built {
    let kernel = Kernel::build("narrow_release", &Target::default(), |k| {
        k.cluster(2, 1, 1);
        let box_ = k.tile::<f32>("box", 1, WORDS).plain().declare().whole();
        let ready = k.barrier("ready", 1).count(1).at(0u32);
        k.role("all").body(|| {
            box_.peer(other()).store(0u32, lane_id(), 1.0);
            warp_sync();
            elect(|| match form {
                Form::Broken => ready.peer(other()).arrive(), // BUG: `.release.cta`
                Form::Repaired => ready.peer(other()).arrive_cluster(),
            });
            ready.wait_cluster(0u32);
            box_.load(0u32, lane_id());
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(2),
    })
}

/// Each CTA brings half of a slot to both, once both have emptied theirs. A
/// pair at the border of two groups has two numbers of steps: the longer loop
/// waits for a peer that is done, first for its half of a slot and then for it
/// to empty one.
fn uneven_pair(form: Form) -> Built {
    const HALF: u32 = WORDS / 2;
    let kernel = Kernel::build("uneven_pair", &Target::default(), |k| {
        k.cluster(2, 1, 1);
        let (short, long) = (k.param::<u32>("short"), k.param::<u32>("long"));
        let x = k.pointer::<f32>("x");
        let slots = k.tile::<f32>("slots", 2, HALF).plain().stages(2).declare();
        let (full, empty) = (
            k.barrier("full", 2).count(1),
            k.barrier("empty", 2).count(2),
        );
        let mine = || match form {
            Form::Broken => select(cluster_rank().eq(0u32), short, long),
            Form::Repaired => long.max(short),
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
                full.at(at.stage()).wait(at.parity()); // BUG: the peer that sends half has ended
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
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(2).number(2).number(5).buffer(5 * BYTES),
    })
}

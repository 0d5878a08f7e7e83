//! Wrong kernels, one for each kind of hang, and what their reports say.
//!
//! They take no arguments. The checker refuses some of them, and would refuse
//! more if it followed the protocol: they are for tests of the watchdog alone.

use warpline_ir::build::*;
use warpline_ir::{BuildErrors, Kernel, Target};

/// A kernel that hangs.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// What hangs in it.
    pub name: &'static str,
    /// The kernel, not watched.
    pub kernel: Kernel,
    /// CTAs of the launch, by axis.
    pub grid: [u32; 3],
    /// Parts of its report.
    pub report: Vec<String>,
    /// Can all its warps leave, so that the launch ends without an error?
    pub leaves: bool,
}

/// All of them.
pub fn all() -> Result<Vec<Wrong>, BuildErrors> {
    Ok(vec![
        mbarrier()?,
        named_barrier()?,
        cluster_barrier()?,
        registers()?,
    ])
}

/// The start of a line of a report.
fn line(role: &str, warp: u32, cta: u32, line: u32, waits: &str) -> String {
    format!("{role}, warp {warp}, CTA ({cta},0,0), hangs.rs:{line}: {waits}")
}

/// An mbarrier that misses an arrival: the loader forgets the last stage.
fn mbarrier() -> Result<Wrong, BuildErrors> {
    let (mut at, stages) = (0, 3);
    let kernel = Kernel::build("hang_mbarrier", &Target::default(), |k| {
        let full = k.barrier("full", stages).count(1);
        k.role("load").warps(1).body(|| {
            range(0u32, stages - 1).each(|i| elect(|| full.at(i).arrive()));
        });
        k.role("compute").warps(2).body(|| {
            range(0u32, stages).each(|i| {
                at = line!() + 1;
                full.at(i).wait(0u32);
            });
        });
    })?;
    let waits = "waits for full[2], parity 0";
    Ok(Wrong {
        name: "mbarrier",
        kernel,
        grid: [2, 1, 1],
        report: [(1, 0), (2, 0), (1, 1), (2, 1)]
            .map(|(warp, cta)| line("compute", warp, cta, at, waits))
            .into(),
        leaves: true,
    })
}

/// A named barrier that is one warp short.
fn named_barrier() -> Result<Wrong, BuildErrors> {
    let (mut a, mut b) = (0, 0);
    let kernel = Kernel::build("hang_named_barrier", &Target::default(), |k| {
        let (pair, never) = (k.named_barrier("pair"), k.barrier("never", 1).count(1));
        k.role("a").warps(1).body(|| {
            pair.sync(64);
            a = line!() + 1;
            pair.sync(64);
        });
        k.role("b").warps(1).body(|| {
            pair.sync(64);
            b = line!() + 1;
            never.at(0u32).wait(0u32);
        });
    })?;
    Ok(Wrong {
        name: "named barrier",
        kernel,
        grid: [1, 1, 1],
        report: vec![
            line("a", 0, 0, a, "waits at barrier pair"),
            line("b", 1, 0, b, "waits for never[0], parity 0"),
        ],
        leaves: true,
    })
}

/// A barrier of the cluster that one CTA never comes to.
fn cluster_barrier() -> Result<Wrong, BuildErrors> {
    let (mut meet, mut stuck) = (0, 0);
    let kernel = Kernel::build("hang_cluster_barrier", &Target::default(), |k| {
        k.cluster(2, 1, 1);
        let never = k.barrier("never", 1).count(1);
        k.role("all").warps(1).body(|| {
            if_else(
                cluster_rank().eq(0u32),
                || {
                    cluster_arrive();
                    meet = line!() + 1;
                    cluster_wait();
                },
                || {
                    stuck = line!() + 1;
                    never.at(0u32).wait(0u32);
                },
            );
        });
    })?;
    Ok(Wrong {
        name: "cluster barrier",
        kernel,
        grid: [2, 1, 1],
        report: vec![
            line("all", 0, 0, meet, "waits for its cluster"),
            line("all", 0, 1, stuck, "waits for never[0], parity 0"),
        ],
        leaves: true,
    })
}

/// `setmaxnreg` by 32/240/240 on 384 threads: 8 registers a thread too many,
/// so that one warpgroup never gets what it asks for.
fn registers() -> Result<Wrong, BuildErrors> {
    let mut at = 0;
    let kernel = Kernel::build("hang_registers", &Target::default(), |k| {
        let ready = k.barrier("ready", 1).count(8);
        let load = k.role("load").warpgroups(1).registers(32);
        load.body(|| ready.at(0u32).wait(0u32));
        at = line!() + 1;
        let math = k.role("math").warpgroups(2).registers(240);
        math.body(|| {
            elect_lane(|| ready.at(0u32).arrive());
            ready.at(0u32).wait(0u32);
        });
    })?;
    Ok(Wrong {
        name: "setmaxnreg",
        kernel,
        grid: [1, 1, 1],
        report: vec![
            "load, warp 0, CTA (0,0,0), ".to_owned(),
            format!("hangs.rs:{at}: waits for 240 registers per thread"),
        ],
        leaves: false,
    })
}

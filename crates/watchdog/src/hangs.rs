//! Kernels that hang, one for each kind of wait, with the expected reports. They take no
//! arguments and exist only for tests of the watchdog.

use warpline_ir::builder::*;
use warpline_ir::{BuildErrors, Kernel, Target};

/// A kernel that hangs.
#[derive(Clone, Debug)]
pub struct HangingKernel {
    /// The kind of wait that hangs.
    pub name: &'static str,
    /// The kernel without the watchdog.
    pub kernel: Kernel,
    /// The grid of the launch.
    pub grid: [u32; 3],
    /// Texts that the report must contain.
    pub report: Vec<String>,
    /// Whether all warps can exit, so that the launch ends without an error.
    pub exits_cleanly: bool,
}

/// Builds all kernels of this module.
pub fn all() -> Result<Vec<HangingKernel>, BuildErrors> {
    Ok(vec![
        mbarrier()?,
        named_barrier()?,
        cluster_barrier()?,
        registers()?,
    ])
}

/// Formats the start of a report line.
fn report_line(role: &str, warp: u32, cta: u32, line: u32, waits: &str) -> String {
    format!("{role}, warp {warp}, CTA ({cta},0,0), hangs.rs:{line}: {waits}")
}

/// An mbarrier with a missing arrival: `load` skips the last stage.
fn mbarrier() -> Result<HangingKernel, BuildErrors> {
    let (mut wait_line, stages) = (0, 3);
    let kernel = Kernel::build("hang_mbarrier", &Target::default(), |k| {
        let full = k.barrier("full", stages).arrivals(1);
        k.role("load").warps(1).body(|| {
            range(0u32, stages - 1).each(|i| elect(|| full.at(i).arrive()));
        });
        k.role("compute").warps(2).body(|| {
            range(0u32, stages).each(|i| {
                wait_line = line!() + 1;
                full.at(i).wait(0u32);
            });
        });
    })?;
    let waits = "waits for full[2], parity 0";
    Ok(HangingKernel {
        name: "mbarrier",
        kernel,
        grid: [2, 1, 1],
        report: [(1, 0), (2, 0), (1, 1), (2, 1)]
            .map(|(warp, cta)| report_line("compute", warp, cta, wait_line, waits))
            .into(),
        exits_cleanly: true,
    })
}

/// A named barrier with one warp missing.
fn named_barrier() -> Result<HangingKernel, BuildErrors> {
    let (mut line_a, mut line_b) = (0, 0);
    let kernel = Kernel::build("hang_named_barrier", &Target::default(), |k| {
        let (pair, never) = (k.named_barrier("pair"), k.barrier("never", 1).arrivals(1));
        k.role("a").warps(1).body(|| {
            pair.sync(64);
            line_a = line!() + 1;
            pair.sync(64);
        });
        k.role("b").warps(1).body(|| {
            pair.sync(64);
            line_b = line!() + 1;
            never.at(0u32).wait(0u32);
        });
    })?;
    Ok(HangingKernel {
        name: "named barrier",
        kernel,
        grid: [1, 1, 1],
        report: vec![
            report_line("a", 0, 0, line_a, "waits at barrier pair"),
            report_line("b", 1, 0, line_b, "waits for never[0], parity 0"),
        ],
        exits_cleanly: true,
    })
}

/// A cluster barrier at which one CTA never arrives.
fn cluster_barrier() -> Result<HangingKernel, BuildErrors> {
    let (mut wait_line, mut stuck_line) = (0, 0);
    let kernel = Kernel::build("hang_cluster_barrier", &Target::default(), |k| {
        k.cluster(2, 1, 1);
        let never = k.barrier("never", 1).arrivals(1);
        k.role("all").warps(1).body(|| {
            if_else(
                cluster_rank().eq(0u32),
                || {
                    cluster_arrive();
                    wait_line = line!() + 1;
                    cluster_wait();
                },
                || {
                    stuck_line = line!() + 1;
                    never.at(0u32).wait(0u32);
                },
            );
        });
    })?;
    Ok(HangingKernel {
        name: "cluster barrier",
        kernel,
        grid: [2, 1, 1],
        report: vec![
            report_line("all", 0, 0, wait_line, "waits at the cluster barrier"),
            report_line("all", 0, 1, stuck_line, "waits for never[0], parity 0"),
        ],
        exits_cleanly: true,
    })
}

/// `setmaxnreg` requests that exceed the registers of the CTA by 8 per thread, so that one
/// warpgroup blocks forever.
fn registers() -> Result<HangingKernel, BuildErrors> {
    let mut wait_line = 0;
    let kernel = Kernel::build("hang_registers", &Target::default(), |k| {
        let ready = k.barrier("ready", 1).arrivals(8);
        let load = k.role("load").warpgroups(1).registers(32);
        load.body(|| ready.at(0u32).wait(0u32));
        wait_line = line!() + 1;
        let math = k.role("math").warpgroups(2).registers(240);
        math.body(|| {
            elect_lane(|| ready.at(0u32).arrive());
            ready.at(0u32).wait(0u32);
        });
    })?;
    Ok(HangingKernel {
        name: "setmaxnreg",
        kernel,
        grid: [1, 1, 1],
        report: vec![
            "load, warp 0, CTA (0,0,0), ".to_owned(),
            format!("hangs.rs:{wait_line}: waits for 240 registers per thread"),
        ],
        exits_cleanly: false,
    })
}

//! Runs a launch.

use crate::compile::{Code, compile};
use crate::env::{Env, launch_fault};
use crate::error::RunError;
use crate::global_memory::GlobalMemory;
use crate::merge_shadows::ShadowMerger;
use crate::options::Options;
use crate::residency;
use crate::rng::Rng;
use crate::schedule::Scheduler;
use crate::stats::{Counters, Stats};
use rayon::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use warpline_ir::{Fault, FaultKind, Kernel, Launch, OpLocation, Target};

/// Runs a kernel. Memory and counters depend only on the kernel, the launch, and three options:
/// timing, seed and target.
pub fn run(
    kernel: &Kernel,
    launch: &Launch,
    memory: &GlobalMemory,
    options: &Options,
) -> Result<Stats, Box<RunError>> {
    let target = &options.target;
    check_kernel(kernel, target).map_err(launch_fault)?;
    launch.check(kernel).map_err(launch_fault)?;
    (launch.check_extents(kernel, |at| memory.bytes_to_end(at))).map_err(launch_fault)?;
    let code = compile(kernel);
    check_ops(kernel, &code, target)?;
    let one_scheduler = code.communicates;
    let capacity = residency::clusters(kernel, &code, target);
    let env = Env::new(kernel, code, launch, memory, options);
    let run = LaunchRun {
        env: &env,
        options,
        done: AtomicU64::new(0),
    };
    let counters = if one_scheduler {
        run.run_together(capacity)?
    } else {
        run.run_independently()?
    };
    Ok(counters.stats(kernel, &env.code))
}

/// Checks the structure of a kernel; kernels from the builder always pass.
fn check_kernel(kernel: &Kernel, target: &Target) -> Result<(), Fault> {
    let invalid = |text: String| Err(Fault::new(FaultKind::Launch, text));
    let mut warps = 0;
    for r in &kernel.roles {
        if r.first_warp != warps || r.warps == 0 {
            return invalid(format!(
                "role {} does not start at the warp after the previous role",
                r.name
            ));
        }
        warps += r.warps;
    }
    if warps == 0 || warps * 32 > target.threads {
        return invalid(format!(
            "the CTA has {1} threads; the limit is 32 to {0}",
            target.threads,
            warps * 32
        ));
    }
    if kernel.shared_bytes > target.shared_bytes {
        return invalid(format!(
            "the CTA needs {1} bytes of shared memory; the limit is {0}",
            target.shared_bytes, kernel.shared_bytes
        ));
    }
    // Non-portable clusters have up to twice the portable size.
    let size: u64 = kernel.cluster.iter().map(|&c| u64::from(c)).product();
    if !(1..=2 * u64::from(target.cluster)).contains(&size) {
        return invalid(format!(
            "the cluster has {size} CTAs; the limit is 1 to {}",
            2 * target.cluster
        ));
    }
    for t in &kernel.tiles {
        if u64::from(t.offset) + u64::from(t.bytes()) > u64::from(kernel.shared_bytes) {
            return invalid(format!("tile {} is outside shared memory", t.name));
        }
    }
    Ok(())
}

/// Checks that the target supports all ops, and that all references are declared.
fn check_ops(kernel: &Kernel, code: &Code<'_>, target: &Target) -> Result<(), Box<RunError>> {
    if let Some(object) = &code.undeclared {
        let text = format!(
            "kernel {} uses {object}, which is not declared",
            kernel.name
        );
        return Err(launch_fault(Fault::new(FaultKind::Illegal, text)));
    }
    for s in &code.sites {
        if let Err(text) = s.op.legal(target) {
            let role = &kernel.roles[s.role.index()];
            let mut e = launch_fault(Fault::new(FaultKind::Illegal, text));
            e.at = Some(OpLocation {
                role: role.name.clone(),
                warp: role.first_warp,
                cta: [0; 3],
                op: s.op.name(),
                frame: kernel.locs.author(s.loc),
                stack: kernel.locs.stack(s.loc).to_vec(),
            });
            return Err(e);
        }
    }
    Ok(())
}

struct LaunchRun<'e, 'k> {
    env: &'e Env<'k>,
    options: &'e Options,
    /// The number of completed CTAs.
    done: AtomicU64,
}

impl LaunchRun<'_, '_> {
    fn report_progress(&self) {
        if let Some(progress) = &self.options.progress {
            let done = self.done.fetch_add(1, Relaxed) + 1;
            progress(done, self.env.ctas());
        }
    }

    /// Runs CTAs that communicate: one scheduler, with as many resident clusters as fit the GPU.
    fn run_together(&self, capacity: u64) -> Result<Counters, Box<RunError>> {
        let mut counters = Counters::new(self.env.kernel, &self.env.code);
        let rng = Rng::new(self.options.seed, u64::MAX);
        let done = || self.report_progress();
        let clusters = 0..self.env.clusters();
        let max = self.options.max_steps;
        let scheduler =
            Scheduler::new(self.env, clusters, capacity, rng, max, &mut counters, &done);
        // The clusters share one shadow, so the run itself reports conflicts between them.
        scheduler.run().map(|_| counters)
    }

    /// Runs CTAs that do not communicate: one scheduler per cluster, on any host thread.
    fn run_independently(&self) -> Result<Counters, Box<RunError>> {
        // The fault of the lowest cluster is reported, independent of the timing of host threads.
        let failed: Mutex<Option<(u64, Box<RunError>)>> = Mutex::new(None);
        let first_failed = AtomicU64::new(u64::MAX);
        let merge = Mutex::new(ShadowMerger::new(self.env));
        let run_cluster = |mut counters: Counters, cluster: u64| {
            if cluster > first_failed.load(Relaxed) {
                return counters;
            }
            let rng = Rng::new(self.options.seed, cluster);
            let done = || self.report_progress();
            let clusters = cluster..cluster + 1;
            let max = self.options.max_steps;
            let ran = Scheduler::new(self.env, clusters, 1, rng, max, &mut counters, &done).run();
            let merged = ran.map_err(|e| (cluster, e)).and_then(|global| {
                let mut merge = merge.lock().unwrap_or_else(|e| e.into_inner());
                merge.add(cluster, global)
            });
            if let Err((cluster, e)) = merged {
                first_failed.fetch_min(cluster, Relaxed);
                let mut failed = failed.lock().unwrap_or_else(|e| e.into_inner());
                if failed.as_ref().is_none_or(|(c, _)| *c > cluster) {
                    *failed = Some((cluster, e));
                }
            }
            counters
        };
        let no_counters = || Counters::new(self.env.kernel, &self.env.code);
        let clusters = 0..self.env.clusters();
        let counters = match self.threads().min(clusters.end as usize) {
            1 => clusters.fold(no_counters(), run_cluster),
            n => {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build();
                let pool = pool.map_err(|e| {
                    launch_fault(Fault::new(
                        FaultKind::Launch,
                        format!("cannot start host threads: {e}"),
                    ))
                })?;
                pool.install(|| {
                    clusters
                        .into_par_iter()
                        .fold(no_counters, run_cluster)
                        .reduce(no_counters, |a, b| a.add(&b))
                })
            }
        };
        match failed.into_inner().unwrap_or_else(|e| e.into_inner()) {
            Some((_, e)) => Err(e),
            None => Ok(counters),
        }
    }

    fn threads(&self) -> usize {
        match self.options.threads {
            0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
            n => n,
        }
    }
}

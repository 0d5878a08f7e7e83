//! A launch from start to end.

use crate::compile::{Code, compile};
use crate::env::{Env, refused};
use crate::error::RunError;
use crate::memory::Memory;
use crate::merge::Merge;
use crate::options::Options;
use crate::residency;
use crate::rng::Rng;
use crate::schedule::Scheduler;
use crate::stats::{Counters, Stats};
use rayon::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use warpline_ir::{Fault, FaultKind, Kernel, Launch, Site, Target};

/// Runs a kernel. The result, in memory and counters, depends on the kernel,
/// the launch and the options' timing, seed and target alone.
pub fn run(
    kernel: &Kernel,
    launch: &Launch,
    memory: &Memory,
    options: &Options,
) -> Result<Stats, Box<RunError>> {
    let target = &options.target;
    check_kernel(kernel, target).map_err(refused)?;
    launch.check(kernel).map_err(refused)?;
    (launch.check_extents(kernel, |at| memory.bytes_from(at))).map_err(refused)?;
    let code = compile(kernel);
    check_ops(kernel, &code, target)?;
    let one_scheduler = code.communicates;
    let room = residency::clusters(kernel, &code, target);
    let env = Env::new(kernel, code, launch, memory, options);
    let run = Run {
        env: &env,
        options,
        done: AtomicU64::new(0),
    };
    let counters = if one_scheduler {
        run.together(room)?
    } else {
        run.apart()?
    };
    Ok(counters.stats(kernel, &env.code))
}

/// Refuses a kernel that is not whole; what the builder makes always is.
fn check_kernel(kernel: &Kernel, target: &Target) -> Result<(), Fault> {
    let bad = |text: String| Err(Fault::new(FaultKind::Launch, text));
    let mut warps = 0;
    for r in &kernel.roles {
        if r.first_warp != warps || r.warps == 0 {
            return bad(format!(
                "role {} does not start where the one before ends",
                r.name
            ));
        }
        warps += r.warps;
    }
    if warps == 0 || warps * 32 > target.threads {
        return bad(format!(
            "a CTA has 32 to {} threads, not {}",
            target.threads,
            warps * 32
        ));
    }
    if kernel.shared_bytes > target.shared_bytes {
        return bad(format!(
            "a CTA has at most {} bytes of shared memory, not {}",
            target.shared_bytes, kernel.shared_bytes
        ));
    }
    // Clusters above the portable size exist, up to twice that.
    let size: u64 = kernel.cluster.iter().map(|&c| u64::from(c)).product();
    if !(1..=2 * u64::from(target.cluster)).contains(&size) {
        return bad(format!(
            "a cluster has 1 to {} CTAs, not {size}",
            2 * target.cluster
        ));
    }
    for t in &kernel.tiles {
        if u64::from(t.offset) + u64::from(t.bytes()) > u64::from(kernel.shared_bytes) {
            return bad(format!("tile {} lies outside shared memory", t.name));
        }
    }
    Ok(())
}

/// Refuses ops that the target does not have, and names of nothing.
fn check_ops(kernel: &Kernel, code: &Code<'_>, target: &Target) -> Result<(), Box<RunError>> {
    if let Some(what) = &code.undeclared {
        let text = format!(
            "kernel {} uses {what}, which it does not declare",
            kernel.name
        );
        return Err(refused(Fault::new(FaultKind::Illegal, text)));
    }
    for s in &code.sites {
        if let Err(text) = s.op.legal(target) {
            let role = &kernel.roles[s.role.index()];
            let mut e = refused(Fault::new(FaultKind::Illegal, text));
            e.at = Some(Site {
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

struct Run<'e, 'k> {
    env: &'e Env<'k>,
    options: &'e Options,
    /// CTAs that are done.
    done: AtomicU64,
}

impl Run<'_, '_> {
    fn told(&self) {
        if let Some(progress) = &self.options.progress {
            let done = self.done.fetch_add(1, Relaxed) + 1;
            progress(done, self.env.ctas());
        }
    }

    /// CTAs that communicate: all under one scheduler, as many at once as fit the machine.
    fn together(&self, room: u64) -> Result<Counters, Box<RunError>> {
        let mut counters = Counters::new(self.env.kernel, &self.env.code);
        let rng = Rng::new(self.options.seed, u64::MAX);
        let done = || self.told();
        let clusters = 0..self.env.clusters();
        let max = self.options.max_steps;
        let scheduler = Scheduler::new(self.env, clusters, room, rng, max, &mut counters, &done);
        // All clusters had one shadow: what it gives was judged.
        scheduler.run().map(|_| counters)
    }

    /// CTAs that do not: each cluster under its own scheduler, on any host thread.
    fn apart(&self) -> Result<Counters, Box<RunError>> {
        // The fault of the first cluster that has one is the result, whichever came first in time.
        let failed: Mutex<Option<(u64, Box<RunError>)>> = Mutex::new(None);
        let first_failed = AtomicU64::new(u64::MAX);
        let merge = Mutex::new(Merge::new(self.env));
        let one = |mut counters: Counters, cluster: u64| {
            if cluster > first_failed.load(Relaxed) {
                return counters;
            }
            let rng = Rng::new(self.options.seed, cluster);
            let done = || self.told();
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
        let none = || Counters::new(self.env.kernel, &self.env.code);
        let clusters = 0..self.env.clusters();
        let counters = match self.threads().min(clusters.end as usize) {
            1 => clusters.fold(none(), one),
            n => {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build();
                let pool = pool.map_err(|e| {
                    refused(Fault::new(
                        FaultKind::Launch,
                        format!("no host threads: {e}"),
                    ))
                })?;
                pool.install(|| {
                    clusters
                        .into_par_iter()
                        .fold(none, one)
                        .reduce(none, |a, b| a.add(&b))
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

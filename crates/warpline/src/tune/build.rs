//! Builds, checks and compiles candidates on all cores.

use crate::device::Device;
use crate::error::Error;
use crate::gpu::LoadedPlan;
use crate::prepare::prepare_selected;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use warpline_kernels::AnyWorkload;

/// A compiled candidate.
pub(super) struct BuiltCandidate {
    pub(super) loaded: LoadedPlan,
    /// The size of the workspace in bytes.
    pub(super) workspace: u64,
    /// The program hashes of its kernels.
    pub(super) programs: Vec<String>,
}

/// Loads every candidate onto a GPU. Calls `progress` with the number of finished candidates.
pub(super) fn build_all(
    works: &[Box<dyn AnyWorkload>],
    device: &Device,
    progress: &(dyn Fn(usize) + Sync),
) -> Vec<Result<BuiltCandidate, Error>> {
    on_all_cores(
        works,
        |work| build_candidate(work.as_ref(), device),
        progress,
    )
}

/// Maps items with one thread per core and returns the results in order. Calls `progress` with the
/// number of finished items.
pub(super) fn on_all_cores<I: Sync, T: Send>(
    items: &[I],
    map: impl Fn(&I) -> T + Sync,
    progress: &(dyn Fn(usize) + Sync),
) -> Vec<T> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let worker = || {
        let mut results = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(i) else { break };
            results.push((i, map(item)));
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        }
        results
    };
    let cores = thread::available_parallelism().map_or(1, |n| n.get());
    let mut all = thread::scope(|scope| {
        let threads = cores.min(items.len());
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        // A panic in a worker is a bug; propagate it.
        let all =
            joined.map(|results| results.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        all.flatten().collect::<Vec<_>>()
    });
    all.sort_by_key(|(i, _)| *i);
    all.into_iter().map(|(_, result)| result).collect()
}

fn build_candidate(work: &dyn AnyWorkload, device: &Device) -> Result<BuiltCandidate, Error> {
    let prepared = prepare_selected(work, &device.target())?;
    Ok(BuiltCandidate {
        loaded: prepared.load(device)?,
        workspace: prepared.workspace,
        programs: program_hashes(&prepared),
    })
}

/// Returns the program hashes of a plan's kernels, in order.
pub(super) fn program_hashes(prepared: &crate::prepare::Prepared) -> Vec<String> {
    prepared.steps.iter().map(|s| s.hash.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn every_item_is_mapped_once_in_order() {
        let items: Vec<usize> = (0..100).collect();
        let progress = Mutex::new(Vec::new());
        let results = on_all_cores(&items, |i| i * 2, &|done| {
            progress.lock().unwrap().push(done)
        });
        assert_eq!(results, (0..100).map(|i| i * 2).collect::<Vec<_>>());
        let mut progress = progress.into_inner().unwrap();
        progress.sort_unstable();
        assert_eq!(progress, (1..=100).collect::<Vec<_>>());
        assert!(on_all_cores(&[0; 0], |i| *i, &|_| {}).is_empty());
    }
}

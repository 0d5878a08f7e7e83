//! Candidates built, checked and compiled, on all cores.

use crate::device::Device;
use crate::error::Error;
use crate::gpu::Ready;
use crate::prepare::prepare_exactly;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use warpline_kernels::AnyWork;

/// A candidate that can be launched.
pub(super) struct Built {
    pub(super) ready: Ready,
    /// Bytes of workspace.
    pub(super) workspace: u64,
    /// The program hashes of its kernels.
    pub(super) programs: Vec<String>,
}

/// Brings every candidate onto a GPU; `tell` is told how many are done.
pub(super) fn build(
    works: &[Box<dyn AnyWork>],
    device: &Device,
    tell: &(dyn Fn(usize) + Sync),
) -> Vec<Result<Built, Error>> {
    on_all_cores(works, |work| one(work.as_ref(), device), tell)
}

/// What comes of each item, in order, by as many threads as there are cores;
/// `tell` is told how many are done.
pub(super) fn on_all_cores<I: Sync, T: Send>(
    items: &[I],
    one: impl Fn(&I) -> T + Sync,
    tell: &(dyn Fn(usize) + Sync),
) -> Vec<T> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let some = || {
        let mut some = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(i) else { break };
            some.push((i, one(item)));
            tell(done.fetch_add(1, Ordering::Relaxed) + 1);
        }
        some
    };
    let cores = thread::available_parallelism().map_or(1, |n| n.get());
    let mut all = thread::scope(|scope| {
        let threads = cores.min(items.len());
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(some)).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        // A panic is a bug of ours, and is passed on.
        let all = joined.map(|some| some.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        all.flatten().collect::<Vec<_>>()
    });
    all.sort_by_key(|(i, _)| *i);
    all.into_iter().map(|(_, came)| came).collect()
}

fn one(work: &dyn AnyWork, device: &Device) -> Result<Built, Error> {
    let prepared = prepare_exactly(work, &device.target())?;
    Ok(Built {
        ready: prepared.load(device)?,
        workspace: prepared.workspace,
        programs: hashes(&prepared),
    })
}

/// The program hashes of a plan's kernels, in order.
pub(super) fn hashes(prepared: &crate::prepare::Prepared) -> Vec<String> {
    prepared.steps.iter().map(|s| s.hash.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn everything_is_done_once_and_comes_in_order() {
        let items: Vec<usize> = (0..100).collect();
        let told = Mutex::new(Vec::new());
        let came = on_all_cores(&items, |i| i * 2, &|done| told.lock().unwrap().push(done));
        assert_eq!(came, (0..100).map(|i| i * 2).collect::<Vec<_>>());
        let mut told = told.into_inner().unwrap();
        told.sort_unstable();
        assert_eq!(told, (1..=100).collect::<Vec<_>>());
        assert!(on_all_cores(&[0; 0], |i| *i, &|_| {}).is_empty());
    }
}

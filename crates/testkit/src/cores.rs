//! A check of every item, on all cores.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Runs `check` for every item on all cores, in the order of the items; panics with all failures.
#[track_caller]
pub fn for_each<T: Send>(
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    check: impl Fn(T) -> Result<(), String> + Sync,
) {
    let next = Mutex::new(items.into_iter());
    let failures = Mutex::new(Vec::new());
    let work = || {
        loop {
            let next_item = next.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(item) = next_item else { break };
            if let Err(why) = check(item) {
                let mut all = failures.lock().unwrap_or_else(PoisonError::into_inner);
                all.push(why);
            }
        }
    };
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        (0..cores).for_each(|_| {
            scope.spawn(work);
        });
    });
    let failures = failures
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    assert!(
        failures.is_empty(),
        "{} failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn every_item_is_checked_once() {
        let sum = AtomicU32::new(0);
        for_each(1..=100, |x| {
            sum.fetch_add(x, Ordering::Relaxed);
            Ok(())
        });
        assert_eq!(sum.into_inner(), 5050);
    }

    #[test]
    #[should_panic(expected = "2 failed:\n")]
    fn all_failures_are_reported() {
        for_each(0..10, |x| match x % 5 {
            0 => Err(format!("{x}")),
            _ => Ok(()),
        });
    }
}

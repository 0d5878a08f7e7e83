//! Notices: warnings about configs. No call fails because of them. Each is emitted once.

use crate::gpu::lock;
use std::sync::Mutex;

/// The capacity of each list. A full list drops its oldest notice.
const MAX_NOTICES: usize = 64;

/// The notices that were not fetched yet, and all notices for deduplication.
static NOTICES: Mutex<(Vec<String>, Vec<String>)> = Mutex::new((Vec::new(), Vec::new()));

/// Emits a notice unless it was emitted before: as a `tracing` warning, and for the next call of
/// [`notices`].
pub(crate) fn notify(notice: String) {
    let mut notices = lock(&NOTICES);
    let (pending, emitted) = &mut *notices;
    if emitted.contains(&notice) {
        return;
    }
    tracing::warn!("{notice}");
    for list in [&mut *pending, emitted] {
        if list.len() >= MAX_NOTICES {
            list.remove(0);
        }
        list.push(notice.clone());
    }
}

/// Returns the notices since the last call: cache files that were skipped, cached configs that
/// failed, baselines that replaced undecided configs. Each notice is returned once.
pub fn notices() -> Vec<String> {
    std::mem::take(&mut lock(&NOTICES).0)
}

//! What a user should know and no call fails for: told once, and kept for who asks.

use crate::gpu::held;
use std::sync::Mutex;

/// What is kept at most, told or not; beyond, the oldest goes.
const MOST: usize = 64;

/// Told, and told already.
static TOLD: Mutex<(Vec<String>, Vec<String>)> = Mutex::new((Vec::new(), Vec::new()));

/// Says a sentence, unless it was said before: as an event of `tracing`, and
/// to who asks next for [`notices`].
pub(crate) fn say(sentence: String) {
    let mut told = held(&TOLD);
    let (waiting, before) = &mut *told;
    if before.contains(&sentence) {
        return;
    }
    tracing::warn!("{sentence}");
    for list in [&mut *waiting, before] {
        if list.len() >= MOST {
            list.remove(0);
        }
        list.push(sentence.clone());
    }
}

/// What was said of configs since the last time that anyone asked: files that
/// were passed over, winners that failed, baselines that were taken. Each
/// sentence comes once.
pub fn notices() -> Vec<String> {
    std::mem::take(&mut held(&TOLD).0)
}

//! Which problems share a tuned config.

use serde::Serialize;
use serde_json::{Map, Value};

/// The extents that share one tuned config.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Bucket {
    /// What all of them have in common, as JSON: `{"cols": 4096, "rows": 16384}`.
    pub extents: Value,
    /// The rule that made it, in one sentence.
    pub rule: &'static str,
}

impl Bucket {
    /// A bucket of a single problem: its class holds every field.
    pub fn exact() -> Self {
        Self {
            extents: Value::Object(Map::new()),
            rule: "each problem is tuned by itself",
        }
    }
}

/// The upper end of a bucket that doubles: the least power of two that is not below `n`.
///
/// ```
/// use warpline_family::bucket::doubling;
/// assert_eq!([0, 1, 2, 3, 4096, 4097].map(doubling), [1, 1, 2, 4, 4096, 8192]);
/// assert_eq!(doubling(u64::MAX), u64::MAX);
/// ```
pub fn doubling(n: u64) -> u64 {
    n.checked_next_power_of_two().unwrap_or(u64::MAX)
}

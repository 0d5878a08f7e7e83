//! Buckets: sets of problems that share a tuned config.

use serde::Serialize;
use serde_json::{Map, Value};

/// A set of extents that share one tuned config.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Bucket {
    /// The upper ends of the extents, as JSON: `{"cols": 4096, "rows": 16384}`.
    pub extents: Value,
    /// The rule that forms the buckets, in one sentence. It is part of the cache key.
    pub rule: &'static str,
}

impl Bucket {
    /// Returns the bucket of a single problem, whose class contains every field.
    pub fn exact() -> Self {
        Self {
            extents: Value::Object(Map::new()),
            rule: "each problem is tuned separately",
        }
    }
}

/// Returns the upper end of a power-of-two bucket: the smallest power of two ≥ `n`, saturating.
///
/// ```
/// use warpline_family::bucket::power_of_two_bucket;
/// assert_eq!([0, 1, 2, 3, 4096, 4097].map(power_of_two_bucket), [1, 1, 2, 4, 4096, 8192]);
/// assert_eq!(power_of_two_bucket(u64::MAX), u64::MAX);
/// ```
pub fn power_of_two_bucket(n: u64) -> u64 {
    n.checked_next_power_of_two().unwrap_or(u64::MAX)
}

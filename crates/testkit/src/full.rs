//! Whether the full test run is requested.

use std::env;

/// Returns whether `cargo xtask test --full` runs the tests (`WARPLINE_FULL` is set).
pub fn full() -> bool {
    env::var_os("WARPLINE_FULL").is_some()
}

/// Returns `many` in a full test run, else `few`.
pub fn few_or<T>(few: T, many: T) -> T {
    if full() { many } else { few }
}

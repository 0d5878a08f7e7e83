//! Generic loads and stores of up to 16 bytes per lane, prefetches and other words about lines, and fences.

mod cache;
mod fence;
mod line;
mod load;
mod prefetch;
mod store;

pub use cache::{Fetch, L1, LoadCache, LoadPath, StoreCache};
pub use fence::Fence;
pub use line::{ApplyPriority, Discard};
pub use load::Load;
pub use prefetch::{Prefetch, PrefetchTo};
pub use store::Store;

use crate::types::Type;
use crate::value::At;

/// The state space of a generic access.
pub(super) fn space(at: &At) -> &'static str {
    match at {
        At::Global { .. } => "global",
        At::Shared(place) if place.peer.is_some() => "shared::cluster",
        At::Shared(_) => "shared",
    }
}

/// `{a, b}` for several, `a` for one.
pub(super) fn vector(names: &[String]) -> String {
    match names {
        [one] => one.clone(),
        many => format!("{{{}}}", many.join(", ")),
    }
}

/// `.v2`, `.v4` or nothing.
pub(super) fn width(n: usize) -> String {
    if n == 1 {
        String::new()
    } else {
        format!(".v{n}")
    }
}

/// Refuses a vector that no generic access moves.
fn legal_vector(ty: Type, n: usize) -> Result<(), String> {
    if ty == Type::Pred {
        return Err("a predicate has no place in memory".into());
    }
    if ![1, 2, 4].contains(&n) || ty.bytes() * n > 16 {
        return Err(format!(
            "an access moves 1, 2 or 4 registers of up to 16 bytes together, not {n} of {ty}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;

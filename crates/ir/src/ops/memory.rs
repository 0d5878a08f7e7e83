//! Generic loads and stores of up to 16 bytes per lane, prefetches, cache-line operations and fences.

mod cache;
mod cache_line;
mod fence;
mod load;
mod prefetch;
mod store;

pub use cache::{L1Policy, L2Prefetch, LoadCache, LoadPath, StoreCache};
pub use cache_line::{ApplyPriority, Discard};
pub use fence::Fence;
pub use load::Load;
pub use prefetch::{Prefetch, PrefetchLevel};
pub use store::Store;

use crate::types::Type;
use crate::value::MemoryAddress;

/// Returns the PTX state space of an access.
pub(super) fn space(at: &MemoryAddress) -> &'static str {
    match at {
        MemoryAddress::Global { .. } => "global",
        MemoryAddress::Shared(address) if address.peer.is_some() => "shared::cluster",
        MemoryAddress::Shared(_) => "shared",
    }
}

/// Prints a vector operand: `{a, b}`, or `a` for one register.
pub(super) fn vector(names: &[String]) -> String {
    match names {
        [one] => one.clone(),
        many => format!("{{{}}}", many.join(", ")),
    }
}

/// Returns the vector suffix: `.v2`, `.v4` or nothing.
pub(super) fn vector_suffix(n: usize) -> String {
    if n == 1 {
        String::new()
    } else {
        format!(".v{n}")
    }
}

/// Rejects a vector that a generic access cannot move.
fn legal_vector(ty: Type, n: usize) -> Result<(), String> {
    if ty == Type::Pred {
        return Err("a pred cannot be loaded or stored".into());
    }
    if ![1, 2, 4].contains(&n) || ty.bytes() * n > 16 {
        return Err(format!(
            "cannot access {n} registers of {ty} at once; an access moves 1, 2 or 4 registers and at most 16 bytes"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
